"""Pieces that stories are made of."""

from __future__ import annotations

from typing import Any

from rollout_lws.objects.resources import CONTROLLER_REVISIONS
from rollout_lws.workload.hold import HOLD
from tests.scenarios.count import partition
from tests.scenarios.invariants import never_two_canaries, stable_untouched_before_promotion
from tests.scenarios.world import KEYS, NAME, NAMESPACE, World

CANARY = f"{NAME}-canary"
#: One group, half of them, and then everything, each with an approval.
PROMOTED_STEPS: tuple[dict[str, Any], ...] = (
    {"replicas": 1, "pause": {}},
    {"replicas": "50%", "pause": {}},
    {"replicas": "100%", "pause": {}},
)
#: One group with a short pause, half of them with an approval, then everything.
STEPS: tuple[dict[str, Any], ...] = (
    {"replicas": 1, "pause": {"duration": 10}},
    {"replicas": "50%", "pause": {}},
    {"replicas": "100%", "pause": {}},
)


async def at_rest(world: World, *steps: dict[str, Any], replicas: int = 4, size: int = 2, **strategy: Any) -> None:
    """An LWS at version v1 in care of a Rollout, everything ready; invariants are watched from here on."""
    world.create_workload(replicas=replicas, size=min(size, world.kind.largest))
    world.create_rollout(*(steps or STEPS), **strategy)
    # Nothing is to be decided while groups load for the first time; looking on takes longer than all the rest.
    await world.until(
        lambda: len(told := world.groups()) == replicas and not any("!" in each for each in told.values())
    )
    world.start_controller()
    await world.until(lambda: world.state == "Healthy")
    await world.rest()
    world.checks.append(never_two_canaries)
    if (strategy.get("canary") or {}).get("capacity") != "InPlace":
        world.checks.append(stable_untouched_before_promotion(world))


async def waiting_for_approval(world: World, tag: str = "v2") -> None:
    world.set_image(tag)
    await world.until_state("AwaitingApproval")


async def mid_promotion(world: World, tag: str = "v2") -> None:
    """The first group of the stable LWS is being renewed."""
    await waiting_for_approval(world, tag)
    world.approve()
    await world.until(lambda: any(told.startswith(tag) for told in world.groups().values()), "a renewed group")


def assert_clean(world: World, tag: str, replicas: int = 4) -> None:
    """At rest at one version, held, and nothing left of any release but history."""
    assert world.groups() == world.all_at(tag), world.describe()
    assert len(world.groups()) == replicas
    assert world.workloads == [NAME]
    assert world.names()["batchreleases"] == []
    assert world.names()["services"] == [NAME]
    assert partition(world.lws) == HOLD
    marks = {key for key in world.lws["metadata"].get("annotations", {}) if KEYS.owns(key)}
    assert marks <= {KEYS.original, KEYS.aborted}
    owned = [
        obj["metadata"]["name"]
        for obj in world.server.list(CONTROLLER_REVISIONS, NAMESPACE)
        if obj["metadata"]["name"].startswith(CANARY)
    ]
    assert owned == []
    assert world.get(world.kind.resource, CANARY) is None
