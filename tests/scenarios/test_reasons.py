"""Every reason of a condition and of an Event has a story in which its user reads the whole message.

The last tests compare the closed lists in the code with what these stories make appear.
"""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.api import ProgressingReason
from rollout_lws.objects.resources import (
    LEADER_WORKER_SETS,
    LWS_NAME,
    NODES,
    PODS,
)
from rollout_lws.rollout.reasons import EventReason, Reason
from tests.scenarios import (
    test_autoscalers_told,
    test_mending,
    test_one_workload_refused,
    test_reasons_back,
    test_refusals,
    test_refused_versions,
    test_refused_writes,
    test_traffic,
    test_traffic_others,
    test_traffic_refused,
    told,
)
from tests.scenarios.stories import CANARY, STEPS, assert_clean, at_rest, mid_promotion, waiting_for_approval
from tests.scenarios.told import assert_stalled, tells
from tests.scenarios.world import NAME, NAMESPACE, World

pytestmark = pytest.mark.looptime

#: The revisions that the sandbox gives to vllm:v1 and vllm:v2.
V1, V2 = "gbmgdbbcdf", "lcgkcjjhd"
GO_BACK = "to go back: kubectl rollout-lws abort llama"
WHEN_READY = f"The release waits, it goes on when its groups become ready; {GO_BACK}"


def apply(world: World, tag: str = "v2", *, fail: str = "", **spec: Any) -> None:
    """Change the template; ``fail`` is how the sandbox's pods of it behave."""
    annotations = {"sandbox.rollouts.kruise.io/fail": fail} if fail else {}
    containers = [{"name": "vllm", "image": f"vllm:{tag}"}]
    template = {
        "metadata": {"labels": {"app": "llama"}, "annotations": annotations},
        "spec": {"containers": containers, **spec},
    }
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": template}})


def cordon(world: World) -> None:
    for node in world.server.list(NODES):
        body = {"spec": {"unschedulable": True}}
        world.server.patch(NODES, "", node["metadata"]["name"], body, "application/merge-patch+json")


# On the way


@tells(
    {
        Reason.WAITING_FOR_LWS: "waiting for the LeaderWorkerSet controller to act on llama",
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
        EventReason.STEP_LEFT: "step 1 done, step 2 begins",
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


@tells({Reason.NATIVE_ROLL: "waiting until LeaderWorkerSet llama has finished its own rolling update"})
async def test_a_native_roll_is_waited_for(world: World) -> None:
    world.create_workload()
    await world.rest()
    world.set_image("v2")
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.until_state("Healthy")


@tells(
    {Reason.PAUSED: "paused on request by ann: nothing goes forward until Resume is requested"},
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


@tells({Reason.ADOPTING: "LeaderWorkerSet llama was made anew; the canary goes as soon as a group of it is ready"})
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


# Room


@tells(
    {
        Reason.WAITING_FOR_ACCELERATORS: "waiting for accelerators: pod llama-canary-0 (leader) is not scheduled:"
        " 0/8 nodes are available: 8 Insufficient nvidia.com/gpu.",
        Reason.CAPACITY_DEADLINE: "waiting for accelerators: pod llama-canary-0 (leader) is not scheduled: 0/8 nodes"
        f" are available: 8 Insufficient nvidia.com/gpu, for more than 300 s. {WHEN_READY}",
    }
)
async def test_missing_accelerators_are_waited_for_as_long_as_the_capacity_deadline_allows(world: World) -> None:
    await at_rest(world, *STEPS, capacityDeadlineSeconds=300, progressDeadlineSeconds=60)
    apply(world, fail="Unschedulable")
    await world.until_state("WaitingForAccelerators")
    await world.sleep(200)
    assert world.state == "WaitingForAccelerators"
    await world.until_state("Stalled", seconds=150)


@tells(
    {
        Reason.WAITING_FOR_QUOTA: "waiting for quota: pod llama-canary-0 (leader) is not scheduled: Scheduling is"
        " blocked due to non-empty scheduling gates"
    }
)
async def test_pods_behind_a_gate_wait_for_quota(world: World) -> None:
    await at_rest(world)
    apply(world, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    await world.until(lambda: bool(gated(world)))
    await world.rest()
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }
    for name in gated(world):
        world.patch(PODS, name, {"status": {"phase": "Pending", "conditions": [condition]}}, "status")
    await world.until_state("WaitingForQuota")


def gated(world: World) -> list[str]:
    pods = world.server.list(PODS, NAMESPACE, label_selector=f"{LWS_NAME}={CANARY}")
    return [pod["metadata"]["name"] for pod in pods]


# Not getting on


@tells(
    {
        Reason.DEADLINE: "no further group became ready within 120 s: pod llama-canary-0 (leader) is not"
        f" ready. {WHEN_READY}"
    },
)
async def test_a_deadline_names_the_pod_that_is_waited_for(world: World) -> None:
    await at_rest(world, *STEPS, progressDeadlineSeconds=120)
    world.set_image("bad-v2")
    await world.until_state("Stalled")


@tells(
    {
        Reason.DEADLINE: (
            "promotion: no further group became ready within 60 s: pod llama-3 (leader) is not scheduled: 0/8 nodes"
            " are available: 8 node(s) were unschedulable; it goes on by itself: waiting for group 3 of llama"
        )
    }
)
async def test_a_promotion_that_does_not_get_on_names_the_group_of_the_stable_lws(world: World) -> None:
    await at_rest(world, *STEPS, progressDeadlineSeconds=60)
    await mid_promotion(world)
    cordon(world)
    await world.until_state("Stalled")
    assert world.status["phase"] == "Progressing"


@tells(
    {
        Reason.GOING_BACK: f"group 3 goes back to revision {V1}",
        Reason.DEADLINE: "going back: no further group became ready within 60 s: pod llama-3 (leader) is not"
        " scheduled: 0/8 nodes are available: 8 node(s) were unschedulable; it goes on by itself: waiting for"
        f" groups that came back to revision {V1}",
    },
    {EventReason.GOING_BACK: "back to the stable version: wrong prompts"},
    (ProgressingReason.CANCELLING,),
)
async def test_a_way_back_that_does_not_get_on_is_told_as_well(world: World) -> None:
    await at_rest(world, *STEPS, progressDeadlineSeconds=60)
    await mid_promotion(world)
    cordon(world)
    await world.until_state("Stalled")
    world.request("Abort", reason="wrong prompts")
    await world.until_state("GoingBack")
    await world.until_state("Stalled")


@tells(
    {
        Reason.APPROVAL_TIMEOUT: "step 1 was not approved within 60 s. The release waits, it still can be approved:"
        f" kubectl rollout-lws promote llama; {GO_BACK}"
    }
)
async def test_a_forgotten_approval_is_told_with_both_ways_on(world: World) -> None:
    await at_rest(world, {"replicas": 1, "pause": {"approvalTimeoutSeconds": 60}})
    world.set_image("v2")
    await world.until_state("Stalled")


@tells({Reason.CHURN: f"group 0 of llama-canary was rebuilt 3 times. {WHEN_READY}"})
async def test_a_group_that_is_rebuilt_again_and_again_is_named(world: World) -> None:
    await at_rest(world)
    apply(world, fail="CrashLoopBackOff")
    await world.until_state("Stalled", seconds=900)


# Nothing is missing


def test_every_file_of_stories_is_counted() -> None:
    others = (test_mending, test_reasons_back, test_refusals, test_refused_versions, test_refused_writes)
    others = (
        *others,
        test_autoscalers_told,
        test_one_workload_refused,
        test_traffic,
        test_traffic_others,
        test_traffic_refused,
    )
    assert {each.__name__ for each in others} < told.FILES


def test_every_reason_of_a_condition_has_its_story() -> None:
    assert set(Reason) - told.CONDITIONS == set()


def test_every_reason_of_the_progressing_condition_has_its_story() -> None:
    # The release's first state is left within the reconcile that enters it.
    assert set(ProgressingReason) - told.PROGRESSING == {ProgressingReason.INITIALIZING}


def test_every_reason_of_an_event_has_its_story() -> None:
    assert set(EventReason) - told.EVENTS == set()
