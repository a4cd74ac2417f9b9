"""Pools and Ingresses when something breaks: failures no longer than data planes need to hear of it, and shares come
back.
"""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS
from tests.scenarios.metered import ACCEPTED, LAG, NEW_ONLY, STABLE_ONLY, Metered, metered, shared
from tests.scenarios.routed import BY_INGRESS, BY_POOLS, Provider, assert_given_back
from tests.scenarios.stories import CANARY
from tests.scenarios.world import NAME, NAMESPACE, World

pytestmark = [pytest.mark.looptime, pytest.mark.parametrize("by", [BY_POOLS, BY_INGRESS], ids=str)]

QUARTER = {"replicas": 1, "traffic": "25%", "pause": {}}
TWO = {"replicas": 1, "traffic": "20%", "pause": {}}, {"replicas": 2, "traffic": "50%", "pause": {}}


def gone_with_a_node(world: World, pod: str) -> None:
    """A pod that nobody lets end."""
    world.server.delete(PODS, NAMESPACE, pod, grace_seconds=0)


def assert_failed_no_longer_than_the_lag(m: Metered, share: float, *losses: float) -> None:
    """Only the canary's share failed, at the lost group or at a backend without any, until routers knew."""
    assert m.meter.failures, "a group that serves cannot be lost without a failure"
    for failure in m.meter.failures:
        assert failure.client != "direct"
        assert failure.lws in (CANARY, "")
        assert failure.share == pytest.approx(share)
        assert any(lost <= failure.start < failure.end <= lost + LAG + ACCEPTED for lost in losses), failure


@pytest.mark.parametrize("paused", [False, pytest.param(True, marks=pytest.mark.long)])
async def test_a_group_lost_twice_in_an_approval_loses_its_share_within_the_lag_and_gets_it_back(
    by: Provider, paused: bool
) -> None:
    async with metered(QUARTER, by=by) as m:
        world, losses = m.world, []
        await m.release()
        if paused:
            world.patch_rollout({"strategy": {"paused": True}})
            await world.until_state("Paused")
        assert await m.shares() == shared(0.25)
        for _ in range(2):
            losses.append(world.server.clock())
            gone_with_a_node(world, f"{CANARY}-0")
            assert await m.shares() == STABLE_ONLY
            await world.until(lambda: world.groups(CANARY) == {0: "v2"})
            await world.sleep(30)
            assert await m.shares() == shared(0.25)
        # What we have taken away ourselves nobody has written over.
        assert [notice.note for notice in world.notices if notice.reason == "RouteReset"] == []
        assert world.state == ("Paused" if paused else "AwaitingApproval")
        world.patch_rollout({"strategy": {"paused": False}})
        await world.until_state("AwaitingApproval")
        await m.finish()
        assert_failed_no_longer_than_the_lag(m, 0.25, *losses)


@pytest.mark.long
async def test_a_canary_takes_all_requests_when_every_stable_group_is_lost_and_gives_them_back(by: Provider) -> None:
    async with metered(*TWO, replicas=4, by=by) as m:
        world = m.world
        await m.release(2)
        world.checks.clear()
        lost = world.server.clock()
        for ordinal in range(4):
            gone_with_a_node(world, f"{NAME}-{ordinal}")
        await world.sleep(LAG + ACCEPTED)
        assert m.meter.now("users") == NEW_ONLY
        await world.sleep(60)
        assert await m.shares() == shared(0.5)
        failed = [failure for failure in m.meter.failures if failure.client == "users"]
        assert failed, "groups that serve cannot be lost without a failure"
        assert max(failure.end for failure in failed) <= lost + LAG + ACCEPTED
        world.request("Abort")
        await world.until_state("Aborted")
        await m.settled()


@pytest.mark.long
async def test_an_lws_made_anew_in_mid_release_finds_everything_given_back(by: Provider) -> None:
    async with metered(*TWO, replicas=4, by=by) as m:
        world = m.world
        await m.release(2)
        world.checks.clear()
        world.delete(LEADER_WORKER_SETS, NAME)
        await world.until(lambda: world.get(LEADER_WORKER_SETS, NAME) is None)
        await world.sleep(LAG + ACCEPTED + 5)
        # Until there is another LWS the new version carries what the router lets through.
        assert m.meter.now("users") == NEW_ONLY
        world.create_workload(replicas=4)
        await world.until_state("Healthy", 1200)
        await m.settled()
        assert world.groups() == dict.fromkeys(range(4), "v1")


@pytest.mark.long
async def test_an_lws_scaled_to_zero_leaves_all_requests_with_the_canary(by: Provider) -> None:
    async with metered(*TWO, replicas=2, by=by) as m:
        world = m.world
        await m.release()
        world.checks.clear()
        world.patch_lws({"replicas": 0})
        await world.until_state("Stalled")
        assert (await m.shares()) == NEW_ONLY
        world.patch_lws({"replicas": 2})
        await world.until(lambda: world.groups() == {0: "v2", 1: "v2"}, "new groups")
        while world.state != "Healthy":
            world.approve()
            await world.sleep(30)
        await world.rest()
        assert_given_back(world, dict(m.before), by)
