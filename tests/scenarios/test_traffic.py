"""Weighted releases: a route shares requests step by step, and is as it was when the release is over."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import HTTP_ROUTES, LEADER_WORKER_SETS, LWS_NAME, PODS, SERVICES, Resource
from rollout_lws.objects.writes import Confirm
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from rollout_lws.sandbox.meter import Client, TrafficMeter
from tests.scenarios.invariants import always_serving, share_only_for_who_serves
from tests.scenarios.routed import (
    ROUTE,
    SERVICE,
    assert_given_back,
    hold_record,
    routed_at_rest,
    routes_of,
    share,
)
from tests.scenarios.stories import CANARY, waiting_for_approval
from tests.scenarios.told import tells
from tests.scenarios.world import NAME, NAMESPACE, World

pytestmark = pytest.mark.looptime


async def test_five_weighted_steps_share_exactly_what_they_say_and_give_everything_back(world: World) -> None:
    before = await routed_at_rest(world)
    world.set_image("v2")
    for step in range(1, 6):
        await world.until(
            lambda step=step: world.status["currentStepIndex"] == step and world.state == "AwaitingApproval"
        )  # type: ignore[misc]
        assert share(world) == pytest.approx(step / 10)
        assert world.status["summary"]["traffic"] == f"{10 * step}%"
        assert world.get(SERVICES, SERVICE)["spec"]["selector"][LWS_NAME] == NAME  # type: ignore[index]
        assert world.get(SERVICES, f"{SERVICE}-canary")["spec"]["selector"][LWS_NAME] == CANARY  # type: ignore[index]
        world.approve()
    await world.until_state("Healthy", 1200)
    await world.rest()
    assert world.groups() == dict.fromkeys(range(5), "v2")
    assert_given_back(world, before)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("step", [1, 3])
async def test_an_abort_takes_the_share_away_before_the_canary_goes(world: World, step: int) -> None:
    before = await routed_at_rest(world)
    await waiting_for_approval(world)
    while world.status["currentStepIndex"] < step:
        at = world.status["currentStepIndex"]
        world.approve()
        await world.until(lambda at=at: world.status["currentStepIndex"] > at and world.state == "AwaitingApproval")  # type: ignore[misc]
    gone: list[float] = []
    world.server.store.subscribe(
        lambda event: (
            gone.append(share(world))
            if event.resource == PODS
            and event.object["metadata"]["labels"].get(LWS_NAME) == CANARY
            and "deletionTimestamp" in event.object["metadata"]
            else None
        )
    )
    world.request("Abort")
    asked = world.now
    await world.until_state("Aborted", 1200)
    assert (world.now - asked).total_seconds() >= 33, "grace and drain"
    assert gone and not any(gone)
    await world.rest()
    assert_given_back(world, before)


async def test_a_side_that_stops_serving_loses_its_share_and_gets_it_back(world: World) -> None:
    await routed_at_rest(world)
    await waiting_for_approval(world)
    assert share(world) == pytest.approx(0.1)
    world.delete(PODS, f"{CANARY}-0")
    await world.until(lambda: share(world) == 0)
    await world.until(lambda: share(world) > 0 and world.state == "AwaitingApproval")
    assert share(world) == pytest.approx(0.1)


@tells({Reason.ROUTING: "HTTPRoute llama does not exist: make it anew"})
async def test_a_route_that_vanishes_is_waited_for(world: World) -> None:
    await routed_at_rest(world)
    await waiting_for_approval(world)
    route = world.get(HTTP_ROUTES, ROUTE)
    assert route is not None
    world.delete(HTTP_ROUTES, ROUTE)
    world.approve()
    await world.until_state("Routing")
    await world.sleep(300)
    assert world.condition("Reconciling")["message"] == "HTTPRoute llama does not exist: make it anew"
    meta = {"name": ROUTE, "namespace": route["metadata"]["namespace"]}
    world.server.create(HTTP_ROUTES, {**{key: route[key] for key in ("apiVersion", "kind", "spec")}, "metadata": meta})
    await world.until_state("AwaitingApproval")
    assert routes_of(world)[0]


HEADER = {"headers": [{"name": "x-canary", "value": "yes"}]}


async def test_a_header_step_sends_only_its_requests_and_the_next_step_all_alike(world: World) -> None:
    before = await routed_at_rest(
        world,
        {"replicas": 1, "matches": [HEADER], "requestHeaderModifier": {"set": [{"name": "x-version", "value": "new"}]}},
        {"replicas": 1, "traffic": "20%"},
    )
    await waiting_for_approval(world)
    assert routes_of(world) == [{SERVICE: 1}, {f"{SERVICE}-canary": 1}]
    route = world.get(HTTP_ROUTES, ROUTE)
    assert route is not None
    added = route["spec"]["rules"][1]
    assert [match["headers"][0]["name"] for match in added["matches"]] == ["x-canary"]
    assert added["filters"][0]["requestHeaderModifier"] == {"set": [{"name": "x-version", "value": "new"}]}
    world.approve()
    await world.until(lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval")
    assert len(routes_of(world)) == 1
    assert share(world) == pytest.approx(0.2)
    world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_given_back(world, before)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("replicas", "groups"), [(1, 1), (2, 1), (4, 4)])
async def test_a_promotion_leaves_no_version_without_a_group_behind_its_share(
    world: World, replicas: int, groups: int
) -> None:
    before = await routed_at_rest(world, {"replicas": groups, "traffic": "50%", "pause": {}}, replicas=replicas)
    world.checks += [always_serving, share_only_for_who_serves()]
    await waiting_for_approval(world)
    world.approve()
    await world.until_state("Healthy", 1200)
    await world.rest()
    assert world.groups() == dict.fromkeys(range(replicas), "v2")
    assert_given_back(world, before)


async def test_an_lws_scaled_to_zero_leaves_the_share_with_the_canary(world: World) -> None:
    before = await routed_at_rest(world, replicas=2)
    await waiting_for_approval(world)
    world.checks.clear()
    world.patch_lws({"replicas": 0})
    await world.until_state("Stalled")
    await world.rest()
    assert world.condition("Stalled")["message"] == (
        "LeaderWorkerSet llama has 0 groups, and its canary carries requests: it keeps serving until there are groups"
        " again: scale up"
    )
    assert (world.groups(CANARY), share(world)) == ({0: "v2"}, 1)
    world.patch_lws({"replicas": 2})
    await world.until(lambda: world.groups() == {0: "v2", 1: "v2"})
    while world.state != "Healthy":
        world.approve()
        await world.sleep(30)
    await world.rest()
    assert_given_back(world, before)


async def test_a_paused_release_still_takes_the_share_from_who_does_not_serve(world: World) -> None:
    await routed_at_rest(world)
    await waiting_for_approval(world)
    world.patch_rollout({"strategy": {"paused": True}})
    await world.until_state("Paused")
    world.delete(PODS, f"{CANARY}-0")
    await world.until(lambda: share(world) == 0)
    await world.until(lambda: world.groups(CANARY) == {0: "v2"})
    await world.until(lambda: share(world) == pytest.approx(0.1))
    assert world.state == "Paused"


async def test_a_change_of_the_plan_while_paused_shifts_nothing(world: World) -> None:
    await routed_at_rest(world)
    await waiting_for_approval(world)
    world.patch_rollout({"strategy": {"paused": True}})
    await world.until_state("Paused")
    steps = [{"replicas": 1, "traffic": "40%", "pause": {}}]
    world.patch_rollout({"strategy": {"canary": {"steps": steps}}})
    await world.rest()
    assert share(world) == pytest.approx(0.1)
    world.patch_rollout({"strategy": {"paused": False}})
    await world.until_state("AwaitingApproval")
    assert share(world) == pytest.approx(0.4)


async def test_a_deleted_rollout_gives_everything_back_before_it_goes(world: World) -> None:
    before = await routed_at_rest(world)
    await waiting_for_approval(world)
    world.delete(world.ROLLOUT, NAME)
    await world.until(lambda: world.get(world.ROLLOUT, NAME) is None)
    await world.rest()
    assert hold_record(world) == before
    assert world.names()["services"] == sorted([NAME, SERVICE])
    assert world.get(LEADER_WORKER_SETS, CANARY) is None


async def test_what_a_user_edits_in_mid_release_is_kept(world: World) -> None:
    await routed_at_rest(world)
    await waiting_for_approval(world)
    route = world.get(HTTP_ROUTES, ROUTE)
    assert route is not None
    spec = {"selector": {"app": "other"}, "ports": [{"port": 80}]}
    world.server.create(SERVICES, {"metadata": {"name": "other", "namespace": NAMESPACE}, "spec": spec})
    other = {
        "matches": [{"path": {"type": "PathPrefix", "value": "/health"}}],
        "backendRefs": [{"name": "other", "port": 80}],
    }
    rules = [*route["spec"]["rules"], other]
    world.patch(HTTP_ROUTES, ROUTE, {"spec": {"rules": rules}, "metadata": {"labels": {"team": "a"}}})
    world.patch(SERVICES, SERVICE, {"metadata": {"labels": {"team": "a"}}})
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert routes_of(world) == [{SERVICE: 1}, {"other": 1}]
    for resource, name in ((HTTP_ROUTES, ROUTE), (SERVICES, SERVICE)):
        found = world.get(resource, name)
        assert found is not None
        assert (found["metadata"]["labels"], found["metadata"].get("annotations")) == ({"team": "a"}, None)


async def test_waiting_writes_nothing_and_five_steps_take_few_writes(world: World) -> None:
    await routed_at_rest(world)
    world.writes.clear()
    await waiting_for_approval(world)
    while world.state != "Healthy":
        await world.rest()
        before = len(world.writes)
        await world.sleep(3600)
        assert len(world.writes) == before
        world.approve()
        await world.until(lambda: world.state not in ("AwaitingApproval", "Routing"))
        await world.until(lambda: world.state in ("AwaitingApproval", "Healthy"), seconds=1200)
    counted = [write for write in world.writes if not isinstance(write, Confirm)]
    windows = [write for write in counted if write.resource == LEADER_WORKER_SETS and write.name == NAME]
    assert len(counted) - len(windows) <= 75, len(counted)


@pytest.mark.one_in(6)
@pytest.mark.parametrize(
    ("replicas", "groups", "ending"),
    [
        (1, 1, 0.2),
        (2, 2, 0.2),
        (4, 4, 0.2),
        # Where the canary cannot carry everything, a group that LWS renews gets requests until its endpoint is gone:
        # its pods have to serve on for so long, as they do with any rolling update.
        (4, 1, 5),
    ],
)
async def test_no_request_is_lost_in_a_promotion_be_it_by_the_route_or_by_the_service(
    replicas: int, groups: int, ending: float
) -> None:
    world = World(Options(timing=Timing(terminate_after=ending)))
    before = await routed_at_rest(world, {"replicas": groups, "traffic": "50%", "pause": {}}, replicas=replicas)
    await waiting_for_approval(world)
    clients = Client("users", route=ROUTE), Client("inside", service=SERVICE)
    meter = TrafficMeter(world.server, clients, seed=3, drain=30)
    meter.start()
    await world.sleep(60)
    world.approve()
    await world.until_state("Healthy", 1200)
    await world.rest(quiet=60)
    meter.stop()
    assert meter.failures == []
    assert_given_back(world, before)
    world.close()


def revert(world: World, resource: Resource, name: str, spec: dict[str, Any]) -> None:
    """What a GitOps tool does: apply what it knows over what is there."""
    live = world.get(resource, name)
    assert live is not None
    world.server.replace(resource, {**live, "spec": spec}, field_manager="argocd-controller")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("resource", "name", "who", "what", "advice"),
    [
        (HTTP_ROUTES, ROUTE, "argocd-controller", "HTTPRoute llama", "let it ignore the rules of the route"),
        # Who only removes something owns nothing afterwards, and managedFields do not know him.
        (SERVICES, SERVICE, "another client", "Service llama-api", "let it ignore the selector of the Service"),
    ],
)
async def test_who_reverts_a_release_is_answered_once_and_then_named(
    world: World, resource: Resource, name: str, who: str, what: str, advice: str
) -> None:
    before = await routed_at_rest(world)
    theirs = before[f"{resource.kind} {name}"][0]
    await waiting_for_approval(world)
    ours = world.get(resource, name)["spec"]  # type: ignore[index]
    revert(world, resource, name, theirs)
    await world.until(lambda: world.get(resource, name)["spec"] == ours)  # type: ignore[index]
    notes = [event.note for event in world.events if event.reason == "RouteReset"]
    assert notes == [f"{who} wrote over {what}; it was put back: {advice}"]
    revert(world, resource, name, theirs)
    await world.until_state("Stalled")
    stalled = world.condition("Stalled")
    assert stalled["reason"] == "RouteConflict"
    assert stalled["message"].startswith(f"{who} keeps writing over {what}: {advice}; it is put back at ")
    world.approve()
    await world.sleep(10)
    assert (world.status["currentStepIndex"], world.get(resource, name)["spec"]) == (1, theirs)  # type: ignore[index]
    await world.until(lambda: world.status["currentStepIndex"] == 2, seconds=120)
    await world.until_state("AwaitingApproval")
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert_given_back(world, before)


LEAVE_IT = "let it ignore the rules of the route"
NAMED = f"argocd-controller keeps writing over HTTPRoute llama: {LEAVE_IT}; it is put back at 00:01:08 UTC"


@tells(
    {Reason.ROUTE_CONFLICT: NAMED},
    {EventReason.ROUTE_RESET: f"argocd-controller wrote over HTTPRoute llama; it was put back: {LEAVE_IT}"},
)
async def test_a_quarrel_about_a_route_is_told_with_the_moment_of_the_next_answer(world: World) -> None:
    before = await routed_at_rest(world)
    await waiting_for_approval(world)
    for _ in range(2):
        revert(world, HTTP_ROUTES, ROUTE, before[f"HTTPRoute {ROUTE}"][0])
        await world.rest()
    assert world.state == "Stalled"


async def test_an_lws_made_anew_in_mid_release_finds_its_route_given_back(world: World) -> None:
    before = await routed_at_rest(world)
    await waiting_for_approval(world)
    world.checks.clear()
    world.delete(LEADER_WORKER_SETS, NAME)
    await world.until(lambda: world.get(LEADER_WORKER_SETS, NAME) is None)
    await world.until(lambda: share(world) == 1)
    world.create_workload(replicas=5)
    await world.until_state("Healthy", 1200)
    await world.rest()
    assert world.groups() == dict.fromkeys(range(5), "v1")
    assert_given_back(world, before)
