"""The main story and its variations: a canary in a second LeaderWorkerSet."""

from __future__ import annotations

import pytest

from tests.scenarios.world import NAME, World

pytestmark = pytest.mark.looptime

STEPS = ({"replicas": 1, "pause": {"duration": 10}}, {"replicas": "50%"}, {"replicas": "100%"})


async def started(world: World, *steps: dict[str, object], replicas: int = 4, size: int = 2) -> None:
    """An adopted LWS at rest."""
    world.create_workload(replicas=replicas, size=size)
    world.create_rollout(*(steps or STEPS))
    world.start_controller()
    await world.until_state("Healthy")
    await world.rest()


async def test_an_adopted_lws_is_held_and_nothing_of_it_restarts(world: World) -> None:
    world.create_workload()
    await world.rest()
    before = world.leader_uids()
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.until_state("Healthy")
    await world.rest()
    assert world.lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] == 1_000_000
    assert world.leader_uids() == before
    assert world.condition("Ready")["status"] == "True"
    assert world.condition("Held")["status"] == "True"


async def test_a_canary_release_goes_through_its_steps_and_is_promoted(world: World) -> None:
    await started(world)
    before = world.leader_uids()
    world.set_image("v2")
    await world.until_state("Pausing")
    assert world.groups(f"{NAME}-canary") == {0: "v2"}
    assert world.leader_uids() == before
    await world.until_state("AwaitingApproval")
    assert world.groups(f"{NAME}-canary") == {0: "v2", 1: "v2"}
    assert world.leader_uids() == before
    world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert world.groups() == dict.fromkeys(range(4), "v2")
    assert world.names()["leaderworkersets"] == [NAME]
    assert world.names()["batchreleases"] == []
    assert world.lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"] == {
        "partition": 1_000_000,
        "maxSurge": 0,
        "maxUnavailable": 1,
    }
