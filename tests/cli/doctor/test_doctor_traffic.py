"""The links after the pods: Services, endpoints, routes, and whoever scales."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from rollout_lws.cli.doctor.checks.routes import TAKEN_UP_SECONDS
from rollout_lws.cli.doctor.links import Link, Name, State
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    ENDPOINT_SLICES,
    HORIZONTAL_POD_AUTOSCALERS,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INGRESSES,
    LWS_NAME,
    LWS_WORKER_INDEX,
    PODS,
    SERVICES,
)
from rollout_lws.objects.workloads import SERVICE_NAME
from rollout_lws.rollout.reasons import Reason
from tests.cli.doctor.looking import assert_whole, broken, links
from tests.cli.doctor.test_doctor_pods import assert_names
from tests.scenarios import test_traffic_refused as refused
from tests.scenarios import test_traffic_refused_providers as refused_providers
from tests.scenarios.failures import pods
from tests.scenarios.obstacles import Act, delete, rival, uid_of_other
from tests.scenarios.routed import (
    BY_INGRESS,
    BY_POOLS,
    BY_ROUTE,
    CANARY_POOL,
    INGRESS,
    ROUTE,
    SERVICE,
    Provider,
    routed_at_rest,
    routes_of,
)
from tests.scenarios.scaled import AUTOSCALER, autoscaler, create_autoscaler, edit, scale_lws
from tests.scenarios.stories import CANARY, at_rest, waiting_for_approval
from tests.scenarios.test_autoscalers_told import KEDA, create_scaled_object
from tests.scenarios.world import KEYS, NAME, NAMESPACE, ROLLOUTS, World

pytestmark = [pytest.mark.looptime, pytest.mark.rare(3)]

PLACES = {Reason.SERVICE_PROBLEM: Name.SERVICE, Reason.POOL_PROBLEM: Name.SERVICE, Reason.ROUTE_PROBLEM: Name.ROUTE}
STEP = {"replicas": 2, "traffic": "40%", "pause": {}}


# What the controller would refuse: told before anybody has applied a version


@pytest.mark.parametrize(
    ("obstacle", "reason", "message"), refused.OBSTACLES, ids=lambda each: getattr(each, "__name__", "")
)
async def test_what_would_keep_the_next_version_waiting(
    world: World, obstacle: Act, reason: Reason, message: str
) -> None:
    await routed_at_rest(world)
    obstacle(world)
    found = await broken(world)
    assert found.name is PLACES[reason], found
    assert message in found.found
    assert message.startswith((found.about.replace("/", " "), "no Gateway accepts HTTPRoute llama"))


#: One of each kind of thing in the default run; their words have stories of their own.
_SAMPLE = ("no stable pool", "pool borrowed", "no kind of Ingresses", "another pool", "canary pool of nobody")
_OF_PROVIDERS = [
    name if name in _SAMPLE else pytest.param(name, marks=pytest.mark.long) for name in refused_providers.OBSTACLES
]


@pytest.mark.parametrize("case", _OF_PROVIDERS)
async def test_and_by_pools_or_an_ingress(world: World, case: str) -> None:
    by, act, reason, message = refused_providers.OBSTACLES[case]
    await routed_at_rest(world, by=by)
    act(world)
    found = await broken(world)
    assert found.name is PLACES[reason], found
    assert message.format(other=uid_of_other(world)) in found.found


# In a release


async def releasing(world: World) -> None:
    await routed_at_rest(world, STEP)
    await waiting_for_approval(world)
    world.stop_controller()


async def no_service(world: World) -> None:
    await releasing(world)
    world.delete(SERVICES, SERVICE)


async def no_canary_service(world: World) -> None:
    await releasing(world)
    world.delete(SERVICES, f"{SERVICE}-canary")


async def pinned_to_nobody(world: World) -> None:
    await releasing(world)
    world.cluster.runner.stop()
    for name in pods(world, NAME):
        world.server.delete(PODS, NAMESPACE, name, grace_seconds=0)


async def repinned(world: World) -> None:
    await releasing(world)
    world.patch(SERVICES, SERVICE, {"spec": {"selector": {LWS_NAME: "gone"}}})


async def no_route(world: World) -> None:
    await releasing(world)
    world.delete(HTTP_ROUTES, ROUTE)


async def other_weights(world: World) -> None:
    await releasing(world)
    route = world.get(HTTP_ROUTES, ROUTE)
    assert route is not None
    refs = [{**ref, "weight": 1} for ref in route["spec"]["rules"][0]["backendRefs"]]
    world.patch(HTTP_ROUTES, ROUTE, {"spec": {"rules": [{**route["spec"]["rules"][0], "backendRefs": refs}]}})


def say_of_route(world: World, kind: str, reason: str) -> None:
    """Have the Gateway say that the route is not in order."""
    world.cluster.runner.stop()
    route = world.get(HTTP_ROUTES, ROUTE)
    assert route is not None
    [parent] = route["status"]["parents"]
    generation = route["metadata"]["generation"]
    said = {"Accepted": ("True", "Accepted"), "ResolvedRefs": ("True", "ResolvedRefs"), kind: ("False", reason)}
    conditions = [
        {
            "type": each,
            "status": status,
            "reason": why,
            "message": "",
            "observedGeneration": generation,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for each, (status, why) in said.items()
    ]
    world.patch(HTTP_ROUTES, ROUTE, {"status": {"parents": [{**parent, "conditions": conditions}]}}, "status")


async def refs_not_resolved(world: World) -> None:
    await releasing(world)
    say_of_route(world, "ResolvedRefs", "BackendNotFound")


async def not_accepted(world: World) -> None:
    await releasing(world)
    say_of_route(world, "Accepted", "NotAllowedByListeners")


async def no_ingress(world: World) -> None:
    await routed_at_rest(world, STEP, by=BY_INGRESS)
    await waiting_for_approval(world)
    world.stop_controller()
    world.delete(INGRESSES, INGRESS)


async def no_picker(world: World) -> None:
    await routed_at_rest(world, STEP, by=BY_POOLS)
    world.delete(SERVICES, f"{CANARY_POOL}-epp")
    world.set_image("v2")
    await world.until(lambda: "ResolvedRefs" in (world.status.get("message") or ""))


async def no_canary_ingress(world: World) -> None:
    await routed_at_rest(world, STEP, by=BY_INGRESS)
    await waiting_for_approval(world)
    world.stop_controller()
    world.delete(INGRESSES, f"{INGRESS}-canary")


async def other_annotations(world: World) -> None:
    await routed_at_rest(world, STEP, by=BY_INGRESS)
    await waiting_for_approval(world)
    world.stop_controller()
    weight = {"nginx.ingress.kubernetes.io/canary-weight": "90"}
    world.patch(INGRESSES, f"{INGRESS}-canary", {"metadata": {"annotations": weight}})


_CASES: tuple[tuple[Callable[[World], Awaitable[None]], Name, str, str], ...] = (
    (no_service, Name.SERVICE, f"Service/{SERVICE}", "does not exist"),
    (no_canary_service, Name.SERVICE, f"Service/{SERVICE}-canary", "does not exist"),
    (repinned, Name.SERVICE, f"Service/{SERVICE}", "another client has changed the selector that the release wrote"),
    (pinned_to_nobody, Name.SERVICE, f"Service/{SERVICE}", "is pinned to a version that has no pods"),
    (no_route, Name.ROUTE, f"HTTPRoute/{ROUTE}", "does not exist"),
    (other_weights, Name.ROUTE, f"HTTPRoute/{ROUTE}", "another client has written over what the release wrote"),
    (refs_not_resolved, Name.ROUTE, f"HTTPRoute/{ROUTE}", "ResolvedRefs is False (BackendNotFound)"),
    (not_accepted, Name.ROUTE, f"HTTPRoute/{ROUTE}", "Accepted is False (NotAllowedByListeners)"),
    (no_picker, Name.ROUTE, f"HTTPRoute/{ROUTE}", f"InferencePool {CANARY_POOL}: Gateway default/inference"),
    (no_ingress, Name.ROUTE, f"Ingress/{INGRESS}", "does not exist"),
    (
        other_annotations,
        Name.ROUTE,
        f"Ingress/{INGRESS}-canary",
        "another client has written over what the release wrote",
    ),
    (no_canary_ingress, Name.ROUTE, f"Ingress/{INGRESS}", f"create Ingress {INGRESS}-canary"),
)


async def named(world: World, name: Name) -> Link:
    """The first broken link of that name: with nobody to do anything, what is to be done comes before it."""
    found = await links(world)
    return next((each for each in found if each.name is name and each.state is State.BROKEN), found[0])


@pytest.mark.parametrize(("happens", "name", "about", "words"), _CASES, ids=lambda each: getattr(each, "__name__", ""))
async def test_what_breaks_in_a_release_is_named(
    world: World, happens: Callable[[World], Awaitable[None]], name: Name, about: str, words: str
) -> None:
    await happens(world)
    found = await named(world, name)
    assert_names(found, name, about, words)
    assert found.affected.endswith("of all go to the new version")


async def test_with_a_controller_that_puts_things_back_the_first_broken_link_is_that_one(world: World) -> None:
    await routed_at_rest(world, STEP)
    await waiting_for_approval(world)
    world.delete(HTTP_ROUTES, ROUTE)
    await world.rest()
    assert_names(await broken(world), Name.ROUTE, f"HTTPRoute/{ROUTE}", f"HTTPRoute {ROUTE} does not exist")


async def test_who_keeps_writing_over_a_route_is_named(world: World) -> None:
    await routed_at_rest(world, STEP)
    before = routes_of(world)
    await waiting_for_approval(world)
    for _ in range(3):
        rules = [{"backendRefs": [{"name": name, "port": 80, "weight": weight} for name, weight in before[0].items()]}]
        kind = "application/merge-patch+json"
        body = {"spec": {"rules": rules}}
        world.server.patch(HTTP_ROUTES, NAMESPACE, ROUTE, body, kind, field_manager="argocd-controller")
        await world.sleep(1)
    found = await broken(world)
    assert_names(found, Name.ROUTE, f"HTTPRoute/{ROUTE}", "argocd-controller keeps writing over HTTPRoute llama")


async def test_what_may_not_be_read_hides_no_other_router_of_the_release(world: World) -> None:
    both = replace(BY_INGRESS, words={**BY_ROUTE.words, **BY_INGRESS.words})
    await routed_at_rest(world, STEP, by=both)
    await waiting_for_approval(world)
    for kind, other in ((HTTP_ROUTES, INGRESSES), (INGRESSES, HTTP_ROUTES)):
        routes = [each for each in await links(world, kind.__eq__) if each.name is Name.ROUTE]
        states = {each.about.partition("/")[0]: each.state for each in routes}
        assert states == {kind.kind: State.UNKNOWN, other.kind: State.OK}


async def test_a_gateway_gets_its_time_to_take_a_route_up(world: World) -> None:
    await routed_at_rest(world, STEP)
    await waiting_for_approval(world)
    world.cluster.runner.stop()
    world.patch(HTTP_ROUTES, ROUTE, {"spec": {"hostnames": ["chat.example.com"]}})
    await assert_whole(world)
    await world.sleep(TAKEN_UP_SECONDS)
    found = await broken(world)
    assert_names(found, Name.ROUTE, f"HTTPRoute/{ROUTE}", "Accepted is reported for generation 3, not yet for 4")


# At rest


async def test_a_service_without_a_listed_endpoint_though_pods_are_ready(world: World) -> None:
    await routed_at_rest(world)
    await world.sleep(20)
    world.cluster.runner.stop()
    for each in world.server.list(ENDPOINT_SLICES, NAMESPACE, label_selector=f"{SERVICE_NAME}={SERVICE}"):
        world.delete(ENDPOINT_SLICES, each["metadata"]["name"])
    words = f"Service {SERVICE} selects 5 ready pods, and its EndpointSlices list none of them"
    found = await broken(world)
    assert_names(found, Name.ENDPOINTS, f"Service/{SERVICE}", words)


async def test_a_service_that_was_changed_just_now_gets_its_time_to_be_listed(world: World) -> None:
    await routed_at_rest(world)
    await world.sleep(60)
    world.cluster.runner.stop()
    live = world.get(SERVICES, SERVICE)
    assert live is not None
    for each in world.server.list(ENDPOINT_SLICES, NAMESPACE, label_selector=f"{SERVICE_NAME}={SERVICE}"):
        world.delete(ENDPOINT_SLICES, each["metadata"]["name"])
    world.delete(SERVICES, SERVICE)
    meta = {"name": SERVICE, "namespace": NAMESPACE}
    world.server.create(SERVICES, {**live, "metadata": meta})
    await assert_whole(world)
    await world.sleep(20)
    assert (await broken(world)).name is Name.ENDPOINTS


async def test_a_service_that_selects_workers(world: World) -> None:
    await routed_at_rest(world)
    world.patch(SERVICES, SERVICE, {"spec": {"selector": {LWS_WORKER_INDEX: None}}})
    await world.rest()
    found = await broken(world)
    assert_names(found, Name.SERVICE, f"Service/{SERVICE}", f"selects workers besides leaders (pod {NAME}-0-1 for one)")


async def test_a_service_whose_target_says_that_workers_answer_is_in_order(world: World) -> None:
    await routed_at_rest(world, target="AllPods")
    world.patch(SERVICES, SERVICE, {"spec": {"selector": {LWS_WORKER_INDEX: None}}})
    await world.rest()
    assert all(each.state is State.OK for each in await links(world))


async def test_a_share_that_is_left_behind_is_named(world: World) -> None:
    await routed_at_rest(world, STEP)
    await waiting_for_approval(world)
    route = world.get(HTTP_ROUTES, ROUTE)
    assert route is not None
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    world.stop_controller()
    world.cluster.runner.stop()
    marks = {"annotations": {KEYS.original: route["metadata"]["annotations"][KEYS.original]}}
    world.patch(HTTP_ROUTES, ROUTE, {"metadata": marks, "spec": route["spec"]})
    found = await named(world, Name.ROUTE)
    assert_names(found, Name.ROUTE, f"HTTPRoute/{ROUTE}", "does not say what the Rollout does: patch HTTPRoute llama")


# Who scales


async def test_keda_is_named_before_a_version_is_applied(world: World) -> None:
    create_scaled_object(world)
    await at_rest(world)
    assert_names(await broken(world), Name.AUTOSCALER, f"HorizontalPodAutoscaler/{AUTOSCALER}", KEDA)


async def test_who_fights_a_held_autoscaler_is_named(world: World) -> None:
    create_autoscaler(world)
    await at_rest(world)
    await waiting_for_approval(world)
    for _ in range(3):
        edit(world, minReplicas=1)
        await world.sleep(1)
    found = await broken(world)
    assert_names(found, Name.AUTOSCALER, f"HorizontalPodAutoscaler/{AUTOSCALER}", "kubectl-edit writes over the bounds")


async def overwritten(world: World) -> None:
    world.stop_controller()
    edit(world, minReplicas=1)


async def hold_removed(world: World) -> None:
    world.stop_controller()
    edit(world, minReplicas=1)
    world.patch(HORIZONTAL_POD_AUTOSCALERS, AUTOSCALER, {"metadata": {"annotations": {KEYS.original: None}}})


async def left_behind(world: World) -> None:
    held = autoscaler(world)
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    world.set_image("v1")
    await world.until_state("Healthy")
    await world.rest()
    world.stop_controller()
    marks = {"annotations": {KEYS.original: held["metadata"]["annotations"][KEYS.original]}}
    world.patch(HORIZONTAL_POD_AUTOSCALERS, AUTOSCALER, {"metadata": marks, "spec": held["spec"]})


@pytest.mark.parametrize("unread", [False, True])
@pytest.mark.parametrize(
    ("happens", "words"),
    [
        (overwritten, "another client writes over the bounds that the release holds"),
        (hold_removed, f"does not say what the Rollout does: patch HorizontalPodAutoscaler {AUTOSCALER}"),
        (left_behind, "is still held, though no release is in progress"),
    ],
)
async def test_a_hold_of_an_autoscaler_that_no_controller_looks_after_is_named(
    world: World, happens: Callable[[World], Awaitable[None]], words: str, unread: bool
) -> None:
    create_autoscaler(world)
    await at_rest(world)
    await waiting_for_approval(world)
    await happens(world)
    found = await links(world, lambda kind: unread and kind == CONTROLLER_REVISIONS)
    link = next(each for each in found if each.name is Name.AUTOSCALER)
    if unread and happens is hold_removed:
        # What a controller would write is not known then.
        assert link.state is State.OK
    else:
        assert_names(link, Name.AUTOSCALER, f"HorizontalPodAutoscaler/{AUTOSCALER}", words)


async def test_an_autoscaler_of_a_rollout_without_a_number_is_named_with_the_command(world: World) -> None:
    create_autoscaler(world, of=ROLLOUTS)
    await at_rest(world)
    found = await broken(world)
    assert_names(found, Name.AUTOSCALER, f"HorizontalPodAutoscaler/{AUTOSCALER}", "whose spec has no replicas")
    assert found.next[0] == "kubectl scale rollouts.rollouts.kruise.io llama --replicas=4"
    world.patch_rollout({"replicas": 4})
    await world.rest()
    assert [each for each in await links(world) if each.name is Name.AUTOSCALER and each.state is not State.OK] == []


async def test_an_autoscaler_behind_the_rollouts_back_is_named(world: World) -> None:
    await at_rest(world)
    world.patch_rollout({"replicas": 4})
    await world.rest()
    create_autoscaler(world)
    found = await broken(world)
    assert_names(found, Name.AUTOSCALER, f"HorizontalPodAutoscaler/{AUTOSCALER}", "let it scale the Rollout")


async def test_who_sets_another_number_of_groups_again_and_again_is_named(world: World) -> None:
    await at_rest(world)
    world.patch_rollout({"replicas": 4})
    await world.rest()
    world.checks.clear()
    assert [each for each in await links(world) if each.name is Name.AUTOSCALER] == []

    def insist(seen: World) -> None:
        if seen.lws["spec"]["replicas"] == 4:
            scale_lws(seen, 3, "helm")

    scale_lws(world, 3, "helm")
    world.checks.append(insist)
    await world.sleep(60)
    found = await broken(world)
    assert_names(found, Name.AUTOSCALER, f"LeaderWorkerSet/{NAME}", "helm writes over it")


async def test_a_number_that_waits_is_told(world: World) -> None:
    create_autoscaler(world, of=ROLLOUTS)
    await at_rest(world)
    world.patch_rollout({"replicas": 4})
    await waiting_for_approval(world)
    world.patch_rollout({"replicas": 2})
    await world.rest()
    (link,) = [each for each in await links(world) if each.name is Name.AUTOSCALER]
    assert (link.state, link.about) == (State.WAITING, f"LeaderWorkerSet/{NAME}")
    assert "spec.replicas 2 waits for the end of the release" in link.found


async def test_a_number_that_waits_hides_no_autoscaler_that_works_against_the_release(world: World) -> None:
    create_autoscaler(world, of=ROLLOUTS)
    await at_rest(world)
    world.patch_rollout({"replicas": 4})
    await waiting_for_approval(world)
    world.patch_rollout({"replicas": 2})
    await world.rest()
    create_autoscaler(world, name="other-hpa")
    await world.rest()
    assert_names(await broken(world), Name.AUTOSCALER, "HorizontalPodAutoscaler/other-hpa", "let it scale the Rollout")


async def test_that_no_controller_acts_is_seen_by_a_number_that_is_due(world: World) -> None:
    await at_rest(world)
    world.patch_rollout({"replicas": 4})
    await world.rest()
    world.stop_controller()
    scale_lws(world, 3, "helm")
    await world.sleep(300)
    found = next(each for each in await links(world) if each.name is Name.CONTROLLER)
    assert found.state is State.BROKEN


async def test_two_autoscalers_of_one_lws_are_named(world: World) -> None:
    create_autoscaler(world)
    create_autoscaler(world, name="other-hpa")
    await at_rest(world)
    found = await broken(world)
    assert found.name is Name.AUTOSCALER
    assert f"HorizontalPodAutoscaler {AUTOSCALER} and HorizontalPodAutoscaler other-hpa" in found.found
    assert CANARY not in found.found


@pytest.mark.parametrize(
    ("obstacle", "by", "about"),
    [
        (refused.another_service, BY_ROUTE, "Service/llama-internal"),
        (delete(INFERENCE_POOLS, CANARY_POOL), BY_POOLS, f"InferencePool/{CANARY_POOL}"),
        (rival, BY_INGRESS, "Ingress/mine"),
    ],
)
async def test_the_object_that_is_named_is_the_one_that_is_in_the_way(
    world: World, obstacle: Act, by: Provider, about: str
) -> None:
    await routed_at_rest(world, by=by)
    obstacle(world)
    found = await broken(world)
    kind, _, name = about.partition("/")
    assert (found.about, found.next) == (about, (f"kubectl get {kind.lower()} {name} -o yaml",))
