"""When something breaks, whatever routes the requests: failures no longer than data planes need to hear of it, and
shares come back.
"""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import INFERENCE_POOLS, LEADER_WORKER_SETS
from tests.scenarios.metered import ACCEPTED, LAG, NEW_ONLY, STABLE_ONLY, Metered, metered, shared
from tests.scenarios.routed import (
    AND_SCRIPTS,
    BY_POOLS,
    CANARY_POOL,
    POOL,
    SAYS_NOTHING,
    Provider,
    assert_given_back,
    make,
    told_only_with,
    told_with,
)
from tests.scenarios.stories import CANARY
from tests.scenarios.test_traffic_others import again, vanish
from tests.scenarios.world import NAME

pytestmark = pytest.mark.looptime

BY_EACH = pytest.mark.parametrize("by", AND_SCRIPTS, ids=str)

REFUSAL = "too many routes"
QUARTER = {"replicas": 1, "traffic": "25%", "pause": {}}
TWO = {"replicas": 1, "traffic": "20%", "pause": {}}, {"replicas": 2, "traffic": "50%", "pause": {}}


def assert_failed_no_longer_than_the_lag(m: Metered, share: float, *losses: float) -> None:
    """Only the canary's share failed, at the lost group or at a backend without any, until routers knew."""
    assert m.meter.failures, "a group that serves cannot be lost without a failure"
    for failure in m.meter.failures:
        assert failure.client != "direct"
        assert failure.lws in (CANARY, "")
        assert failure.share == pytest.approx(share)
        assert any(lost <= failure.start < failure.end <= lost + LAG + ACCEPTED for lost in losses), failure


@pytest.mark.one_in(6)
@pytest.mark.parametrize("paused", [False, True])
@BY_EACH
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
            m.lose(f"{CANARY}-0")
            assert await m.shares() == STABLE_ONLY
            await world.until(lambda: world.groups(CANARY) == {0: "v2"})
            await world.sleep(30)
            assert await m.shares() == shared(0.25)
        # What we have taken away ourselves nobody has written over.
        assert [event.note for event in world.events if event.reason == "RouteReset"] == []
        assert world.state == ("Paused" if paused else "AwaitingApproval")
        world.patch_rollout({"strategy": {"paused": False}})
        await world.until_state("AwaitingApproval")
        await m.finish()
        assert_failed_no_longer_than_the_lag(m, 0.25, *losses)


@pytest.mark.long
@BY_EACH
async def test_a_canary_takes_all_requests_when_every_stable_group_is_lost_and_gives_them_back(by: Provider) -> None:
    async with metered(*TWO, replicas=4, by=by) as m:
        world = m.world
        await m.release(2)
        world.checks.clear()
        lost = world.server.clock()
        for ordinal in range(4):
            m.lose(f"{NAME}-{ordinal}")
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
@BY_EACH
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
@BY_EACH
async def test_an_lws_scaled_to_zero_leaves_all_requests_with_the_canary(by: Provider) -> None:
    async with metered(*TWO, replicas=2, by=by) as m:
        world = m.world
        await m.release()
        world.checks.clear()
        world.patch_lws({"replicas": 0})
        await world.until_state("Stalled")
        assert world.condition("Stalled")["message"] == (
            "LeaderWorkerSet llama has 0 groups, and its canary carries requests: it keeps serving until there are"
            " groups again: scale up"
        )
        assert (await m.shares()) == NEW_ONLY
        world.patch_lws({"replicas": 2})
        await world.until(lambda: world.groups() == {0: "v2", 1: "v2"}, "new groups")
        while world.state != "Healthy":
            world.approve()
            await world.sleep(30)
        await world.rest()
        assert_given_back(world, dict(m.before), by)


@pytest.mark.long
@BY_EACH
async def test_a_full_canary_that_loses_a_group_in_a_promotion_gives_requests_back_until_it_is_full_again(
    by: Provider,
) -> None:
    async with metered({"replicas": 4, "traffic": "50%", "pause": {}}, replicas=4, by=by) as m:
        world = m.world
        await m.release()
        await world.sleep(40)
        world.approve()
        await world.until(lambda: "v2" in world.groups().values(), "a renewed group")
        lost = world.server.clock()
        m.lose(f"{CANARY}-1")
        await m.finish()
        assert {failure.lws for failure in m.meter.failures} == {CANARY}
        assert max(failure.end for failure in m.meter.failures) <= lost + LAG + ACCEPTED


@pytest.mark.one_in(6)
@pytest.mark.parametrize("groups", [2, 4])
@pytest.mark.parametrize("order", ["Approve", "PromoteFull", "Abort"])
@told_with(but=SAYS_NOTHING)
@pytest.mark.parametrize("by", [each for each in AND_SCRIPTS if each.tells], ids=str)
async def test_routers_that_accept_nothing_renew_and_remove_no_group(by: Provider, order: str, groups: int) -> None:
    """The next step, a promotion or the way back waits, and says for what."""
    steps = {"replicas": groups, "traffic": "20%", "pause": {}}, {"replicas": groups, "traffic": "50%", "pause": {}}
    async with metered(*steps, replicas=4, by=by) as m:
        world = m.world
        await m.release()
        m.refuse_routes(REFUSAL)
        world.request(order)
        await world.until(lambda: REFUSAL in (world.status.get("traffic") or {}).get("message", ""), "refused")
        standing = world.groups(), world.groups(CANARY), await m.all_shares()
        await world.sleep(280)
        assert (world.groups(), world.groups(CANARY), await m.all_shares()) == standing
        told = [world.condition(kind).get("message", "") for kind in ("Reconciling", "Stalled")]
        assert any("Gateway default/inference: Accepted is False" in each for each in told), told
        m.refuse_routes(None)
        if order == "Abort":
            await world.until_state("Aborted")
            await m.settled()
            assert m.meter.cuts == []
        else:
            if order == "Approve":
                await m.step(2)
                assert await m.shares() == shared(0.5)
            await m.finish()
        m.assert_unharmed()


@pytest.mark.long
@BY_EACH
async def test_what_a_rollout_that_is_gone_had_given_is_taken_back_by_the_next_one(by: Provider) -> None:
    async with metered(*TWO, replicas=4, by=by) as m:
        world = m.world
        await m.release(2)
        vanish(world)
        await world.sleep(5)
        begun = world.server.clock()
        again(world, *TWO, by=by)
        await world.until(lambda: world.get(LEADER_WORKER_SETS, CANARY) is None, "the canary to go", 600)
        # The Service of the canary went with the Rollout; that its share fails ends as soon as there is a new one.
        assert {each.start < begun and each.end <= begun + LAG + ACCEPTED for each in m.meter.failures} <= {True}
        failed = len(m.meter.failures)
        await m.step(1)
        assert await m.shares() == shared(0.2)
        await m.finish()
        assert (len(m.meter.failures), m.cuts) == (failed, [])


@pytest.mark.long
@pytest.mark.parametrize("pool", [POOL, CANARY_POOL])
@told_only_with(BY_POOLS, why="about pools alone")
@pytest.mark.parametrize("by", [BY_POOLS], ids=str)
async def test_requests_go_by_the_other_pool_while_one_is_gone(by: Provider, pool: str) -> None:
    async with metered(*TWO, replicas=4, by=by) as m:
        world = m.world
        await m.release(2)
        assert await m.shares() == shared(0.5)
        world.delete(INFERENCE_POOLS, pool)
        gone = world.server.clock()
        assert await m.shares() == (NEW_ONLY if pool == POOL else STABLE_ONLY)
        spec, *_ = m.before[f"InferencePool {pool}"]
        make(world, INFERENCE_POOLS, pool, spec=spec)
        back = world.server.clock()
        await world.until_state("AwaitingApproval")
        assert await m.shares() == shared(0.5)
        await m.finish()
        for failure in m.meter.failures:
            assert any(at <= failure.start < failure.end <= at + LAG + ACCEPTED for at in (gone, back)), failure
        assert m.cuts == []
