"""What goes wrong in stories of failures, and what is said of it to whoever has to do something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollout_lws.objects.resources import LWS_NAME, NODES, PODS
from rollout_lws.sandbox.behaviours.faults import PREFIX
from tests.scenarios.stories import CANARY
from tests.scenarios.world import NAMESPACE, World

#: The revisions that the sandbox gives to vllm:v1 and vllm:v2.
V1, V2 = "fcbccmmmkf", "jjghfhdkb"
GO_BACK = "to go back: kubectl rollout-lws abort llama"
WHEN_READY = f"The release waits, it goes on when its groups become ready; {GO_BACK}"


def apply(world: World, tag: str = "v2", *, faults: Mapping[str, str | None] | None = None, **spec: Any) -> None:
    """Change the template; ``faults`` are the sandbox's annotations, None for one that goes; ``spec`` more of the
    pod.
    """
    annotations = {PREFIX + name: text for name, text in (faults or {}).items()}
    containers = [{"name": "vllm", "image": f"vllm:{tag}"}]
    template = {
        "metadata": {"labels": {"app": "llama"}, "annotations": annotations},
        "spec": {"containers": containers, **spec},
    }
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": template}})


def pods(world: World, lws: str = CANARY) -> dict[str, dict[str, Any]]:
    """The pods of an LWS by name."""
    found = world.server.list(PODS, NAMESPACE, label_selector=f"{LWS_NAME}={lws}")
    return {pod["metadata"]["name"]: pod for pod in found}


async def say(world: World, name: str, **status: Any) -> None:
    """Have the kubelet say this of a pod, and nothing more of any: the cluster stands still from then on."""
    await world.until(lambda: world.get(PODS, name) is not None, f"pod {name}")
    await world.rest()
    world.cluster.runner.stop()
    world.patch(PODS, name, {"status": status}, "status")


def waiting(reason: str, message: str = "", *, ended: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Statuses of the container: it waits, and may have ended before."""
    last = {"terminated": dict(ended)} if ended else {}
    state = {"waiting": {"reason": reason, "message": message}}
    return [{"name": "vllm", "restartCount": 1 if ended else 0, "state": state, "lastState": last}]


def cordon(world: World) -> None:
    for node in world.server.list(NODES):
        body = {"spec": {"unschedulable": True}}
        world.server.patch(NODES, "", node["metadata"]["name"], body, "application/merge-patch+json")


async def lose(world: World, name: str, lws: str = CANARY, reason: str = "DeletionByTaintManager") -> None:
    """A pod is deleted for its node's sake, in the two writes that the control plane makes of it; its group is back."""
    before = world.leader_uids(lws)
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "its node is gone"}
    known = pods(world, lws)[name]["status"]["conditions"]
    world.patch(PODS, name, {"status": {"conditions": [*known, condition]}}, "status")
    world.delete(PODS, name)
    leader = name if name in before else name.rpartition("-")[0]
    await world.until(lambda: world.leader_uids(lws).get(leader, before[leader]) != before[leader], f"{leader} anew")
    await world.rest()


async def kill(world: World, name: str, lws: str = CANARY) -> None:
    """A pod is gone, and nobody says why; its group is back."""
    before = world.leader_uids(lws)
    world.delete(PODS, name)
    await world.until(lambda: world.leader_uids(lws).get(name, before[name]) != before[name], f"{name} anew")
    await world.rest()
