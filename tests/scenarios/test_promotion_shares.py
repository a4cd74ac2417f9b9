"""Shares in a promotion: what groups that are not ready cannot carry is not given to those that are."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from rollout_lws.objects.resources import PODS
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from tests.scenarios.gauge import Gauge
from tests.scenarios.routed import (
    EACH,
    routed_at_rest,
    share,
)
from tests.scenarios.stories import CANARY, waiting_for_approval
from tests.scenarios.world import World

pytestmark = [pytest.mark.looptime, *EACH]


@pytest.fixture
async def slow() -> AsyncIterator[World]:
    """A cluster whose groups load for a minute."""
    made = World(Options(timing=Timing(ready_after=50, leader_longer=10)))
    yield made
    made.close()


async def test_green_keeps_the_share_of_its_step_until_it_is_whole(slow: World) -> None:
    await routed_at_rest(slow, {"replicas": 1, "traffic": "20%"}, replicas=4, style="blueGreen")
    await waiting_for_approval(slow)
    gauge = Gauge(slow, 4)
    slow.approve()
    await slow.until(lambda: set(slow.groups(CANARY)) == set(range(4)), "green grows")
    await slow.sleep(5)
    assert share(slow) == pytest.approx(0.2)
    await slow.until_state("Healthy")
    gauge.stop()
    assert gauge.peak_load == 1.0


async def test_a_canary_that_loses_a_group_in_a_promotion_gets_the_share_of_those_that_are_left(slow: World) -> None:
    await routed_at_rest(slow, {"replicas": 2, "traffic": "10%"}, {"replicas": "100%"}, replicas=4)
    await waiting_for_approval(slow)
    slow.approve()
    await slow.until(lambda: share(slow) == pytest.approx(2 / 5), "its due beside three")
    before = slow.leader_uids(CANARY)
    slow.delete(PODS, f"{CANARY}-0")
    await slow.sleep(5)
    after = slow.leader_uids(CANARY)
    assert {name for name in before if before[name] != after[name]} == {f"{CANARY}-0"}
    assert slow.groups(CANARY) == {0: "v2!", 1: "v2"}
    assert share(slow) == pytest.approx(1 / 4), "the due of one beside three"
    await slow.until_state("Healthy")
