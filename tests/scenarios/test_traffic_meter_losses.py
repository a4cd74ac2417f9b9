"""What users get when something breaks in a release: failures no longer than data planes need to hear of it."""

from __future__ import annotations

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.objects.writes import Write
from tests.scenarios.metered import ACCEPTED, LAG, NEW_ONLY, STABLE_ONLY, Metered, metered, shared
from tests.scenarios.routed import (
    ACCEPTING,
    EACH,
    ROUTE,
    by_each,
    kind,
    share,
)
from tests.scenarios.stories import CANARY
from tests.scenarios.world import NAME

pytestmark = pytest.mark.looptime

TWO = {"replicas": 1, "traffic": "20%", "pause": {}}, {"replicas": 2, "traffic": "50%", "pause": {}}
REFUSAL = "too many routes"


@by_each(EACH)
async def test_a_rollout_deleted_after_its_route_goes_and_leaves_stable_serving() -> None:
    async with metered(*TWO, replicas=4) as m:
        world = m.world
        await m.release()
        world.delete(kind(), ROUTE)
        await world.rest()
        world.delete(world.ROLLOUT, NAME)
        await world.until(lambda: world.get(world.ROLLOUT, NAME) is None, "the Rollout gone")
        await world.rest()
        assert world.names()["leaderworkersets"] == [NAME]
        assert (await m.all_shares())["direct"] == STABLE_ONLY
        assert [failure for failure in m.meter.failures if failure.client == "direct"] == []


def unwritable(m: Metered) -> None:
    """From now on the API server answers 500 to whoever writes the route."""

    def refuse(write: Write) -> ApiError | None:
        return ApiError(500, "InternalError", "etcd is away") if write.resource == kind() else None

    m.world.refuse = refuse


@pytest.mark.parametrize("broken", [pytest.param(True, marks=pytest.mark.long), False], ids=["unwritable", "refusing"])
@by_each(ACCEPTING)
async def test_only_an_abort_that_is_forced_takes_the_canary_away_under_a_router_that_does_not_act(
    broken: bool,
) -> None:
    async with metered(*TWO, replicas=4) as m:
        world = m.world
        await m.release()
        if broken:
            unwritable(m)
        else:
            m.refuse_routes(REFUSAL)
        world.request("Abort")
        await world.sleep(300)
        assert "!" not in "".join(world.groups(CANARY).values())
        asked = world.server.clock()
        world.request("Abort", force=True)
        await world.until(lambda: world.get(LEADER_WORKER_SETS, CANARY) is None, "the canary to go", 120)
        assert world.server.clock() - asked >= 33, "grace and drain are kept all the same"
        world.refuse = lambda _: None
        m.refuse_routes(None)
        await world.until_state("Aborted", 600)
        await m.settled()


@by_each(ACCEPTING)
async def test_the_same_holds_in_place_where_the_share_else_follows_the_groups() -> None:
    steps = {"replicas": 3, "traffic": "75%", "pause": {}}
    async with metered(steps, replicas=4, words={"capacity": "InPlace"}) as m:
        world = m.world
        await m.release()
        m.refuse_routes(REFUSAL)
        world.request("Abort")
        await world.sleep(300)
        before = world.groups()
        assert [*before.values()] == ["v1", "v2", "v2", "v2"]
        assert REFUSAL in world.status["message"]
        asked = world.server.clock()
        world.request("Abort", force=True)
        await world.until(lambda: world.groups() != before, "groups to go", 120)
        assert world.server.clock() - asked >= 33, "grace and drain are kept all the same"
        await world.until(lambda: {*world.groups().values()} == {"v1"}, "all to be back", 600)
        m.refuse_routes(None)
        await world.until_state("Aborted", 600)
        await m.settled()


def lose_stable(m: Metered) -> float:
    """Every group of the stable LWS at once; gives the moment."""
    m.world.checks.clear()
    for group in m.world.groups():
        m.lose(f"{NAME}-{group}")
    return m.world.server.clock()


@by_each(EACH)
async def test_a_stable_side_that_was_lost_gets_its_share_back_when_it_has_served_for_a_while() -> None:
    async with metered(*TWO, replicas=2, min_ready=0) as m:
        await m.release()
        await m.world.sleep(40)
        lost = lose_stable(m)
        await m.world.until(lambda: share(m.world) == 1.0, "all requests at the canary")
        await m.world.until(lambda: "!" not in m.world.groups()[0], "a stable group")
        ready = m.world.server.clock()
        await m.world.until(lambda: share(m.world) == 0.2, "the share of the step")
        assert m.world.server.clock() - ready >= 9
        assert await m.all_shares() == {"users": shared(0.2), "tagged": shared(0.2), "direct": STABLE_ONLY}
        assert {each.client for each in m.meter.failures} == {"users", "tagged", "direct"}
        assert all(each.end <= lost + LAG + ACCEPTED for each in m.meter.failures), m.meter.failures
        await m.abort()


@by_each(EACH)
async def test_a_jump_back_waits_for_a_stable_side_that_was_lost_and_who_uses_its_service_is_answered() -> None:
    async with metered(*TWO, replicas=2, min_ready=0) as m:
        await m.release(2)
        await m.world.sleep(40)
        lost = lose_stable(m)
        await m.world.until(lambda: share(m.world) == 1.0, "all requests at the canary")
        m.world.patch(m.world.ROLLOUT, NAME, {"status": {"canaryStatus": {"nextStepIndex": 1}}}, "status")
        await m.world.until(lambda: m.world.groups(CANARY) == {0: "v2"}, "the canary to shrink", 300)
        assert all(each.end <= lost + LAG + ACCEPTED for each in m.meter.failures), m.meter.failures
        await m.abort()


@by_each(EACH)
async def test_without_its_lws_who_uses_the_service_is_answered_by_the_canary() -> None:
    async with metered(*TWO, replicas=2) as m:
        world = m.world
        await m.release()
        await world.sleep(40)
        world.checks.clear()
        world.delete(LEADER_WORKER_SETS, NAME)
        await world.until_state("Stalled")
        await world.sleep(30)
        lost = world.server.clock()
        assert await m.all_shares() == dict.fromkeys(("users", "tagged", "direct"), NEW_ONLY)
        assert [each for each in m.meter.failures if each.end > lost] == []
