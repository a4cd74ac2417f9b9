"""Groups that are rebuilt again and again: found out in a step, at an approval and in a promotion, and told as what
they are; what a node or the release itself takes away is not held against a version.
"""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import PODS
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.rollout.status.throttle import OUTDATED_SECONDS
from rollout_lws.sandbox.behaviours.faults import PREFIX
from tests.scenarios.failures import GO_BACK, V1, apply, kill, lose, pods
from tests.scenarios.stories import CANARY, STEPS, at_rest, waiting_for_approval
from tests.scenarios.told import tells
from tests.scenarios.world import World

pytestmark = pytest.mark.looptime

#: One group, and a person.
ONE = ({"replicas": 1, "pause": {}}, {"replicas": "100%"})


@tells(
    {
        Reason.CHURN: "group 0 of llama-canary was rebuilt 3 times: pod llama-canary-0 (leader) container vllm ended"
        f" last with OOMKilled (exit 137). The release waits, it goes on at 00:10:05 UTC if no group is rebuilt until"
        f" then; {GO_BACK}"
    }
)
async def test_a_group_that_runs_out_of_memory_again_and_again_is_told_with_the_kubelets_words(world: World) -> None:
    await at_rest(world)
    apply(world, faults={"fail": "OOMKilled"})
    await world.until_state("Stalled")
    # Not the deadline has found that out.
    assert (world.now.minute, world.status["currentStepIndex"]) == (0, 1)


@tells(
    {
        Reason.CHURN: "group 0 of llama-canary was rebuilt 3 times: pod llama-canary-0-1 (worker) container vllm ended"
        f" last with Error (exit 1). The release waits, it goes on at 00:10:05 UTC if no group is rebuilt until then;"
        f" {GO_BACK}"
    }
)
async def test_a_worker_that_crashes_takes_its_group_with_it_and_is_named(world: World) -> None:
    await at_rest(world)
    apply(world, faults={"fail": "CrashLoopBackOff", "fail-on": "worker"})
    await world.until_state("Stalled")
    (told,) = world.status["notReadyGroups"]
    # The leader waits for its worker: that is not why.
    assert told["message"].startswith("pod llama-canary-0-1 (worker) container vllm"), told
    # That it goes on like this is told now and then, and not with every crash.
    writes = len(world.writes)
    await world.sleep(2 * OUTDATED_SECONDS)
    assert len(world.writes) - writes <= 2
    assert world.status["message"].startswith("group 0 of llama-canary was rebuilt at least ")


BROKEN = (
    "group 0 of llama-canary was rebuilt 3 times: pod llama-canary-0 (leader) container vllm ended last with Error"
    " (exit 1)"
)


@tells(
    {
        Reason.ABORTED: f"release dlfhbbjkk was aborted ({BROKEN}); revision {V1} serves. Apply another version, or"
        " start this one again: kubectl rollout-lws retry llama"
    },
    {
        EventReason.ROLLING_BACK: f"back to the stable version: {BROKEN}",
        EventReason.ABORTED: f"release dlfhbbjkk is aborted; revision {V1} serves",
    },
)
async def test_a_crash_loop_ends_a_release_at_once_where_failures_abort(world: World) -> None:
    await at_rest(world, *STEPS, onFailure="Abort")
    apply(world, faults={"fail": "CrashLoopBackOff"})
    await world.until_state("Aborted", seconds=120)


RESTING = (
    "group 0 of llama-canary was rebuilt 3 times: pod llama-canary-0 (leader) container vllm ended last with Error"
    " (exit 1). The release waits, it goes on at {} UTC if no group is rebuilt until then; " + GO_BACK
)


async def crash_while_waiting(world: World) -> None:
    """The new group serves for 150 seconds each time, and an approval is awaited."""
    apply(world, faults={"crash-after": "150s"})
    await world.until_state("AwaitingApproval")


@tells({Reason.CHURN: RESTING.format("00:12:34")})
async def test_a_group_that_crashes_while_an_approval_is_awaited_is_no_batch_to_approve(world: World) -> None:
    await at_rest(world, *ONE)
    await crash_while_waiting(world)
    await world.until_state("Stalled", seconds=1200)
    await world.rest()
    assert world.groups(CANARY) == {0: "v2"}
    world.approve()
    await world.sleep(60)
    # It is ready between its crashes; that makes no group of it.
    assert (world.state, world.status["currentStepIndex"]) == ("Stalled", 1)
    for name in pods(world):
        world.patch(PODS, name, {"metadata": {"annotations": {PREFIX + "crash-after": None}}})
    approved = world.now
    await world.until_state("Healthy", seconds=900)
    assert (world.now - approved).total_seconds() > 60


@tells(
    {
        Reason.ABORTED: f"release cjccjjcdhl was aborted ({BROKEN}); revision {V1} serves. Apply another version, or"
        " start this one again: kubectl rollout-lws retry llama"
    }
)
async def test_a_crash_loop_ends_a_release_that_waits_for_approval_where_failures_abort(world: World) -> None:
    await at_rest(world, *ONE, onFailure="Abort")
    await crash_while_waiting(world)
    await world.until_state("Aborted", seconds=1200)
    await world.rest()
    assert world.groups() == dict.fromkeys(range(4), "v1")


async def test_a_tolerated_group_may_crash_for_ever(world: World) -> None:
    await at_rest(world, {"replicas": 2, "pause": {}}, {"replicas": "100%"}, canary={"failureThreshold": 1})
    apply(world, faults={"fail": "CrashLoopBackOff", "fail-on": f"{CANARY}-1", "crash-after": "5s"})
    await world.until_state("AwaitingApproval")
    await world.sleep(30)
    assert world.state == "AwaitingApproval"


IN_PROMOTION = (
    "promotion: group 0 of llama was rebuilt 3 times: pod llama-0 (leader) container vllm ended last with Error (exit"
    " 1); it goes on by itself: renewing group 0"
)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("on_failure", ["Pause", "Abort"])
@tells({Reason.CHURN: IN_PROMOTION})
async def test_a_promotion_tells_of_a_group_that_crashes_and_goes_on_with_it(world: World, on_failure: str) -> None:
    await at_rest(world, *ONE, onFailure=on_failure)
    apply(world, faults={"fail": "CrashLoopBackOff", "fail-on": "llama-0*"})
    await world.until_state("AwaitingApproval")
    world.approve()
    await world.until_state("Stalled")
    assert world.status["phase"] == "Progressing"
    # What failed there recovers, and the release is over: it has only waited.
    await world.until(lambda: _fixed(world), "group 0 at the new version")
    await world.until_state("Healthy", seconds=900)


@tells(
    {
        Reason.CHURN: "group 0 of llama came back at the old version 4 times: pod llama-0 (leader) container vllm ended"
        f" last with Error (exit 1). It is not renewed again; {GO_BACK}"
    }
)
async def test_a_group_that_cannot_be_renewed_stays_as_it_was(world: World) -> None:
    await at_rest(world, *ONE)
    apply(world, faults={"fail": "CrashLoopBackOff", "fail-on": "llama-0*"})
    await world.until_state("AwaitingApproval")
    world.approve()
    await world.until_state("Stalled")
    await world.rest(10)
    assert world.groups() == {0: "v1", 1: "v2", 2: "v2", 3: "v2"}


def _fixed(world: World) -> bool:
    """Take the fault off the pods of group 0 as they come; True once they are ready."""
    for name in ("llama-0", "llama-0-1"):
        pod = world.get(PODS, name)
        if pod is not None and PREFIX + "fail" in pod["metadata"]["annotations"]:
            world.patch(PODS, name, {"metadata": {"annotations": {PREFIX + "fail": None}}})
    return world.groups().get(0) == "v2"


#: Whatever takes a node's pods says so in these words.
_OTHER_REASONS = ("EvictionByEvictionAPI", "TerminationByKubelet")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("pod", ["llama-canary-0", "llama-canary-0-1"], ids=["leader", "worker"])
@pytest.mark.parametrize(
    "reason",
    ["DeletionByTaintManager", *(pytest.param(each, marks=pytest.mark.long) for each in _OTHER_REASONS)],
)
async def test_a_group_that_is_lost_with_its_node_has_not_failed(world: World, pod: str, reason: str) -> None:
    await at_rest(world, *ONE)
    await waiting_for_approval(world)
    for _ in range(5):
        await lose(world, pod, reason=reason)
    assert world.state == "AwaitingApproval"
    assert len(world.status["restarts"]) == 1


async def test_a_group_that_is_only_gone_has_failed_whoever_took_it(world: World) -> None:
    await at_rest(world, *ONE)
    await waiting_for_approval(world)
    for _ in range(2):
        await kill(world, "llama-canary-0")
    assert world.state == "AwaitingApproval"
    await kill(world, "llama-canary-0")
    assert (world.state, world.condition("Stalled")["reason"]) == ("Stalled", Reason.CHURN)


async def test_a_group_that_is_rebuilt_long_before_loads_end_is_found_out_as_soon(world: World) -> None:
    """Nothing else would be told for ten minutes, and nobody knows a leader that was never on record."""
    await at_rest(world, *ONE)
    apply(world, faults={"ready-after": "600s"})
    await world.until_state("AwaitingApproval", 900)
    world.approve()
    await world.until_state("Healthy", 4000)
    apply(world, "v3", faults={"ready-after": "600s"})
    for rebuilt in range(1, 4):
        await world.until(lambda: world.leader_uids(CANARY), "a leader")
        await world.sleep(20)
        await kill(world, "llama-canary-0")
        await world.sleep(5)
        assert (world.state == "Stalled") == (rebuilt == 3), rebuilt
    assert world.condition("Stalled")["reason"] == Reason.CHURN


async def test_groups_that_the_release_takes_and_makes_again_have_not_failed(world: World) -> None:
    await at_rest(world, {"replicas": 1, "pause": {}}, {"replicas": 2, "pause": {}}, {"replicas": 3, "pause": {}})
    await waiting_for_approval(world)
    for _ in range(4):
        for step in (3, 1):
            await world.sleep(1)
            world.request("Jump", toStep=step)
            await world.until(lambda step=step: world.status["currentStepIndex"] == step)  # type: ignore[misc]
            await world.until_state("AwaitingApproval")
    assert not [record for record in world.status.get("restarts", ()) if record["group"] != "0"]


async def test_a_retry_forgets_the_rebuilds_before_it(world: World) -> None:
    await at_rest(world, *ONE)
    await waiting_for_approval(world)
    for _ in range(3):
        await kill(world, "llama-canary-0")
    assert world.state == "Stalled"
    world.request("Retry")
    await world.until_state("AwaitingApproval", seconds=10)
    await world.rest()
    assert world.state == "AwaitingApproval"
