"""A route names the new version's backend with weight 0 before it gives it requests: some gateways learn of routes and
of backends separately.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from rollout_lws.objects.resources import SERVICES
from rollout_lws.sandbox.api_resources import GATEWAYS
from rollout_lws.sandbox.behaviours.network.gateway_status import SILENT
from rollout_lws.sandbox.store import Event
from tests.scenarios.metered import ACCEPTED, LAG, metered, shared
from tests.scenarios.routed import (
    ACCEPTING,
    BY_GRPC,
    BY_POOLS,
    BY_ROUTE,
    GATEWAY,
    ROUTE,
    SAYS_NOTHING,
    SERVICE,
    assert_given_back,
    backends,
    because,
    by_each,
    called,
    each_router,
    kind,
    routed_at_rest,
    routes_of,
)
from tests.scenarios.stories import CANARY, waiting_for_approval
from tests.scenarios.world import KEYS, World

pytestmark = pytest.mark.looptime
#: Of pools a Gateway says by itself whether it has accepted them.
ROUTES_ALONE = each_router(
    BY_ROUTE, BY_GRPC, but=SAYS_NOTHING | because("its pools wait for their Gateway, too", BY_POOLS)
)

UNROUTED = {"replicas": 1, "pause": {}}
QUARTER = {"replicas": 1, "traffic": "25%", "pause": {}}
#: Seconds until groups of these stories are ready, between that and their share, and for requests that run in the end.
LOADS, GRACE, DRAIN = 12.0, 3.0, 30.0


def weights(world: World) -> list[int | None]:
    """The canary's weights that the route had, one after another, as long as the world goes on; None: not named."""
    seen: list[int | None] = []

    def look(event: Event) -> None:
        if (event.resource, event.object["metadata"]["name"]) != (kind(), ROUTE) or event.type == "DELETED":
            return
        refs = routes_of(world)[0]
        if not seen or seen[-1] != refs.get(backends()[1]):
            seen.append(refs.get(backends()[1]))

    world.server.store.subscribe(look)
    return seen


def unshared() -> dict[str, int]:
    """The route's weights while it names the new version's backend and gives it nothing."""
    stable, canary = backends()
    return {stable: 1, canary: 0}


def silence(world: World, text: str | None) -> None:
    """Have the Gateway say nothing of its routes, until None."""
    world.patch(GATEWAYS, GATEWAY, {"metadata": {"annotations": {SILENT: text}}})


def renew(world: World, before: dict[str, Any]) -> None:
    """Somebody deletes the route and makes it anew from a file."""
    spec = before[called()][0]
    world.delete(kind(), ROUTE)
    world.server.create(kind(), {"metadata": {"name": ROUTE, "namespace": "default"}, "spec": spec})


def unknown(m: Any) -> list[Any]:
    return [each for each in m.meter.failures if "does not know" in each.reason]


@by_each(ACCEPTING)
async def test_a_releases_first_writes_name_the_backend_and_its_share_comes_no_later_for_that() -> None:
    async with metered(QUARTER, replicas=3) as m:
        world, seen = m.world, weights(m.world)
        world.set_image("v2")
        await world.until(lambda: world.state == "Loading" and bool(world.groups(CANARY)))
        assert routes_of(world) == [unshared()]
        assert "applied" not in world.status["traffic"]
        assert "25%" not in " ".join(event.note for event in world.events)
        await world.until(lambda: world.groups(CANARY) == {0: "v2"}, "a ready group")
        ready = world.now
        await world.until(lambda: seen[-1] != 0, "a share")
        assert (world.now - ready).total_seconds() <= GRACE + 0.1
        await world.until_state("AwaitingApproval")
        assert await m.shares() == shared(0.25)
        await m.finish()
        assert (seen[:2], seen[-2:]) == ([0, 25], [0, None])
        m.assert_unharmed()


@by_each(ROUTES_ALONE)
async def test_a_step_without_traffic_is_not_held_up_by_a_gateway_that_says_nothing() -> None:
    async with metered(UNROUTED, QUARTER, replicas=3) as m:
        world = m.world
        silence(world, "true")
        await m.release()
        assert routes_of(world) == [unshared()]
        world.approve()
        await world.sleep(60)
        assert (world.state, routes_of(world)) == ("Routing", [unshared()])
        assert "not yet for" in world.condition("Reconciling")["message"]
        world.request("Abort")
        await world.until_state("Aborted", 60)
        silence(world, None)
        await m.settled()
        m.assert_unharmed()


@by_each(ACCEPTING)
async def test_a_release_that_never_shares_requests_writes_no_route(world: World) -> None:
    await routed_at_rest(world, UNROUTED, replicas=2, words={"capacity": "InPlace"})
    seen = weights(world)
    await waiting_for_approval(world)
    world.approve()
    await world.until_state("Healthy", 1200)
    assert seen == []


@by_each(ACCEPTING)
async def test_a_promotion_that_shares_what_no_step_does_finds_the_backend_named() -> None:
    async with metered(UNROUTED, replicas=3) as m:
        seen = weights(m.world)
        await m.release()
        assert seen == [0]
        approved = m.world.now
        m.world.approve()
        await m.world.until(lambda: seen[-1] != 0, "a share")
        assert (m.world.now - approved).total_seconds() < 1
        await m.finish()
        m.assert_unharmed()


@by_each(ACCEPTING)
async def test_an_abort_drains_a_share_that_was_not_accepted_and_never_put_on_record() -> None:
    async with metered(QUARTER, replicas=3) as m:
        world, seen = m.world, weights(m.world)
        world.set_image("v2")
        await world.until(lambda: bool(seen), "the backend")
        await world.sleep(LOADS)
        silence(world, "true")
        await world.until(lambda: seen[-1] != 0, "a share")
        # The moment in which the status is put off, since the Gateway mostly answers in it.
        assert "since" not in world.status["traffic"]
        world.request("Abort")
        await world.until(lambda: seen[-1] == 0, "the share is taken back")
        silence(world, None)
        taken = world.now
        await world.until(lambda: CANARY not in world.names()["leaderworkersets"], "no canary", 1200)
        assert (world.now - taken).total_seconds() >= GRACE + DRAIN
        await world.until_state("Aborted", 1200)
        await m.settled()
        m.assert_unharmed()


@pytest.mark.parametrize("restarts", [False, True])
@by_each(ACCEPTING)
async def test_a_route_made_anew_in_a_release_names_the_backend_first_again(restarts: bool) -> None:
    async with metered(QUARTER, replicas=3) as m:
        world = m.world
        await m.release()
        seen = weights(world)
        renew(world, dict(m.before))
        if restarts:
            await world.until(lambda: seen[-1] == 0, "the backend")
            world.stop_controller()
            world.start_controller()
        await world.until(lambda: seen[-1] == 25, "the share comes back")
        assert seen == [None, 0, 25]
        assert await m.shares() == shared(0.25)
        await m.finish()
        assert unknown(m) == []


@by_each(ACCEPTING)
async def test_a_route_made_anew_while_the_canary_serves_for_stable_names_its_backend_first() -> None:
    async with metered(QUARTER, {"replicas": "100%", "traffic": "50%"}, replicas=2) as m:
        world = m.world
        await m.release()
        world.approve()
        await world.until(lambda: any("!" in told for told in world.groups().values()), "a window")
        renew(world, dict(m.before))
        await m.finish()
        assert unknown(m) == []


@by_each(ACCEPTING)
async def test_a_route_made_anew_gives_a_share_at_once_where_stable_cannot_carry_all_requests() -> None:
    async with metered({"replicas": 3, "traffic": "50%", "pause": {}}, replicas=4) as m:
        world = m.world
        await m.release()
        world.checks.clear()
        for group in range(3):
            m.lose(f"llama-{group}")
        await world.sleep(LAG + ACCEPTED)
        seen = weights(world)
        renew(world, dict(m.before))
        await world.until(lambda: bool(seen) and seen[-1] is not None, "a share", 1)
        assert seen[-1] != 0


@by_each(ACCEPTING)
async def test_a_tool_that_takes_the_backend_out_at_once_is_answered_when_it_is_needed_and_not_raced(
    world: World,
) -> None:
    before = await routed_at_rest(world, UNROUTED, QUARTER, replicas=3)
    theirs, written = before[called()][0], list[Event]()

    def answer(event: Event) -> None:
        """Its own rules, and what else is there stays: as kubectl apply does."""
        if event.resource == kind() and backends()[1] in str(event.object["spec"]):
            written.append(event)
            world.patch(kind(), ROUTE, {"spec": theirs})

    world.server.store.subscribe(answer)
    await waiting_for_approval(world)
    await world.sleep(600)
    assert (len(written), world.state) == (1, "AwaitingApproval")
    assert [event.note for event in world.events if event.reason == "RouteReset"] == []
    world.approve()
    await world.until_state("Stalled")
    assert world.condition("Stalled")["reason"] == "RouteConflict"
    await world.sleep(600)
    assert len(written) <= 7
    world.request("Abort")
    await world.until_state("Aborted", 120)
    assert_given_back(world, before)


@by_each(ACCEPTING)
async def test_a_pause_before_the_first_share_gives_none() -> None:
    async with metered(QUARTER, replicas=3, min_ready=0) as m:
        world = m.world
        world.set_image("v2")
        await world.until(lambda: bool(world.groups(CANARY)), "a group")
        await world.until_state("Routing")
        world.patch_rollout({"strategy": {"paused": True}})
        await world.sleep(60)
        assert (world.state, routes_of(world)) == ("Paused", [unshared()])
        world.patch_rollout({"strategy": {"paused": False}})
        await m.step(1)
        assert await m.shares() == shared(0.25)
        await m.finish()
        m.assert_unharmed()


@by_each(ROUTES_ALONE)
async def test_a_route_that_refuses_the_backend_gives_it_nothing() -> None:
    async with metered(QUARTER, replicas=3) as m:
        world = m.world
        world.set_image("v2")
        await world.until(lambda: bool(world.groups(CANARY)), "a group")
        m.refuse_routes("too many routes")
        await world.until_state("Routing")
        await world.sleep(60)
        assert (world.state, routes_of(world)) == ("Routing", [unshared()])
        assert "too many routes" in world.condition("Reconciling")["message"]
        m.refuse_routes(None)
        await m.step(1)
        assert await m.shares() == shared(0.25)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("gone", ["route", "service"])
@by_each(ACCEPTING)
async def test_what_is_deleted_while_groups_load_is_there_again_before_the_share(gone: str) -> None:
    async with metered(QUARTER, replicas=3) as m:
        world = m.world
        world.set_image("v2")
        await world.until(lambda: bool(world.groups(CANARY)), "a group")
        if gone == "route":
            renew(world, dict(m.before))
        else:
            world.delete(SERVICES, f"{SERVICE}-canary")
        seen = weights(world)
        await m.step(1)
        assert seen[-2:] == [0, 25]
        assert await m.shares() == shared(0.25)
        assert [event.note for event in world.events if event.reason == "RouteReset"] == []
        await m.finish()
        assert unknown(m) == []


@pytest.mark.parametrize("loading", [True, False])
@by_each(ACCEPTING)
async def test_a_route_whose_annotation_alone_is_removed_is_restored_in_the_end_all_the_same(loading: bool) -> None:
    async with metered(QUARTER, replicas=3) as m:
        world = m.world
        world.set_image("v2")
        await world.until(lambda: bool(world.groups(CANARY)), "a group")
        world.patch(kind(), ROUTE, {"metadata": {"annotations": {KEYS.original: None}}})
        if not loading:
            await m.step(1)
            assert await m.shares() == shared(0.25)
            (told,) = [event.note for event in world.events if event.reason == "RouteReset"]
            assert f"wrote over {called()}; it was put back" in told
        await m.abort()
        m.assert_unharmed()


@by_each(ACCEPTING)
async def test_a_step_without_traffic_takes_a_backend_out_whose_annotation_was_removed(world: World) -> None:
    before = await routed_at_rest(world, UNROUTED, QUARTER, replicas=3)
    seen = weights(world)
    await waiting_for_approval(world)
    world.patch(kind(), ROUTE, {"metadata": {"annotations": {KEYS.original: None}}})
    await world.rest()
    assert seen == [0, None]
    world.approve()
    await world.until(lambda: seen[-1] == 25, "a share")
    assert seen == [0, None, 0, 25]
    world.request("Abort")
    await world.until_state("Aborted", 120)
    assert_given_back(world, before)


@pytest.mark.parametrize("seconds", [-30, 86400], ids=["long ago", "tomorrow"])
@by_each(ACCEPTING)
async def test_a_forged_moment_on_the_route_holds_no_share_up(seconds: int) -> None:
    async with metered(QUARTER, replicas=3) as m:
        world = m.world
        world.set_image("v2")
        await world.until(lambda: bool(world.groups(CANARY)), "a group")
        live = world.get(kind(), ROUTE)
        assert live is not None
        (entry,) = json.loads(live["metadata"]["annotations"][KEYS.original]).items()
        forged = {entry[0]: entry[1] | {"listedAt": (world.now + timedelta(seconds=seconds)).isoformat()}}
        world.patch(kind(), ROUTE, {"metadata": {"annotations": {KEYS.original: json.dumps(forged)}}})
        await m.step(1)
        assert await m.shares() == shared(0.25)
        await m.finish()
        m.assert_unharmed()
