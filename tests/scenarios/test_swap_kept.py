"""Swaps whose old groups stay for a while: the version before comes back at once, and nothing else changes."""

from __future__ import annotations

import pytest

from tests.scenarios.gauge import Gauge
from tests.scenarios.stories import CANARY
from tests.scenarios.swapped import kept, moved, released, replicas, roles
from tests.scenarios.world import NAME

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize("away", [False, True], ids=["from home", "back home"])
async def test_old_groups_stay_without_requests_and_then_go(away: bool) -> None:
    async with kept(1800) as m:
        world = m.world
        await moved(m, away=away)
        await released(world, "v3")
        serves, old = (NAME, CANARY) if away else (CANARY, NAME)
        before = "v2" if away else "v1"
        assert world.state == "Healthy" and world.status["phase"] == "Healthy"
        assert replicas(world) == {NAME: 4, CANARY: 4}
        await world.sleep(1500)
        assert world.groups(old) == dict.fromkeys(range(4), before) and (await m.shares()) == {serves: 1.0}
        assert (await m.all_shares())["direct"] == (await m.all_shares())["users"]
        await world.sleep(600)
        assert replicas(world) == ({NAME: 4} if away else {NAME: 0, CANARY: 4})
        assert roles(world).get(NAME) == (None if away else "parked")
        assert world.state == "Healthy"
        assert "kept" not in world.status
        assert world.names()["batchreleases"] == []
        m.assert_unharmed()


@pytest.mark.parametrize("away", [False, True], ids=["from home", "back home"])
async def test_the_version_before_comes_back_without_a_load(away: bool) -> None:
    async with kept(1800) as m:
        world = m.world
        await moved(m, away=away)
        await released(world, "v3")
        await world.sleep(300)
        gauge = Gauge(world, 4)
        world.set_image("v2" if away else "v1")
        await world.until(lambda: world.state == "Promoting", "the way back", 60)
        await world.until_state("Healthy", 120)
        await world.rest()
        serves = CANARY if away else NAME
        assert await m.shares() == {serves: 1.0}
        assert gauge.loads == 0
        await world.sleep(2400)
        gauge.stop()
        assert replicas(world) == ({NAME: 0, CANARY: 4} if away else {NAME: 4})
        assert gauge.loads == 0 and world.state == "Healthy"
        m.assert_unharmed()
