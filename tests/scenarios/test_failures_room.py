"""No room and no quota are nobody's fault: told apart from each other and from a version that fails, waited for without
a deadline of their own unless one is asked for.
"""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import KUEUE_WORKLOADS, KUEUE_WORKLOADS_BEFORE, NODES
from rollout_lws.rollout.reasons import EventReason, Reason
from tests.scenarios.failures import V1, WHEN_READY, apply, cordon, kill, pods
from tests.scenarios.kueue import GATE, GATED, admit, condition, install, queue
from tests.scenarios.shell import ShellWorld
from tests.scenarios.stories import CANARY, STEPS, at_rest, mid_promotion
from tests.scenarios.told import assert_stalled, tells
from tests.scenarios.world import World

pytestmark = pytest.mark.looptime

#: A step's deadline must not end a wait for room.
LIMITS: dict[str, Any] = {"progressDeadlineSeconds": 60}
FULL = "waiting for accelerators: pod llama-canary-0 (leader) is not scheduled: 0/8 nodes are available: 8 Insufficient"
FULL += " nvidia.com/gpu"


# The scheduler's


@tells(
    {
        Reason.WAITING_FOR_ACCELERATORS: f"{FULL}.",
        Reason.CAPACITY_DEADLINE: f"{FULL}, for more than 300 s. {WHEN_READY}",
    }
)
async def test_missing_accelerators_are_waited_for_as_long_as_the_capacity_deadline_allows(world: World) -> None:
    await at_rest(world, *STEPS, capacityDeadlineSeconds=300, **LIMITS)
    apply(world, faults={"fail": "Unschedulable"})
    await world.until_state("WaitingForAccelerators")
    await world.sleep(200)
    assert world.state == "WaitingForAccelerators"
    await world.until_state("Stalled", seconds=150)


@tells(
    {
        Reason.ABORTED: f"release cdgfdjgldd was aborted ({FULL}, for more than 300 s); revision {V1} serves. Apply"
        " another version, or start this one again: kubectl rollout-lws retry llama"
    },
    {EventReason.ROLLING_BACK: f"back to the stable version: {FULL}, for more than 300 s"},
)
async def test_a_capacity_deadline_ends_the_release_where_failures_abort(world: World) -> None:
    await at_rest(world, *STEPS, capacityDeadlineSeconds=300, onFailure="Abort", **LIMITS)
    apply(world, faults={"fail": "Unschedulable"})
    await world.until_state("Aborted")


CORDONED = (
    "promotion: waiting for accelerators: pod llama-3 (leader) is not scheduled: 0/8 nodes are available: 8 node(s)"
    " were unschedulable"
)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("on_failure", ["Pause", "Abort"])
@tells(
    {
        Reason.WAITING_FOR_ACCELERATORS: f"{CORDONED}; renewing group 3",
        Reason.CAPACITY_DEADLINE: f"{CORDONED}, for more than 300 s; it goes on by itself: renewing group 3",
    }
)
async def test_a_promotion_waits_for_room_as_well_and_is_never_ended_by_it(world: World, on_failure: str) -> None:
    await at_rest(world, *STEPS, capacityDeadlineSeconds=300, onFailure=on_failure, **LIMITS)
    await mid_promotion(world)
    cordon(world)
    await world.until_state("WaitingForAccelerators")
    await world.until_state("Stalled")
    assert world.status["phase"] == "Progressing"
    for node in world.server.list(NODES):
        body = {"spec": {"unschedulable": None}}
        world.server.patch(NODES, "", node["metadata"]["name"], body, "application/merge-patch+json")
    await world.until_state("Healthy")


# Quotas


@tells(
    {
        Reason.WAITING_FOR_QUOTA: "waiting for quota: group 0 of llama-canary cannot be made: create Pod llama-canary-0"
        ' in StatefulSet llama-canary failed error: pods "llama-canary-0" is forbidden: exceeded quota: accelerators,'
        " requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=64, limited: requests.nvidia.com/gpu=64"
    }
)
async def test_a_resource_quota_that_is_used_up_is_waited_for(world: World) -> None:
    await at_rest(world, *STEPS, **LIMITS)
    apply(world, faults={"fail": "FailedCreate"})
    await world.until_state("WaitingForQuota")
    await world.sleep(3600)
    assert world.state == "WaitingForQuota"


@tells(
    {
        Reason.WAITING_FOR_QUOTA: "waiting for quota: pod llama-canary-0 (leader) is held by scheduling gate"
        " example.com/budget"
    }
)
async def test_a_gate_of_anybody_is_told_by_its_name(world: World) -> None:
    await at_rest(world, *STEPS, **LIMITS)
    apply(world, schedulingGates=[{"name": "example.com/budget"}])
    await world.until_state("WaitingForQuota")


@tells({Reason.WAITING_FOR_QUOTA: f"waiting for quota: pod llama-canary-0 (leader) is held by scheduling gate {GATE}"})
async def test_without_kueues_kinds_its_gate_is_told(world: World) -> None:
    await at_rest(world, *STEPS, **LIMITS)
    apply(world, **GATED)
    await world.until_state("WaitingForQuota")
    await world.sleep(3600)
    assert world.state == "WaitingForQuota"


NAMED = f"Workload leaderworkerset-{CANARY}-0"
NO_QUOTA = "insufficient unused quota for nvidia.com/gpu in flavor a100, 8 more needed"
#: Kueue's Workload of a group, and what is said of it; the last says whether that is a wait.
QUEUED: dict[str, tuple[dict[str, Any], str, bool]] = {
    "no quota": (
        {"conditions": [condition("QuotaReserved", "False", "WaitingForQuota", NO_QUOTA)]},
        f"waits in Kueue: {NAMED}, WaitingForQuota: {NO_QUOTA}",
        True,
    ),
    "not judged yet": ({}, f"waits in Kueue: {NAMED}", True),
    "too big": (
        {"conditions": [condition("QuotaReserved", "False", "ExceedsMaxQuota", "needs 64, the queue has 32")]},
        f"cannot be admitted by Kueue as it is, and waiting will not fix that: {NAMED}, ExceedsMaxQuota: needs 64, the"
        " queue has 32",
        True,
    ),
    "held": (
        {"conditions": [condition("QuotaReserved", "False", "OnHold", "the ClusterQueue is on hold")]},
        f"is held back by Kueue: {NAMED}, OnHold: the ClusterQueue is on hold",
        True,
    ),
    "evicted": (
        {
            "conditions": [condition("Evicted", "True", "Preempted", "Preempted to accommodate a workload")],
            "requeueState": {"requeueAt": "2026-01-01T01:00:00Z"},
        },
        f"was evicted by Kueue, Preempted: Preempted to accommodate a workload ({NAMED}); it is queued again at"
        " 01:00:00 UTC",
        True,
    ),
    "checks": (
        {
            "conditions": [condition("QuotaReserved", "True", "QuotaReserved")],
            "admissionChecks": [{"name": "capacity", "state": "Pending", "message": "nodes are being provisioned"}],
        },
        f"has its quota and waits for admission checks of Kueue ({NAMED}): capacity is Pending: nodes are being"
        " provisioned",
        True,
    ),
    "rejected": (
        {"admissionChecks": [{"name": "capacity", "state": "Rejected", "message": "no such machines"}]},
        f"is rejected by Kueue's admission check capacity ({NAMED}): no such machines",
        False,
    ),
    "deactivated": (
        {
            "conditions": [condition("Evicted", "True", "DeactivatedDueToRequeuingLimitExceeded", "exceeded 3 tries")],
            "spec": {"active": False},
        },
        "is deactivated in Kueue, DeactivatedDueToRequeuingLimitExceeded: exceeded 3 tries: set spec.active of"
        f" {NAMED} to true",
        False,
    ),
    "given up": (
        {"conditions": [condition("Finished", "True", "OutOfSync", "the group has another shape")]},
        f"was given up by Kueue: {NAMED} is Finished, OutOfSync: the group has another shape",
        False,
    ),
}


@pytest.mark.parametrize("case", QUEUED)
async def test_what_kueue_says_of_a_group_is_told_and_waited_for_where_waiting_helps(world: World, case: str) -> None:
    status, words, is_wait = QUEUED[case]
    install(world)
    await at_rest(world, *STEPS, **LIMITS)
    apply(world, **GATED)
    await world.until(lambda: bool(pods(world)))
    queue(world, **status)
    told = f"group 0 of {CANARY} {words}"
    if is_wait:
        await world.until(lambda: world.condition("Reconciling")["message"] == f"waiting for quota: {told}", told)
        await world.sleep(3600)
        assert world.state == "WaitingForQuota"
    else:
        await world.until_state("Stalled")
        message = f"no further group became ready within 60 s: {told}. {WHEN_READY}"
        assert_stalled(world, Reason.DEADLINE, message, phase="Progressing")


@tells(
    {
        Reason.WAITING_FOR_QUOTA: f"waiting for quota: group 0 of {CANARY} has no Workload of Kueue yet; if that lasts,"
        " is Kueue running? kubectl get pods -n kueue-system"
    }
)
async def test_a_group_of_which_kueue_knows_nothing_while_it_knows_another(world: World) -> None:
    install(world)
    await at_rest(world, {"replicas": 2, "pause": {}}, {"replicas": "100%"}, **LIMITS)
    apply(world, **GATED)
    await world.until(lambda: bool(pods(world)))
    queue(world, 1, conditions=[condition("QuotaReserved", "False", "WaitingForQuota", NO_QUOTA)])
    await world.until_state("WaitingForQuota")
    await world.sleep(60)


async def test_kueue_may_take_seconds_to_judge_a_group(world: World) -> None:
    install(world)
    await at_rest(world, {"replicas": 1, "pause": {}}, {"replicas": "100%"}, **LIMITS)
    apply(world, **GATED)
    await world.until(lambda: bool(pods(world)))
    states: set[str] = set()
    world.checks.append(lambda world: states.add(world.state))
    await world.sleep(2)
    queue(world)
    await world.sleep(2.5)
    status = {
        "conditions": [condition("QuotaReserved", "True", "QuotaReserved"), condition("Admitted", "True", "Admitted")]
    }
    world.patch(KUEUE_WORKLOADS, f"leaderworkerset-{CANARY}-0", {"status": status}, "status")
    await world.sleep(3)
    for _ in range(2):
        admit(world)
        await world.rest()
    assert world.state == "AwaitingApproval"
    assert "WaitingForQuota" not in states


async def test_without_the_right_to_list_workloads_the_gate_is_told_of_a_group_that_is_not_new(world: World) -> None:
    await at_rest(world, *STEPS, **LIMITS)
    apply(world, **GATED)
    await world.until(lambda: bool(pods(world)))
    await world.sleep(4)
    assert world.state == "Loading"
    await world.sleep(1.5)
    assert world.state == "WaitingForQuota"


GIVEN_UP = (
    "Kueue gave group 0 of llama-canary up 1 time: it was not ready within Kueue's own timeout (waitForPodsReady)"
)


async def given_up(world: World, **strategy: Any) -> None:
    """The first group of a release has its quota, its worker does not come, and Kueue gives it up."""
    install(world)
    await at_rest(world, *STEPS, **strategy)
    apply(world, **GATED)
    await world.until(lambda: bool(pods(world)))
    admitted = [condition("QuotaReserved", "True", "QuotaReserved"), condition("Admitted", "True", "Admitted")]
    queue(world, conditions=admitted)
    admit(world)
    await world.sleep(1800)
    assert world.state == "Loading"
    evicted = {
        "conditions": [condition("Evicted", "True", "PodsReadyTimeout", "Exceeded the PodsReady timeout")],
        "schedulingStats": {"evictions": [{"reason": "PodsReadyTimeout", "count": 1}]},
    }
    world.patch(KUEUE_WORKLOADS, f"leaderworkerset-{CANARY}-0", {"status": evicted}, "status")


@tells({Reason.DEADLINE: f"{GIVEN_UP}. {WHEN_READY}"})
async def test_a_group_that_kueue_gives_up_fails_the_step_before_its_deadline(world: World) -> None:
    await given_up(world)
    await world.until_state("Stalled", seconds=2)
    assert_stalled(world, Reason.DEADLINE, f"{GIVEN_UP}. {WHEN_READY}", phase="Progressing")
    (told,) = world.status["notReadyGroups"]
    assert told["reason"] == "GivenUpByKueue"
    # Kueue deletes its pods: the group has failed also while it has no leader.
    states: set[str] = set()
    world.checks.append(lambda seen: states.add(seen.state))
    await kill(world, f"{CANARY}-0")
    assert states == {"Stalled"}
    world.checks.clear()
    # Admitted again it has failed all the same, until a person has it tried anew.
    admitted = [condition("QuotaReserved", "True", "QuotaReserved"), condition("Admitted", "True", "Admitted")]
    world.patch(KUEUE_WORKLOADS, f"leaderworkerset-{CANARY}-0", {"status": {"conditions": admitted}}, "status")
    await world.rest()
    assert world.state == "Stalled"
    world.request("Retry")
    await world.rest()
    assert world.state == "Loading"


async def test_a_group_that_kueue_gives_up_ends_the_release_where_failures_abort(world: World) -> None:
    await given_up(world, onFailure="Abort")
    await world.until_state("Aborted", seconds=60)
    assert GIVEN_UP in world.true_conditions["Stalled"]["message"]


async def test_a_release_goes_on_when_kueue_admits_its_groups(world: World) -> None:
    install(world)
    await at_rest(world, {"replicas": 1, "pause": {}}, {"replicas": "100%"}, **LIMITS)
    apply(world, **GATED)
    await world.until(lambda: bool(pods(world)))
    queue(world, conditions=[condition("QuotaReserved", "False", "WaitingForQuota", NO_QUOTA)])
    await world.until_state("WaitingForQuota")
    await world.sleep(1800)
    for _ in range(2):
        # The worker comes with its own gate.
        admit(world)
        await world.rest()
    assert world.state == "AwaitingApproval"


async def test_the_whole_controller_asks_kueue_in_the_version_that_is_served() -> None:
    world = ShellWorld()
    install(world, KUEUE_WORKLOADS_BEFORE)
    await at_rest(world, *STEPS, **LIMITS)
    apply(world, **GATED)
    await world.until(lambda: bool(pods(world)))
    no_quota = condition("QuotaReserved", "False", "Pending", NO_QUOTA)
    queue(world, resource=KUEUE_WORKLOADS_BEFORE, conditions=[no_quota])
    told = f"waiting for quota: group 0 of {CANARY} waits in Kueue: {NAMED}, Pending: {NO_QUOTA}"
    await world.until(lambda: world.condition("Reconciling")["message"] == told, told)
    await world.gone()
    world.close()


async def test_the_whole_controller_hears_of_a_quota_that_is_used_up() -> None:
    world = ShellWorld()
    await at_rest(world, *STEPS, **LIMITS)
    apply(world, faults={"fail": "FailedCreate"})
    await world.until_state("WaitingForQuota", seconds=30)
    assert "exceeded quota: accelerators" in world.condition("Reconciling")["message"]
    await world.gone()
    world.close()
