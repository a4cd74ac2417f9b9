"""What users get when somebody gives orders in mid-release, or objects of the release vanish."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import PODS, SERVICES
from rollout_lws.sandbox.meter import Client, TrafficMeter
from tests.scenarios.metered import ACCEPTED, LAG, NEW_ONLY, metered, shared
from tests.scenarios.routed import SERVICE
from tests.scenarios.world import NAMESPACE

#: What differs from the first measured stories by a single act; the default run has enough with those.
pytestmark = [pytest.mark.looptime, pytest.mark.long]

HEADER = {"headers": [{"name": "x-canary", "value": "yes"}]}
TWO: tuple[dict[str, Any], ...] = (
    {"replicas": 1, "traffic": "20%", "pause": {}},
    {"replicas": 2, "traffic": "50%", "pause": {}},
)
FULL: dict[str, Any] = {"replicas": 4, "traffic": "50%", "pause": {}}


@pytest.mark.parametrize("groups", [2, 4])
async def test_a_header_step_may_be_the_last(groups: int) -> None:
    async with metered({"replicas": groups, "matches": [HEADER], "pause": {}}, replicas=4) as m:
        await m.release()
        await m.world.sleep(30)
        await m.finish()
        m.assert_unharmed()
        assert groups < 4 or m.meter.cuts == []


async def test_promoting_at_once_loses_no_request() -> None:
    async with metered(*TWO, replicas=4) as m:
        await m.release()
        m.world.request("PromoteFull")
        await m.world.sleep(60)
        await m.finish()
        m.assert_unharmed()


async def test_a_paused_promotion_leaves_all_requests_with_a_full_canary() -> None:
    async with metered(FULL, replicas=4) as m:
        world = m.world
        await m.release()
        world.approve()
        # It renews all groups at once, so there is no moment between two windows.
        await world.until(lambda: "stableDrainedAt" in world.status["traffic"], "all requests at the canary")
        world.patch_rollout({"strategy": {"paused": True}})
        await world.sleep(300)
        assert set(world.groups().values()) == {"v1"}
        assert (await m.all_shares()) == dict.fromkeys(("users", "tagged", "direct"), NEW_ONLY)
        world.patch_rollout({"strategy": {"paused": False}})
        await m.finish()
        m.assert_unharmed()
        assert m.meter.cuts == []


async def test_connections_kept_for_less_than_the_drain_are_not_lost_in_a_full_canarys_promotion() -> None:
    async with metered(FULL, replicas=4) as m:
        kept = TrafficMeter(m.world.server, [Client("kept", service=SERVICE, keep_alive=25)], drain=5, lag=LAG)
        kept.start()
        await m.release()
        await m.finish()
        assert (kept.failures, kept.cuts) == ([], [])


async def test_a_canary_service_deleted_by_hand_is_made_anew_and_gets_its_share_back() -> None:
    async with metered(*TWO, replicas=4) as m:
        await m.release(2)
        await m.world.sleep(40)
        gone = m.world.server.clock()
        m.world.delete(SERVICES, f"{SERVICE}-canary")
        await m.world.sleep(90)
        assert await m.shares() == shared(0.5)
        await m.finish()
        assert max(failure.end for failure in m.meter.failures) <= gone + LAG + ACCEPTED


async def test_a_canary_takes_all_requests_when_every_stable_group_is_lost_and_gives_them_back() -> None:
    async with metered(*TWO, replicas=4) as m:
        world = m.world
        await m.release(2)
        world.checks.clear()
        lost = world.server.clock()
        for ordinal in range(4):
            world.server.delete(PODS, NAMESPACE, f"llama-{ordinal}", grace_seconds=0)
        await world.sleep(LAG + ACCEPTED)
        assert m.meter.now("users") == NEW_ONLY
        await world.sleep(60)
        assert await m.shares() == shared(0.5)
        failed = [failure for failure in m.meter.failures if failure.client == "users"]
        assert failed, "groups that serve cannot be lost without a failure"
        assert max(failure.end for failure in failed) <= lost + LAG + ACCEPTED


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
