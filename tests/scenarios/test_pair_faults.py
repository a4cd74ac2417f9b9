"""Pairs in which something goes wrong: a side dies, an owner changes course, another client writes the route or the
status.

Requests stay where they are served, and each story ends in a state that the status explains.
"""

from __future__ import annotations

from typing import Any, cast

import pytest

from rollout_lws.objects.resources import (
    HTTP_ROUTES,
    INFERENCE_POOLS,
    LEADER_WORKER_SETS,
    LWS_NAME,
    LWS_WORKER_INDEX,
    SERVICES,
    Resource,
)
from rollout_lws.rollout.reasons import Reason
from rollout_lws.rollout.routing.serving import SHORTEST_BAN_SECONDS
from rollout_lws.sandbox.api_resources import GATEWAYS
from rollout_lws.sandbox.behaviours.network.gateway_status import REFUSE_ROUTES
from tests.scenarios.crashes import kill_after_every_write
from tests.scenarios.paired import (
    BLUE,
    GREEN,
    SERVICES_OF,
    all_ready,
    apply,
    approve_to_the_end,
    create_route,
    create_sides,
    drop_mark,
    forge,
    forge_mark,
    handing_over,
    in_step,
    left,
    marks,
    pair_at_rest,
    released,
    retirable,
    rollout,
    rule_of,
    rules,
    set_ready,
    set_rules,
    set_weights,
    share,
    weights,
    wipe,
)
from tests.scenarios.routed import GATEWAY, ROUTE, make
from tests.scenarios.world import ROLLOUTS, World

pytestmark = pytest.mark.looptime

#: Seconds in which requests that run on a side have ended: gracePeriodSeconds and drainSeconds.
DRAINED = 33
ALL_BLUE, ALL_GREEN = {BLUE: 100, GREEN: 0}, {BLUE: 0, GREEN: 100}
#: Tagged requests first, then half of all.
MATCH: tuple[dict[str, Any], ...] = (
    {"replicas": 1, "matches": [{"headers": [{"name": "x-canary", "value": "yes"}]}], "pause": {}},
    {"replicas": "100%", "traffic": "50%", "pause": {}},
)
#: A rule of the route that names one of the two Services only.
ADMIN = rule_of("/admin", {SERVICES_OF[BLUE]: 1})


# A side dies


async def test_a_side_with_the_version_before_serves_while_the_active_one_does_not(world: World) -> None:
    await pair_at_rest(world)
    set_ready(world, BLUE, False)
    await world.until(lambda: weights(world) == ALL_GREEN, "the other side serves")
    await world.sleep(1)
    assert world.status["active"] == BLUE and not retirable(world)
    set_ready(world, BLUE, True)
    await all_ready(world, BLUE)
    await world.sleep(SHORTEST_BAN_SECONDS - 1)
    assert weights(world) == ALL_GREEN
    await world.sleep(2)
    assert weights(world) == ALL_BLUE and world.state == "Healthy"


@pytest.mark.parametrize("version", ["unreleased", "aborted", "aborted way back"])
async def test_a_version_that_was_not_released_does_not_take_over_by_itself(world: World, version: str) -> None:
    await pair_at_rest(world)
    if version == "unreleased":
        # No release begins on a route that cannot be used.
        set_rules(world, *rules(world), ADMIN)
        apply(world, GREEN, "v2")
        await all_ready(world, GREEN)
    elif version == "aborted":
        await _aborted(world)
    else:
        await released(world)
        world.request("Start")
        await world.until_state("AwaitingApproval")
        world.request("Abort")
        await world.until_state("Aborted")
    await world.rest()
    before, active = weights(world), world.status["active"]
    set_ready(world, active, False)
    await world.sleep(120)
    assert weights(world) == before and share(world, active) == 1
    assert "kubectl rollout-lws start llama" in world.status["message"], world.status["message"]


async def _aborted(world: World) -> None:
    """A release of another version was aborted in its first step."""
    await in_step(world)
    world.request("Abort")
    await world.until_state("Aborted")


@pytest.mark.parametrize("given", [100, 50])
async def test_requests_that_a_person_moves_off_a_dead_side_stay_where_they_are(world: World, given: int) -> None:
    await pair_at_rest(world)
    await _aborted(world)
    set_ready(world, BLUE, False)
    await world.sleep(5)
    set_weights(world, {BLUE: 100 - given, GREEN: given})
    await world.sleep(60)
    assert weights(world) == ALL_GREEN and world.status["active"] == BLUE


@pytest.mark.parametrize("end", ["forced abort", "wiped status"])
async def test_a_release_that_ends_while_the_active_side_is_dead_moves_no_request_to_it(world: World, end: str) -> None:
    await pair_at_rest(world)
    await in_step(world, 2)
    set_ready(world, BLUE, False)
    await world.until(lambda: share(world, GREEN) == 1, "the side that serves has all requests")
    if end == "forced abort":
        world.request("Abort", force=True)
    else:
        wipe(world)
    await world.sleep(300)
    assert share(world, GREEN) == 1 and world.status["active"] == BLUE
    set_ready(world, BLUE, True)
    await world.sleep(60)
    assert share(world, BLUE) == 1


async def test_a_route_that_is_created_again_with_old_weights_sends_no_request_to_a_dead_side(world: World) -> None:
    await pair_at_rest(world)
    await released(world)
    set_ready(world, BLUE, False)
    world.delete(HTTP_ROUTES, ROUTE)
    await world.sleep(1)
    create_route(world)
    await world.sleep(60)
    assert weights(world) == ALL_GREEN and world.status["active"] == GREEN


@pytest.mark.parametrize("groups", [0, 4])
async def test_an_annotation_that_is_forged_sends_no_request_to_a_dead_side(world: World, groups: int) -> None:
    await pair_at_rest(world, beside=groups)
    set_ready(world, GREEN, False)
    await world.rest()
    forge_mark(world, active=GREEN)
    await world.sleep(60)
    assert weights(world) == ALL_BLUE


async def test_a_status_that_names_a_deleted_active_side_names_the_one_to_create(world: World) -> None:
    await pair_at_rest(world)
    await released(world)
    world.patch_lws({"replicas": 0}, BLUE)
    await world.rest()
    world.delete(LEADER_WORKER_SETS, GREEN)
    await world.sleep(30)
    assert world.condition("Stalled")["reason"] == Reason.WORKLOAD_NOT_FOUND
    assert f"LeaderWorkerSet {GREEN} does not exist" in world.status["message"]
    assert f"no group of {BLUE} is ready" in world.status["message"]


# The route changes


async def test_a_route_that_is_renamed_in_a_release_is_refused_until_it_is_named_again(world: World) -> None:
    await pair_at_rest(world)
    make(world, HTTP_ROUTES, "other", spec=(world.get(HTTP_ROUTES, ROUTE) or {})["spec"])
    await in_step(world, 2)
    world.patch_rollout({"strategy": rollout(routing={"gateway": {"httpRouteName": "other"}})["spec"]["strategy"]})
    await world.sleep(30)
    world.approve()
    await world.sleep(600)
    assert world.state == "Stalled" and share(world, GREEN) == 0.5 and world.status["active"] == BLUE
    world.patch_rollout({"strategy": rollout()["spec"]["strategy"]})
    await world.until(lambda: world.state in ("AwaitingApproval", "Healthy"))
    await approve_to_the_end(world)
    assert world.status["active"] == GREEN and weights(world) == ALL_GREEN
    other = world.get(HTTP_ROUTES, "other") or {}
    assert [each["weight"] for each in other["spec"]["rules"][0]["backendRefs"]] == [100, 0]


async def test_a_rollout_that_loses_its_routings_gives_the_requests_back_and_can_be_deleted(world: World) -> None:
    await pair_at_rest(world)
    await in_step(world, 2)
    world.patch_rollout({"strategy": {"canary": {"trafficRoutings": None}}})
    await world.sleep(30)
    assert world.state == "Stalled" and weights(world) == ALL_BLUE and world.status["active"] == BLUE
    await left(world)
    assert weights(world) == ALL_BLUE and marks(world) == {}


@pytest.mark.parametrize("edit", ["route deleted", "rule lacks a backend", "backend removed"])
async def test_a_rollout_with_a_broken_route_can_be_deleted(world: World, edit: str) -> None:
    await pair_at_rest(world)
    await in_step(world, 2)
    (rule,) = rules(world)
    if edit == "route deleted":
        world.delete(HTTP_ROUTES, ROUTE)
    elif edit == "rule lacks a backend":
        set_rules(world, rule, ADMIN)
    else:
        set_rules(world, {**rule, "backendRefs": rule["backendRefs"][:1]})
    await world.sleep(30)
    assert world.state == "Routing"
    await left(world)
    if edit == "rule lacks a backend":
        assert _by_service(world) == [{SERVICES_OF[BLUE]: 100, SERVICES_OF[GREEN]: 0}, {SERVICES_OF[BLUE]: 1}]
    elif edit == "backend removed":
        assert [list(each) for each in _by_service(world)] == [[SERVICES_OF[BLUE]]]
    assert edit == "route deleted" or marks(world) == {}


def _by_service(world: World) -> list[dict[str, int]]:
    """Weights of the route's rules, by backend."""
    return [{ref["name"]: ref.get("weight", 1) for ref in rule["backendRefs"]} for rule in rules(world)]


async def test_rules_with_both_backends_follow_a_deleted_side_though_another_rule_lacks_one(world: World) -> None:
    await pair_at_rest(world)
    set_rules(world, *rules(world), ADMIN)
    await world.rest()
    world.delete(LEADER_WORKER_SETS, BLUE)
    await world.sleep(60)
    assert _by_service(world) == [{SERVICES_OF[BLUE]: 0, SERVICES_OF[GREEN]: 100}, {SERVICES_OF[BLUE]: 1}]
    assert world.state == "Stalled" and "rule 2 of HTTPRoute llama" in world.status["message"]


@pytest.mark.parametrize("moment", ["adoption", "step"])
async def test_a_controller_that_has_not_listed_routes_yet_calls_no_side_unknown(world: World, moment: str) -> None:
    await pair_at_rest(world)
    if moment == "step":
        await in_step(world)
    world.stop_controller()
    if moment == "adoption":
        wipe(world)
    unknown = cast(dict[Resource, str], world.view.refused)
    unknown[HTTP_ROUTES] = ""
    before = len(world.writes)
    world.start_controller()
    await world.sleep(5)
    assert world.condition("Stalled")["status"] == "False"
    assert {each.resource for each in world.writes[before:]} <= {ROLLOUTS}
    del unknown[HTTP_ROUTES]
    world.start_controller()
    await world.sleep(5)
    assert world.state == ("AwaitingApproval" if moment == "step" else "Healthy")
    assert share(world, GREEN) == pytest.approx(0.2 if moment == "step" else 0)


@pytest.mark.one_in(2, of="what")
@pytest.mark.parametrize("what", ["side dies", "abort", "deletion"])
@pytest.mark.parametrize("to", [GREEN, BLUE])
async def test_requests_go_back_though_the_annotation_was_removed_in_a_step(world: World, to: str, what: str) -> None:
    """The weights of a step do not say which side is active; the status does."""
    await pair_at_rest(world)
    if to == BLUE:
        await released(world)
    serving = GREEN if to == BLUE else BLUE
    await in_step(world, 2, side=to, tag="v3")
    drop_mark(world)
    await world.sleep(5)
    assert share(world, to) == 0.5 and world.status["active"] == serving
    if what == "side dies":
        set_ready(world, to, False)
        await world.sleep(30)
    elif what == "abort":
        world.request("Abort")
        await world.until_state("Aborted")
    else:
        drop_mark(world)
        await left(world)
    assert share(world, serving) == 1


@pytest.mark.parametrize("what", ["abort", "deletion", "side is deleted", "end"])
async def test_a_rule_of_a_step_goes_though_the_annotation_was_removed(world: World, what: str) -> None:
    await pair_at_rest(world, *MATCH)
    await in_step(world)
    assert len(rules(world)) == 2
    drop_mark(world)
    await world.sleep(5)
    if what == "abort":
        world.request("Abort")
        await world.until_state("Aborted")
    elif what == "deletion":
        world.stop_controller()
        drop_mark(world)
        world.start_controller()
        await left(world)
    elif what == "side is deleted":
        world.delete(LEADER_WORKER_SETS, GREEN)
        await world.sleep(60)
    else:
        await approve_to_the_end(world)
    assert len(rules(world)) == 1
    assert share(world, GREEN if what == "end" else BLUE) == 1


async def test_each_rule_moves_and_other_backends_keep_their_share(world: World) -> None:
    create_sides(world)
    make(world, SERVICES, "third", spec={"selector": {"app": "third"}, "ports": [{"port": 80}]})
    set_rules(world, rule_of("/v2", {"third": 7, SERVICES_OF[GREEN]: 0, SERVICES_OF[BLUE]: 3}), *rules(world))
    world.server.create(ROLLOUTS, rollout())
    await all_ready(world, BLUE, GREEN)
    world.start_controller()
    await world.until_state("Healthy")
    for side, tag in ((GREEN, "v2"), (BLUE, "v3")):
        await released(world, side=side, tag=tag)
        own, other = SERVICES_OF[side], SERVICES_OF[BLUE if side == GREEN else GREEN]
        first, second = _by_service(world)
        assert (first["third"] * 3, first[other]) == (first[own] * 7, 0)
        assert second == {own: 100, other: 0}


async def test_two_rollouts_that_name_a_pair_both_ways_do_not_share_it(world: World) -> None:
    await pair_at_rest(world)
    second = rollout()
    second["metadata"]["name"] = "aaa"
    spec = second["spec"]
    spec["workloadRef"], spec["counterpartRef"] = spec["counterpartRef"], spec["workloadRef"]
    routing = spec["strategy"]["canary"]["trafficRoutings"][0]
    routing["service"], routing["counterpartService"] = routing["counterpartService"], routing["service"]
    world.server.create(ROLLOUTS, second)
    await in_step(world)
    assert share(world, GREEN) == pytest.approx(0.2)
    uid = world.rollout["metadata"]["uid"]
    assert set(marks(world)) == {uid}
    await left(world)
    world.name = "aaa"
    world.start_controller()
    await world.until_state("Healthy")
    assert world.status["active"] == BLUE and weights(world) == ALL_BLUE
    assert set(marks(world)) == {world.rollout["metadata"]["uid"]}


# The status is forged


@pytest.mark.parametrize("groups", [0, 4])
async def test_a_hand_over_that_is_forged_at_rest_moves_no_request(world: World, groups: int) -> None:
    await pair_at_rest(world)
    await released(world)
    world.patch_lws({"replicas": groups}, BLUE)
    await world.rest()
    forge(world, phase="Progressing", finalising={"reason": "Success", "task": "Promote"}, traffic=None)
    for _ in range(120):
        await world.sleep(1)
        assert weights(world) == ALL_GREEN
    assert world.status["active"] == GREEN and world.state == "Healthy"


async def test_a_hand_over_whose_record_of_traffic_is_wiped_drains_all_the_same(world: World) -> None:
    await pair_at_rest(world)
    await in_step(world, 2)
    forge(world, finalising={"reason": "Success", "task": "Promote"}, traffic=None)
    await world.until(lambda: share(world, GREEN) == 1)
    await world.sleep(DRAINED - 1)
    assert world.status["active"] == BLUE and not retirable(world)
    await world.until(lambda: world.status["active"] == GREEN)


# Owners change course


async def test_the_version_before_that_comes_back_after_a_third_one_ends_the_release(world: World) -> None:
    await pair_at_rest(world)
    await released(world)
    await in_step(world, side=BLUE, tag="v3")
    apply(world, BLUE, "v1")
    await world.sleep(300)
    assert world.state == "Healthy" and weights(world) == ALL_GREEN


async def test_the_version_before_that_comes_back_after_an_abort_is_not_released(world: World) -> None:
    await pair_at_rest(world)
    await released(world)
    await in_step(world, side=BLUE, tag="v3")
    world.request("Abort")
    await world.until_state("Aborted")
    apply(world, BLUE, "v1")
    await world.sleep(300)
    assert world.state == "Healthy" and weights(world) == ALL_GREEN


@pytest.mark.parametrize("seconds", [0.2, 2])
async def test_a_version_that_comes_back_after_a_third_one_is_released_again(world: World, seconds: float) -> None:
    await pair_at_rest(world)
    await in_step(world)
    apply(world, GREEN, "v3")
    await world.sleep(seconds)
    apply(world, GREEN, "v2")
    await world.sleep(300)
    assert world.state == "AwaitingApproval" and share(world, GREEN) == pytest.approx(0.2)
    assert set(world.groups(GREEN).values()) == {"v2"}


async def test_a_new_side_that_is_created_again_in_a_release_is_released_again(world: World) -> None:
    await pair_at_rest(world)
    await in_step(world)
    world.delete(LEADER_WORKER_SETS, GREEN)
    await world.until(lambda: world.condition("Stalled")["reason"] == Reason.COUNTERPART_MISSING)
    world.create_workload(name=GREEN, replicas=4, tag="v2")
    await world.until_state("AwaitingApproval")
    await approve_to_the_end(world)
    assert world.status["active"] == GREEN and weights(world) == ALL_GREEN


async def test_an_aborted_version_that_is_applied_to_the_active_side_is_healthy(world: World) -> None:
    await pair_at_rest(world)
    await _aborted(world)
    apply(world, BLUE, "v2")
    await world.sleep(300)
    assert world.state == "Healthy" and weights(world) == ALL_BLUE
    assert set(world.groups(BLUE).values()) == {"v2"}


async def test_a_counterpart_that_is_created_after_adoption_is_released(world: World) -> None:
    create_sides(world)
    world.delete(LEADER_WORKER_SETS, GREEN)
    world.server.create(ROLLOUTS, rollout())
    await all_ready(world, BLUE)
    world.start_controller()
    await world.until(lambda: world.condition("Stalled").get("reason") == Reason.COUNTERPART_MISSING)
    world.create_workload(name=GREEN, replicas=4, tag="v2")
    await world.until_state("AwaitingApproval")
    assert share(world, GREEN) == pytest.approx(0.2)


@pytest.mark.parametrize("kind", ["Start", "Retry"])
@pytest.mark.parametrize("then", ["scaled up", "taken back"])
async def test_a_request_for_a_side_without_groups_waits_until_it_is_taken_back(
    world: World, kind: str, then: str
) -> None:
    await pair_at_rest(world)
    if kind == "Start":
        await released(world)
    else:
        await _aborted(world)
    active = world.status["active"]
    other = BLUE if active == GREEN else GREEN
    world.patch_lws({"replicas": 0}, other)
    await world.rest()
    world.request(kind)
    await world.until_state("Preparing")
    if then == "taken back":
        world.request("Abort")
        await world.sleep(5)
        assert world.state != "Preparing"
    world.patch_lws({"replicas": 4}, other)
    await world.sleep(60)
    if then == "taken back":
        assert world.state in ("Healthy", "Aborted") and share(world, active) == 1
    else:
        assert world.state == "AwaitingApproval" and share(world, other) == pytest.approx(0.2)


async def test_a_step_that_asks_for_more_groups_than_there_are_says_what_to_scale(world: World) -> None:
    await pair_at_rest(world, {"replicas": 4, "traffic": "50%", "pause": {}}, beside=1)
    apply(world, GREEN, "v2")
    await world.sleep(120)
    assert weights(world) == ALL_BLUE and world.state == "Loading"
    assert "scale it up" in world.status["message"] and GREEN in world.status["message"]
    world.patch_lws({"replicas": 4}, GREEN)
    await world.until_state("AwaitingApproval")
    assert share(world, GREEN) == 0.5


# The Rollout leaves in the hand-over


@pytest.mark.one_in(2, of="moment")
@pytest.mark.parametrize("how", ["deleted", "disabled"])
@pytest.mark.parametrize("moment", ["paused", "new side dead"])
async def test_a_hand_over_goes_back_when_the_rollout_leaves(world: World, moment: str, how: str) -> None:
    await pair_at_rest(world)
    await handing_over(world)
    if moment == "paused":
        world.request("Pause")
        await world.sleep(60)
    else:
        set_ready(world, GREEN, False)
        await world.sleep(1)
    assert world.status["active"] == BLUE
    if how == "deleted":
        await left(world)
    else:
        world.patch_rollout({"disabled": True})
        await world.until_state("Disabled", 1200)
    assert weights(world) == ALL_BLUE and marks(world) == {}


async def test_a_gateway_that_refuses_the_route_keeps_the_roles_and_both_sides(world: World) -> None:
    await pair_at_rest(world)
    await in_step(world, 2)
    world.patch(GATEWAYS, GATEWAY, {"metadata": {"annotations": {REFUSE_ROUTES: "no room"}}})
    world.approve()
    await world.sleep(120)
    assert world.status["active"] == BLUE and not retirable(world)
    world.request("Abort", force=True)
    await world.sleep(120)
    assert world.status["active"] == BLUE and weights(world) == ALL_BLUE and not retirable(world)
    world.patch(GATEWAYS, GATEWAY, {"metadata": {"annotations": {REFUSE_ROUTES: None}}})
    await world.sleep(120)
    assert retirable(world)


# Pools


def _create_pools(world: World, mode: str) -> None:
    """A pool for each side, whose picker runs in the pods of the side itself."""
    create_sides(world)
    references = []
    for name, weight in ALL_BLUE.items():
        selector = {LWS_NAME: name, LWS_WORKER_INDEX: "0"}
        make(world, SERVICES, f"{name}-epp", spec={"selector": {LWS_NAME: name}, "ports": [{"port": 9002}]})
        picker = {"name": f"{name}-epp", "port": {"number": 9002}, "failureMode": mode}
        spec = {
            "selector": {"matchLabels": selector},
            "targetPorts": [{"number": 8000}],
            "endpointPickerRef": picker,
        }
        make(world, INFERENCE_POOLS, f"{name}-pool", spec=spec)
        kind = {"group": INFERENCE_POOLS.group, "kind": INFERENCE_POOLS.kind}
        references.append({**kind, "name": f"{name}-pool", "weight": weight})
    set_rules(world, {"backendRefs": references})


async def _pools_at_rest(world: World, mode: str) -> None:
    _create_pools(world, mode)
    pools = {"stable": f"{BLUE}-pool", "canary": f"{GREEN}-pool"}
    manifest = rollout(routing={"gateway": {"httpRouteName": ROUTE, "inferencePool": pools}})
    del manifest["spec"]["strategy"]["canary"]["trafficRoutings"][0]["counterpartService"]
    world.server.create(ROLLOUTS, manifest)
    await all_ready(world, BLUE, GREEN)
    world.start_controller()
    await world.until_state("Healthy")


def _pool_weights(world: World) -> dict[str, int]:
    by_pool = {f"{name}-pool": name for name in (BLUE, GREEN)}
    return {by_pool[each["name"]]: each["weight"] for each in rules(world)[0]["backendRefs"]}


async def test_pools_are_released_both_ways(world: World) -> None:
    await _pools_at_rest(world, "FailOpen")
    for side, tag in ((GREEN, "v2"), (BLUE, "v3")):
        await released(world, side=side, tag=tag)
        assert _pool_weights(world) == (ALL_GREEN if side == GREEN else ALL_BLUE)


async def test_a_pool_whose_picker_is_gone_gets_no_requests(world: World) -> None:
    await _pools_at_rest(world, "FailClose")
    await in_step(world, 2)
    assert _pool_weights(world)[GREEN] > 0
    world.patch(SERVICES, f"{GREEN}-epp", {"spec": {"selector": {LWS_NAME: "none"}}})
    await world.sleep(10)
    assert _pool_weights(world) == ALL_BLUE
    world.patch(SERVICES, f"{GREEN}-epp", {"spec": {"selector": {LWS_NAME: GREEN}}})
    await world.until(lambda: world.state == "AwaitingApproval" and _pool_weights(world)[GREEN] > 0, seconds=1200)
    await approve_to_the_end(world)
    world.patch(SERVICES, f"{GREEN}-epp", {"spec": {"selector": {LWS_NAME: "none"}}})
    await world.sleep(30)
    assert _pool_weights(world) == ALL_BLUE and world.status["active"] == GREEN


# Kills


async def _begin_with_matches(world: World) -> None:
    await pair_at_rest(world, *MATCH)


async def _a_release_an_abort_in_the_hand_over_and_a_deletion(world: World, _: None) -> None:
    await released(world)
    assert weights(world) == ALL_GREEN and len(rules(world)) == 1
    await handing_over(world, side=BLUE, tag="v3")
    world.request("Abort")
    await world.until_state("Aborted", 1200)
    await world.rest()
    assert world.status["active"] == GREEN and weights(world) == ALL_GREEN
    world.request("Retry")
    await world.until_state("AwaitingApproval", 1200)
    world.approve()
    await world.until(
        lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval", "step 2", 1200
    )
    world.approve()
    await world.until(lambda: share(world, BLUE) == 1, "all requests", 1200)
    await left(world)
    assert weights(world) == ALL_GREEN and marks(world) == {} and len(rules(world)) == 1


#: Into how many tests the kills of the story are dealt: it is a long one.
PARTS = 16


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "part", [pytest.param(each, marks=[pytest.mark.long] if each else []) for each in range(PARTS)]
)
def test_a_controller_killed_after_any_write_of_matches_comes_to_the_same_end(part: int) -> None:
    kill_after_every_write(_begin_with_matches, _a_release_an_abort_in_the_hand_over_and_a_deletion, part, PARTS)
