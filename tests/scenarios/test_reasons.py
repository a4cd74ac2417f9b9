"""Every reason of a condition and of an Event has a story in which its user reads the whole message.

The last tests compare the closed lists in the code with what these stories make appear.
"""

from __future__ import annotations

from types import ModuleType

import pytest

from rollout_lws.api import ProgressingReason
from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS
from rollout_lws.rollout.reasons import EventReason, Reason
from tests.scenarios import (
    test_autoscalers_told,
    test_broken_stable,
    test_failures_churn,
    test_failures_controllers,
    test_failures_deadlines,
    test_failures_pods,
    test_failures_room,
    test_gates,
    test_kueue_stable,
    test_kueue_surge,
    test_multikueue,
    test_one_workload_refused,
    test_pair,
    test_pair_scaled_faults,
    test_pair_scaled_holds,
    test_pair_scaled_sides,
    test_reasons_back,
    test_refusals,
    test_refused_versions,
    test_refused_writes,
    test_rollout_scale,
    test_rollout_scale_contested,
    test_swap_faults,
    test_traffic,
    test_traffic_all_pods,
    test_traffic_first_writes,
    test_traffic_others,
    test_traffic_refused,
    test_volume_claims,
    told,
)
from tests.scenarios.stories import STEPS, assert_clean, at_rest, waiting_for_approval
from tests.scenarios.told import assert_stalled, tells
from tests.scenarios.world import NAME, World

pytestmark = pytest.mark.looptime

#: The revisions that the sandbox gives to vllm:v1 and vllm:v2.
V1, V2 = "fcbccmmmkf", "jjghfhdkb"


# On the way


@pytest.mark.each_change
@tells(
    {
        Reason.WAITING_FOR_WORKLOAD: "waiting for the LeaderWorkerSet controller to act on llama",
        Reason.HEALTHY: "",
        Reason.LOADING: "1 of 2 groups of the new version ready",
        Reason.PAUSING: "step 1 goes on at 00:00:15 UTC",
        Reason.AWAITING_APPROVAL: "step 2 of 3 waits for approval: kubectl rollout-lws promote llama",
        Reason.PROMOTING: "renewing group 3",
        Reason.CLEANING_UP: "canary llama-canary is going",
    },
    {
        EventReason.ADOPTED: f"LeaderWorkerSet llama is held at revision {V1}",
        EventReason.RELEASE_STARTED: f"release {V2}: 3 steps to revision {V2}",
        EventReason.BATCH_READY: "step 2: 2 of 2 groups of the new version ready",
        EventReason.STEP_CHANGED: "step 1 done, step 2 begins",
        EventReason.PROMOTING: "step 3 done: the stable LeaderWorkerSet is renewed",
        EventReason.PROMOTED: f"revision {V2} is stable: all 4 groups are new and ready",
        EventReason.COMPLETED: f"release {V2} is complete: revision {V2}",
    },
    (ProgressingReason.IN_ROLLING, ProgressingReason.FINALISING, ProgressingReason.COMPLETED),
)
async def test_a_release_from_its_adoption_to_its_end(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")
    assert world.condition("Succeeded")["status"] == "True"


@tells({Reason.NATIVE_ROLLOUT: "waiting until LeaderWorkerSet llama has finished its own rolling update"})
async def test_a_native_roll_is_waited_for(world: World) -> None:
    world.create_workload()
    await world.rest()
    world.set_image("v2")
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.until_state("Healthy")


@tells(
    {
        Reason.PAUSED: "paused on request by ann: nothing goes forward until it is resumed: kubectl rollout-lws"
        " resume llama"
    },
    {EventReason.ACTION: "Pause by ann"},
    (ProgressingReason.PAUSED,),
)
async def test_a_pause_on_request_names_who_asked_and_ends_on_request(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.request("Pause", by="ann")
    await world.until_state("Paused")
    assert world.true_conditions["Paused"]["reason"] == "Paused"
    world.request("Approve")
    await world.rest()
    assert (world.status["lastAction"]["outcome"], world.state) == ("Done", "Paused")
    world.request("Resume")
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")


async def test_a_promotion_that_is_paused_says_what_ends_the_pause(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.approve()
    await world.until(lambda: any(told.startswith("v2") for told in world.groups().values()), "a renewed group")
    world.request("Pause", by="ann")
    await world.until_state("Paused")
    message = world.status["message"]
    assert message.startswith("promotion: ")
    assert message.endswith(
        "paused on request by ann: nothing goes forward until it is resumed: kubectl rollout-lws resume llama"
    )


@tells({Reason.PAUSED: "paused: nothing goes forward until spec.strategy.paused is removed or set to false"})
async def test_everything_at_once_requested_while_paused_waits_for_the_end_of_the_pause(world: World) -> None:
    await at_rest(world, {"replicas": 1, "pause": {}}, {"replicas": 2, "pause": {}})
    await waiting_for_approval(world)
    world.patch_rollout({"strategy": {"paused": True}})
    await world.until_state("Paused")
    world.request("PromoteFull")
    await world.rest()
    assert world.status["requestedAction"]["type"] == "PromoteFull"
    world.patch_rollout({"strategy": {"paused": False}})
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")
    assert world.status["lastAction"]["type"] == "PromoteFull"


@tells({Reason.PREPARING: "the BatchRelease was deleted by hand and is made again"})
async def test_a_deleted_record_is_told(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.delete(world.RECORD, NAME)
    await world.until(lambda: world.state != "AwaitingApproval")
    await world.until_state("AwaitingApproval")


@tells({Reason.ADOPTING: "LeaderWorkerSet llama was recreated; the canary goes as soon as a group of it is ready"})
async def test_a_canary_serves_until_the_lws_that_was_made_anew_does(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.checks.clear()
    world.delete(LEADER_WORKER_SETS, NAME)
    await world.until(lambda: world.state == "Stalled")
    await world.rest()
    message = (
        "LeaderWorkerSet llama does not exist in namespace default, its canary keeps serving: create it, or delete this"
        " Rollout"
    )
    assert_stalled(world, Reason.WORKLOAD_NOT_FOUND, message, phase="Progressing")
    world.create_workload(tag="v5")
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v5")


# Nothing is missing


def test_every_file_of_stories_is_counted() -> None:
    others: tuple[ModuleType, ...] = (
        test_broken_stable,
        test_reasons_back,
        test_refusals,
        test_refused_versions,
        test_refused_writes,
    )
    others = (*others, test_autoscalers_told, test_gates, test_one_workload_refused, test_pair)
    others = (*others, test_pair_scaled_faults, test_pair_scaled_holds, test_pair_scaled_sides)
    others = (*others, test_failures_churn, test_failures_controllers, test_failures_deadlines)
    others = (*others, test_failures_pods, test_failures_room)
    others = (*others, test_kueue_stable, test_kueue_surge, test_multikueue)
    others = (*others, test_traffic, test_traffic_others, test_traffic_refused)
    others = (
        *others,
        test_rollout_scale,
        test_rollout_scale_contested,
        test_swap_faults,
        test_traffic_all_pods,
        test_traffic_first_writes,
        test_volume_claims,
    )
    assert {each.__name__ for each in others} < told.FILES


@tells(
    {
        Reason.SCALING_TO_ZERO: "LeaderWorkerSet llama has 0 groups: waiting until its controller has acted on that,"
        " and the last is gone"
    }
)
async def test_a_version_applied_with_0_groups_is_stable_when_the_last_group_is_gone(world: World) -> None:
    await at_rest(world)
    name = f"{NAME}-3"
    world.patch(PODS, name, {"metadata": {"finalizers": ["example.com/slow"]}})
    world.patch_lws({"replicas": 0})
    world.set_image("v2")
    await world.until(lambda: world.condition("Reconciling").get("reason") == Reason.SCALING_TO_ZERO)
    assert world.status["stable"]["revision"] == V1
    world.patch(PODS, name, {"metadata": {"finalizers": None}})
    await world.until_state("Healthy")
    assert world.status["stable"]["revision"] == V2


def test_every_reason_of_a_condition_has_its_story() -> None:
    assert set(Reason) - told.CONDITIONS == set()


def test_every_reason_of_the_progressing_condition_has_its_story() -> None:
    # The release's first state is left within the reconcile that enters it.
    assert set(ProgressingReason) - told.PROGRESSING == {ProgressingReason.INITIALIZING}


def test_every_reason_of_an_event_has_its_story() -> None:
    assert set(EventReason) - told.EVENTS == set()
