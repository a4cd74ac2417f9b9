"""What stories with an autoscaler share: one for the LWS, what its metric wants, and what became of its bounds."""

from __future__ import annotations

import json
from typing import Any

from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS, LEADER_WORKER_SETS
from rollout_lws.objects.writes import Patch
from rollout_lws.sandbox.behaviours.autoscaler import DESIRED
from tests.scenarios.world import NAME, NAMESPACE, World

AUTOSCALER = "llama-hpa"
TARGET = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind, "name": NAME}


def create_autoscaler(
    world: World, low: int | None = 1, high: int = 10, *, name: str = AUTOSCALER, target: str = NAME, **metadata: Any
) -> None:
    """An autoscaler whose metric wants what there is until ``wants`` says otherwise."""
    metrics = [{"type": "Pods", "pods": {"metric": {"name": "queue"}, "target": {"type": "AverageValue"}}}]
    spec = {"scaleTargetRef": {**TARGET, "name": target}, "maxReplicas": high, "metrics": metrics}
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
