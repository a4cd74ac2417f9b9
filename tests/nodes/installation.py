"""The controller on real nodes: installed again, restarted, uninstalled, and what its pods are like."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rollout_lws.cli.install.manifests import SELECTOR
from rollout_lws.cli.install.options import DEFAULT_NAMESPACE
from rollout_lws.cli.install.rbac import CONTROLLER
from rollout_lws.cli.install.waiting import lacks
from rollout_lws.objects.resources import DEPLOYMENTS, PODS
from rollout_lws.objects.writes import Patch
from tests.e2e.waiting import until
from tests.kubectl.programs import ROLLOUT_LWS, Programs
from tests.nodes import images
from tests.nodes.cluster import Cluster
from tests.nodes.node import Node

Object = dict[str, Any]

#: By which `kubectl rollout restart` has a Deployment make new pods.
_RESTARTED = "kubectl.kubernetes.io/restartedAt"
_PATIENCE = 180.0
#: What the interpreter is told to run in the image.
_PROGRAM = "/opt/rollout-lws/bin/rollout-lws controller"
#: Of each process that runs $1: who the kernel says it is, and how its root is mounted.
_LOOK = """\
for process in /proc/[0-9]*; do
    [ "$(tr '\\0' ' ' < $process/cmdline | cut -d' ' -f2-3)" = "$1" ] || continue
    grep -E '^(Uid|Gid|CapEff|CapBnd|NoNewPrivs|Seccomp):' $process/status
    grep ' / ' $process/mounts
done
"""


class Installation:
    """That of ``nodes``, in the namespace that it has by default."""

    namespace = DEFAULT_NAMESPACE

    def __init__(self, nodes: Cluster, programs: Programs) -> None:
        self._nodes = nodes
        self._programs = programs

    async def install(self, *extras: str, image: str = images.PRODUCT) -> None:
        """`rollout-lws install`, which returns when the controller is available."""
        await self.command("install", "--image", image, *extras)

    async def restart(self) -> None:
        """What `kubectl rollout restart` does, and `kubectl rollout status` waits for."""
        now = datetime.now(UTC).isoformat()
        body = {"spec": {"template": {"metadata": {"annotations": {_RESTARTED: now}}}}}
        await self._nodes.admin.send(Patch(DEPLOYMENTS, self.namespace, CONTROLLER, body, "new pods"))
        await self.available()

    async def available(self) -> None:
        """Until the Deployment's latest spec runs, and no pod of an older one is asked for."""

        def there(seen: Object | None) -> bool:
            return seen is not None and not lacks(seen)

        await until(self._nodes.admin, DEPLOYMENTS, self.namespace, CONTROLLER, there, _PATIENCE)

    async def remove(self) -> Sequence[str]:
        """All of it by `rollout-lws uninstall --yes` and the commands that it prints, kubectl's; gives what it said."""
        said = await self.command("uninstall", "--yes")
        for each in printed_commands(said):
            await self.shell(each)
        return said

    async def command(self, *given: str) -> list[str]:
        """What rollout-lws prints. AssertionError when it fails."""
        program = await self._programs.start(ROLLOUT_LWS, *given, "--kubeconfig", str(self._nodes.plane.admin))
        assert await program.end(_PATIENCE) == 0, program.output
        return program.lines

    async def shell(self, line: str) -> str:
        """What a command line of kubectl prints. AssertionError when it fails."""
        environment = {**os.environ, "KUBECONFIG": str(self._nodes.plane.admin)}
        program = await self._programs.start("sh", "-c", line, environment=environment)
        assert await program.end(_PATIENCE) == 0, program.output
        return program.output

    async def pods(self) -> list[Object]:
        """Those that do not end."""
        selector = ",".join(f"{key}={value}" for key, value in SELECTOR.items())
        answer = await self._nodes.admin.list(PODS, self.namespace, {"labelSelector": selector})
        return [each for each in json.loads(answer)["items"] if "deletionTimestamp" not in each["metadata"]]

    async def check(self, image: str = images.PRODUCT) -> None:
        """Two replicas of ``image`` on two nodes, ready, and never started again."""
        pods = await self.pods()
        assert {each["spec"]["nodeName"] for each in pods} == {each.name for each in self._nodes.nodes}
        assert len(pods) == 2
        for each in pods:
            (status,) = each["status"]["containerStatuses"]
            assert (each["spec"]["containers"][0]["image"], status["ready"], status["restartCount"]) == (image, True, 0)

    async def processes(self, node: Node) -> Sequence[Mapping[str, str]]:
        """What the kernel of ``node`` says of each controller that runs there."""
        found: list[dict[str, str]] = []
        for line in (await node.run("sh", "-c", _LOOK, "sh", _PROGRAM)).splitlines():
            name, _, value = line.partition(":\t")
            if name == "Uid":
                found.append({})
            if value:
                found[-1][name] = value
            else:
                found[-1]["root"] = line.split()[3]
        return found


def printed_commands(said: Sequence[str]) -> list[str]:
    """Those that `rollout-lws uninstall` wants run, in their order."""
    (begin,) = [number for number, line in enumerate(said) if line.startswith("These commands delete the rest")]
    return [line.strip() for line in said[begin + 1 :]]
