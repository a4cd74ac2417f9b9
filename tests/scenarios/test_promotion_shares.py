"""Shares in a promotion: what groups that are not ready cannot carry is not given to those that are."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import PODS
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from tests.scenarios.gauge import Gauge
from tests.scenarios.routed import routed_at_rest, share
from tests.scenarios.stories import CANARY, waiting_for_approval
from tests.scenarios.world import World

pytestmark = pytest.mark.looptime


async def test_green_keeps_the_share_of_its_step_until_it_is_whole() -> None:
    world = World(Options(timing=Timing(ready_after=50, leader_longer=10)))
    try:
        await routed_at_rest(world, {"replicas": 1, "traffic": "20%"}, replicas=4, style="blueGreen")
        await waiting_for_approval(world)
        gauge = Gauge(world, 4)
        world.approve()
        await world.until(lambda: set(world.groups(CANARY)) == set(range(4)), "green grows")
        assert share(world) == pytest.approx(0.2)
        await world.until(lambda: world.groups(CANARY) == dict.fromkeys(range(4), "v2"), "green is whole")
        assert share(world) == pytest.approx(0.2)
        await world.until_state("Healthy")
        gauge.stop()
        assert gauge.peak_load == 1.0
    finally:
        world.close()


async def test_a_canary_that_loses_a_group_in_a_promotion_gets_the_share_of_those_that_are_left(world: World) -> None:
    await routed_at_rest(world, {"replicas": 2, "traffic": "10%"}, {"replicas": "100%"}, replicas=4)
    await waiting_for_approval(world)
    world.approve()
    await world.until(lambda: share(world) == pytest.approx(2 / 5), "its due beside three")
    world.delete(PODS, f"{CANARY}-0")
    await world.until(lambda: share(world) == pytest.approx(1 / 4), "the due of one beside three")
    await world.until(lambda: share(world) == pytest.approx(2 / 5), "its due again")
    await world.until_state("Healthy")
