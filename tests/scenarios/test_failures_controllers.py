"""Controllers that do not act, or may not: told as that, and nothing is touched that a release could not watch."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS
from rollout_lws.rollout.reasons import Reason
from rollout_lws.sandbox.apiserver import Operation
from tests.scenarios.failures import WHEN_READY
from tests.scenarios.stories import CANARY, STEPS, at_rest, mid_promotion
from tests.scenarios.told import assert_stalled, tells
from tests.scenarios.world import World

pytestmark = pytest.mark.looptime


# The LeaderWorkerSet controller


SILENT = (
    "the LeaderWorkerSet controller has not acted on llama for 60 s: is it running? kubectl get pods -n lws-system. If"
    " it is, the Events of llama say why: kubectl describe leaderworkerset llama -n default"
)


@tells(
    {
        Reason.WORKLOAD_UNRESPONSIVE: SILENT,
        Reason.WAITING_FOR_WORKLOAD: "waiting for the LeaderWorkerSet controller to act on llama",
    }
)
async def test_a_new_version_that_the_lws_controller_never_sees_is_told_after_a_minute(world: World) -> None:
    await at_rest(world)
    world.cluster.runner.stop()
    world.set_image("v2")
    changed = world.now
    await world.until_state("Stalled")
    assert (world.now - changed).total_seconds() == pytest.approx(60, abs=1)
    assert_stalled(world, Reason.WORKLOAD_UNRESPONSIVE, SILENT, phase="Healthy")
    world.cluster.runner.start()
    await world.until_state("Pausing")


@tells({Reason.WORKLOAD_UNRESPONSIVE: SILENT})
async def test_an_lws_that_was_never_acted_on_is_told_before_it_is_adopted(world: World) -> None:
    world.cluster.runner.stop()
    world.create_workload()
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.until_state("Stalled")
    assert_stalled(world, Reason.WORKLOAD_UNRESPONSIVE, SILENT, phase="Initial")


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
    " last change; if that lasts, is it running? kubectl get pods -n lws-system; it goes on by itself: renewing group 3"
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
        f" {denied('llama-3', 'llama')}; it goes on by itself: renewing group 3"
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
