"""What one LeaderWorkerSet cannot do, told word by word; nothing is touched but the hold."""

from __future__ import annotations

import pytest

from rollout_lws.rollout.reasons import EventReason, Reason
from tests.scenarios.one_workload import IN_PLACE, PLAIN, STYLES, SURGE, Style, in_care, over, step
from tests.scenarios.stories import at_rest
from tests.scenarios.told import assert_only_held, assert_stalled, tells
from tests.scenarios.world import World

pytestmark = pytest.mark.looptime

ONE_GROUP = (
    "LeaderWorkerSet llama has 1 group, and capacity InPlace renews groups while others serve: scale it to 2, or use"
    " capacity Surge"
)


@tells({Reason.TOO_FEW_GROUPS: ONE_GROUP}, {EventReason.RELEASE_REFUSED: f"the new version waits: {ONE_GROUP}"})
async def test_one_group_cannot_be_renewed_in_place(world: World) -> None:
    await at_rest(world, *PLAIN, replicas=1, canary=dict(IN_PLACE.words))
    before = world.leader_uids()
    world.set_image("v2")
    await world.rest()
    assert_stalled(world, Reason.TOO_FEW_GROUPS, ONE_GROUP, phase="Healthy")
    assert_only_held(world, before)
    world.patch_lws({"replicas": 2})
    await step(world, 1)


@tells({Reason.TOO_FEW_GROUPS: ONE_GROUP})
async def test_an_lws_scaled_to_one_group_in_mid_release_waits_and_can_go_back(world: World) -> None:
    await in_care(world, IN_PLACE)
    world.set_image("v2")
    await step(world, 1)
    world.patch_lws({"replicas": 1})
    await world.rest()
    assert_stalled(world, Reason.TOO_FEW_GROUPS, ONE_GROUP, phase="Progressing")
    world.request("Abort")
    await over(world, "v1", "Aborted")


CAPACITY = (
    "the capacity of a release that is on cannot change: restore spec.strategy.canary.capacity {} until it is over, or"
    " go back"
)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("style", STYLES, ids=str)
async def test_the_capacity_of_a_release_that_is_on_cannot_change(world: World, style: Style) -> None:
    await in_care(world, style)
    world.set_image("v2")
    await step(world, 1)
    standing = world.groups()
    for other in (
        {"capacity": "ExtraWorkload"},
        {"capacity": (SURGE if style is IN_PLACE else IN_PLACE).words["capacity"]},
    ):
        world.patch_rollout({"strategy": {"canary": other}})
        await world.rest()
        assert_stalled(world, Reason.INVALID_SPEC, CAPACITY.format(style.words["capacity"]), phase="Progressing")
        world.approve()
        await world.rest()
        assert world.groups() == standing
    world.patch_rollout({"strategy": {"canary": dict(style.words)}})
    await step(world, 2)
