"""What users get by a route when somebody edits or gives orders in mid-release: shares stay exact, and nothing is
removed under requests.
"""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import SERVICES
from rollout_lws.sandbox.meter import NOWHERE, Client, TrafficMeter
from tests.scenarios.metered import ACCEPTED, LAG, metered, shared
from tests.scenarios.routed import (
    ACCEPTING,
    BY_GRPC,
    BY_POOLS,
    BY_ROUTE,
    BY_SCRIPT,
    EACH,
    MESHES,
    NO_WEIGHTS,
    ROUTE,
    ROUTES,
    SERVICE,
    because,
    by_each,
    each_router,
    kind,
    not_by_pools,
    routing,
    share,
    with_rules,
)
from tests.scenarios.stories import CANARY
from tests.scenarios.world import NAME, NAMESPACE, World

#: What differs from the first measured stories by a single act; the default run has enough with those.
pytestmark = [pytest.mark.looptime, pytest.mark.long]

TWO: tuple[dict[str, Any], ...] = (
    {"replicas": 1, "traffic": "20%", "pause": {}},
    {"replicas": "50%", "traffic": "50%", "pause": {}},
)


async def add_backend(world: World) -> None:
    """Another Service behind the same rule with a quarter of its weight; nobody answers for it here."""
    spec = {"selector": {"app": "other"}, "ports": [{"port": 80}]}
    world.server.create(SERVICES, {"metadata": {"name": "other", "namespace": NAMESPACE}, "spec": spec})
    await world.sleep(LAG)
    refs = [{"name": SERVICE, "port": 80, "weight": 30}, {"name": "other", "port": 80, "weight": 10}]
    live = world.get(kind(), ROUTE)
    assert live is not None
    world.patch(kind(), ROUTE, {"spec": with_rules(live, [{"backendRefs": refs}])["spec"]})
    await world.sleep(LAG + ACCEPTED)


@by_each(
    each_router(
        BY_ROUTE,
        BY_GRPC,
        *MESHES,
        but=NO_WEIGHTS
        | because("a rule leads to pools or to Services", BY_POOLS)
        | because("a script says what others keep", BY_SCRIPT),
    )
)
async def test_a_backend_of_somebody_else_keeps_its_part_of_all_requests() -> None:
    async with metered(*TWO, replicas=4) as m:
        await add_backend(m.world)
        await m.release()
        assert await m.shares() == {NOWHERE: 0.25, NAME: 0.6, CANARY: 0.15}
        m.world.approve()
        await m.step(2)
        assert await m.shares() == {NOWHERE: 0.25, NAME: 0.375, CANARY: 0.375}
        m.world.request("Abort")
        await m.world.until_state("Aborted")
        await m.world.rest()
        assert await m.shares() == {NOWHERE: 0.25, NAME: 0.75}
        # For a moment a gateway does not know a backend that is added with its share; a mesh knows all Services.
        unknown = {"the gateway does not know Service other yet"} if ROUTES.provider.tells else set()
        assert {failure.reason for failure in m.meter.failures} == {*unknown, 'no ready endpoint of Service "other"'}
        assert m.meter.cuts == []


@by_each(EACH)
async def test_a_drain_of_zero_given_in_mid_release_is_followed_and_still_fails_no_request() -> None:
    async with metered(*TWO, replicas=4) as m:
        world = m.world
        await m.release(2)
        world.patch_rollout({"strategy": {"canary": {"trafficRoutings": routing(drainSeconds=0)}}})
        await world.rest()
        assert world.state == "AwaitingApproval"
        world.request("Abort")
        asked = world.now
        await world.until_state("Aborted")
        assert (world.now - asked).total_seconds() < 15
        await m.settled()
        assert m.meter.failures == []
        assert {cut.lws for cut in m.meter.cuts} == {CANARY}, "streams that may last no second are cut"


@by_each(EACH)
async def test_a_hold_that_is_reset_while_a_share_is_being_accepted_is_on_file_each_time() -> None:
    async with metered(*TWO, replicas=4) as m:
        world = m.world
        await m.release()
        world.checks.clear()
        world.approve()
        await world.until(lambda: share(world) == 0.5)
        for _ in range(2):
            world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}})
            await world.sleep(0.1)
        assert len(world.status["holdConflicts"]) == 2


@by_each(EACH)
async def test_streams_shorter_than_the_drain_are_not_cut_in_a_full_canarys_promotion() -> None:
    async with metered({"replicas": 4, "traffic": "50%", "pause": {}}, replicas=4) as m:
        inside = TrafficMeter(m.world.server, [Client("inside", service=SERVICE)], drain=25, lag=LAG)
        inside.start()
        await m.release()
        await m.finish()
        assert (inside.failures, inside.cuts) == ([], [])


@by_each(not_by_pools("requests go by pools, and not by the copy of the Service"))
async def test_a_canary_service_deleted_by_hand_is_made_anew_and_gets_its_share_back() -> None:
    async with metered(*TWO, replicas=4) as m:
        await m.release(2)
        await m.world.sleep(40)
        gone = m.world.server.clock()
        m.world.delete(SERVICES, f"{SERVICE}-canary")
        await m.world.sleep(90)
        assert await m.shares() == shared(0.5)
        await m.finish()
        # Controllers of Ingresses know none without a backend.
        assert max((failure.end for failure in m.meter.failures), default=gone) <= gone + LAG + ACCEPTED


@by_each(ACCEPTING)
async def test_a_promotion_that_is_paused_gives_a_canary_that_has_become_big_enough_no_more_requests() -> None:
    async with metered({"replicas": 2, "traffic": "20%", "pause": {}}, replicas=4) as m:
        world = m.world
        await m.release()
        m.refuse_routes("too many routes")
        world.approve()
        await world.until_state("Promoting")
        world.patch_rollout({"strategy": {"paused": True}})
        await world.until_state("Paused")
        m.refuse_routes(None)
        before = await m.all_shares()
        world.patch_lws({"replicas": 2})
        await world.sleep(60)
        assert await m.all_shares() == before
        world.patch_rollout({"strategy": {"paused": False}})
        await m.finish()
        assert m.meter.failures == []
