"""No pool gets a share, and no step goes on, while its gateway or its endpoint picker cannot use it."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import ENDPOINT_SLICES, INFERENCE_POOLS, PODS, SERVICES
from rollout_lws.objects.workloads import SERVICE_NAME
from tests.scenarios.routed import (
    BY_POOLS,
    CANARY_POOL,
    POOL,
    make,
    routed_at_rest,
    routes_of,
    told_only_with,
)
from tests.scenarios.stories import CANARY, waiting_for_approval
from tests.scenarios.world import NAMESPACE, World

pytestmark = [pytest.mark.looptime, told_only_with(BY_POOLS, why="about pools alone")]
PICKER = f"{CANARY_POOL}-epp"
#: Steps that nobody approves.
TIMED: tuple[dict[str, Any], ...] = (
    {"replicas": 1, "traffic": "10%", "pause": {"duration": 5}},
    {"replicas": 1, "traffic": "40%", "pause": {"duration": 5}},
)
FAILS = (
    f"InferencePool {CANARY_POOL} fails all requests (failureMode FailClose): the Service {PICKER} of its endpoint"
    " picker"
)
NOT_FOUND = (
    f"InferencePool {CANARY_POOL}: Gateway default/inference: ResolvedRefs is False (InvalidExtensionRef: endpoint"
    f' picker Service "{PICKER}" not found)'
)


def start_picker(world: World, name: str = PICKER) -> None:
    """The pod of an endpoint picker, by default the second pool's."""
    head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": NAMESPACE, "name": name}}
    head["metadata"] |= {"labels": {"app": name}}  # type: ignore[operator]
    world.server.create(PODS, {**head, "spec": {"containers": [{"name": "epp", "image": "epp:1"}]}})


def create_picker(world: World) -> None:
    make(world, SERVICES, PICKER, spec={"selector": {"app": PICKER}, "ports": [{"port": 9002}]})


def share_of_new(world: World) -> int:
    return routes_of(world)[0].get(CANARY_POOL, 0)


async def shared_with_the_first_picker(world: World, groups: int, of: int) -> str:
    """A tenth goes to so many groups; no request is answered by the first pool without its picker. Gives its name."""
    picker = f"{POOL}-epp"
    await routed_at_rest(world, {"replicas": groups, "traffic": "10%", "pause": {}}, replicas=of, by=BY_POOLS)
    world.patch(INFERENCE_POOLS, POOL, {"spec": {"endpointPickerRef": {"failureMode": "FailClose"}}})
    start_picker(world, picker)
    await waiting_for_approval(world)
    await world.rest()
    return picker


async def blink(world: World, picker: str, gone: float, there: float) -> None:
    world.server.delete(PODS, NAMESPACE, picker, grace_seconds=0)
    await world.sleep(gone)
    start_picker(world, picker)
    await world.sleep(there)


def watched_weights(world: World) -> list[float]:
    """When the weights in the route change from now on."""
    moments: list[float] = []
    last = routes_of(world)

    def look(seen: World) -> None:
        nonlocal last
        if routes_of(seen) != last:
            last = routes_of(seen)
            moments.append(seen.server.clock())

    world.checks.append(look)
    return moments


async def test_without_its_picker_a_pool_that_fails_closed_gets_no_request(world: World) -> None:
    await routed_at_rest(world, *TIMED, replicas=2, by=BY_POOLS)
    world.patch(INFERENCE_POOLS, CANARY_POOL, {"spec": {"endpointPickerRef": {"failureMode": "FailClose"}}})
    world.delete(SERVICES, PICKER)
    shares: list[int] = []
    world.checks.append(lambda seen: shares.append(share_of_new(seen)))
    world.set_image("v2")
    missing = f"{FAILS} does not exist; create it, or correct endpointPickerRef"
    await world.until(lambda: world.status.get("message") == missing)
    await world.sleep(60)
    assert (world.state, world.status["currentStepIndex"], set(shares)) == ("Routing", 1, {0})
    create_picker(world)
    await world.until(lambda: world.status.get("message") == f"{FAILS} has no ready endpoint; start the picker")
    assert set(shares) == {0}
    start_picker(world)
    await world.until(lambda: share_of_new(world) > 0)
    # The picker ends in mid-release: its share goes back to the version that is answered.
    world.patch_rollout({"strategy": {"paused": True}})
    world.server.delete(PODS, NAMESPACE, PICKER, grace_seconds=0)
    await world.until(lambda: share_of_new(world) == 0)


async def test_a_picker_that_runs_outside_of_the_cluster_answers(world: World) -> None:
    await routed_at_rest(world, *TIMED, replicas=2, by=BY_POOLS)
    world.patch(INFERENCE_POOLS, CANARY_POOL, {"spec": {"endpointPickerRef": {"failureMode": "FailClose"}}})
    world.patch(SERVICES, PICKER, {"spec": {"selector": None}})
    world.set_image("v2")
    await world.until(lambda: world.status.get("message") == f"{FAILS} has no ready endpoint; start the picker")
    head = {"namespace": NAMESPACE, "name": PICKER, "labels": {SERVICE_NAME: PICKER}}
    endpoints = [{"addresses": ["192.0.2.7"], "conditions": {"ready": True}}]
    outside = {"metadata": head, "addressType": "IPv4", "endpoints": endpoints, "ports": [{"port": 9002}]}
    world.server.create(ENDPOINT_SLICES, outside)
    await world.until(lambda: share_of_new(world) > 0)


async def test_no_request_goes_to_the_first_pool_while_its_picker_is_gone(world: World) -> None:
    picker = await shared_with_the_first_picker(world, groups=2, of=2)
    world.server.delete(PODS, NAMESPACE, picker, grace_seconds=0)
    await world.until(lambda: routes_of(world)[0][POOL] == 0)
    fails = (
        f"InferencePool {POOL} fails all requests (failureMode FailClose): the Service {picker} of its endpoint picker"
        " has no ready endpoint; start the picker: all requests go to the new version"
    )
    await world.until(lambda: world.status["traffic"].get("message") == fails)
    # Not at the end of the release either.
    world.request("Abort")
    await world.sleep(300)
    assert routes_of(world)[0][POOL] == 0
    assert world.groups(CANARY) == {0: "v2", 1: "v2"}
    start_picker(world, picker)
    await world.until_state("Aborted")
    assert share_of_new(world) == 0


async def test_a_few_groups_never_get_all_requests_because_the_first_picker_is_gone(world: World) -> None:
    picker = await shared_with_the_first_picker(world, groups=1, of=10)
    before = routes_of(world)
    seen = watched_weights(world)
    for _ in range(3):
        await blink(world, picker, 1, 5)
    world.server.delete(PODS, NAMESPACE, picker, grace_seconds=0)
    fails = (
        f"InferencePool {POOL} fails all requests (failureMode FailClose): the Service {picker} of its endpoint picker"
        " has no ready endpoint; start the picker: shares stay as they are, for 100% needs 10 ready groups of the new"
        " version"
    )
    await world.until(lambda: world.status["traffic"].get("message") == fails)
    # Nor is what serves taken away.
    world.request("Abort")
    await world.sleep(300)
    assert (seen, routes_of(world), world.groups(CANARY)) == ([], before, {0: "v2"})
    start_picker(world, picker)
    await world.until_state("Aborted")
    assert share_of_new(world) == 0


@pytest.mark.one_in(2)
@pytest.mark.parametrize("second", [False, True], ids=["the first", "the second"])
async def test_a_pool_whose_picker_comes_and_goes_gets_its_requests_back_later_each_time(
    world: World, second: bool
) -> None:
    picker = await shared_with_the_first_picker(world, groups=2, of=2)
    if second:
        picker = PICKER
        start_picker(world)
        await world.rest()
        world.patch(INFERENCE_POOLS, CANARY_POOL, {"spec": {"endpointPickerRef": {"failureMode": "FailClose"}}})
        await world.rest()
    seen = watched_weights(world)
    for _ in range(12):
        await blink(world, picker, 1, 5)
    await world.sleep(120)
    away = [back - gone for gone, back in zip(seen[::2], seen[1::2], strict=True)]
    assert ([round(each, -1) for each in away], share_of_new(world)) == ([10, 20, 40], 10)


async def test_no_step_goes_on_while_its_gateway_says_that_it_cannot_use_the_second_pool(world: World) -> None:
    await routed_at_rest(world, *TIMED, replicas=2, by=BY_POOLS)
    world.delete(SERVICES, PICKER)
    world.set_image("v2")
    await world.until(lambda: world.status.get("message") == NOT_FOUND)
    await world.sleep(60)
    assert (world.state, world.status["currentStepIndex"]) == ("Routing", 1)
    assert world.status["traffic"].get("applied") != {"weight": 10}
    create_picker(world)
    await world.until_state("Healthy", 1200)
    assert set(world.groups().values()) == {"v2"}
