"""When a release does not get on: deadlines, and waits for room that are nobody's fault."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from rollout_lws.api import FinalisingRecord, StepRecord, SummaryState, VerdictRecord
from rollout_lws.objects.meta import Condition
from rollout_lws.objects.workloads import PodSpec, SchedulingGate
from rollout_lws.rollout.groups.health import deadline_passed, keep_clock, waits_for_capacity
from rollout_lws.rollout.reasons import Reason
from tests.rollout.build import canary, draft, in_step, rollout
from tests.workload.build import NEW, NOW, pod


def unscheduled(reason: str, index: int = 0) -> Any:
    condition = Condition(type="PodScheduled", status="False", reason=reason, message="no room")
    return pod(index, revision=NEW, since=None, workload="llama-canary", conditions=(condition,))


def test_a_pod_that_fits_nowhere_waits_for_accelerators() -> None:
    told = waits_for_capacity(draft(rollout(status=in_step()), canary=canary(unscheduled("Unschedulable"))))
    assert told is not None
    assert told[:2] == (Reason.WAITING_FOR_ACCELERATORS, SummaryState.WAITING_FOR_ACCELERATORS)
    assert told[2] == "waiting for accelerators: pod llama-canary-0 (leader) is not scheduled: no room"


def test_a_gated_pod_waits_for_quota_only_while_nothing_else_is_wrong() -> None:
    gates = PodSpec(scheduling_gates=(SchedulingGate("example.com/budget"),))
    gated, loading = (
        replace(unscheduled("SchedulingGated"), spec=gates),
        pod(1, revision=NEW, since=None, workload="llama-canary"),
    )
    alone = waits_for_capacity(draft(rollout(status=in_step()), canary=canary(gated)))
    assert alone is not None
    assert alone[0] is Reason.WAITING_FOR_QUOTA
    assert waits_for_capacity(draft(rollout(status=in_step()), canary=canary(gated, loading))) is None


def told(reason: Reason) -> VerdictRecord:
    return VerdictRecord(condition="Reconciling", reason=reason)


def late(status: dict[str, Any], **strategy: Any) -> Any:
    d = draft(
        rollout(status=status, **strategy), canary=canary(pod(0, revision=NEW, since=None, workload="llama-canary"))
    )
    d = keep_clock(d, None)
    return deadline_passed(d, None), d.wake_at


def ago(seconds: float) -> Any:
    return NOW - timedelta(seconds=seconds)


def test_a_deadline_wakes_at_its_exact_moment_and_not_before() -> None:
    step = StepRecord(started_at=ago(50))
    assert late(in_step(step=step), progressDeadlineSeconds=60) == (None, NOW + timedelta(seconds=10))


def test_a_deadline_names_what_is_waited_for() -> None:
    found, _ = late(in_step(step=StepRecord(started_at=ago(60))), progressDeadlineSeconds=60)
    assert found == (
        Reason.DEADLINE,
        "no further group became ready within 60 s: pod llama-canary-0 (leader) is not ready",
    )


@pytest.mark.parametrize(
    "status",
    [
        in_step(step=StepRecord(started_at=ago(100), best_ready_at=ago(50))),
        in_step(
            step=StepRecord(started_at=ago(100)), finalising=FinalisingRecord(reason="s", task="CleanUp", since=ago(50))
        ),
        in_step(step=StepRecord(started_at=ago(100), waiting_since=ago(5)), verdict=told(Reason.WAITING_FOR_QUOTA)),
        in_step(step=StepRecord(started_at=ago(100)), verdict=told(Reason.AWAITING_APPROVAL)),
    ],
    ids=["a further group", "another task", "a wait for room", "a wait for approval"],
)
def test_the_clock_starts_anew_with(status: dict[str, Any]) -> None:
    assert late(status, progressDeadlineSeconds=60)[0] is None


def test_a_moment_without_room_does_not_stop_the_clock() -> None:
    step = StepRecord(started_at=ago(100), waiting_since=ago(4.9))
    assert late(in_step(step=step, verdict=told(Reason.WAITING_FOR_QUOTA)), progressDeadlineSeconds=60)[0]


def test_without_a_deadline_of_its_own_a_step_gets_an_hour() -> None:
    assert late(in_step(step=StepRecord(started_at=ago(3599))))[0] is None
    assert late(in_step(step=StepRecord(started_at=ago(3600))))[0] is not None


@pytest.mark.parametrize(("waited", "passed"), [(299, False), (300, True)])
def test_waiting_for_room_is_bounded_only_by_its_own_deadline(waited: float, passed: bool) -> None:
    state = SummaryState.WAITING_FOR_ACCELERATORS
    capacity = (Reason.WAITING_FOR_ACCELERATORS, state, "waiting for accelerators: no room.")
    status = in_step(step=StepRecord(started_at=ago(9999), waiting_since=ago(waited)))
    bounded = draft(rollout(status=status, capacityDeadlineSeconds=300, progressDeadlineSeconds=1))
    message = "waiting for accelerators: no room, for more than 300 s"
    assert deadline_passed(bounded, capacity) == ((Reason.CAPACITY_DEADLINE, message) if passed else None)
    unbounded = draft(rollout(status=status, progressDeadlineSeconds=1))
    assert deadline_passed(unbounded, capacity) is None
