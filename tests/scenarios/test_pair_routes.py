"""Pairs whose route another client writes, renames, deletes or breaks."""

from __future__ import annotations

from typing import cast

import pytest

from rollout_lws.objects.resources import (
    LEADER_WORKER_SETS,
    SERVICES,
    Resource,
)
from tests.scenarios.paired import (
    ADMIN,
    ALL_BLUE,
    ALL_GREEN,
    BLUE,
    GREEN,
    MATCH,
    SERVICES_OF,
    all_ready,
    approve_to_the_end,
    create_sides,
    drop_mark,
    in_step,
    left,
    marks,
    pair_at_rest,
    released,
    rollout,
    rule_of,
    rules,
    set_ready,
    set_rules,
    share,
    weights,
    wipe,
)
from tests.scenarios.routed import (
    OF_PAIRS,
    ROUTE,
    called,
    kind,
    make,
    renamed,
    routes_of,
    with_rules,
)
from tests.scenarios.world import ROLLOUTS, World

pytestmark = [pytest.mark.looptime, *OF_PAIRS]


# The route changes


async def test_a_route_that_is_renamed_in_a_release_is_refused_until_it_is_named_again(world: World) -> None:
    await pair_at_rest(world)
    make(world, kind(), "other", spec=(world.get(kind(), ROUTE) or {})["spec"])
    await in_step(world, 2)
    world.patch_rollout({"strategy": rollout(routing=renamed("other"))["spec"]["strategy"]})
    await world.sleep(30)
    world.approve()
    await world.sleep(600)
    assert world.state == "Stalled" and share(world, GREEN) == 0.5 and world.status["active"] == BLUE
    world.patch_rollout({"strategy": rollout()["spec"]["strategy"]})
    await world.until(lambda: world.state in ("AwaitingApproval", "Healthy"))
    await approve_to_the_end(world)
    assert world.status["active"] == GREEN and weights(world) == ALL_GREEN
    assert routes_of(world, "other") == [{SERVICES_OF[BLUE]: 100, SERVICES_OF[GREEN]: 0}]


async def test_a_route_that_is_named_before_it_exists_takes_no_note_from_the_other(world: World) -> None:
    await pair_at_rest(world)
    await released(world)
    world.patch_rollout({"strategy": rollout(routing=renamed("other"))["spec"]["strategy"]})
    await world.sleep(60)
    route = world.get(kind(), ROUTE)
    assert route is not None and marks(world) != {}
    [rule] = rules(world)
    refs = [{**ref, "weight": 100 if ref["name"] == SERVICES_OF[BLUE] else 0} for ref in rule["backendRefs"]]
    make(world, kind(), "other", spec=with_rules(route, [{"backendRefs": refs}])["spec"])
    await world.until(lambda: marks(world) == {})
    await world.rest()
    assert world.status["active"] == GREEN
    assert routes_of(world, "other") == [{SERVICES_OF[BLUE]: 0, SERVICES_OF[GREEN]: 100}]


async def test_a_rollout_that_loses_its_routings_gives_the_requests_back_and_can_be_deleted(world: World) -> None:
    await pair_at_rest(world)
    await in_step(world, 2)
    world.patch_rollout({"strategy": {"canary": {"trafficRoutings": None}}})
    await world.sleep(30)
    assert world.state == "Stalled" and weights(world) == ALL_BLUE and world.status["active"] == BLUE
    await left(world)
    assert weights(world) == ALL_BLUE and marks(world) == {}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("edit", ["route deleted", "rule lacks a backend", "backend removed"])
async def test_a_rollout_with_a_broken_route_can_be_deleted(world: World, edit: str) -> None:
    await pair_at_rest(world)
    await in_step(world, 2)
    (rule,) = rules(world)
    if edit == "route deleted":
        world.delete(kind(), ROUTE)
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
    assert world.state == "Stalled" and f"rule 2 of {called()}" in world.status["message"]


@pytest.mark.parametrize("moment", ["adoption", "step"])
async def test_a_controller_that_has_not_listed_routes_yet_calls_no_side_unknown(world: World, moment: str) -> None:
    await pair_at_rest(world)
    if moment == "step":
        await in_step(world)
    world.stop_controller()
    if moment == "adoption":
        wipe(world)
    unknown = cast(dict[Resource, str], world.view.refused)
    unknown[kind()] = ""
    before = len(world.writes)
    world.start_controller()
    await world.sleep(5)
    assert world.condition("Stalled")["status"] == "False"
    assert {each.resource for each in world.writes[before:]} <= {ROLLOUTS}
    del unknown[kind()]
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


@pytest.mark.one_in(2)
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
