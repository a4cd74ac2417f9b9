"""Orders in mid-release, whatever routes the requests: shares stay exact, and no request is lost."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import INGRESSES, LEADER_WORKER_SETS, SERVICES
from tests.scenarios.metered import HEADER, NEW_ONLY, STABLE_ONLY, metered, shared
from tests.scenarios.routed import AND_SCRIPTS, INGRESS, SERVICE, Provider, hold_record
from tests.scenarios.stories import CANARY
from tests.scenarios.world import NAME, ROLLOUTS

pytestmark = [
    pytest.mark.looptime,
    # What differs from the first measured stories by a single act.
    pytest.mark.long,
    pytest.mark.parametrize("by", AND_SCRIPTS, ids=str),
]

TWO: tuple[dict[str, Any], ...] = (
    {"replicas": 1, "traffic": "20%", "pause": {}},
    {"replicas": "50%", "traffic": "50%", "pause": {}},
)


@pytest.mark.parametrize("replicas", [2, 8])
async def test_scaling_in_mid_step_ends_at_the_same_share(by: Provider, replicas: int) -> None:
    async with metered(*TWO, replicas=4, by=by) as m:
        world = m.world
        await m.release(2)
        assert await m.shares() == shared(0.5)
        world.patch_lws({"replicas": replicas})
        await world.until(
            lambda: (
                world.groups(CANARY) == dict.fromkeys(range(replicas // 2), "v2") and world.state == "AwaitingApproval"
            ),
            "the canary follows",
        )
        await world.until(lambda: len(world.groups()) == replicas, "scaled")
        await world.rest()
        assert await m.shares() == shared(0.5)
        await m.finish()
        assert m.meter.failures == []
        # Groups that the user scaled away are the user's.
        assert {cut.cause for cut in m.cuts if cut.lws == NAME} <= {"scaled down"}
        assert [cut for cut in m.cuts if cut.lws == CANARY] == []


async def test_a_jump_back_drains_the_groups_that_go_and_gives_the_share_when_they_are_gone(by: Provider) -> None:
    steps = [{"replicas": n, "traffic": f"{share}%", "pause": {}} for n, share in ((1, 20), (2, 50), (4, 80))]
    async with metered(*steps, replicas=4, by=by) as m:
        world = m.world
        await m.release(3)
        await world.sleep(40)
        world.patch(ROLLOUTS, NAME, {"status": {"canaryStatus": {"nextStepIndex": 1}}}, "status")
        await world.until(lambda: world.groups(CANARY) == {0: "v2"})
        await world.until_state("AwaitingApproval")
        assert await m.shares() == shared(0.2)
        assert [event.note for event in world.events if event.reason == "RouteReset"] == []
        await m.finish()
        m.assert_unharmed()


async def test_a_step_without_traffic_takes_the_share_away_and_the_next_one_gives_it_back(by: Provider) -> None:
    steps = TWO[0], {"replicas": 2, "pause": {}}, {"replicas": 2, "traffic": "40%", "pause": {}}
    async with metered(*steps, replicas=4, by=by) as m:
        await m.release(2)
        assert await m.shares() == STABLE_ONLY
        m.world.approve()
        await m.step(3)
        assert await m.shares() == shared(0.4)
        assert [event.note for event in m.world.events if event.reason == "RouteReset"] == []
        await m.finish()
        m.assert_unharmed()


async def test_restoring_stables_template_loses_no_request(by: Provider) -> None:
    async with metered(*TWO, replicas=4, by=by) as m:
        await m.release(2)
        m.world.set_image("v1")
        await m.world.until_state("Healthy", 1200)
        await m.settled()
        m.assert_unharmed()
        assert m.meter.cuts == []


@pytest.mark.parametrize("tag", ["v1", "v3"])
async def test_another_template_in_mid_promotion_fails_no_request(by: Provider, tag: str) -> None:
    async with metered(*TWO, replicas=4, by=by) as m:
        await m.release(2)
        m.world.approve()
        await m.world.until(lambda: "v2" in m.world.groups().values(), "a renewed group")
        m.world.set_image(tag)
        if tag == "v3":
            await m.world.until(lambda: m.world.groups(CANARY) == {0: "v3"}, "the third version's canary", 1200)
            await m.step(1)
        await m.finish()
        assert set(m.world.groups().values()) == {tag}
        assert m.meter.failures == []


@pytest.mark.parametrize("step", [1, 2])
async def test_a_third_template_takes_the_second_ones_requests_back_before_it_starts(by: Provider, step: int) -> None:
    async with metered(*TWO, replicas=4, by=by) as m:
        await m.release(step)
        m.world.set_image("v3")
        await m.world.until(lambda: m.world.groups(CANARY) == {0: "v3"}, "the third version's canary", 1200)
        await m.step(1)
        assert await m.shares() == shared(0.2)
        # What the first release has restored itself nobody has written over.
        assert [event.note for event in m.world.events if event.reason == "RouteReset"] == []
        await m.finish()
        assert set(m.world.groups().values()) == {"v3"}
        m.assert_unharmed()


async def test_promoting_at_once_loses_no_request(by: Provider) -> None:
    async with metered(*TWO, replicas=4, by=by) as m:
        await m.release()
        m.world.request("PromoteFull")
        await m.world.sleep(60)
        await m.finish()
        m.assert_unharmed()


async def test_a_rollout_that_is_deleted_gives_everything_back_and_loses_no_request(by: Provider) -> None:
    async with metered(*TWO, replicas=4, by=by) as m:
        world = m.world
        await m.release(2)
        world.delete(ROLLOUTS, NAME)
        await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "the Rollout gone")
        await world.rest()
        assert (await m.all_shares()) == dict.fromkeys(("users", "tagged", "direct"), STABLE_ONLY)
        m.assert_unharmed()
        assert hold_record(world, by) == m.before
        assert world.get(SERVICES, f"{SERVICE}-canary") is None
        assert world.get(INGRESSES, f"{INGRESS}-canary") is None


async def test_a_canary_deleted_by_hand_goes_when_its_requests_have_ended(by: Provider) -> None:
    async with metered(*TWO, replicas=4, by=by) as m:
        world = m.world
        await m.release(2)
        await world.sleep(40)
        world.delete(LEADER_WORKER_SETS, CANARY)
        await world.until(lambda: world.get(LEADER_WORKER_SETS, CANARY) is None)
        await world.until_state("AwaitingApproval")
        assert await m.shares() == shared(0.5)
        assert [event.note for event in world.events if event.reason == "RouteReset"] == []
        m.assert_unharmed()


async def test_a_batch_release_deleted_by_hand_takes_its_canary_when_its_requests_have_ended(by: Provider) -> None:
    async with metered(*TWO, replicas=4, by=by) as m:
        world = m.world
        await m.release(2)
        await world.sleep(40)
        before, asked = world.leader_uids(CANARY), world.now
        world.delete(world.RECORD, NAME)
        await world.until(lambda: not before.items() & world.leader_uids(CANARY).items(), "the canary is gone")
        assert (world.now - asked).total_seconds() >= 33, "grace and drain"
        await m.step(2)
        assert await m.shares() == shared(0.5)
        m.assert_unharmed()


@pytest.mark.parametrize("groups", [2, 4])
async def test_a_header_step_may_be_the_last(by: Provider, groups: int) -> None:
    async with metered({**HEADER, "replicas": groups}, replicas=4, by=by) as m:
        await m.release()
        await m.world.sleep(30)
        await m.finish()
        m.assert_unharmed()
        assert groups < 4 or m.meter.cuts == []


async def test_all_requests_go_to_a_full_canary_and_come_back(by: Provider) -> None:
    async with metered(TWO[0], {"replicas": 4, "traffic": "100%", "pause": {}}, replicas=4, by=by) as m:
        await m.release(2)
        assert await m.shares() == NEW_ONLY
        assert await m.shares("direct") == STABLE_ONLY
        await m.world.sleep(30)
        await m.abort()
        m.world.request("Retry")
        await m.step(1)
        assert await m.shares() == shared(0.2)
        await m.finish()
        m.assert_unharmed()
        assert m.meter.cuts == []


@pytest.mark.parametrize("groups", [2, 4])
async def test_a_paused_promotion_loses_no_request(by: Provider, groups: int) -> None:
    async with metered({"replicas": groups, "traffic": "50%", "pause": {}}, replicas=4, by=by) as m:
        world = m.world
        await m.release()
        await world.sleep(40)
        world.approve()
        await world.until(
            # A full canary has all groups renewed at once, so there is no moment between two windows.
            lambda: "stableDrainedAt" in world.status["traffic"] if groups == 4 else "v2" in world.groups().values(),
            "a promotion under way",
        )
        world.patch_rollout({"strategy": {"paused": True}})
        await world.sleep(300)
        # Who does not come by the route follows the stable Service.
        users, direct = (NEW_ONLY, NEW_ONLY) if groups == 4 else (shared(0.5), STABLE_ONLY)
        assert await m.all_shares() == {"users": users, "tagged": users, "direct": direct}
        world.patch_rollout({"strategy": {"paused": False}})
        await m.finish()
        m.assert_unharmed()


async def test_a_release_after_a_release_shares_as_the_first_did(by: Provider) -> None:
    async with metered(*TWO, replicas=4, by=by) as m:
        await m.release(2)
        await m.finish()
        await m.release(2, "v3")
        assert await m.shares() == shared(0.5)
        await m.finish()
        m.assert_unharmed()


async def test_a_rollout_that_is_disabled_gives_everything_back_and_begins_anew_when_enabled(by: Provider) -> None:
    async with metered(*TWO, replicas=4, by=by) as m:
        await m.release(2)
        m.world.patch_rollout({"disabled": True})
        await m.world.until_state("Disabled", 1200)
        await m.settled()
        m.world.patch_rollout({"disabled": False})
        await m.step(1)
        assert await m.shares() == shared(0.2)
        assert [event.note for event in m.world.events if event.reason == "RouteReset"] == []
        await m.finish()
        m.assert_unharmed()


async def test_the_first_share_comes_when_routers_have_heard_of_the_first_group(by: Provider) -> None:
    async with metered(*TWO, replicas=4, min_ready=0, by=by) as m:
        await m.release()
        assert await m.shares() == shared(0.2)
        m.assert_unharmed()
