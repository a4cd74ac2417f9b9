"""Somebody who follows the documentation at a terminal, with real kubectl against a cluster and a controller."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from rollout_lws.cli.sandbox.command import SCRIPTS
from rollout_lws.cli.sandbox.local_cluster import Playground, playground
from rollout_lws.controller import process
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    DEFAULT_API_GROUP,
    LEADER_WORKER_SETS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SERVICES,
    STATEFUL_SETS,
)
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from rollout_lws.sandbox.store import Event
from rollout_lws.settings import Settings

ROOT = Path(__file__).parents[1]
#: Seconds that one script may take.
PATIENCE = 60
_WAIT = re.compile(r"\b(duration|drainSeconds|gracePeriodSeconds): \d+")


class Reader:
    """Somebody at a terminal: a copy of the examples, a cluster in the kubeconfig, and our program on the PATH.

    The pauses and drains of the examples' Rollouts are cut to nothing; all else is as it stands.
    """

    def __init__(self, cluster: Playground, home: Path) -> None:
        self.server = cluster.server
        self._home = home
        cluster.write_kubeconfig(home / "kubeconfig")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "HOME": str(home), "KUBECONFIG": str(home / "kubeconfig")}
        for folder in ("examples", "crds"):
            shutil.copytree(ROOT / folder, home / folder)
        for rollout in home.glob("examples/*/rollout.yaml"):
            rollout.write_text(_WAIT.sub(r"\1: 0", rollout.read_text()))

    async def run(self, script: str) -> str:
        """What the commands print; each must end well."""
        process = await asyncio.create_subprocess_exec(
            *("bash", "-euxo", "pipefail", "-c", script),
            stdin=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=self.environment,
            cwd=self._home,
        )
        try:
            output = (await asyncio.wait_for(process.communicate(), PATIENCE))[0].decode()
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)
            output = (await process.communicate())[0].decode()
            raise AssertionError(f"did not end within {PATIENCE} s\n{output}") from None
        assert process.returncode == 0, output
        return output

    def leaders(self, name: str) -> dict[str, tuple[str, str]]:
        """Leader pods of an LWS that are not going, with UID and image tag."""
        selector = f"leaderworkerset.sigs.k8s.io/name={name},leaderworkerset.sigs.k8s.io/worker-index=0"
        pods = self.server.list(PODS, "default", label_selector=selector)
        return {
            pod["metadata"]["name"]: (pod["metadata"]["uid"], pod["spec"]["containers"][0]["image"].rpartition(":")[2])
            for pod in pods
            if "deletionTimestamp" not in pod["metadata"]
        }

    def tags(self, name: str) -> list[str]:
        """The version of each group of an LWS."""
        return [tag for _, tag in self.leaders(name).values()]

    def left_over(self) -> list[str]:
        kinds = (LEADER_WORKER_SETS, STATEFUL_SETS, PODS, SERVICES, PERSISTENT_VOLUME_CLAIMS, CONTROLLER_REVISIONS)
        return [
            f"{kind.kind} {each['metadata']['name']}" for kind in kinds for each in self.server.list(kind, "default")
        ]

    async def nothing_left(self) -> None:
        """Return when the garbage collector has taken everything."""
        gone = asyncio.Event()

        def look(_: Event | None = None) -> None:
            if not self.left_over():
                gone.set()

        unsubscribe = self.server.store.subscribe(look)
        look()
        try:
            await asyncio.wait_for(gone.wait(), PATIENCE)
        except TimeoutError:
            raise AssertionError(f"still there: {self.left_over()}") from None
        finally:
            unsubscribe()


#: Pods load in a hundredth of a second.
FAST = Options(timing=Timing(speed=100))


@asynccontextmanager
async def reading(home: Path, options: Options = FAST) -> AsyncIterator[Reader]:
    """A reader with a cluster of their own, and a controller."""
    async with playground(options, DEFAULT_API_GROUP) as cluster:
        reader = Reader(cluster, home)
        settings = Settings(kubeconfig=str(home / "kubeconfig"), custom_network_scripts=SCRIPTS)
        async with process.running(settings):
            yield reader
