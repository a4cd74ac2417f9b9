"""Whoever still serves keeps serving and gets the requests, wherever a release stands when the others are lost."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from tests.scenarios.invariants import share_only_for_who_serves
from tests.scenarios.metered import ACCEPTED, LAG, NEW_ONLY, STABLE_ONLY, WHO, Metered, metered
from tests.scenarios.routed import (
    EACH,
    by_each,
    not_by_pools,
    share,
    write_over,
)
from tests.scenarios.stories import CANARY
from tests.scenarios.world import KEYS, NAME, World

pytestmark = pytest.mark.looptime

HALF = {"replicas": 2, "traffic": "50%", "pause": {}}
FULL = {"replicas": 4, "traffic": "50%", "pause": {}}


def lose(m: Metered, lws: str) -> float:
    """All groups of an LWS at once; gives the moment."""
    m.world.checks.clear()
    for group in m.world.groups(lws):
        m.lose(f"{lws}-{group}")
    return m.world.server.clock()


def assert_failed_only_within_the_lag(m: Metered, lost: float) -> None:
    assert m.meter.failures, "groups that serve cannot be lost without a failure"
    assert all(each.end <= lost + LAG + ACCEPTED for each in m.meter.failures), m.meter.failures


def partition(world: World) -> int:
    return int(world.lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("lost", [1, 4])
@by_each(EACH)
async def test_stable_groups_stay_when_the_canary_is_lost_as_all_of_them_are_to_be_renewed(lost: int) -> None:
    async with metered(FULL, replicas=4) as m:
        world = m.world
        await m.release()
        world.approve()
        await world.until(lambda: partition(world) == 0, "the window of all groups")
        world.checks.clear()
        for group in range(lost):
            m.lose(f"{CANARY}-{group}")
        at = world.server.clock()
        await world.until(lambda: partition(world) > 0, "the window is closed", 5)
        assert sum(told == "v1" for told in world.groups().values()) >= 3, world.groups()
        await m.finish()
        assert_failed_only_within_the_lag(m, at)


@by_each(EACH)
async def test_a_promotion_that_waits_because_another_version_is_unsafe_still_gives_a_lost_canary_no_requests() -> None:
    async with metered(HALF, replicas=4) as m:
        world = m.world
        await m.release()
        world.approve()
        await world.until(lambda: any(told.endswith("!") for told in world.groups().values()), "a window")
        world.checks.clear()
        world.patch_lws({"leaderWorkerTemplate": {"size": 3}})
        await world.until(lambda: world.condition("Stalled").get("reason") == "UnsafePending", "it waits")
        await world.sleep(30)
        lose(m, CANARY)
        await world.until(lambda: share(world) == 0, "nothing for the canary", 1)


@by_each(EACH)
async def test_without_the_hold_a_lost_canary_gets_no_requests() -> None:
    async with metered(HALF, replicas=4) as m:
        world = m.world
        await m.release()
        world.checks.clear()
        world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"annotations": {KEYS.release_hold: "true"}}})
        await world.until_state("HoldReleased")
        lose(m, CANARY)
        await world.until(lambda: share(world) == 0, "nothing for the canary", 1)


@by_each(EACH)
async def test_stable_lost_while_an_abort_drains_leaves_all_requests_with_the_canary() -> None:
    async with metered({**HALF, "traffic": "20%"}, replicas=4) as m:
        world = m.world
        await m.release()
        world.request("Abort")
        await world.until(lambda: share(world) == 0, "the share is taken away")
        await world.sleep(10)
        lost = lose(m, NAME)
        await world.sleep(LAG + ACCEPTED)
        assert [m.meter.now(client) for client in WHO] == [NEW_ONLY] * len(WHO)
        await world.until_state("Aborted", 1200)
        await m.settled()
        assert_failed_only_within_the_lag(m, lost)


@by_each(EACH)
async def test_a_share_taken_from_a_lost_canary_does_not_come_back_when_stable_is_lost_before_routers_know() -> None:
    async with metered(HALF, replicas=4) as m:
        world = m.world
        await m.release()
        lose(m, CANARY)
        await world.until(lambda: share(world) == 0, "nothing for the canary", 0.1)
        assert world.status["traffic"]["applied"] == {"weight": 50}
        lose(m, NAME)
        world.checks.append(share_only_for_who_serves())
        await world.sleep(LAG + ACCEPTED)
        told = "neither version has a ready endpoint: the new version's share does not grow"
        assert (share(world), world.status["traffic"].get("message")) == (0, told)
        world.raise_errors()


@pytest.mark.each_change
@by_each(not_by_pools("a picker may hear of pods that go before gateways hear of weights"))
async def test_an_lws_replaced_in_one_moment_leaves_all_requests_with_the_canary_until_it_is_ready() -> None:
    async with metered(HALF, replicas=4) as m:
        world = m.world
        await m.release()
        world.checks.clear()
        world.delete(LEADER_WORKER_SETS, NAME)
        # Nobody has seen a moment without it.
        world.create_workload(replicas=4)
        await world.sleep(LAG + ACCEPTED)
        assert [m.meter.now(client) for client in WHO] == [NEW_ONLY] * len(WHO)
        await world.until_state("Healthy", 1200)
        await m.settled()
        assert m.meter.failures == []


@by_each(EACH)
async def test_a_lost_canary_loses_its_requests_though_somebody_keeps_writing_over_its_share() -> None:
    async with metered({**HALF, "traffic": "20%"}, replicas=4) as m:
        world = m.world
        await m.release()
        for _ in range(2):
            write_over(world, 40)
            await world.sleep(3)
        assert world.condition("Stalled")["reason"] == "RouteConflict"
        lost = lose(m, CANARY)
        await world.sleep(LAG + ACCEPTED)
        assert m.meter.now("users") == STABLE_ONLY
        assert_failed_only_within_the_lag(m, lost)


@by_each(EACH)
async def test_a_stable_side_that_was_renewed_as_a_whole_gets_its_requests_after_the_grace_period() -> None:
    async with metered(FULL, replicas=4, min_ready=0, gracePeriodSeconds=4) as m:
        world = m.world
        await m.release()
        world.approve()
        await world.until(lambda: (world.status.get("finalising") or {}).get("task") == "CleanUp", "it is promoted")
        promoted = world.server.clock()
        await world.until(lambda: share(world) == 0, "everything at the stable version")
        assert world.server.clock() - promoted == pytest.approx(4, abs=1), "pods say it in whole seconds"
        await m.finish()
        m.assert_unharmed()
