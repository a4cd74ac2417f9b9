"""Pairs behind a gateway that refuses their route, and pairs of inference pools."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import (
    INFERENCE_POOLS,
    LWS_NAME,
    LWS_WORKER_INDEX,
    SERVICES,
)
from rollout_lws.sandbox.api_resources import GATEWAYS
from rollout_lws.sandbox.behaviours.network.gateway_status import REFUSE_ROUTES
from tests.scenarios.paired import (
    ALL_BLUE,
    ALL_GREEN,
    BLUE,
    GREEN,
    all_ready,
    approve_to_the_end,
    create_sides,
    in_step,
    pair_at_rest,
    released,
    retirable,
    rollout,
    rules,
    set_rules,
    weights,
)
from tests.scenarios.routed import (
    BY_POOLS,
    GATEWAY,
    OF_ACCEPTED_PAIRS,
    ROUTE,
    ROUTES,
    by_each,
    make,
    told_only_with,
)
from tests.scenarios.world import ROLLOUTS, World

pytestmark = pytest.mark.looptime

ALONE = told_only_with(BY_POOLS, why="about pools alone")


@by_each(OF_ACCEPTED_PAIRS)
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
    # From now on the route of the sides leads to pools alone.
    ROUTES.made.clear()
    ROUTES.made.add(BY_POOLS.name)


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


@ALONE
async def test_pools_are_released_both_ways(world: World) -> None:
    await _pools_at_rest(world, "FailOpen")
    for side, tag in ((GREEN, "v2"), (BLUE, "v3")):
        await released(world, side=side, tag=tag)
        assert _pool_weights(world) == (ALL_GREEN if side == GREEN else ALL_BLUE)


@ALONE
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
