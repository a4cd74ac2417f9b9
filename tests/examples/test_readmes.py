"""Every command of the examples' READMEs, run in order with real kubectl against a cluster and a controller.

The pauses of their Rollouts are cut to nothing; all else is as a reader runs it.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rollout_lws.cli.playground import Playground, playground
from rollout_lws.controller import process
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    LEADER_WORKER_SETS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SERVICES,
    STATEFUL_SETS,
)
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from rollout_lws.sandbox.store import Event
from rollout_lws.settings import DEFAULT_API_GROUP, Settings
from tests.examples.examples import FOLDER, NAMES

#: Seconds that all commands of one section may take.
PATIENCE = 25
OLD = {"quickstart": "1.27", "vllm": "v0.27.1", "sglang": "v0.5.17"}
NEW = {"quickstart": ("1.28", "1.29"), "vllm": ("v0.28.0", "v0.28.0"), "sglang": ("v0.5.18", "v0.5.18")}


class Reader:
    """Somebody at a terminal: a copy of the examples, a cluster in the kubeconfig, and our program on the PATH."""

    def __init__(self, cluster: Playground, home: Path) -> None:
        self.server = cluster.server
        self._home = home
        cluster.write_kubeconfig(home / "kubeconfig")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": path, "HOME": str(home), "KUBECONFIG": str(home / "kubeconfig")}
        shutil.copytree(FOLDER, home / "examples")
        for rollout in home.glob("examples/*/rollout.yaml"):
            rollout.write_text(re.sub(r"\bduration: \d+", "duration: 0", rollout.read_text()))

    async def run(self, script: str) -> str:
        """What the commands print; each must end well."""
        process = await asyncio.create_subprocess_exec(
            *("bash", "-euxo", "pipefail", "-c", script),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=self._environment,
            cwd=self._home,
        )
        try:
            output = (await asyncio.wait_for(process.communicate(), PATIENCE))[0].decode()
        except TimeoutError:
            process.kill()
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


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[Reader]:
    async with playground(Options(timing=Timing(speed=100)), DEFAULT_API_GROUP) as cluster:
        made = Reader(cluster, tmp_path)
        async with process.running(Settings(kubeconfig=str(tmp_path / "kubeconfig"))):
            yield made


def sections(name: str) -> dict[str, str]:
    """The bash blocks of a README by the heading under which they stand."""
    found: dict[str, str] = {}
    heading, inside = "", False
    for line in (FOLDER / name / "README.md").read_text().splitlines():
        if line.startswith("## ") and not inside:
            heading = line.removeprefix("## ")
        elif line == "```bash":
            inside = True
        elif line == "```":
            inside = False
        elif inside:
            found[heading] = found.get(heading, "") + line + "\n"
    return found


@pytest.mark.kubectl
@pytest.mark.parametrize("name", NAMES)
async def test_the_commands_of_a_readme_do_what_it_says(reader: Reader, name: str) -> None:
    scripts = sections(name)
    assert list(scripts) == ["Start", "Release a new version", "Approve", "Abort", "Clean up"]
    await reader.run(scripts["Start"])
    before = reader.leaders(name)
    assert set(reader.tags(name)) == {OLD[name]}
    await reader.run(scripts["Release a new version"])
    first, last = NEW[name]
    assert reader.leaders(name) == before
    assert reader.tags(f"{name}-canary") == [first]
    await reader.run(scripts["Approve"])
    after = reader.leaders(name)
    assert reader.tags(name) == [last] * len(before)
    assert reader.tags(f"{name}-canary") == []
    await reader.run(scripts["Abort"])
    assert reader.leaders(name) == after
    await reader.run(scripts["Clean up"])
    await reader.nothing_left()
