"""Doctor of a pair: both workloads, a Service for each, and a route that sends requests to the one that serves."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rollout_lws.cli.doctor.chain import chain
from rollout_lws.cli.doctor.links import Link, Name, State, first
from rollout_lws.objects.resources import (
    HORIZONTAL_POD_AUTOSCALERS,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    LEADER_WORKER_SETS,
    LWS_NAME,
    LWS_WORKER_INDEX,
    SERVICES,
)
from tests.cli.doctor.looking import assert_whole, broken, links, look, told
from tests.scenarios.paired import (
    BLUE,
    GREEN,
    all_ready,
    apply,
    approve_to_the_end,
    create_sides,
    pair_at_rest,
    rollout,
    set_weights,
)
from tests.scenarios.routed import ROUTE, make
from tests.scenarios.world import NAME, ROLLOUTS, World

pytestmark = pytest.mark.looptime


def of(found: Sequence[Link], name: Name) -> dict[str, tuple[State, str]]:
    return {each.about: (each.state, each.found) for each in found if each.name is name}


async def test_at_rest_every_link_is_ok_and_none_is_about_a_hold(world: World) -> None:
    await pair_at_rest(world)
    found = await links(world)
    assert {each.state for each in found} == {State.OK}, told(found)
    assert not of(found, Name.HOLD)
    assert of(found, Name.WORKLOAD) == {
        f"LeaderWorkerSet/{BLUE}": (State.OK, "generation 1, 4 groups, the active side"),
        f"LeaderWorkerSet/{GREEN}": (State.OK, "generation 1, 4 groups, the inactive side"),
    }
    assert of(found, Name.SERVICE) == {
        "Service/blue-api": (State.OK, f"selects 4 pods of {BLUE}"),
        "Service/green-api": (State.OK, f"selects 4 pods of {GREEN}"),
    }
    assert of(found, Name.ROUTE) == {f"HTTPRoute/{ROUTE}": (State.OK, f"accepted, with all requests to {BLUE}")}


async def test_nothing_is_broken_in_a_release_nor_when_the_other_side_is_scaled_down_after_it(world: World) -> None:
    await pair_at_rest(world)
    apply(world, GREEN, "v2")
    while world.state != "AwaitingApproval":
        await assert_whole(world)
    await assert_whole(world)
    await approve_to_the_end(world)
    world.patch_lws({"replicas": 0}, BLUE)
    await world.rest()
    found = await links(world)
    assert {each.state for each in found} == {State.OK}, told(found)
    assert of(found, Name.SERVICE)["Service/blue-api"] == (State.OK, f"selects nothing now: {BLUE} has 0 groups")
    assert of(found, Name.RELEASE) == {
        f"Rollout/{NAME}": (State.OK, f"none is on; LeaderWorkerSet {GREEN} is the active side")
    }


async def test_a_version_that_waits_for_groups_is_waited_for(world: World) -> None:
    await pair_at_rest(world, beside=0)
    apply(world, GREEN, "v2")
    await world.until_state("Preparing")
    await world.rest()
    found = await links(world)
    assert first(found, State.BROKEN) is None, told(found)
    state, text = of(found, Name.RELEASE)[f"Rollout/{NAME}"]
    assert (state, text) == (
        State.WAITING,
        f"none is on: the new version of LeaderWorkerSet {GREEN} waits; the links above say why",
    )


async def test_a_side_that_is_missing_is_broken(world: World) -> None:
    await pair_at_rest(world)
    world.delete(LEADER_WORKER_SETS, GREEN)
    await world.until(lambda: world.condition("Stalled")["reason"] == "CounterpartMissing")
    found = await links(world)
    one = first(found, State.BROKEN)
    assert one is not None and (one.name, one.about) == (Name.WORKLOAD, f"LeaderWorkerSet/{GREEN}")
    assert f"create {GREEN} to release a version on it" in one.found
    assert {each.state for each in found if each is not one} == {State.OK}, told(found)


async def test_a_service_of_the_wrong_side_is_broken(world: World) -> None:
    await pair_at_rest(world)
    world.patch(SERVICES, "green-api", {"spec": {"selector": {LWS_NAME: BLUE}}})
    found = await broken(world)
    assert (found.name, found.about) == (Name.SERVICE, "Service/green-api")
    assert f"selects no leader of LeaderWorkerSet {GREEN}" in found.found


async def test_a_service_of_both_sides_is_broken(world: World) -> None:
    await pair_at_rest(world)
    world.patch(SERVICES, "green-api", {"spec": {"selector": {LWS_NAME: None}}})
    await world.rest()
    found = next(each for each in await links(world) if each.name is Name.SERVICE and each.state is State.BROKEN)
    assert found.about == "Service/green-api" and BLUE in found.found


async def test_a_rule_that_names_one_side_only_is_broken(world: World) -> None:
    await pair_at_rest(world)
    world.stop_controller()
    route = world.get(HTTP_ROUTES, ROUTE)
    assert route is not None
    rule = route["spec"]["rules"][0]
    alone = {"matches": [{"path": {"type": "PathPrefix", "value": "/x"}}], "backendRefs": rule["backendRefs"][:1]}
    world.patch(HTTP_ROUTES, ROUTE, {"spec": {"rules": [rule, alone]}})
    found = next(each for each in await links(world) if each.name is Name.ROUTE)
    assert found.state is State.BROKEN
    assert "rule 2 of HTTPRoute llama names Service/blue-api but not Service/green-api" in found.found


@pytest.mark.parametrize(
    ("beside", "ending"),
    [
        (4, f"50% of its requests to {GREEN}, the inactive side, though no release is on"),
        (0, f"50% of its requests to {GREEN}, which has no ready group"),
    ],
)
async def test_requests_of_the_inactive_side_are_told_where_no_controller_takes_them_back(
    world: World, beside: int, ending: str
) -> None:
    await pair_at_rest(world, beside=beside)
    world.stop_controller()
    set_weights(world, {BLUE: 50, GREEN: 50})
    found = await links(world)
    assert of(found, Name.CONTROLLER)[f"Rollout/{NAME}"][0] is State.BROKEN
    assert of(found, Name.ROUTE) == {f"HTTPRoute/{ROUTE}": (State.BROKEN, f"HTTPRoute llama sends {ending}")}


async def test_a_status_that_names_another_side_than_the_route_is_told(world: World) -> None:
    await pair_at_rest(world)
    world.stop_controller()
    world.patch(ROLLOUTS, NAME, {"status": {"active": GREEN}}, "status")
    found = next(each for each in await links(world) if each.name is Name.ROUTE)
    assert (found.state, found.found) == (
        State.BROKEN,
        f"the route has {BLUE} as the active side, and the status {GREEN}",
    )


@pytest.mark.parametrize("watched", [True, False], ids=["a controller", "no controller"])
async def test_sides_that_cannot_be_told_apart_are_broken(world: World, watched: bool) -> None:
    create_sides(world)
    set_weights(world, {BLUE: 50, GREEN: 50})
    world.server.create(ROLLOUTS, rollout())
    await all_ready(world, BLUE, GREEN)
    if watched:
        world.start_controller()
        await world.until(lambda: world.condition("Stalled").get("reason") == "ActiveSideUnknown")
    found = await links(world)
    one = first(found, State.BROKEN)
    assert one is not None and one.name is Name.ROLLOUT and "spec.activeSide" in one.found
    assert not any("the active side" in each.found for each in found if each is not one), told(found)


@pytest.mark.parametrize("side", [BLUE, GREEN])
async def test_an_autoscaler_of_either_side_is_fine(world: World, side: str) -> None:
    await pair_at_rest(world)
    _autoscaler(world, LEADER_WORKER_SETS.api_version, LEADER_WORKER_SETS.kind, side)
    await world.rest()
    apply(world, GREEN, "v2")
    await world.until_state("AwaitingApproval")
    await assert_whole(world)


async def test_an_autoscaler_of_the_rollout_scales_nothing(world: World) -> None:
    await pair_at_rest(world)
    _autoscaler(world, ROLLOUTS.api_version, ROLLOUTS.kind, NAME)
    await world.rest()
    found = await broken(world)
    assert (found.name, found.about) == (Name.AUTOSCALER, "HorizontalPodAutoscaler/hpa")
    assert "let it scale the workload" in found.found


async def test_an_aborted_release_is_not_gone_back_from_by_undo(world: World) -> None:
    await pair_at_rest(world)
    apply(world, GREEN, "v2")
    await world.until_state("AwaitingApproval")
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    found = next(each for each in chain(look(world)) if each.name is Name.RELEASE)
    assert found.next == ("kubectl rollout-lws retry llama",)


def _autoscaler(world: World, api_version: str, kind: str, name: str) -> None:
    world.server.create(
        HORIZONTAL_POD_AUTOSCALERS,
        {
            "apiVersion": HORIZONTAL_POD_AUTOSCALERS.api_version,
            "kind": HORIZONTAL_POD_AUTOSCALERS.kind,
            "metadata": {"name": "hpa", "namespace": "default"},
            "spec": {
                "scaleTargetRef": {"apiVersion": api_version, "kind": kind, "name": name},
                "minReplicas": 1,
                "maxReplicas": 8,
            },
        },
    )


async def test_two_pools_are_looked_at_like_two_services(world: World) -> None:
    _pools(world)
    await all_ready(world, BLUE, GREEN)
    world.start_controller()
    await world.until_state("Healthy")
    await world.rest()
    found = await links(world)
    assert {each.state for each in found} == {State.OK}, told(found)
    assert of(found, Name.SERVICE) == {
        "InferencePool/blue": (State.OK, f"selects 4 pods of {BLUE}"),
        "InferencePool/green": (State.OK, f"selects 4 pods of {GREEN}"),
    }
    apply(world, GREEN, "v2")
    await world.until_state("AwaitingApproval")
    await assert_whole(world)
    await approve_to_the_end(world)
    world.patch(INFERENCE_POOLS, "blue", {"spec": {"selector": {"matchLabels": {LWS_NAME: GREEN}}}})
    await world.rest()
    one = await broken(world)
    assert (one.name, one.about) == (Name.SERVICE, "InferencePool/blue")


def _pools(world: World) -> None:
    """The same pair, whose route names a pool for each side."""
    create_sides(world)
    references = []
    for pool, side, weight in (("blue", BLUE, 100), ("green", GREEN, 0)):
        selector = {"matchLabels": {LWS_NAME: side, LWS_WORKER_INDEX: "0"}}
        make(world, SERVICES, f"{pool}-epp", spec={"selector": {"app": f"{pool}-epp"}, "ports": [{"port": 9002}]})
        picker = {"name": f"{pool}-epp", "port": {"number": 9002}, "failureMode": "FailOpen"}
        spec = {"selector": selector, "targetPorts": [{"number": 8000}], "endpointPickerRef": picker}
        make(world, INFERENCE_POOLS, pool, spec=spec)
        named = {"group": INFERENCE_POOLS.group, "kind": INFERENCE_POOLS.kind, "name": pool}
        references.append({**named, "weight": weight})
    world.patch(HTTP_ROUTES, ROUTE, {"spec": {"rules": [{"backendRefs": references}]}})
    of_pools = {"stable": "blue", "canary": "green"}
    manifest = rollout(routing={"gateway": {"httpRouteName": ROUTE, "inferencePool": of_pools}})
    routing = manifest["spec"]["strategy"]["canary"]["trafficRoutings"][0]
    del routing["counterpartService"]
    world.server.create(ROLLOUTS, manifest)
