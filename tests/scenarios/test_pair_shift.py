"""Pairs whose sides have hardly more groups together than one of them at rest: groups go as others come."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenarios.paired import BLUE, GREEN, apply, approve_to_the_end, left, share, weights, wipe
from tests.scenarios.paired_scaled import recreate_rollout, replicas, roles
from tests.scenarios.paired_shift import (
    GROUPS,
    MOMENTS,
    STEPS,
    ShiftJudge,
    assert_none_left,
    at_rest,
    come_to,
    draining,
    shifting,
)
from tests.scenarios.routed import OF_PAIRS
from tests.scenarios.scaled import scale

pytestmark = [pytest.mark.looptime, *OF_PAIRS]

ALL_MOMENTS = pytest.mark.parametrize("moment", MOMENTS)


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("shift", "most", "least"),
    [
        ({}, 5, 4),
        ({"maxExtraGroups": 0, "maxUnavailableGroups": 1}, 4, 3),
        ({"maxExtraGroups": "50%", "maxUnavailableGroups": "25%"}, 6, 3),
        ({"maxExtraGroups": 4}, 8, 4),
    ],
)
async def test_a_release_takes_groups_as_others_come(shift: dict[str, Any], most: int, least: int) -> None:
    async with shifting(shift) as pair:
        world = pair.world
        for number, (side, other) in enumerate(((GREEN, BLUE), (BLUE, GREEN)), 2):
            judge = ShiftJudge(world, most, least)
            apply(world, side, f"v{number}")
            await world.until_state("AwaitingApproval", 1200)
            await world.sleep(120)
            assert replicas(world) == {side: 1, other: 3}
            assert share(world, side) == pytest.approx(0.25)
            world.approve()
            await world.until(lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval")
            await world.sleep(120)
            assert replicas(world) == {side: 3, other: 1}
            await approve_to_the_end(world)
            await world.sleep(120)
            assert at_rest(world, side) and roles(world) == {side: "active", other: "parked"}
            assert judge.loads == GROUPS
            assert {each.rstrip("!") for each in world.groups(side).values()} == {f"v{number}"}
            assert_none_left(world)
        pair.assert_unharmed()


@pytest.mark.one_in(4)
@ALL_MOMENTS
@pytest.mark.parametrize("shift", [{}, {"maxExtraGroups": 0, "maxUnavailableGroups": 1}], ids=["extra", "lacking"])
async def test_an_abort_gives_the_groups_back(moment: str, shift: dict[str, Any]) -> None:
    async with shifting(shift) as pair:
        world = pair.world
        ShiftJudge(world, 4 if shift else 5, None)
        await come_to(world, moment)
        await world.sleep(10)
        world.request("Abort")
        await world.until_state("Aborted", 1200)
        assert at_rest(world, BLUE) and "!" not in "".join(world.groups(BLUE).values())
        assert weights(world) == {BLUE: 100, GREEN: 0}
        await world.sleep(60)
        assert_none_left(world)
        world.request("Retry")
        await world.until_state("AwaitingApproval", 1200)
        await approve_to_the_end(world)
        assert at_rest(world, GREEN)
        await world.sleep(60)
        pair.assert_unharmed()


@pytest.mark.one_in(4)
@ALL_MOMENTS
async def test_a_third_version_starts_from_all_groups(moment: str) -> None:
    async with shifting() as pair:
        world = pair.world
        ShiftJudge(world, GROUPS + 1, None)
        await come_to(world, moment)
        await world.sleep(10)
        apply(world, GREEN, "v3")
        await world.until(lambda: set(world.groups(GREEN).values()) == {"v3"}, "the third version", 1200)
        await world.until_state("AwaitingApproval", 1200)
        await approve_to_the_end(world)
        await world.sleep(60)
        assert at_rest(world, GREEN) and world.status["active"] == GREEN
        assert set(world.groups(GREEN).values()) == {"v3"}
        assert_none_left(world)
        pair.assert_unharmed()


@pytest.mark.one_in(4)
@ALL_MOMENTS
async def test_the_stable_template_takes_the_release_back(moment: str) -> None:
    async with shifting() as pair:
        world = pair.world
        await come_to(world, moment)
        apply(world, GREEN, "v1")
        await world.until(lambda: at_rest(world, BLUE) and world.state == "Healthy", "back", 1200)
        assert weights(world) == {BLUE: 100, GREEN: 0}
        await world.sleep(60)
        assert_none_left(world)
        pair.assert_unharmed()


@pytest.mark.one_in(4)
@ALL_MOMENTS
@pytest.mark.parametrize("count", [2, 7])
async def test_the_rollout_is_scaled_in_a_release(moment: str, count: int) -> None:
    async with shifting() as pair:
        world = pair.world
        await come_to(world, moment)
        scale(world, count)
        await world.sleep(60)
        await approve_to_the_end(world)
        await world.until(lambda: at_rest(world, GREEN, count), "scaled", 600)
        await world.sleep(60)
        assert not pair.meter.failures and not (pair.meter.cuts and count > GROUPS)


@pytest.mark.one_in(4)
@ALL_MOMENTS
@pytest.mark.parametrize("how", ["wiped", "recreated"])
async def test_a_release_that_is_not_on_record_goes_back(moment: str, how: str) -> None:
    async with shifting() as pair:
        world = pair.world
        await come_to(world, moment)
        if how == "wiped":
            wipe(world)
        else:
            recreate_rollout(world, shift={})
        await world.until(lambda: world.state == "Healthy" and at_rest(world, BLUE), "back", 2400)
        await world.sleep(120)
        assert at_rest(world, BLUE) and world.status["active"] == BLUE
        assert weights(world) == {BLUE: 100, GREEN: 0}
        assert world.rollout["spec"]["replicas"] == GROUPS
        assert_none_left(world)
        pair.assert_unharmed()


@pytest.mark.one_in(4)
@ALL_MOMENTS
@pytest.mark.parametrize("how", ["deleted", "disabled"])
async def test_a_rollout_that_leaves_gives_the_groups_back(moment: str, how: str) -> None:
    async with shifting() as pair:
        world = pair.world
        await come_to(world, moment)
        if how == "deleted":
            await left(world)
        else:
            world.patch_rollout({"disabled": True})
            await world.until_state("Disabled", 1200)
        await world.sleep(60)
        assert at_rest(world, BLUE) and roles(world) == {BLUE: None, GREEN: None}
        assert_none_left(world)
        assert await pair.shares() == {BLUE: 1.0}
        pair.assert_unharmed()


async def test_numbers_that_others_write_are_put_back() -> None:
    async with shifting() as pair:
        world = pair.world
        await come_to(world, "step 2")
        await world.sleep(120)
        assert replicas(world) == {BLUE: 1, GREEN: 3}
        for numbers in ({BLUE: 4}, {GREEN: 4}, {BLUE: 0}):
            for name, number in numbers.items():
                world.patch_lws({"replicas": number}, name)
            await world.until(lambda: replicas(world) == {BLUE: 1, GREEN: 3}, f"after {numbers}", 120)
            await world.sleep(60)
        assert replicas(world) == {BLUE: 1, GREEN: 3} and world.status["active"] == BLUE
        assert draining(world) == []
        await approve_to_the_end(world)
        assert at_rest(world, GREEN)


async def test_a_last_step_of_all_groups_is_the_hand_over() -> None:
    async with shifting(steps=(STEPS[0], {"replicas": "100%"})) as pair:
        world = pair.world
        ShiftJudge(world)
        await come_to(world, "step 1")
        await world.sleep(60)
        world.approve()
        await world.until_state("Healthy", 1200)
        assert at_rest(world, GREEN)
        await world.sleep(60)
        pair.assert_unharmed()
