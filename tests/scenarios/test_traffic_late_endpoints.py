"""EndpointSlices that lag behind: no stable group is renewed while its Service is still said to send it requests."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from rollout_lws.objects.meta import Meta
from rollout_lws.objects.resources import LWS_NAME, SERVICES
from rollout_lws.objects.workloads import Endpoint, EndpointSlice, TargetReference
from tests.scenarios.routed import (
    EACH,
    SERVICE,
    assert_given_back,
    by_each,
    routed_at_rest,
    share,
)
from tests.scenarios.stories import CANARY, waiting_for_approval
from tests.scenarios.world import World

pytestmark = pytest.mark.looptime

WAITS = "waiting until Service llama-api sends requests to groups of llama-canary only"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("listed", [("llama-0", "llama-1"), ("llama-1", "llama-canary-0"), ()], ids=str)
@by_each(EACH)
async def test_no_window_opens_before_the_service_is_seen_to_send_nothing_to_stable_groups(
    world: World, listed: tuple[str, ...]
) -> None:
    before = await routed_at_rest(world, {"replicas": 2, "traffic": "50%", "pause": {}}, replicas=2)
    await waiting_for_approval(world)
    live, groups = world.view.endpoint_slices, world.leader_uids()
    endpoints = [Endpoint(target_ref=TargetReference("Pod", name)) for name in listed]
    late = EndpointSlice(metadata=Meta(name=SERVICE), endpoints=tuple(endpoints))

    def lagging(service: str) -> Iterable[EndpointSlice]:
        pinned = world.get(SERVICES, SERVICE)
        assert pinned is not None
        lags = service == SERVICE and pinned["spec"]["selector"][LWS_NAME] == CANARY
        return (late,) if lags else live(service)

    world.view.endpoint_slices = lagging  # type: ignore[method-assign]
    world.approve()
    await world.until(lambda: WAITS in world.condition("Reconciling").get("message", ""), WAITS)
    await world.sleep(300)
    assert (world.leader_uids(), share(world)) == (groups, 1)
    world.view.endpoint_slices = live  # type: ignore[method-assign]
    world.stop_controller()
    world.start_controller()
    seen = world.now
    await world.until(lambda: world.leader_uids() != groups, "a window")
    assert (world.now - seen).total_seconds() >= 33, "grace and drain"
    await world.until_state("Healthy")
    await world.rest()
    assert_given_back(world, before)
