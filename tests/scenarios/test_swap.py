"""Swaps: the second set of groups stays and the first one goes, so that a release loads each group once."""

from __future__ import annotations

import pytest

from tests.scenarios.gauge import Gauge
from tests.scenarios.metered import NEW_ONLY, STABLE_ONLY, shared
from tests.scenarios.routed import SERVICE
from tests.scenarios.stories import CANARY
from tests.scenarios.swapped import come_to, moved, released, replicas, roles, swapped, to_the_end
from tests.scenarios.world import NAME

pytestmark = pytest.mark.looptime


async def test_a_release_loads_a_second_set_and_the_first_one_goes() -> None:
    async with swapped() as m:
        world = m.world
        assert world.rollout["spec"]["replicas"] == 4
        world.set_image("v2")
        for number, groups, share in ((1, 2, STABLE_ONLY), (2, 4, shared(0.5))):
            await m.step(number)
            assert world.groups(CANARY) == dict.fromkeys(range(groups), "v2")
            assert await m.all_shares() == {"users": share, "tagged": share, "direct": STABLE_ONLY}
            world.approve()
        await world.until_state("Healthy", 600)
        await world.rest()
        assert replicas(world) == {NAME: 0, CANARY: 4} and roles(world) == {NAME: "parked", CANARY: "active"}
        assert await m.all_shares() == dict.fromkeys(("users", "tagged", "direct"), NEW_ONLY)
        assert world.status["active"] == CANARY
        await world.sleep(3600)
        assert replicas(world) == {NAME: 0, CANARY: 4} and world.state == "Healthy"
        m.assert_unharmed()


async def test_roles_alternate_each_release_loads_once_and_nothing_is_left() -> None:
    async with swapped() as m:
        world = m.world
        for number, serves in enumerate((CANARY, NAME, CANARY, NAME), 2):
            gauge = Gauge(world, 4)
            await released(world, f"v{number}")
            gauge.stop()
            assert (gauge.loads, gauge.extra) == (4, 4)
            assert world.groups(serves) == dict.fromkeys(range(4), f"v{number}")
            assert (await m.shares()) == {serves: 1.0}
            assert replicas(world) == ({NAME: 0, CANARY: 4} if serves == CANARY else {NAME: 4})
            assert roles(world).get(NAME) == ("parked" if serves == CANARY else None)
            assert world.names()["batchreleases"] == [] and f"{SERVICE}-canary" not in world.names()["services"]
        m.assert_unharmed()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("moment", ["step 1", "step 2", "hand-over"])
@pytest.mark.parametrize("away", [False, True], ids=["from home", "back home"])
async def test_an_abort_leaves_the_requests_where_they_were(away: bool, moment: str) -> None:
    async with swapped() as m:
        world = m.world
        serves = await moved(m, away=away)
        await come_to(m, moment, "v3")
        await world.sleep(10 if moment == "hand-over" else 40)
        world.request("Abort")
        await world.until_state("Aborted", 1200)
        await world.rest()
        assert await m.shares() == {serves: 1.0}
        assert replicas(world) == ({NAME: 0, CANARY: 4} if away else {NAME: 4})
        await world.sleep(600)
        world.request("Retry")
        await world.until_state("AwaitingApproval", 600)
        await to_the_end(world)
        assert replicas(world) == ({NAME: 4} if away else {NAME: 0, CANARY: 4})
        m.assert_unharmed()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("moment", ["step 1", "step 2", "hand-over"])
@pytest.mark.parametrize("away", [False, True], ids=["from home", "back home"])
async def test_a_third_version_and_the_stable_one_take_the_release_back(away: bool, moment: str) -> None:
    async with swapped() as m:
        world = m.world
        serves = await moved(m, away=away)
        stable = "v2" if away else "v1"
        await come_to(m, moment, "v3")
        await world.sleep(10 if moment == "hand-over" else 40)
        world.set_image("v4")
        other = NAME if away else CANARY
        await world.until(lambda: {*world.groups(other).values()} == {"v4"}, "the fourth version", 1200)
        await world.until_state("AwaitingApproval", 600)
        world.set_image(stable)
        await world.until_state("Healthy", 1200)
        await world.rest()
        assert await m.shares() == {serves: 1.0}
        assert replicas(world) == ({NAME: 0, CANARY: 4} if away else {NAME: 4})
        assert world.groups(serves) == dict.fromkeys(range(4), stable)
        m.assert_unharmed()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("count", [2, 6])
@pytest.mark.parametrize("moment", ["step 1", "step 2", "hand-over"])
@pytest.mark.parametrize("away", [False, True], ids=["from home", "back home"])
async def test_the_rollout_is_scaled_in_a_release(away: bool, moment: str, count: int) -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=away)
        await come_to(m, moment, "v3")
        world.patch_rollout({"replicas": count})
        await world.sleep(60)
        await to_the_end(world)
        await world.until(
            lambda: replicas(world) == ({NAME: count} if away else {NAME: 0, CANARY: count}), "scaled", 600
        )
        await world.sleep(60)
        assert not m.meter.failures


async def test_the_rollout_is_scaled_at_rest_and_to_zero_and_back() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        for count in (6, 2, 0):
            world.patch_rollout({"replicas": count})
            await world.until(lambda count=count: replicas(world) == {NAME: 0, CANARY: count}, "scaled")
        await world.until(lambda: world.groups(CANARY) == {}, "no groups")
        world.patch_rollout({"replicas": 3})
        await world.until(lambda: world.groups(CANARY) == dict.fromkeys(range(3), "v2"), "groups again", 600)
        world.patch_rollout({"replicas": 0})
        await world.until(lambda: world.groups(CANARY) == {}, "no groups", 600)
        world.set_image("v3")
        await world.until(lambda: CANARY not in replicas(world), "the user's workload is active", 600)
        world.patch_rollout({"replicas": 4})
        await world.until(lambda: world.groups() == dict.fromkeys(range(4), "v3"), "groups at home", 600)
        await world.until_state("Healthy", 600)
        await world.rest()
        assert await m.shares() == {NAME: 1.0}
