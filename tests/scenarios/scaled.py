"""What stories with an autoscaler share: one for the LWS, what its metric wants, and what became of its bounds."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS, LEADER_WORKER_SETS, Resource
from rollout_lws.objects.writes import Patch
from rollout_lws.sandbox.behaviours.autoscaler import DESIRED
from tests.scenarios.invariants import always_serving
from tests.scenarios.names import ROLLOUTS
from tests.scenarios.stories import at_rest
from tests.scenarios.world import NAME, NAMESPACE, World

AUTOSCALER = "llama-hpa"
#: As kubectl scale does.
MERGE = "application/merge-patch+json"
HALVES = {"replicas": "50%", "pause": {}}, {"replicas": "100%", "pause": {}}


def create_autoscaler(
    world: World,
    low: int | None = 1,
    high: int = 10,
    *,
    name: str = AUTOSCALER,
    target: str = NAME,
    of: Resource = LEADER_WORKER_SETS,
    **metadata: Any,
) -> None:
    """An autoscaler of ``target``, an object of kind ``of``, whose metric wants what there is until ``wants`` says
    otherwise.
    """
    metrics = [
        {"type": "Pods", "pods": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "4"}}}
    ]
    scaled = {"apiVersion": of.api_version, "kind": of.kind, "name": target}
    spec = {"scaleTargetRef": scaled, "maxReplicas": high, "metrics": metrics}
    world.server.create(
        HORIZONTAL_POD_AUTOSCALERS,
        {
            "apiVersion": HORIZONTAL_POD_AUTOSCALERS.api_version,
            "kind": HORIZONTAL_POD_AUTOSCALERS.kind,
            "metadata": {"namespace": NAMESPACE, "name": name, "annotations": {"team": "chat"}, **metadata},
            "spec": spec if low is None else {**spec, "minReplicas": low},
        },
        field_manager="kubectl",
    )


def wants(world: World, groups: int) -> None:
    world.patch(HORIZONTAL_POD_AUTOSCALERS, AUTOSCALER, {"metadata": {"annotations": {DESIRED: str(groups)}}})


def edit(world: World, *, manager: str = "kubectl-edit", **spec: Any) -> None:
    """Somebody else writes these members of the autoscaler's spec."""
    kind = "application/merge-patch+json"
    body = {"spec": spec}
    world.server.patch(HORIZONTAL_POD_AUTOSCALERS, NAMESPACE, AUTOSCALER, body, kind, field_manager=manager)


def autoscaler(world: World, name: str = AUTOSCALER) -> dict[str, Any]:
    found = world.get(HORIZONTAL_POD_AUTOSCALERS, name)
    assert found is not None
    return found


def bounds(world: World, name: str = AUTOSCALER) -> tuple[int, int]:
    spec = autoscaler(world, name)["spec"]
    return spec["minReplicas"], spec["maxReplicas"]


def kept(world: World, name: str = AUTOSCALER) -> str:
    """What has to come back, as text: spec and annotations, that of the metric apart."""
    found = autoscaler(world, name)
    annotations = {key: text for key, text in found["metadata"]["annotations"].items() if key != DESIRED}
    return json.dumps([found["spec"], annotations], sort_keys=True)


def written(world: World) -> list[Patch]:
    """Our writes to autoscalers."""
    return [
        write for write in world.writes if isinstance(write, Patch) and write.resource == HORIZONTAL_POD_AUTOSCALERS
    ]


# The Rollout scales


def scale(world: World, groups: int) -> None:
    """``kubectl scale rollout``."""
    world.server.patch(ROLLOUTS, NAMESPACE, NAME, {"spec": {"replicas": groups}}, MERGE, subresource="scale")


def scale_lws(world: World, groups: int, manager: str = "kubectl") -> None:
    """Another client scales the LWS, past its Rollout."""
    body = {"spec": {"replicas": groups}}
    world.server.patch(LEADER_WORKER_SETS, NAMESPACE, NAME, body, MERGE, field_manager=manager)


def replicas(world: World) -> int:
    """Groups in the spec of the LWS."""
    return int(world.lws["spec"]["replicas"])


def scalings(world: World) -> list[int]:
    """The numbers that we have written to the LWS."""
    return [
        each.body["spec"]["replicas"]
        for each in world.writes
        if isinstance(each, Patch)
        and (each.resource, each.name) == (LEADER_WORKER_SETS, NAME)
        and "replicas" in each.body.get("spec", {})
    ]


def has(world: World, groups: int, tag: str = "v1") -> Callable[[], bool]:
    """That so many groups are there and ready."""
    return lambda: world.groups() == dict.fromkeys(range(groups), tag)


async def asked_at_rest(world: World, groups: int = 4, **strategy: object) -> None:
    """An LWS whose Rollout asks for the groups that it has."""
    await at_rest(world, *HALVES, replicas=groups, **strategy)
    scale(world, groups)
    await world.rest()
    world.checks.append(always_serving)


async def autoscaled_at_rest(world: World, groups: int = 4, **strategy: object) -> None:
    """The same with an autoscaler of the Rollout."""
    await asked_at_rest(world, groups, **strategy)
    create_autoscaler(world, of=ROLLOUTS)
    await world.rest()


async def finish(world: World, tag: str = "v2") -> None:
    """Approve whatever waits until the version is released."""
    while world.state != "Healthy":
        await world.until(lambda: world.state in ("AwaitingApproval", "Healthy"))
        if world.state == "AwaitingApproval":
            world.approve()
            await world.until(lambda: world.state != "AwaitingApproval")
    # Workers of a surge group end after its leader.
    await world.until(lambda: set(world.groups().values()) == {tag}, f"all groups at {tag}")
