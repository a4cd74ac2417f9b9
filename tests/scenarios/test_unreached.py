"""A release without trafficRoutings whose Services do not select the new version's groups: told to whoever approves."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import LWS_NAME, LWS_WORKER_INDEX, SERVICES
from rollout_lws.rollout.reasons import EventReason
from tests.scenarios.routed import make
from tests.scenarios.stories import at_rest, waiting_for_approval
from tests.scenarios.world import NAME, World

pytestmark = pytest.mark.looptime

UNREACHED = "The new version gets no requests before the promotion: Service llama-api selects none of its groups"
PORTS = [{"port": 80}]
#: As the Services of LeaderWorkerSet's own samples select.
BY_LWS = {LWS_NAME: NAME, LWS_WORKER_INDEX: "0"}


async def test_a_service_that_selects_by_the_name_of_the_lws_is_told_until_it_leads_to_both(world: World) -> None:
    make(world, SERVICES, "llama-api", spec={"selector": BY_LWS, "ports": PORTS})
    await at_rest(world, {"replicas": 1, "pause": {"duration": 60}}, {"replicas": 2, "pause": {}}, {"replicas": "100%"})
    world.set_image("v2")
    await world.until_state("Pausing")
    assert world.status["message"].endswith(f" UTC. {UNREACHED}")
    await world.until_state("AwaitingApproval")
    asked = "step 2 of 3 waits for approval: kubectl rollout-lws promote llama"
    assert world.status["message"] == f"{asked}. {UNREACHED}"
    told = [each.note for each in world.events if each.reason == EventReason.BATCH_READY]
    assert told == [f"step {n}: {n} of {n} groups of the new version ready. {UNREACHED}" for n in (1, 2)]
    world.patch(SERVICES, "llama-api", {"spec": {"selector": {LWS_NAME: None, "app": "llama"}}})
    await world.until(lambda: world.status["message"] == asked, "the Service is looked at again")
    world.approve()
    await world.until_state("Healthy")


@pytest.mark.parametrize("capacity", ["Surge", "InPlace"])
async def test_the_same_service_leads_to_both_versions_of_one_lws(world: World, capacity: str) -> None:
    make(world, SERVICES, "llama-api", spec={"selector": BY_LWS, "ports": PORTS})
    await at_rest(world, {"replicas": 1, "pause": {}}, {"replicas": "100%"}, canary={"capacity": capacity})
    await waiting_for_approval(world)
    assert UNREACHED not in world.status["message"]
