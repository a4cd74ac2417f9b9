"""Whoever writes over routes, Services, pools or a canary Ingress is answered once and then named; what a user adds is
followed or left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rollout_lws.objects.resources import (
    DESTINATION_RULES,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INGRESSES,
    LWS_NAME,
    SERVICES,
    Resource,
)
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.traffic.registry import spec_of
from tests.scenarios.metered import LAG, metered, shared
from tests.scenarios.routed import (
    BY_GRPC,
    BY_INGRESS,
    BY_POOLS,
    BY_ROUTE,
    BY_SCRIPT,
    BY_SUBSET,
    BY_TRAEFIK,
    BY_VIRTUAL_SERVICE,
    CANARY_POOL,
    INGRESS,
    OF_INGRESS,
    POOL,
    ROUTE,
    SERVICE,
    Provider,
    assert_given_back,
    by_each,
    routed_at_rest,
)
from tests.scenarios.stories import waiting_for_approval
from tests.scenarios.told import tells
from tests.scenarios.world import KEYS, NAMESPACE, World

pytestmark = pytest.mark.looptime

CANARY_INGRESS = f"{INGRESS}-canary"
WEIGHT = "nginx.ingress.kubernetes.io/canary-weight"
NO_PATH = "Ingress llama has no path with the backend Service llama-api; add one, or name the Service that it refers to"
TWO: tuple[dict[str, Any], ...] = (
    {"replicas": 1, "traffic": "20%", "pause": {}},
    {"replicas": 2, "traffic": "50%", "pause": {}},
)
MERGE = "application/merge-patch+json"
Said = tuple[Any, dict[str, str]]
#: What somebody does to what a release has written, who knows what was there before it.
Revert = Callable[[World, dict[str, Any]], None]


def said(world: World, resource: Resource, name: str) -> Said | None:
    """Spec and annotations, our note and what tools say of themselves apart; None when it is not there."""
    found = world.get(resource, name)
    if found is None:
        return None
    kept = {key: text for key, text in (found["metadata"].get("annotations") or {}).items() if not KEYS.owns(key)}
    return found["spec"], kept


def rewrite(world: World, resource: Resource, name: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """What a GitOps tool does: a whole object, with its own name on it."""
    live = world.get(resource, name)
    assert live is not None
    world.server.replace(resource, {**live, **change(live)}, field_manager="argocd-controller")


def users_own(resource: Resource) -> Revert:
    """The user's route of this kind, as it was before the release."""

    def revert(world: World, before: dict[str, Any]) -> None:
        rewrite(world, resource, ROUTE, lambda _: {"spec": before[f"{resource.kind} {ROUTE}"][0]})

    return revert


def pinned_elsewhere(before: dict[str, Any]) -> dict[str, Any]:
    """What was there before, with a pin of the user's own in the stable pool: from then on that is what he wants."""
    spec, *rest = before[f"InferencePool {POOL}"]
    labels = {**spec["selector"]["matchLabels"], LWS_NAME: "other"}
    return {**before, f"InferencePool {POOL}": ({**spec, "selector": {"matchLabels": labels}}, *rest)}


def another_pin(world: World, before: dict[str, Any]) -> None:
    spec = pinned_elsewhere(before)[f"InferencePool {POOL}"][0]
    rewrite(world, INFERENCE_POOLS, POOL, lambda _: {"spec": spec})


def users_service(world: World, before: dict[str, Any]) -> None:
    rewrite(world, SERVICES, SERVICE, lambda _: {"spec": before[f"Service {SERVICE}"][0]})


def no_pin(world: World, before: dict[str, Any]) -> None:
    rewrite(world, INFERENCE_POOLS, CANARY_POOL, lambda _: {"spec": before[f"InferencePool {CANARY_POOL}"][0]})


def another_weight(world: World, _: dict[str, Any]) -> None:
    def change(live: dict[str, Any]) -> dict[str, Any]:
        meta = live["metadata"]
        return {"metadata": {**meta, "annotations": {**meta["annotations"], WEIGHT: "90"}}}

    rewrite(world, INGRESSES, CANARY_INGRESS, change)


def no_canary_ingress(world: World, _: dict[str, Any]) -> None:
    world.delete(INGRESSES, CANARY_INGRESS)


def another_host(world: World, _: dict[str, Any]) -> None:
    rewrite(world, DESTINATION_RULES, COPIED_RULE, lambda live: {"spec": {**live["spec"], "host": "other"}})


def users_route_of(by: Provider) -> Any:
    """A row for the user's route of another kind than HTTPRoute."""
    resource = by.hold_record[0][0]
    spec = spec_of(resource.kind)
    assert spec is not None
    advised = f"{resource.kind} {ROUTE}", spec.advice
    return pytest.param(by, resource, ROUTE, users_own(resource), "argocd-controller", advised, id=f"route-by-{by}")


ROUTE_ADVICE = f"HTTPRoute {ROUTE}", "let it ignore the rules of the route"
INGRESS_ADVICE = f"Ingress {CANARY_INGRESS}", "let it leave that Ingress alone, which the release has made"
COPIED_RULE = f"{ROUTE}-canary"
RULE_ADVICE = f"DestinationRule {COPIED_RULE}", "let it leave that DestinationRule alone, which the release has made"
POOL_ADVICE = "let it ignore the selector of the InferencePool"
#: By whom, what is written over and how, who is named, and what he is told.
REVERTS: tuple[Any, ...] = (
    pytest.param(BY_ROUTE, HTTP_ROUTES, ROUTE, users_own(HTTP_ROUTES), "argocd-controller", ROUTE_ADVICE, id="route"),
    pytest.param(
        BY_ROUTE,
        SERVICES,
        SERVICE,
        users_service,
        "another client",
        (f"Service {SERVICE}", "let it ignore the selector of the Service"),
        id="service",
    ),
    pytest.param(BY_POOLS, HTTP_ROUTES, ROUTE, users_own(HTTP_ROUTES), "argocd-controller", ROUTE_ADVICE, id="weights"),
    pytest.param(
        BY_POOLS,
        INFERENCE_POOLS,
        POOL,
        another_pin,
        "argocd-controller",
        (f"InferencePool {POOL}", POOL_ADVICE),
        id="stable-pool",
    ),
    pytest.param(
        BY_POOLS,
        INFERENCE_POOLS,
        CANARY_POOL,
        # Who only removes something owns nothing afterwards, and managedFields do not know him.
        no_pin,
        "another client",
        (f"InferencePool {CANARY_POOL}", POOL_ADVICE),
        id="canary-pool",
    ),
    pytest.param(
        BY_INGRESS, INGRESSES, CANARY_INGRESS, another_weight, "argocd-controller", INGRESS_ADVICE, id="ingress-weight"
    ),
    pytest.param(
        BY_INGRESS, INGRESSES, CANARY_INGRESS, no_canary_ingress, "another client", INGRESS_ADVICE, id="ingress-deleted"
    ),
    pytest.param(
        BY_TRAEFIK, INGRESSES, CANARY_INGRESS, another_weight, "argocd-controller", INGRESS_ADVICE, id="traefik-weight"
    ),
    *map(users_route_of, (BY_GRPC, BY_VIRTUAL_SERVICE, BY_SCRIPT)),
    pytest.param(
        BY_SUBSET, DESTINATION_RULES, COPIED_RULE, another_host, "argocd-controller", RULE_ADVICE, id="copied-rule"
    ),
)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("by", "resource", "name", "revert", "who", "advice"), REVERTS)
async def test_who_writes_over_a_release_is_answered_once_and_then_named(
    world: World,
    by: Provider,
    resource: Resource,
    name: str,
    revert: Revert,
    who: str,
    advice: tuple[str, str],
) -> None:
    before = await routed_at_rest(world, by=by)
    await waiting_for_approval(world)
    ours, (what, deed) = said(world, resource, name), advice
    revert(world, before)
    theirs = said(world, resource, name)
    assert theirs != ours
    await world.until(lambda: said(world, resource, name) == ours, "put back")
    assert [each.note for each in world.events if each.reason == EventReason.ROUTE_RESET] == [
        f"{who} wrote over {what}; it was put back: {deed}"
    ]
    await world.until_state("AwaitingApproval")
    await world.rest()
    revert(world, before)
    await world.until_state("Stalled")
    stalled = world.condition("Stalled")
    assert stalled["reason"] == Reason.ROUTE_CONFLICT
    assert stalled["message"].startswith(f"{who} keeps writing over {what}: {deed}; it is put back at ")
    world.approve()
    await world.sleep(10)
    assert (world.status["currentStepIndex"], said(world, resource, name)) == (1, theirs)
    await world.until(lambda: world.status["currentStepIndex"] == 2, seconds=120)
    await world.until_state("AwaitingApproval")
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert_given_back(world, pinned_elsewhere(before) if name == POOL else before, by)


@pytest.mark.parametrize(("by", "resource", "name", "revert", "who", "advice"), REVERTS)
@pytest.mark.long
async def test_an_abort_waits_for_nobody_who_writes_over_it(
    world: World,
    by: Provider,
    resource: Resource,
    name: str,
    revert: Revert,
    who: str,
    advice: tuple[str, str],
) -> None:
    before = await routed_at_rest(world, by=by)
    await waiting_for_approval(world)
    ours, (what, _) = said(world, resource, name), advice
    for _ in range(2):
        assert said(world, resource, name) == ours
        revert(world, before)
        await world.rest()
    assert world.condition("Stalled")["message"].startswith(f"{who} keeps writing over {what}: ")
    world.request("Abort")
    await world.until_state("Aborted", 120)
    await world.rest()
    assert_given_back(world, pinned_elsewhere(before) if name == POOL else before, by)


def add_path(world: World, path: str = "/health", service: str = SERVICE) -> None:
    live = world.get(INGRESSES, INGRESS)
    assert live is not None
    [rule] = live["spec"]["rules"]
    backend = {"service": {"name": service, "port": {"number": 80}}}
    paths = [*rule["http"]["paths"], {"path": path, "pathType": "Prefix", "backend": backend}]
    world.patch(INGRESSES, INGRESS, {"spec": {"rules": [{"http": {"paths": paths}}]}})


def canary_ingress(world: World) -> dict[str, Any]:
    found = world.get(INGRESSES, CANARY_INGRESS)
    assert found is not None
    return found


def assert_no_quarrel(world: World) -> None:
    assert [each.note for each in world.events if each.reason == EventReason.ROUTE_RESET] == []
    assert world.state == "AwaitingApproval"


@by_each(OF_INGRESS)
async def test_what_a_user_edits_in_his_ingress_is_followed_without_a_quarrel() -> None:
    async with metered(*TWO, replicas=4) as m:
        world = m.world
        await m.release()
        tls = [{"hosts": ["llama.example.com"], "secretName": "llama-tls"}]
        add_path(world)
        add_path(world, "/other", "another")
        world.patch(INGRESSES, INGRESS, {"spec": {"tls": tls}})
        await world.rest()
        spec = canary_ingress(world)["spec"]
        [rule] = spec["rules"]
        paths = {path["path"]: path["backend"]["service"]["name"] for path in rule["http"]["paths"]}
        assert (paths, spec["tls"]) == ({"/": f"{SERVICE}-canary", "/health": f"{SERVICE}-canary"}, tls)
        assert_no_quarrel(world)
        assert await m.shares() == shared(0.2)
        world.patch(INGRESSES, INGRESS, {"spec": {"tls": None, "ingressClassName": None}})
        await world.rest()
        assert "tls" not in canary_ingress(world)["spec"], "what the user takes away goes too"
        assert_no_quarrel(world)
        m.before["Ingress llama"][0].clear()
        m.before["Ingress llama"][0].update(world.get(INGRESSES, INGRESS)["spec"])  # type: ignore[index]
        await m.finish()
        m.assert_unharmed()


@by_each(OF_INGRESS)
async def test_a_label_that_somebody_adds_to_the_canary_ingress_is_left_alone(world: World) -> None:
    before = await routed_at_rest(world)
    await waiting_for_approval(world)
    world.patch(
        INGRESSES, CANARY_INGRESS, {"metadata": {"labels": {"team": "a"}, "annotations": {"example.com/seen": "yes"}}}
    )
    writes = len(world.writes)
    await world.sleep(60)
    assert_no_quarrel(world)
    assert [each.name for each in world.writes[writes:] if each.resource == INGRESSES] == []
    world.approve()
    await world.until(lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval")
    meta = canary_ingress(world)["metadata"]
    assert (meta["labels"], meta["annotations"]["example.com/seen"], meta["annotations"][WEIGHT]) == (
        {"team": "a"},
        "yes",
        "20",
    )
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert_given_back(world, before)


@by_each(OF_INGRESS)
async def test_a_path_that_leads_elsewhere_meanwhile_loses_no_request_to_the_new_version() -> None:
    async with metered(*TWO, replicas=4) as m:
        world = m.world
        await m.release()
        users = world.get(INGRESSES, INGRESS)
        assert users is not None
        path = users["spec"]["rules"][0]["http"]["paths"][0]
        elsewhere = {**path, "backend": {"service": {"name": "other", "port": {"number": 80}}}}
        world.patch(INGRESSES, INGRESS, {"spec": {"rules": [{"http": {"paths": [elsewhere]}}]}})
        world.approve()
        await world.until_state("Routing")
        await world.sleep(60)
        assert world.get(INGRESSES, CANARY_INGRESS) is None
        assert world.condition("Reconciling")["message"] == NO_PATH
        world.patch(INGRESSES, INGRESS, {"spec": {"rules": users["spec"]["rules"]}})
        await m.step(2)
        assert await m.shares() == shared(0.5)
        assert_no_quarrel(world)
        await m.finish()


TAKEN = (
    "Ingress llama-canary exists and is not ours, but the new version's needs its name: delete it, or make it anew"
    " under another name"
)


@pytest.mark.parametrize("goes", [True, False], ids=["until it goes", "and an abort waits for nobody"])
@tells({Reason.ROUTE_PROBLEM: TAKEN})
@by_each(OF_INGRESS)
async def test_a_name_that_somebody_else_takes_in_mid_release_is_told(world: World, goes: bool) -> None:
    before = await routed_at_rest(world)
    await waiting_for_approval(world)
    live = canary_ingress(world)
    world.stop_controller()
    world.delete(INGRESSES, CANARY_INGRESS)
    world.server.create(INGRESSES, {**live, "metadata": {"name": CANARY_INGRESS, "namespace": NAMESPACE}})
    world.start_controller()
    await world.until_state("Stalled")
    assert world.status["verdict"]["field"] == {"kind": "Ingress", "name": CANARY_INGRESS, "path": "metadata.name"}
    if goes:
        world.delete(INGRESSES, CANARY_INGRESS)
        await world.until_state("AwaitingApproval")
        assert canary_ingress(world)["metadata"]["annotations"][WEIGHT] == "10"
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    if not goes:
        world.delete(INGRESSES, CANARY_INGRESS)
    assert_given_back(world, before)


@by_each(OF_INGRESS)
async def test_an_ingress_that_vanishes_is_waited_for() -> None:
    async with metered(*TWO, replicas=4) as m:
        world = m.world
        await m.release()
        live = world.get(INGRESSES, INGRESS)
        assert live is not None
        world.delete(INGRESSES, INGRESS)
        world.approve()
        await world.until_state("Routing")
        await world.sleep(LAG)
        assert world.condition("Reconciling")["message"] == "Ingress llama does not exist: make it anew"
        world.server.create(INGRESSES, {**live, "metadata": {"name": INGRESS, "namespace": NAMESPACE}})
        await m.step(2)
        assert await m.shares() == shared(0.5)
        await m.finish()


@by_each(OF_INGRESS)
async def test_who_changed_the_share_is_named_and_not_who_added_a_label_since(world: World) -> None:
    await routed_at_rest(world)
    await waiting_for_approval(world)
    world.stop_controller()
    another_weight(world, {})
    await world.sleep(3)
    label = {"metadata": {"labels": {"team": "a"}}}
    world.server.patch(INGRESSES, NAMESPACE, CANARY_INGRESS, label, MERGE, field_manager="labeller")
    world.start_controller()
    await world.rest()
    [note] = [each.note for each in world.events if each.reason == EventReason.ROUTE_RESET]
    assert note.startswith(f"argocd-controller wrote over Ingress {CANARY_INGRESS}; ")
