"""Controllers that do not act, or may not, and one that acts in another cluster: told as that, and nothing is touched
that a release could not watch.
"""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.kueue import ORIGIN, QUEUE_NAME
from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS
from rollout_lws.rollout.reasons import Reason
from rollout_lws.sandbox.apiserver import Operation
from tests.scenarios.failures import WHEN_READY, apply
from tests.scenarios.kueue import GATED, condition, dispatching_check, install, queue
from tests.scenarios.stories import CANARY, STEPS, at_rest, mid_promotion
from tests.scenarios.told import assert_stalled, assert_untouched, tells
from tests.scenarios.world import NAME, World

pytestmark = pytest.mark.looptime


# The LeaderWorkerSet controller


SILENT = (
    "the LeaderWorkerSet controller has not acted on llama for 60 s: is it running? kubectl get pods -n lws-system. If"
    " it is, the Events of llama say why: kubectl describe leaderworkerset llama -n default"
)


@tells(
    {Reason.LWS_SILENT: SILENT, Reason.WAITING_FOR_LWS: "waiting for the LeaderWorkerSet controller to act on llama"}
)
async def test_a_new_version_that_the_lws_controller_never_sees_is_told_after_a_minute(world: World) -> None:
    await at_rest(world)
    world.cluster.runner.stop()
    world.set_image("v2")
    changed = world.now
    await world.until_state("Stalled")
    assert (world.now - changed).total_seconds() == pytest.approx(60, abs=1)
    assert_stalled(world, Reason.LWS_SILENT, SILENT, phase="Healthy")
    world.cluster.runner.start()
    await world.until_state("Pausing")


@tells({Reason.LWS_SILENT: SILENT})
async def test_an_lws_that_was_never_acted_on_is_told_before_it_is_adopted(world: World) -> None:
    world.cluster.runner.stop()
    world.create_workload()
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.until_state("Stalled")
    assert_stalled(world, Reason.LWS_SILENT, SILENT, phase="Initial")


@tells(
    {
        Reason.DEADLINE: "no further group became ready within 120 s: LeaderWorkerSet llama-canary: its controller has"
        " not acted on the last change; if that lasts, is it running? kubectl get pods -n lws-system."
        f" {WHEN_READY}"
    }
)
async def test_a_canary_that_the_lws_controller_never_sees_is_told_at_the_deadline(world: World) -> None:
    await at_rest(world, *STEPS, progressDeadlineSeconds=120)
    world.set_image("v2")
    await world.until(lambda: world.get(LEADER_WORKER_SETS, CANARY) is not None)
    world.cluster.runner.stop()
    await world.until_state("Stalled")


STUCK = (
    "promotion: no further group became ready within 120 s: LeaderWorkerSet llama: its controller has not acted on the"
    " last change; if that lasts, is it running? kubectl get pods -n lws-system; it goes on by itself: waiting for the"
    " leader of group 3 at the new revision"
)


@tells({Reason.DEADLINE: STUCK})
async def test_a_window_that_the_lws_controller_never_sees_is_told_at_the_deadline(world: World) -> None:
    await at_rest(world, *STEPS, progressDeadlineSeconds=120)
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    world.cluster.runner.stop()
    world.approve()
    await world.until_state("Stalled")


# What may not create pods


DENIED = 'admission webhook "pods.policy.example.com" denied the request: containers must not run as root'


def deny(world: World, name: str) -> None:
    """Nobody may make this pod."""

    def refuse(operation: Operation) -> dict[str, Any]:
        pod = operation.object
        if (operation.resource, operation.verb, pod["metadata"]["name"]) == (PODS, "create", name):
            raise ApiError(403, "Forbidden", DENIED)
        return pod

    world.server.admission.append(refuse)


def denied(pod: str, made_by: str) -> str:
    return f"cannot be made: create Pod {pod} in StatefulSet {made_by} failed error: {DENIED}"


@pytest.mark.parametrize(
    ("pod", "made_by"), [(f"{CANARY}-0", CANARY), (f"{CANARY}-0-1", f"{CANARY}-0")], ids=["leader", "worker"]
)
async def test_a_pod_that_may_not_be_made_is_told_in_the_words_of_who_refuses_it(
    world: World, pod: str, made_by: str
) -> None:
    await at_rest(world, *STEPS, progressDeadlineSeconds=120)
    deny(world, pod)
    world.set_image("v2")
    told = f"group 0 of {CANARY} {denied(pod, made_by)}"
    loading = f"0 of 1 groups of the new version ready: {told}"
    await world.until(lambda: world.condition("Reconciling")["message"] == loading, loading)
    await world.until_state("Stalled")
    message = f"no further group became ready within 120 s: {told}. {WHEN_READY}"
    assert_stalled(world, Reason.DEADLINE, message, phase="Progressing")
    (group,) = [each for each in world.status["notReadyGroups"] if each["group"]]
    assert (group["reason"], group["message"]) == ("FailedCreate", told)


@tells(
    {
        Reason.DEADLINE: f"promotion: no further group became ready within 120 s: group 3 of llama"
        f" {denied('llama-3', 'llama')}; it goes on by itself: waiting for the leader of group 3 at the new revision"
    }
)
async def test_a_pod_that_may_not_be_made_in_a_promotion_is_told_as_well(world: World) -> None:
    await at_rest(world, *STEPS, progressDeadlineSeconds=120)
    deny(world, "llama-3")
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    world.approve()
    await world.until_state("Stalled")


async def test_nobody_asks_for_events_or_workloads_while_a_release_goes_well(world: World) -> None:
    asked: set[str] = set()
    await at_rest(world)
    # What was in the way for a moment only was wanted for less than the time that anybody is asked after.
    world.checks.append(lambda world: asked.update(str(each) for each in world.view.watched))
    await mid_promotion(world)
    await world.until_state("Healthy")
    assert asked == set()


# Other clusters


COPY = (
    "LeaderWorkerSet llama is a copy that MultiKueue multikueue has made of one in another cluster, and deletes and"
    " makes anew as that one changes: change the version there, and delete this Rollout"
)


@tells({Reason.MULTIKUEUE: COPY})
async def test_a_copy_that_multikueue_made_is_left_alone(world: World) -> None:
    world.create_workload()
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"labels": {ORIGIN: "multikueue"}}})
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.until_state("Stalled")
    world.set_image("v2")
    await world.rest()
    assert_stalled(world, Reason.MULTIKUEUE, COPY, phase="Initial")
    assert_untouched(world)


def dispatched(where: str) -> str:
    return (
        f"LeaderWorkerSet llama is dispatched to {where} by MultiKueue (kueue.x-k8s.io/multikueue, Workload"
        " leaderworkerset-llama-0): its pods never run here, so a release could not be watched, and any change of its"
        " groups would restart all of them. Queue it where no admission check of MultiKueue applies, or delete this"
        " Rollout"
    )


_SEEN: dict[str, tuple[dict[str, Any], str]] = {
    "dispatched": ({"clusterName": "west"}, "cluster west"),
    "being dispatched": ({"nominatedClusterNames": ["west", "east"]}, "another cluster"),
    "to be dispatched": ({"admissionChecks": [{"name": "dispatch", "state": "Pending"}]}, "another cluster"),
}


def create_gated(world: World, *, replicas: int) -> None:
    """An LWS of which Kueue holds every pod."""
    spec = {"containers": [{"name": "vllm", "image": "vllm:v1"}], **GATED}
    template = {"metadata": {"labels": {"app": "llama"}}, "spec": spec}
    world.create_workload(replicas=replicas, leaderWorkerTemplate={"size": 2, "workerTemplate": template})
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"labels": {QUEUE_NAME: "team-a"}}})


@pytest.mark.parametrize("case", _SEEN)
async def test_an_lws_that_multikueue_dispatches_is_left_alone(world: World, case: str) -> None:
    status, where = _SEEN[case]
    install(world)
    dispatching_check(world)
    create_gated(world, replicas=2)
    await world.rest()
    queue(world, lws=NAME, **status)
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.until_state("Stalled")
    await world.rest()
    assert_stalled(world, Reason.MULTIKUEUE, dispatched(where), phase="Initial")
    assert_untouched(world)


async def test_an_lws_that_multikueue_begins_to_dispatch_is_given_its_own_strategy_back(world: World) -> None:
    install(world)
    create_gated(world, replicas=0)
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.until_state("Healthy")
    await world.rest()
    world.patch_lws({"replicas": 2})
    await world.rest()
    assert world.state == "Healthy"
    queue(world, lws=NAME, conditions=[condition("QuotaReserved", "True", "QuotaReserved")], clusterName="west")
    await world.until_state("Stalled")
    await world.rest()
    assert world.true_conditions["Stalled"]["message"] == dispatched("cluster west")
    assert world.lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] == 0


async def test_an_lws_that_runs_here_and_is_dispatched_is_not_adopted(world: World) -> None:
    install(world)
    dispatching_check(world)
    world.create_workload(replicas=2)
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"labels": {QUEUE_NAME: "team-a"}}})
    await world.rest()
    queue(world, lws=NAME, **_SEEN["to be dispatched"][0])
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.until_state("Stalled")
    assert_stalled(world, Reason.MULTIKUEUE, dispatched("another cluster"), phase="Initial")
    assert_untouched(world)


async def test_a_new_lws_is_not_adopted_before_its_workloads_name_their_checks(world: World) -> None:
    install(world)
    dispatching_check(world)
    world.create_rollout(*STEPS)
    world.start_controller()
    create_gated(world, replicas=2)
    await world.sleep(1)
    queue(world, lws=NAME)
    await world.sleep(1)
    assert_untouched(world)
    queue(world, 1, lws=NAME, **_SEEN["to be dispatched"][0])
    await world.until_state("Stalled")
    assert_untouched(world)


async def test_no_group_is_made_for_an_lws_whose_queue_dispatches_since_it_was_adopted(world: World) -> None:
    install(world)
    dispatching_check(world)
    await at_rest(world)
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"labels": {QUEUE_NAME: "team-a"}}})
    queue(world, lws=NAME, clusterName="west", **_SEEN["to be dispatched"][0])
    await world.rest()
    assert world.state == "Healthy"
    world.set_image("v2")
    await world.until_state("Stalled")
    assert world.true_conditions["Stalled"]["message"] == dispatched("cluster west")
    assert not [each for each in world.writes if each.name == CANARY]


async def test_an_lws_that_kueue_queues_in_this_cluster_is_released_as_any(world: World) -> None:
    install(world)
    dispatching_check(world)
    await at_rest(world)
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"labels": {QUEUE_NAME: "team-a"}}})
    apply(world, **GATED)
    await world.until_state("WaitingForQuota")
    canary = world.get(LEADER_WORKER_SETS, CANARY)
    assert canary is not None
    assert canary["metadata"]["labels"][QUEUE_NAME] == "team-a"
