"""Weighted releases: a route shares requests step by step, and is as it was when the release is over."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS, SERVICES, Resource
from rollout_lws.objects.writes import Confirm
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from rollout_lws.sandbox.meter import Client, TrafficMeter
from tests.scenarios.invariants import always_serving, share_only_for_who_serves
from tests.scenarios.routed import (
    EACH,
    ROUTE,
    ROUTES,
    RULES_OF_OURS,
    SERVICE,
    WEIGHTS,
    assert_given_back,
    backends,
    by_each,
    called,
    kind,
    routed_at_rest,
    routes_of,
    rules_of,
    share,
    with_rules,
)
from tests.scenarios.stories import waiting_for_approval
from tests.scenarios.told import tells
from tests.scenarios.world import NAME, NAMESPACE, World

pytestmark = pytest.mark.looptime


@tells({Reason.ROUTING: "HTTPRoute llama does not exist: make it anew"})
@by_each(EACH)
async def test_a_route_that_vanishes_is_waited_for(world: World) -> None:
    before = await routed_at_rest(world)
    await waiting_for_approval(world)
    route = world.get(kind(), ROUTE)
    assert route is not None
    world.delete(kind(), ROUTE)
    world.approve()
    await world.until_state("Routing")
    await world.sleep(300)
    assert world.condition("Reconciling")["message"] == f"{called()} does not exist: make it anew"
    meta = {"name": ROUTE, "namespace": route["metadata"]["namespace"]}
    world.server.create(kind(), {"metadata": meta, "spec": before[called()][0]})
    await world.until_state("AwaitingApproval")
    assert share(world) == pytest.approx(0.2)


HEADER = {"headers": [{"name": "x-canary", "value": "yes"}]}


@by_each(RULES_OF_OURS)
async def test_a_header_step_sends_only_its_requests_and_the_next_step_all_alike(world: World) -> None:
    before = await routed_at_rest(
        world,
        {"replicas": 1, "matches": [HEADER], "requestHeaderModifier": {"set": [{"name": "x-version", "value": "new"}]}},
        {"replicas": 1, "traffic": "20%"},
    )
    await waiting_for_approval(world)
    # Behind the user's rule, or before it where the first one that matches decides.
    stable, canary = backends()
    assert sorted(routes_of(world), key=len) == [{canary: 1}, {stable: 1, canary: 0}]
    added = next(rule for rule in rules_of(world) if len(rule["backendRefs"]) == 1)
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
@by_each(EACH)
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


@by_each(EACH)
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


@by_each(WEIGHTS)
async def test_what_a_user_edits_in_mid_release_is_kept(world: World) -> None:
    await routed_at_rest(world)
    await waiting_for_approval(world)
    route = world.get(kind(), ROUTE)
    assert route is not None
    spec = {"selector": {"app": "other"}, "ports": [{"port": 80}]}
    world.server.create(SERVICES, {"metadata": {"name": "other", "namespace": NAMESPACE}, "spec": spec})
    health = {"headers": [{"type": "Exact", "name": "x-health", "value": "yes"}]}
    other = {"matches": [health], "backendRefs": [{"name": "other", "port": 80}]}
    spec = with_rules(route, [*rules_of(world), other])["spec"]
    world.patch(kind(), ROUTE, {"spec": spec, "metadata": {"labels": {"team": "a"}}})
    world.patch(SERVICES, SERVICE, {"metadata": {"labels": {"team": "a"}}})
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert routes_of(world) == [{backends()[0]: 1}, {"other": 1}]
    for resource, name in ((kind(), ROUTE), (SERVICES, SERVICE)):
        found = world.get(resource, name)
        assert found is not None
        assert (found["metadata"]["labels"], found["metadata"].get("annotations")) == ({"team": "a"}, None)


@by_each(EACH)
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
@by_each(EACH)
async def test_no_request_is_lost_in_a_promotion_be_it_by_the_route_or_by_the_service(
    replicas: int, groups: int, ending: float
) -> None:
    world = World(Options(timing=Timing(terminate_after=ending)))
    before = await routed_at_rest(world, {"replicas": groups, "traffic": "50%", "pause": {}}, replicas=replicas)
    await waiting_for_approval(world)
    clients = Client("users", **ROUTES.provider.entry), Client("inside", service=SERVICE)
    meter = TrafficMeter(world.server, clients, seed=3, drain=30)
    # A route that nobody waits for is accepted by now, too.
    await world.sleep(5)
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


LEAVE_IT = "let it ignore the rules of the route"
NAMED = f"argocd-controller keeps writing over HTTPRoute llama: {LEAVE_IT}; it is put back at 00:01:08 UTC"


@tells(
    {Reason.ROUTE_CONFLICT: NAMED},
    {EventReason.ROUTE_RESET: f"argocd-controller wrote over HTTPRoute llama; it was put back: {LEAVE_IT}"},
)
@by_each(WEIGHTS)
async def test_a_quarrel_about_a_route_is_told_with_the_moment_of_the_next_answer(world: World) -> None:
    before = await routed_at_rest(world)
    await waiting_for_approval(world)
    for _ in range(2):
        revert(world, kind(), ROUTE, before[called()][0])
        await world.rest()
    assert world.state == "Stalled"
