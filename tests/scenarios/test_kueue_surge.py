"""Capacity Surge under Kueue, which ends surge groups while they serve: refused, gone back from, finished in place."""

from __future__ import annotations

import pytest

from rollout_lws.objects.kueue import QUEUE_NAME
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.rollout.reasons import EventReason, Reason
from tests.scenarios.kueue import ends_surge_groups
from tests.scenarios.one_workload import PLAIN, SURGE, in_care, over, step
from tests.scenarios.stories import at_rest
from tests.scenarios.told import assert_only_held, assert_stalled, tells
from tests.scenarios.world import NAME, World

pytestmark = pytest.mark.looptime

KUEUE_SURGE = (
    "LeaderWorkerSet llama is queued by Kueue (gpus), which ends surge groups as soon as there are as many new groups"
    " as the LWS has, while they serve: use capacity InPlace or ExtraWorkload"
)


def queued(world: World) -> None:
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"labels": {QUEUE_NAME: "gpus"}}})


@tells({Reason.SURGE_UNDER_KUEUE: KUEUE_SURGE}, {EventReason.RELEASE_REFUSED: f"the new version waits: {KUEUE_SURGE}"})
async def test_a_surge_is_refused_before_the_first_write(world: World) -> None:
    await at_rest(world, *PLAIN, canary=dict(SURGE.words))
    before = world.leader_uids()
    queued(world)
    world.set_image("v2")
    await world.rest()
    assert_stalled(world, Reason.SURGE_UNDER_KUEUE, KUEUE_SURGE, phase="Healthy")
    assert_only_held(world, before)
    world.patch_rollout({"strategy": {"canary": {"capacity": "ExtraWorkload"}}})
    await step(world, 1)


async def test_a_release_in_its_steps_goes_back_and_is_not_begun_again(world: World) -> None:
    await in_care(world, SURGE)
    world.set_image("v2")
    await step(world, 1)
    queued(world)
    await world.until_state("Stalled")
    await world.rest()
    assert_stalled(world, Reason.SURGE_UNDER_KUEUE, KUEUE_SURGE, phase="Healthy")
    assert world.groups() == dict.fromkeys(range(4), "v1")
    assert [each.note for each in world.events if each.reason == EventReason.ROLLING_BACK] == [
        f"back to the stable version: {KUEUE_SURGE}"
    ]


async def test_a_promotion_renews_what_is_left_in_place(world: World) -> None:
    ends_surge_groups(world)
    await at_rest(world, {"replicas": 2, "pause": {}}, canary=dict(SURGE.words))
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    world.approve()
    await world.until(lambda: (world.status.get("finalising") or {}).get("task") == "Promote")
    queued(world)
    ready: list[int] = []
    world.checks.append(lambda seen: ready.append(sum("!" not in each for each in seen.groups().values())))
    await over(world, "v2")
    assert min(ready) == 3
    assert world.lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["maxSurge"] == 0
