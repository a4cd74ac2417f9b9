"""Requests that cannot be shared: the version waits under the hold, and the message says what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rollout_lws.objects.resources import (
    LWS_WORKER_INDEX,
    SERVICES,
)
from rollout_lws.rollout.reasons import Reason
from rollout_lws.sandbox.api_resources import GATEWAYS
from tests.scenarios.routed import (
    AN_INGRESS,
    BY_GRPC,
    BY_POOLS,
    BY_ROUTE,
    BY_SCRIPT,
    EACH,
    FIVE,
    MESHES,
    PROVIDERS,
    ROUTE,
    ROUTES,
    SERVICE,
    because,
    by_each,
    create_provider,
    each_router,
    hold_record,
    kind,
    of_router,
    routed_at_rest,
    routing,
    with_rules,
)
from tests.scenarios.stories import STEPS, at_rest, waiting_for_approval
from tests.scenarios.told import assert_stalled, tells
from tests.scenarios.world import NAMESPACE, World

pytestmark = pytest.mark.looptime
#: Nothing is there yet, and so no scripts.
WITHOUT_SCRIPTS = each_router(*PROVIDERS, but=because("a controller without scripts refuses the Rollout", BY_SCRIPT))


def without_service(world: World) -> None:
    world.delete(SERVICES, SERVICE)


def without_route(world: World) -> None:
    world.delete(kind(), ROUTE)


def route_to_another(world: World) -> None:
    live = world.get(kind(), ROUTE)
    assert live is not None
    rules = [{"backendRefs": [{"name": "other", "port": 80}]}]
    world.patch(kind(), ROUTE, {"spec": with_rules(live, rules)["spec"]})


def route_without_gateway(world: World) -> None:
    world.delete(GATEWAYS, "inference")
    world.patch(kind(), ROUTE, {"status": {"parents": []}}, "status")


def taken_name(world: World) -> None:
    spec = {"selector": {"app": "other"}, "ports": [{"port": 80}]}
    body = {"metadata": {"name": f"{SERVICE}-canary", "namespace": NAMESPACE}, "spec": spec}
    world.server.create(SERVICES, body)


def another_service(world: World) -> None:
    spec = {"selector": {"app": "llama", LWS_WORKER_INDEX: "0"}, "ports": [{"port": 80}]}
    world.server.create(SERVICES, {"metadata": {"name": "llama-internal", "namespace": NAMESPACE}, "spec": spec})


def no_leader_selected(world: World) -> None:
    world.patch(SERVICES, SERVICE, {"spec": {"selector": {"app": "lama"}}})


OBSTACLES: tuple[tuple[Callable[[World], None], Reason, str], ...] = (
    (
        without_service,
        Reason.SERVICE_PROBLEM,
        "Service llama-api does not exist in namespace default: create it, or name another one in trafficRoutings",
    ),
    (
        no_leader_selected,
        Reason.SERVICE_PROBLEM,
        "Service llama-api selects no leader of LeaderWorkerSet llama"
        " (app=lama,leaderworkerset.sigs.k8s.io/worker-index=0); correct its selector",
    ),
    (
        taken_name,
        Reason.SERVICE_PROBLEM,
        "Service llama-api-canary exists and is not ours, but the new version's needs its name: delete it, or make it"
        " anew under another name",
    ),
    (
        another_service,
        Reason.SERVICE_PROBLEM,
        "Service llama-internal would select groups of the new version too, whatever share they have: add"
        ' "leaderworkerset.sigs.k8s.io/name: llama" to its selector, or set allowUnmanagedBackends',
    ),
    (
        without_route,
        Reason.ROUTE_PROBLEM,
        "HTTPRoute llama does not exist in namespace default: create it, or name another one in trafficRoutings",
    ),
)
#: What each kind says in its own words.
OF_ROUTES: tuple[tuple[Callable[[World], None], Reason, str], ...] = (
    (
        route_to_another,
        Reason.ROUTE_PROBLEM,
        "HTTPRoute llama has no rule with a backendRef to Service/llama-api (it refers to Service/other:80); add one,"
        " or name the backend that the rules refer to in trafficRoutings",
    ),
    (
        route_without_gateway,
        Reason.ROUTE_PROBLEM,
        "no Gateway accepts HTTPRoute llama as it is: correct what its status.parents says, or name another one in"
        " trafficRoutings",
    ),
)


@pytest.mark.parametrize(("obstacle", "reason", "message"), OBSTACLES, ids=lambda each: getattr(each, "__name__", ""))
@by_each(EACH)
async def test_an_obstacle_is_told_and_touches_nothing_but_the_hold(
    world: World, obstacle: Callable[[World], None], reason: Reason, message: str
) -> None:
    await refused(world, obstacle, reason, message)


@pytest.mark.parametrize(("obstacle", "reason", "message"), OF_ROUTES, ids=lambda each: getattr(each, "__name__", ""))
@by_each(
    each_router(
        BY_ROUTE,
        BY_GRPC,
        but=because("each kind has words of its own: see tests/traffic", BY_POOLS, *AN_INGRESS, *MESHES, BY_SCRIPT),
    )
)
async def test_a_route_that_cannot_be_used_is_told_and_not_touched(
    world: World, obstacle: Callable[[World], None], reason: Reason, message: str
) -> None:
    await refused(world, obstacle, reason, message)


async def refused(world: World, obstacle: Callable[[World], None], reason: Reason, message: str) -> None:
    await routed_at_rest(world)
    obstacle(world)
    world.writes.clear()
    before = world.leader_uids()
    world.set_image("v2")
    await world.until_state("Stalled")
    assert_stalled(world, reason, of_router(message), phase="Healthy")
    assert [write for write in world.writes if write.resource in (SERVICES, kind())] == []
    assert world.leader_uids() == before
    assert world.get_canary_replicas() is None


@by_each(WITHOUT_SCRIPTS)
async def test_it_goes_on_by_itself_when_the_obstacle_is_gone(world: World) -> None:
    await at_rest(world, *FIVE, replicas=5, canary={"trafficRoutings": routing()})
    world.set_image("v2")
    await world.until_state("Stalled")
    create_provider(world, ROUTES.provider)
    await world.until_state("AwaitingApproval")


ALL_AT_ONE = (
    "step 1 sends all requests to 1 of 5 groups, which cannot carry them: raise its replicas to 100%, or lower its"
    " traffic"
)


@tells({Reason.ROUTE_PROBLEM: ALL_AT_ONE})
@by_each(EACH)
async def test_all_requests_at_too_few_groups_are_refused(world: World) -> None:
    await routed_at_rest(world, {"replicas": 1, "traffic": "100%"})
    world.set_image("v2")
    await world.until_state("Stalled")


NO_SERVICE = OBSTACLES[0][2]


@tells({Reason.SERVICE_PROBLEM: NO_SERVICE})
@by_each(WITHOUT_SCRIPTS)
async def test_a_service_that_is_not_there_is_told(world: World) -> None:
    await at_rest(world, *STEPS, canary={"trafficRoutings": routing()})
    world.set_image("v2")
    await world.until_state("Stalled")


RENAMED = (
    "this release shares requests by Service llama-api, HTTPRoute llama: name the same in trafficRoutings again until"
    " it is over, or go back"
)


@pytest.mark.parametrize("routings", [None, "another"])
@tells({Reason.ROUTE_PROBLEM: RENAMED})
@by_each(EACH)
async def test_another_route_named_in_mid_release_stops_it_and_an_abort_gives_the_first_back(
    world: World, routings: Any
) -> None:
    before, names = await routed_at_rest(world), world.names()["services"]
    await waiting_for_approval(world)
    canary: dict[str, Any] = {"trafficRoutings": routings and routing(service="other")}
    if routings is None:
        canary["steps"] = list(STEPS)
    world.patch_rollout({"strategy": {"canary": canary}})
    world.approve()
    await world.until_state("Stalled")
    world.request("Abort")
    await world.until_state("Aborted", 1200)
    await world.rest()
    assert hold_record(world) == before
    assert world.names()["services"] == names
