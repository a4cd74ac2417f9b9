"""The new version's pool gets no share, and no step goes on, while its gateway or its endpoint picker cannot use it."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import INFERENCE_POOLS, PODS, SERVICES
from tests.scenarios.routed import BY_POOLS, CANARY_POOL, make, routed_at_rest, routes_of
from tests.scenarios.world import NAMESPACE, World

pytestmark = pytest.mark.looptime
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


def start_picker(world: World) -> None:
    """The pod of the second pool's endpoint picker."""
    head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": NAMESPACE, "name": PICKER}}
    head["metadata"] |= {"labels": {"app": PICKER}}  # type: ignore[operator]
    world.server.create(PODS, {**head, "spec": {"containers": [{"name": "epp", "image": "epp:1"}]}})


def create_picker(world: World) -> None:
    make(world, SERVICES, PICKER, spec={"selector": {"app": PICKER}, "ports": [{"port": 9002}]})


def share_of_new(world: World) -> int:
    return routes_of(world)[0].get(CANARY_POOL, 0)


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


async def test_no_step_goes_on_while_its_gateway_says_that_it_cannot_use_the_second_pool(world: World) -> None:
    await routed_at_rest(world, *TIMED, replicas=2, by=BY_POOLS)
    world.delete(SERVICES, PICKER)
    world.set_image("v2")
    await world.until(lambda: world.status.get("message") == NOT_FOUND)
    await world.sleep(60)
    assert (world.state, world.status["currentStepIndex"]) == ("Routing", 1)
    assert world.status["traffic"].get("applied") != "10%"
    create_picker(world)
    await world.until_state("Healthy", 1200)
    assert set(world.groups().values()) == {"v2"}
