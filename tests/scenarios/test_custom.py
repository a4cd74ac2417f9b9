"""Releases that share requests by objects of kinds which only a script knows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from rollout_lws.objects.resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, SERVICES
from rollout_lws.rollout.reasons import Reason
from tests.scenarios.custom import BY_MESH, MESH, MESH_GROUP, MESH_ROUTES, MESH_RULES, RULE, TEXTS
from tests.scenarios.routed import SCRIPTS, SERVICE, assert_given_back, hold_record, make, routed_at_rest, routing
from tests.scenarios.shell import ShellWorld
from tests.scenarios.stories import waiting_for_approval
from tests.scenarios.told import assert_stalled
from tests.scenarios.world import KEYS, NAME, NAMESPACE, ROLLOUTS, World

pytestmark = pytest.mark.looptime
KEY = f"lua.traffic.routing.MeshRoute.{MESH_GROUP}"
CANARY_SERVICE = f"{SERVICE}-canary"
STEPS: tuple[dict[str, Any], ...] = (
    {"replicas": 1, "traffic": "20%", "pause": {}},
    {"replicas": 2, "traffic": "40%", "pause": {}},
)


def shares(world: World) -> dict[str, int | None]:
    """Weight by host in the route's rule without matches."""
    rule = next(each for each in mesh(world)["spec"]["http"] if "match" not in each)
    return {each["destination"]["host"]: each.get("weight") for each in rule["route"]}


@pytest.fixture(params=[World, ShellWorld], ids=["decisions", "controller"])
async def made(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """A world whose decisions are made over its store, and one with the whole controller in it."""
    world: World = request.param()
    yield world
    if isinstance(world, ShellWorld):
        await world.gone()
    world.close()


def mesh(world: World) -> dict[str, Any]:
    """The route of the mesh."""
    live = world.get(MESH_ROUTES, MESH)
    assert live is not None
    return live


def write_script(world: World, text: str) -> None:
    """Another script for routes of the mesh."""
    world.server.patch(CONFIG_MAPS, *SCRIPTS, {"data": {KEY: text}})


async def test_a_release_goes_through_its_shares_and_gives_everything_back(made: World) -> None:
    world = made
    before = await routed_at_rest(world, *STEPS, by=BY_MESH)
    await waiting_for_approval(world)
    assert shares(world) == {SERVICE: 80, CANARY_SERVICE: 20}
    rule = world.get(MESH_RULES, RULE)
    assert rule is not None and [each["name"] for each in rule["spec"]["subsets"]] == ["canary"]
    world.approve()
    await world.until(lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval")
    assert shares(world) == {SERVICE: 60, CANARY_SERVICE: 40}
    world.approve()
    await world.until_state("Healthy", 1200)
    await world.rest()
    assert_given_back(world, before, BY_MESH)
    assert world.groups() == world.all_at("v2")


async def test_an_object_that_vanishes_in_mid_release_is_waited_for(world: World) -> None:
    before = await routed_at_rest(world, *STEPS, by=BY_MESH)
    await waiting_for_approval(world)
    world.delete(MESH_ROUTES, MESH)
    world.approve()
    await world.until_state("Routing")
    await world.sleep(60)
    assert world.condition("Reconciling")["message"] == f"MeshRoute {MESH} does not exist: make it anew"
    make(world, MESH_ROUTES, MESH, spec=before[f"MeshRoute {MESH}"][0])
    await world.until(lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval")
    assert shares(world) == {SERVICE: 60, CANARY_SERVICE: 40}


async def test_a_release_that_is_aborted_gives_everything_back(world: World) -> None:
    before = await routed_at_rest(world, *STEPS, by=BY_MESH)
    await waiting_for_approval(world)
    world.request("Abort")
    await world.until_state("Aborted", 1200)
    await world.rest()
    assert_given_back(world, before, BY_MESH)


async def test_a_rollout_that_is_deleted_gives_everything_back(world: World) -> None:
    before = await routed_at_rest(world, *STEPS, by=BY_MESH)
    await waiting_for_approval(world)
    world.delete(ROLLOUTS, NAME)
    await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "the Rollout gone", 1200)
    await world.rest()
    assert hold_record(world, BY_MESH) == before


async def test_what_people_change_meanwhile_stays_and_what_the_release_has_added_goes(world: World) -> None:
    """OpenKruise Rollouts would write the object back as it was before the release, and lose all of that."""
    await routed_at_rest(world, *STEPS, by=BY_MESH)
    await waiting_for_approval(world)
    rules = list(mesh(world)["spec"]["http"])
    added = {"match": [{"uri": {"prefix": "/new"}}], "route": [{"destination": {"host": "new"}}]}
    timed = {
        **rules[1],
        "timeout": "30s",
        "route": [*rules[1]["route"], {"destination": {"host": "shadow"}, "weight": 0}],
    }
    spec = {"hosts": ["llama.example.com", "chat.example.com"], "http": [added, rules[0], timed]}
    world.patch(MESH_ROUTES, MESH, {"metadata": {"labels": {"team": "a"}}, "spec": spec})
    await world.rest()
    assert shares(world) == {SERVICE: 80, CANARY_SERVICE: 20, "shadow": 0}
    assert world.state == "AwaitingApproval"
    assert "RouteReset" not in {event.reason for event in world.events}
    world.request("Abort")
    await world.until_state("Aborted", 1200)
    await world.rest()
    found = mesh(world)
    stable = {"destination": {"host": SERVICE, "port": {"number": 80}}}
    shadow = {"destination": {"host": "shadow"}, "weight": 0}
    assert found["spec"] == {**spec, "http": [added, rules[0], {"timeout": "30s", "route": [stable, shadow]}]}
    assert found["metadata"]["labels"] == {"team": "a"}
    assert "annotations" not in found["metadata"]


@pytest.mark.parametrize("how", ["another weight", "the destination gone", "the original"])
async def test_what_others_change_of_the_share_is_put_back_and_told(world: World, how: str) -> None:
    before = await routed_at_rest(world, *STEPS, by=BY_MESH)
    await waiting_for_approval(world)
    rules = list(mesh(world)["spec"]["http"])
    stable, canary = rules[1]["route"]
    route = {
        "another weight": [{**stable, "weight": 30}, {**canary, "weight": 70}],
        "the destination gone": [{**stable, "weight": 100}],
        "the original": [{"destination": stable["destination"]}],
    }[how]
    world.patch(MESH_ROUTES, MESH, {"spec": {"http": [rules[0], {"route": route}]}})
    await world.rest()
    assert shares(world) == {SERVICE: 80, CANARY_SERVICE: 20}
    assert [event.reason for event in world.events].count("RouteReset") == 1
    world.approve()
    await world.until(lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval")
    assert shares(world) == {SERVICE: 60, CANARY_SERVICE: 40}
    world.request("Abort")
    await world.until_state("Aborted", 1200)
    await world.rest()
    assert_given_back(world, before, BY_MESH)


async def test_a_share_that_was_changed_while_no_controller_looked_keeps_no_request_at_a_service_that_goes(
    world: World,
) -> None:
    await routed_at_rest(world, *STEPS, by=BY_MESH)
    await waiting_for_approval(world)
    world.stop_controller()
    rules = list(mesh(world)["spec"]["http"])
    stable, canary = rules[1]["route"]
    route = [{**stable, "weight": 30}, {**canary, "weight": 70, "headers": {"response": {"add": {"x": "y"}}}}]
    world.patch(MESH_ROUTES, MESH, {"spec": {"http": [rules[0], {"route": route}]}})
    world.delete(ROLLOUTS, NAME)
    world.start_controller()
    await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "the Rollout gone", 1200)
    await world.rest()
    assert CANARY_SERVICE not in str(mesh(world)["spec"])


async def test_an_object_without_its_annotation_is_not_changed_a_second_time(world: World) -> None:
    await routed_at_rest(world, *STEPS, by=BY_MESH)
    await waiting_for_approval(world)
    original = mesh(world)["metadata"]["annotations"][KEYS.original]
    world.patch(MESH_ROUTES, MESH, {"metadata": {"annotations": {KEYS.original: None}}})
    world.approve()
    await world.sleep(60)
    assert shares(world) == {SERVICE: 80, CANARY_SERVICE: 20}
    said = world.status["message"]
    assert f"MeshRoute {MESH} names Service {CANARY_SERVICE}" in said and KEYS.original in said
    world.request("Abort")
    await world.sleep(300)
    assert CANARY_SERVICE in world.names()["services"], "requests would fail without it"
    world.patch(MESH_ROUTES, MESH, {"metadata": {"annotations": {KEYS.original: original}}})
    await world.until_state("Aborted", 1200)
    await world.rest()
    assert CANARY_SERVICE not in str(mesh(world)["spec"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("error('no stable route')", "line 1: no stable route"),
        ("return 1", "it returns no table: let it end with return obj.data"),
        ("return {labels = {}}", "it returns no spec, which would empty the object: let it end with return obj.data"),
        ("obj.data.labels = {a = 1} return obj.data", "it returns labels['a'] that is no text: use tostring"),
        ("while true do end", "line 1: runs for more than 20000000 instructions"),
    ],
)
async def test_a_script_that_fails_is_told_before_a_release_begins_and_one_that_is_mended_begins_it(
    world: World, text: str, said: str
) -> None:
    before = await routed_at_rest(world, *STEPS, by=BY_MESH)
    write_script(world, text)
    world.set_image("v2")
    await world.until(lambda: "script" in world.status.get("message", ""))
    await world.rest()
    source = f"script {KEY} of ConfigMap {'/'.join(SCRIPTS)}, run for MeshRoute {MESH}"
    assert_stalled(world, Reason.ROUTE_PROBLEM, f"{source}: {said}", phase="Healthy")
    assert hold_record(world, BY_MESH) == before
    write_script(world, TEXTS[KEY])
    await world.until_state("AwaitingApproval")
    assert shares(world) == {SERVICE: 80, CANARY_SERVICE: 20}


async def test_a_script_that_fails_in_mid_release_leaves_what_is_written_and_the_way_back_needs_none(
    world: World,
) -> None:
    before = await routed_at_rest(world, *STEPS, by=BY_MESH)
    await waiting_for_approval(world)
    write_script(world, "error('broken')")
    await world.rest()
    assert shares(world) == {SERVICE: 80, CANARY_SERVICE: 20}
    assert "line 1: broken" in world.status["message"]
    world.request("Abort")
    await world.until_state("Aborted", 1200)
    await world.rest()
    assert_given_back(world, before, BY_MESH)


async def test_a_controller_that_runs_no_scripts_any_more_gives_back_what_they_have_changed(world: World) -> None:
    before = await routed_at_rest(world, *STEPS, by=BY_MESH)
    await waiting_for_approval(world)
    world.stop_controller()
    world.view.scripts_in = None
    world.start_controller()
    await world.rest()
    assert "this controller runs no scripts" in world.status["message"]
    assert shares(world) == {SERVICE: 80, CANARY_SERVICE: 20}
    world.request("Abort")
    await world.until_state("Aborted", 1200)
    await world.rest()
    assert_given_back(world, before, BY_MESH)


async def test_without_a_script_for_its_kind_an_object_is_not_even_looked_at(world: World) -> None:
    await routed_at_rest(world, *STEPS, by=BY_MESH)
    world.server.patch(CONFIG_MAPS, *SCRIPTS, {"data": {KEY: None}})
    world.set_image("v2")
    await world.until(lambda: "script" in world.status.get("message", ""))
    await world.rest()
    assert_stalled(
        world,
        Reason.ROUTE_PROBLEM,
        f"no script says how MeshRoute {MESH} shares requests: add one as {KEY} to ConfigMap {'/'.join(SCRIPTS)}",
        phase="Healthy",
    )
    assert world.last is not None and MESH_ROUTES not in world.last.wanted.kinds


async def test_a_kind_that_is_not_served_is_told(world: World) -> None:
    await routed_at_rest(world, *STEPS, by=BY_MESH)
    world.server.delete(CUSTOM_RESOURCE_DEFINITIONS, "", str(MESH_RULES))
    world.set_image("v2")
    await world.until(lambda: world.state == "Stalled")
    await world.rest()
    assert_stalled(
        world,
        Reason.ROUTE_PROBLEM,
        "this cluster does not serve mesh.example.com/v1 MeshRule: install its CustomResourceDefinition, or correct"
        " apiVersion and kind in trafficRoutings",
        phase="Healthy",
    )


async def test_an_object_that_another_rollouts_script_has_changed_is_waited_for(world: World) -> None:
    await routed_at_rest(world, *STEPS, by=BY_MESH)
    theirs = {"canaryService": "other-canary", "weight": 10, "changes": []}
    other = {**world.rollout, "metadata": {"namespace": NAMESPACE, "name": "other"}}
    other["spec"] = {**other["spec"], "workloadRef": {**other["spec"]["workloadRef"], "name": "other"}}
    uid = world.server.create(ROLLOUTS, other)["metadata"]["uid"]
    note = {KEYS.original: msgspec.json.encode({uid: theirs}).decode()}
    world.patch(MESH_ROUTES, MESH, {"metadata": {"annotations": note}})
    world.set_image("v2")
    await world.until(lambda: world.state == "Stalled")
    await world.rest()
    assert_stalled(
        world,
        Reason.ROUTE_PROBLEM,
        f"MeshRoute {MESH} is changed by the release of another Rollout, and what a script writes cannot be told apart"
        " from other changes: wait until that is over",
        phase="Healthy",
    )
    world.patch(MESH_ROUTES, MESH, {"metadata": {"annotations": {KEYS.original: None}}})
    await world.until_state("AwaitingApproval")


async def test_one_step_shares_only_what_matches(world: World) -> None:
    step = {
        "replicas": 1,
        "matches": [{"headers": [{"name": "x-canary", "value": "yes"}]}],
        "requestHeaderModifier": {"set": [{"name": "x-version", "value": "v2"}]},
        "pause": {},
    }
    before = await routed_at_rest(world, step, by=BY_MESH)
    await waiting_for_approval(world)
    first = mesh(world)["spec"]["http"][0]
    assert first == {
        "match": [{"headers": {"x-canary": {"exact": "yes"}}}],
        "route": [{"destination": {"host": CANARY_SERVICE}}],
        "headers": {"request": {"set": {"x-version": "v2"}}},
    }
    world.request("Abort")
    await world.until_state("Aborted", 1200)
    await world.rest()
    assert_given_back(world, before, BY_MESH)


async def test_a_release_at_rest_writes_nothing_and_runs_no_script_again(world: World) -> None:
    await routed_at_rest(world, *STEPS, by=BY_MESH)
    await waiting_for_approval(world)
    await world.rest()
    written, asked = len(world.writes), world.last
    assert asked is not None
    # What the next steps need is known already; what is written is known by the object itself.
    assert {msgspec.json.decode(each.given)["canaryWeight"] for each in asked.wanted.evaluations} == {0, 40, 100}
    world.stop_controller()
    world.start_controller()
    await world.sleep(60)
    assert len(world.writes) == written


async def test_what_the_script_of_a_rollout_that_is_gone_has_changed_is_given_back(world: World) -> None:
    before = await routed_at_rest(world, *STEPS, by=BY_MESH)
    await waiting_for_approval(world)
    world.stop_controller()
    world.patch(ROLLOUTS, NAME, {"metadata": {"finalizers": None}})
    world.delete(ROLLOUTS, NAME)
    world.set_image("v1")
    world.create_rollout(*STEPS, canary={"trafficRoutings": routing(BY_MESH)})
    world.start_controller()
    await world.until_state("Healthy", 1200)
    await world.rest()
    assert hold_record(world, BY_MESH) == before


async def test_a_right_that_is_missing_is_told_before_a_release_begins(world: World) -> None:
    await routed_at_rest(world, *STEPS, by=BY_MESH)
    said = "meshroutes is forbidden: allow the controller's account to list and watch it"
    refused: Any = world.view.refused
    refused[MESH_ROUTES] = said
    world.set_image("v2")
    await world.until(lambda: "forbidden" in world.status.get("message", ""))
    await world.rest()
    assert (world.state, world.status["message"], world.status["phase"]) == ("Routing", said, "Healthy")
    del refused[MESH_ROUTES]
    world.patch(SERVICES, SERVICE, {"metadata": {"labels": {"seen": "again"}}})
    await world.until_state("AwaitingApproval")
