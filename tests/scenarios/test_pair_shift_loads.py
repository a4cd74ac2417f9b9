"""Pairs that shift: no group gets more requests than it may have, whatever turns a release round."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from tests.scenarios.paired import BLUE, GREEN, apply, approve_to_the_end, forge, left, weights, wipe
from tests.scenarios.paired_shift import (
    GROUPS,
    LoadJudge,
    ShiftJudge,
    assert_none_left,
    at_rest,
    come_to,
    shifting,
)
from tests.scenarios.routed import OF_PAIRS
from tests.scenarios.world import NAME, ROLLOUTS

pytestmark = [pytest.mark.looptime, *OF_PAIRS]

LATE = pytest.mark.parametrize("moment", ["step 2", "hand-over"])


async def test_a_release_to_its_end() -> None:
    async with shifting() as pair:
        world = pair.world
        judge = LoadJudge(world)
        await come_to(world, "hand-over")
        await approve_to_the_end(world)
        await world.sleep(60)
        pair.assert_unharmed()
        judge.assert_kept()


@pytest.mark.one_in(4)
@LATE
@pytest.mark.parametrize("how", ["abort", "leaves", "wiped", "stable template"])
async def test_the_way_back(moment: str, how: str) -> None:
    async with shifting() as pair:
        world = pair.world
        await come_to(world, moment)
        await world.sleep(60 if moment == "step 2" else 10)
        judge = LoadJudge(world)
        ShiftJudge(world, GROUPS + 1, None)
        match how:
            case "abort":
                world.request("Abort")
            case "leaves":
                world.delete(ROLLOUTS, NAME)
            case "wiped":
                wipe(world)
            case _:
                apply(world, GREEN, "v1")
        await world.until(lambda: at_rest(world, BLUE), "back", 1200)
        await world.sleep(60)
        pair.assert_unharmed()
        judge.assert_kept()


@pytest.mark.one_in(4)
@LATE
async def test_a_third_version(moment: str) -> None:
    async with shifting() as pair:
        world = pair.world
        await come_to(world, moment)
        await world.sleep(60 if moment == "step 2" else 10)
        judge = LoadJudge(world)
        apply(world, GREEN, "v3")
        await world.until(lambda: set(world.groups(GREEN).values()) == {"v3"}, "the third version", 1200)
        pair.assert_unharmed()
        judge.assert_kept()


async def test_a_jump_back() -> None:
    async with shifting() as pair:
        world = pair.world
        await come_to(world, "step 2")
        await world.sleep(60)
        judge = LoadJudge(world)
        ShiftJudge(world)
        world.patch(ROLLOUTS, NAME, {"status": {"canaryStatus": {"nextStepIndex": 1}}}, "status")
        await world.sleep(300)
        assert weights(world) == {BLUE: 75, GREEN: 25}
        pair.assert_unharmed()
        judge.assert_kept()


async def test_shift_is_removed_from_the_plan() -> None:
    async with shifting() as pair:
        world = pair.world
        await come_to(world, "step 2")
        await world.sleep(60)
        judge, told = LoadJudge(world), len(world.events)
        world.patch_rollout({"strategy": {"canary": {"shift": None}}})
        await world.sleep(300)
        await approve_to_the_end(world)
        await world.sleep(60)
        assert at_rest(world, GREEN)
        assert_none_left(world)
        # No other client has done that.
        assert not [each.note for each in world.events[told:] if "was put back" in each.note]
        pair.assert_unharmed()
        judge.assert_kept()


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "forged",
    [
        {"phase": "Healthy"},
        {"phase": "Aborted"},
        {"phase": "Disabled"},
        {"finalising": {"reason": "Aborted", "task": "CleanUp"}},
        {"finalising": {"reason": "Success", "task": "CleanUp"}},
        {"finalising": {"reason": "Success", "task": "Promote"}},
        {"stable": None},
    ],
    ids=str,
)
async def test_a_status_that_says_something_else(forged: dict[str, Any]) -> None:
    async with shifting() as pair:
        world = pair.world
        await come_to(world, "step 2")
        await world.sleep(60)
        judge = LoadJudge(world)
        ShiftJudge(world, GROUPS + 1, None)
        forge(world, **forged)
        await world.sleep(400)
        pair.assert_unharmed()
        judge.assert_kept()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("moment", ["draining", "step 1", "step 2", "hand-over"])
async def test_a_rollout_without_a_record_that_leaves(moment: str) -> None:
    async with shifting() as pair:
        world = pair.world
        await come_to(world, moment)
        await world.sleep(60 if "step" in moment else 5)
        wipe(world)
        await left(world)
        await world.sleep(60)
        assert at_rest(world, BLUE)
        assert_none_left(world)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("shifts", [True, False])
async def test_requests_stay_where_they_are_served_if_all_else_is_deleted(shifts: bool) -> None:
    async with shifting() as pair:
        world = pair.world
        if not shifts:
            world.patch_rollout({"strategy": {"canary": {"shift": None}}})
            await world.rest()
        await come_to(world, "step 2")
        await world.sleep(60)
        world.delete(LEADER_WORKER_SETS, BLUE)
        world.delete(ROLLOUTS, NAME)
        await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "the Rollout leaves", 1200)
        await world.sleep(60)
        assert weights(world) == {BLUE: 0, GREEN: 100}
