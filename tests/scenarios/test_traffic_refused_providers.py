"""Pools and Ingresses by which requests cannot be shared: the version waits under the hold, nothing is touched, and the
message says what to do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rollout_lws.objects.resources import HTTP_ROUTES, INFERENCE_POOLS, INGRESSES, LWS_NAME, SERVICES
from rollout_lws.rollout.reasons import Reason
from tests.scenarios.metered import HEADER
from tests.scenarios.obstacles import (
    Act,
    a_canary,
    another_ingress,
    another_label,
    another_pool,
    borrowed_by_another,
    delete,
    ingress_spec,
    one_step,
    rival,
    rules_to,
    say,
    select,
    served,
    uid_of_other,
    unserved,
)
from tests.scenarios.routed import (
    AN_INGRESS,
    BY_GRPC,
    BY_INGRESS,
    BY_POOLS,
    BY_ROUTE,
    BY_SCRIPT,
    BY_TRAEFIK,
    CANARY_POOL,
    INGRESS,
    MESHES,
    POOL,
    ROUTE,
    SERVICE,
    Provider,
    assert_given_back,
    because,
    hold_record,
    routed_at_rest,
    told_only_with,
    told_with,
)
from tests.scenarios.stories import waiting_for_approval
from tests.scenarios.told import assert_stalled
from tests.scenarios.world import NAME, NAMESPACE, World

pytestmark = pytest.mark.looptime
#: Others have tables of what stands in their way beside their own tests.
ELSEWHERE = because("what stands in its way is told in tests/traffic", BY_GRPC, *MESHES, BY_SCRIPT)


def header(name: str) -> dict[str, Any]:
    return {"name": name, "value": "yes"}


MODIFIER = {"set": [{"name": "x-version", "value": "new"}]}
#: The Ingress of a controller that a release cannot use.
BY_HAPROXY = replace(BY_INGRESS, words={"ingress": {"name": INGRESS, "classType": "haproxy"}})
CANNOT = "ingress-nginx cannot express this step: it "

OBSTACLES: dict[str, tuple[Provider, Act, Reason, str]] = {
    "no stable pool": (
        BY_POOLS,
        delete(INFERENCE_POOLS, POOL),
        Reason.POOL_PROBLEM,
        "InferencePool llama-pool does not exist in namespace default: create it, or name another one in"
        " trafficRoutings",
    ),
    "no canary pool": (
        BY_POOLS,
        delete(INFERENCE_POOLS, CANARY_POOL),
        Reason.POOL_PROBLEM,
        "InferencePool llama-pool-canary does not exist in namespace default: create it, or name another one in"
        " trafficRoutings",
    ),
    "one pool for both": (
        BY_POOLS,
        say(gateway={"httpRouteName": "llama", "inferencePool": {"stable": POOL, "canary": POOL}}),
        Reason.POOL_PROBLEM,
        "inferencePool names llama-pool for both versions: make a second pool with an endpoint picker of its own",
    ),
    "no kind of pools": (
        BY_POOLS,
        unserved(INFERENCE_POOLS),
        Reason.POOL_PROBLEM,
        "this cluster does not serve inferencepools.inference.networking.k8s.io: install the Gateway API inference"
        " extension (v1), or refer to Services in the route",
    ),
    "stable pool of another LWS": (
        BY_POOLS,
        select(INFERENCE_POOLS, POOL, app="lama"),
        Reason.POOL_PROBLEM,
        "InferencePool llama-pool selects no leader of LeaderWorkerSet llama"
        " (app=lama,leaderworkerset.sigs.k8s.io/worker-index=0); correct its selector",
    ),
    "pool borrowed": (
        BY_POOLS,
        borrowed_by_another(INFERENCE_POOLS, CANARY_POOL),
        Reason.POOL_PROBLEM,
        "InferencePool llama-pool-canary is pinned by another Rollout (UID {other}); name another one in"
        " trafficRoutings, or delete that Rollout",
    ),
    "canary pool of nobody": (
        BY_POOLS,
        select(INFERENCE_POOLS, CANARY_POOL, app="llama", version="v2"),
        Reason.POOL_PROBLEM,
        "InferencePool llama-pool-canary would select no group of the new version, whose leaders have no label"
        " version: v2: add it to the template, or remove it from the selector",
    ),
    "Service of nobody new": (
        BY_POOLS,
        another_label,
        Reason.SERVICE_PROBLEM,
        "Service llama-api would select no group of the new version, whose leaders have no label app: llama: add it to"
        " the template, or remove it from the selector",
    ),
    "another pool": (
        BY_ROUTE,
        another_pool,
        Reason.SERVICE_PROBLEM,
        "InferencePool llama-internal would select groups of the new version too, whatever share they have: add"
        ' "leaderworkerset.sigs.k8s.io/name: llama" to its selector, or set allowUnmanagedBackends',
    ),
    "no Ingress": (
        BY_INGRESS,
        delete(INGRESSES, INGRESS),
        Reason.ROUTE_PROBLEM,
        "Ingress llama does not exist in namespace default: create it, or name another one in trafficRoutings",
    ),
    "no kind of Ingresses": (
        BY_INGRESS,
        unserved(INGRESSES),
        Reason.ROUTE_PROBLEM,
        "this cluster does not serve ingresses.networking.k8s.io, so there is no Ingress llama: install its"
        " CustomResourceDefinition, or route by another kind",
    ),
    "another class": (
        BY_INGRESS,
        ingress_spec(ingressClassName="traefik"),
        Reason.ROUTE_PROBLEM,
        "Ingress llama is of class traefik: set classType to nginx if ingress-nginx serves the class, to traefik if"
        " Traefik's ingress-nginx provider (kubernetesIngressNGINX) of v3.7 or newer serves the class; else use the"
        " Gateway API (gateway.httpRouteName)",
    ),
    "an unsafe class": (
        BY_HAPROXY,
        lambda _: None,
        Reason.ROUTE_PROBLEM,
        "classType haproxy is not supported: HAProxy shares requests by route-acl alone, which goes before all longer"
        " paths of a host and could send requests for other Services to the new version; use the Gateway API"
        " (gateway.httpRouteName)",
    ),
    "no path": (
        BY_INGRESS,
        ingress_spec(rules=rules_to("other")),
        Reason.ROUTE_PROBLEM,
        "Ingress llama has no path with the backend Service llama-api; add one, or name the Service that it refers to",
    ),
    "itself a canary": (
        BY_INGRESS,
        a_canary(INGRESS),
        Reason.ROUTE_PROBLEM,
        "Ingress llama is itself a canary of another Ingress; name that one in trafficRoutings",
    ),
    "a rival": (
        BY_INGRESS,
        rival,
        Reason.ROUTE_PROBLEM,
        "Ingress mine is a canary for a path of Ingress llama already, and ingress-nginx heeds only one: delete it for"
        " the time of releases",
    ),
    "a rival by the Service": (
        BY_TRAEFIK,
        rival,
        Reason.ROUTE_PROBLEM,
        "Ingress mine is a canary for a path to Service llama-api already, and Traefik heeds only one: delete it for"
        " the time of releases",
    ),
    "taken name": (
        BY_INGRESS,
        another_ingress(f"{INGRESS}-canary"),
        Reason.ROUTE_PROBLEM,
        "Ingress llama-canary exists and is not ours, but the new version's needs its name: delete it, or make it anew"
        " under another name",
    ),
    "two matches": (
        BY_INGRESS,
        one_step(matches=[{"headers": [header("a")]}, {"headers": [header("b")]}]),
        Reason.ROUTE_PROBLEM,
        f"{CANNOT}takes one match, not several; keep one, or use the Gateway API",
    ),
    "two headers": (
        BY_INGRESS,
        one_step(matches=[{"headers": [header("a"), header("b")]}]),
        Reason.ROUTE_PROBLEM,
        f"{CANNOT}matches exactly one header or cookie; name one, or use the Gateway API",
    ),
    "a path to match": (
        BY_INGRESS,
        one_step(matches=[{"path": {"type": "PathPrefix", "value": "/v1"}}]),
        Reason.ROUTE_PROBLEM,
        f"{CANNOT}matches one header or cookie, no path or query parameter; match a header, or use the Gateway API",
    ),
    "headers to change": (
        BY_INGRESS,
        one_step(traffic="20%", requestHeaderModifier=MODIFIER),
        Reason.ROUTE_PROBLEM,
        f"{CANNOT}changes no headers of requests to one version; remove requestHeaderModifier, or use the Gateway API",
    ),
}


def assert_nothing_but_the_hold(world: World, leaders: dict[str, str]) -> None:
    kinds = (SERVICES, HTTP_ROUTES, INFERENCE_POOLS, INGRESSES)
    assert [write for write in world.writes if write.resource in kinds] == []
    assert world.leader_uids() == leaders
    assert world.get_canary_replicas() is None


@pytest.mark.parametrize("obstacle", OBSTACLES)
@told_with(BY_POOLS, *AN_INGRESS, BY_ROUTE, but=ELSEWHERE)
async def test_an_obstacle_is_told_and_touches_nothing_but_the_hold(world: World, obstacle: str) -> None:
    by, act, reason, message = OBSTACLES[obstacle]
    await routed_at_rest(world, by=by)
    act(world)
    await world.rest()
    world.writes.clear()
    leaders = world.leader_uids()
    world.set_image("v2")
    await world.until_state("Stalled")
    assert_stalled(world, reason, message.replace("{other}", uid_of_other(world)), phase="Healthy")
    assert_nothing_but_the_hold(world, leaders)


@told_only_with(BY_POOLS, why="about pools alone")
async def test_a_pool_that_selects_several_lwss_is_refused(world: World) -> None:
    world.create_workload(replicas=1, name="qwen")
    await routed_at_rest(world, by=BY_POOLS)
    # Else the Service would be told of first.
    world.patch(SERVICES, SERVICE, {"spec": {"selector": {LWS_NAME: NAME}}})
    await world.until(lambda: world.groups("qwen") == {0: "v1"})
    world.writes.clear()
    leaders = world.leader_uids()
    world.set_image("v2")
    await world.until_state("Stalled")
    message = (
        "InferencePool llama-pool selects leaders of LeaderWorkerSet qwen besides llama and would lose them when"
        ' pinned; add "leaderworkerset.sigs.k8s.io/name: llama" to its selector, or use one for each LeaderWorkerSet.'
        " Where requests need both, as with prefill and decode, leave trafficRoutings out: they follow the groups then"
    )
    assert_stalled(world, Reason.POOL_PROBLEM, message, phase="Healthy")
    assert_nothing_but_the_hold(world, leaders)
    world.checks.clear()
    for pool in (POOL, CANARY_POOL):
        world.patch(INFERENCE_POOLS, pool, {"spec": {"selector": {"matchLabels": {LWS_NAME: NAME}}}})
    await world.until_state("AwaitingApproval")


GONE: dict[str, Act] = {
    "canary pool of nobody": select(INFERENCE_POOLS, CANARY_POOL, version=None),
    "a rival": delete(INGRESSES, "mine"),
    "no path": ingress_spec(rules=rules_to(SERVICE)),
    "no kind of pools": served,
    "another pool": delete(INFERENCE_POOLS, "llama-internal"),
    "taken name": delete(INGRESSES, f"{INGRESS}-canary"),
    "two matches": one_step(matches=HEADER["matches"]),
}


@pytest.mark.parametrize(
    "obstacle", [*list(GONE)[:3], *(pytest.param(each, marks=pytest.mark.long) for each in list(GONE)[3:])]
)
@told_with(BY_POOLS, *AN_INGRESS, BY_ROUTE, but=ELSEWHERE)
async def test_it_goes_on_by_itself_when_the_obstacle_is_gone(world: World, obstacle: str) -> None:
    by, act, *_ = OBSTACLES[obstacle]
    before = await routed_at_rest(world, by=by)
    act(world)
    world.set_image("v2")
    await world.until_state("Stalled")
    GONE[obstacle](world)
    await world.until_state("AwaitingApproval")
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert_given_back(world, before, by)


CONTRADICTS = (
    "match 1 of a step contradicts every rule of HTTPRoute llama that refers to Service/llama-api: those want another"
    " value of the same header or query parameter; match another one"
)


async def tenants_only(world: World) -> None:
    """The route's only rule is for one value of a header."""
    route = world.get(HTTP_ROUTES, ROUTE)
    assert route is not None
    [rule] = route["spec"]["rules"]
    matches = [{"headers": [header("tenant")]}]
    world.patch(HTTP_ROUTES, ROUTE, {"spec": {"rules": [{**rule, "matches": matches}]}})
    await world.rest()


@pytest.mark.parametrize(
    ("by", "matches", "message"),
    [
        (BY_INGRESS, [{"headers": [header("a")]}, {"headers": [header("b")]}], OBSTACLES["two matches"][3]),
        (BY_ROUTE, [{"headers": [{**header("tenant"), "value": "no"}]}], CONTRADICTS),
    ],
    ids=["Ingress", "HTTPRoute"],
)
@pytest.mark.parametrize("at", ["this step", pytest.param("the next step", marks=pytest.mark.long)])
@told_with(
    but=ELSEWHERE
    | because("its backends are told of by HTTPRoutes", BY_POOLS)
    | because("as ingress-nginx", BY_TRAEFIK)
)
async def test_steps_edited_in_mid_release_to_what_routers_cannot_say_stop_it_and_leave_the_share(
    world: World, by: Provider, matches: Any, message: str, at: str
) -> None:
    before = await routed_at_rest(world, by=by)
    if by is BY_ROUTE:
        await tenants_only(world)
        before = hold_record(world, by)
    await waiting_for_approval(world)
    standing = world.server.get(*SHARED_IN[by.name])["metadata"]["resourceVersion"]
    said, weighted = {"replicas": 1, "matches": matches, "pause": {}}, {"replicas": 1, "traffic": "10%", "pause": {}}
    steps = [said] if at == "this step" else [weighted, said]
    world.patch_rollout({"strategy": {"canary": {"steps": steps}}})
    await world.until_state("Stalled")
    assert_stalled(world, Reason.ROUTE_PROBLEM, message, phase="Progressing")
    world.approve()
    await world.sleep(60)
    assert world.status["currentStepIndex"] == 1
    assert world.server.get(*SHARED_IN[by.name])["metadata"]["resourceVersion"] == standing
    world.patch_rollout({"strategy": {"canary": {"steps": [weighted, weighted]}}})
    await world.until(lambda: world.state != "Stalled")
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert_given_back(world, before, by)


#: What the share stands in.
SHARED_IN = {
    str(BY_INGRESS): (INGRESSES, NAMESPACE, f"{INGRESS}-canary"),
    str(BY_ROUTE): (HTTP_ROUTES, NAMESPACE, ROUTE),
}
