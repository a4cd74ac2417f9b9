"""The end of a release gives everything back, whether or not the pods of the version that leaves are followed."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import LWS_NAME, LWS_REVISION, PODS, SERVICES
from tests.scenarios.routed import (
    EACH,
    ROUTES,
    SERVICE,
    assert_given_back,
    create_provider,
    hold_record,
    renamed,
    routed_at_rest,
    routing,
)
from tests.scenarios.stories import at_rest, mid_promotion, waiting_for_approval
from tests.scenarios.world import NAME, ROLLOUTS, World

pytestmark = [pytest.mark.looptime, *EACH]

UNSHARED: tuple[dict[str, Any], ...] = ({"replicas": 1, "pause": {}}, {"replicas": "100%", "pause": {}})
SHARED: tuple[dict[str, Any], ...] = ({"replicas": 1, "traffic": "50%", "pause": {}}, UNSHARED[1])


def add_traffic(world: World, **more: Any) -> None:
    plan = {"steps": list(UNSHARED), "trafficRoutings": routing(**more)}
    world.patch_rollout({"strategy": {"canary": plan}})


async def test_traffic_that_is_added_in_mid_release_and_refused_holds_up_no_abort(world: World) -> None:
    create_provider(world, ROUTES.provider)
    await at_rest(world, *UNSHARED, replicas=2, size=1)
    before = hold_record(world)
    await waiting_for_approval(world)
    add_traffic(world, **renamed("typo"))
    await world.until_state("Stalled")
    world.request("Abort")
    await world.until_state("Aborted")
    assert_given_back(world, before)


async def test_traffic_that_is_added_during_the_promotion_does_not_hold_up_its_end(world: World) -> None:
    create_provider(world, ROUTES.provider)
    await at_rest(world, *UNSHARED, replicas=2, size=1)
    before = hold_record(world)
    await mid_promotion(world)
    add_traffic(world)
    await world.until_state("Healthy")
    assert_given_back(world, before)


async def test_an_lws_scaled_to_zero_after_an_abort_and_up_again_comes_to_rest(world: World) -> None:
    before = await routed_at_rest(world, *SHARED, replicas=2)
    await waiting_for_approval(world)
    world.request("Abort")
    await world.until_state("Aborted")
    # With zero groups the aborted version takes effect, so that it does not leave any more.
    world.checks.clear()
    await world.rest()
    world.patch_lws({"replicas": 0})
    await world.until(lambda: not world.groups(), "no group")
    await world.rest()
    world.patch_lws({"replicas": 2})
    await world.until_state("Healthy")
    assert_given_back(world, before)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("leaves", [False, True], ids=["stays", "deleted"])
async def test_a_service_that_is_applied_again_as_a_release_had_pinned_it_is_given_back(
    world: World, leaves: bool
) -> None:
    before = await routed_at_rest(world, *SHARED, replicas=2)
    await waiting_for_approval(world)
    exported = world.get(SERVICES, SERVICE)
    assert exported is not None
    assert LWS_NAME in exported["spec"]["selector"]
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    if leaves:
        world.stop_controller()
    pinned = {"selector": exported["spec"]["selector"]}
    world.patch(SERVICES, SERVICE, {"metadata": {"annotations": exported["metadata"]["annotations"]}, "spec": pinned})
    assert hold_record(world) != before
    if leaves:
        world.delete(ROLLOUTS, NAME)
        world.start_controller()
        await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "the Rollout is gone")
    else:
        await world.until(lambda: hold_record(world) == before, "the Service is restored")
        await world.until_state("Aborted")
    assert hold_record(world) == before


async def test_a_status_that_forgets_in_the_clean_up_that_requests_were_shared_gives_all_back(world: World) -> None:
    before = await routed_at_rest(world, *SHARED, replicas=2)
    await waiting_for_approval(world)
    world.request("Abort")
    await world.until(lambda: (world.status.get("finalising") or {}).get("task") == "CleanUp", "the clean-up")
    world.patch(ROLLOUTS, NAME, {"status": {"traffic": None}}, "status")
    await world.until_state("Aborted")
    assert_given_back(world, before)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("capacity", ["InPlace", "Surge"])
async def test_groups_that_stay_when_a_rollout_leaves_keep_their_requests(world: World, capacity: str) -> None:
    """A group that keeps being lost in the promotion lets the Rollout leave without finishing it."""
    steps = ({"replicas": 1, "traffic": "25%", "pause": {}}, {"replicas": 3, "traffic": "60%", "pause": {}})
    before = await routed_at_rest(world, *steps, replicas=4, words={"capacity": capacity})
    # Its groups stay where they are, those of the version that does not become stable included.
    world.checks.clear()
    await waiting_for_approval(world)
    stable = world.status["stable"]["revision"]
    world.request("PromoteFull")
    await world.until(lambda: sum(told.startswith("v2") for told in world.groups().values()) >= 2, "two new groups")
    world.delete(ROLLOUTS, NAME)

    def reaches_the_new_version(seen: World) -> None:
        service = seen.get(SERVICES, SERVICE)
        assert service is not None
        stays = [told for told in seen.groups().values() if told == "v2"]
        assert not stays or service["spec"]["selector"].get(LWS_REVISION) != stable

    world.checks.append(reaches_the_new_version)
    for _ in range(30):
        await world.sleep(0.9)
        if world.get(PODS, f"{NAME}-2"):
            world.delete(PODS, f"{NAME}-2")
    await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "the Rollout is gone")
    assert hold_record(world) == before
    assert "v2" in world.groups().values()
    assert not world.errors
