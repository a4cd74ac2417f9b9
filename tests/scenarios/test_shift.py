"""Capacity Shift: groups of a second workload come as old ones go, and it stays."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenarios.paired_shift import GROUPS, ShiftJudge
from tests.scenarios.shifted import MOMENTS, assert_serves, come_to, shifted
from tests.scenarios.stories import CANARY
from tests.scenarios.swapped import moved, replicas, to_the_end
from tests.scenarios.world import NAME

pytestmark = pytest.mark.looptime

AWAY = pytest.mark.parametrize("away", [False, True], ids=["from home", "back home"])
ALL_MOMENTS = pytest.mark.parametrize("moment", MOMENTS)


@pytest.mark.parametrize(
    ("shift", "most", "least"),
    [
        ({}, 5, 4),
        ({"maxExtraGroups": 0, "maxUnavailableGroups": 1}, 4, 3),
        ({"maxExtraGroups": "50%", "maxUnavailableGroups": "25%"}, 6, 3),
    ],
    ids=["extra", "lacking", "both"],
)
async def test_a_release_takes_groups_as_others_come(shift: dict[str, Any], most: int, least: int) -> None:
    async with shifted(shift) as m:
        world = m.world
        for number, (serves, other) in enumerate(((CANARY, NAME), (NAME, CANARY), (CANARY, NAME)), 2):
            judge = ShiftJudge(world, most, least)
            world.set_image(f"v{number}")
            await m.step(1)
            await world.sleep(120)
            assert replicas(world) == {serves: 1, other: 3}
            assert await m.shares() == ({NAME: 0.75, CANARY: 0.25} if serves == CANARY else {NAME: 0.25, CANARY: 0.75})
            world.approve()
            await m.step(2)
            await world.sleep(120)
            assert replicas(world) == {serves: 3, other: 1}
            await to_the_end(world)
            # The last group may have no room before the old ones are gone.
            await world.sleep(60)
            assert_serves(world, serves, f"v{number}")
            assert await m.shares() == {serves: 1.0}
            assert judge.loads == GROUPS
            judge.most = judge.least = None
        m.assert_unharmed()


@pytest.mark.one_in(4)
@ALL_MOMENTS
@AWAY
async def test_an_abort_gives_the_groups_back(away: bool, moment: str) -> None:
    async with shifted({"maxExtraGroups": 0, "maxUnavailableGroups": 1} if moment == "step 1" else None) as m:
        world = m.world
        serves = await moved(m, away=away)
        judge = ShiftJudge(world, 4 if moment == "step 1" else 5, None)
        await come_to(m, moment, "v3")
        await world.sleep(10 if moment == "hand-over" else 1)
        world.request("Abort")
        if moment == "clean-up":
            await to_the_end(world)
            assert_serves(world, NAME if away else CANARY, "v3")
            m.assert_unharmed()
            return
        await world.until_state("Aborted", 1200)
        await world.rest()
        assert_serves(world, serves, "v2" if away else "v1")
        assert await m.shares() == {serves: 1.0}
        judge.most = judge.least = None
        world.request("Retry")
        await world.until_state("AwaitingApproval", 600)
        await to_the_end(world)
        await world.sleep(60)
        assert_serves(world, NAME if away else CANARY, "v3")
        m.assert_unharmed()


@pytest.mark.one_in(4)
@ALL_MOMENTS
@AWAY
async def test_a_third_version_and_the_stable_one_take_the_release_back(away: bool, moment: str) -> None:
    async with shifted() as m:
        world = m.world
        serves = await moved(m, away=away)
        stable = "v2" if away else "v1"
        judge = ShiftJudge(world, 5, None)
        await come_to(m, moment, "v3")
        await world.sleep(10 if moment == "hand-over" else 1)
        world.set_image("v4")
        if moment == "clean-up":
            serves, stable = (NAME, "v3") if away else (CANARY, "v3")
        other = NAME if serves == CANARY else CANARY
        await world.until(lambda: "v4" in world.groups(other).values(), "the fourth version", 1200)
        await world.until_state("AwaitingApproval", 1200)
        world.set_image(stable)
        await world.until_state("Healthy", 1200)
        await world.rest()
        judge.most = judge.least = None
        assert_serves(world, serves, stable)
        assert await m.shares() == {serves: 1.0}
        m.assert_unharmed()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("count", [2, 6])
@ALL_MOMENTS
@AWAY
async def test_the_rollout_is_scaled_in_a_release(away: bool, moment: str, count: int) -> None:
    async with shifted() as m:
        world = m.world
        await moved(m, away=away)
        await come_to(m, moment, "v3")
        world.patch_rollout({"replicas": count})
        await world.sleep(60)
        await to_the_end(world)
        await world.sleep(120)
        assert_serves(world, NAME if away else CANARY, "v3", count)
        assert not m.meter.failures
