"""What would refuse the next version is told while the Rollout is at rest, and takes nothing from its readiness."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import SERVICES
from rollout_lws.rollout.reasons import EventReason
from tests.scenarios.one_workload import IN_PLACE, PLAIN, SURGE
from tests.scenarios.routed import FIVE, create_route, routing
from tests.scenarios.stories import at_rest
from tests.scenarios.test_kueue_surge import KUEUE_SURGE, queued
from tests.scenarios.test_one_workload_refused import ONE_GROUP
from tests.scenarios.test_traffic_refused import NO_SERVICE, another_service
from tests.scenarios.world import World

pytestmark = pytest.mark.looptime


def told(world: World) -> Any:
    """The message of a Rollout that is at rest and ready, in both of its places."""
    conditions = world.true_conditions
    assert (world.state, world.status["phase"], conditions["Ready"]["reason"]) == ("Healthy",) * 3
    assert not {"Stalled", "Reconciling"} & set(conditions)
    assert conditions["Ready"].get("message", "") == world.status.get("message", "")
    return world.status.get("message", "")


async def test_a_capacity_that_does_not_suit_the_lws_is_told_until_it_does(world: World) -> None:
    await at_rest(world, *PLAIN, replicas=1, canary=dict(IN_PLACE.words))
    assert told(world) == f"the next version would wait: {ONE_GROUP}"
    world.patch_lws({"replicas": 0})
    await world.rest()
    assert told(world) == "", "with no group a version is not released in steps"
    world.patch_lws({"replicas": 1})
    await world.rest()
    assert "has 1 group" in told(world)
    world.patch_lws({"replicas": 2})
    await world.rest()
    assert told(world) == ""
    world.patch_rollout({"strategy": {"canary": dict(SURGE.words)}})
    queued(world)
    await world.until(lambda: told(world) == f"the next version would wait: {KUEUE_SURGE}", "Kueue queues it")
    assert [each for each in world.events if each.reason != EventReason.ADOPTED] == []


async def test_a_service_is_told_that_is_missing_or_reaches_the_new_version_and_is_no_more(world: World) -> None:
    await at_rest(world, *FIVE, replicas=5, canary={"trafficRoutings": routing()})
    assert told(world) == f"the next version would wait: {NO_SERVICE}"
    create_route(world)
    await world.until(lambda: not told(world), "the Service is there")
    another_service(world)
    await world.until(lambda: "Service llama-internal would select" in told(world), "another Service selects both")
    world.set_image("v2")
    await world.until_state("Stalled")
    assert not world.status["message"].startswith("the next version")
    world.delete(SERVICES, "llama-internal")
    await world.until_state("AwaitingApproval")
    another_service(world)
    world.request("Abort")
    await world.until_state("Aborted", 1200)
    world.set_image("v1")
    await world.until_state("Healthy", 1200)
    assert "Service llama-internal would select" in told(world)
