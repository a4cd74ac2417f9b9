"""Which changes of a status are worth a write, and which can wait for the next one."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.api import (
    CanaryStatus,
    Condition,
    NotReadyGroup,
    Phase,
    RestartRecord,
    RolloutStatus,
    StepRecord,
    Summary,
    TimelineEntry,
    VerdictRecord,
)
from rollout_lws.rollout.status.throttle import projection
from tests.workload.build import NOW

FIRST = RestartRecord(workload="llama", group="0", uid="u1")
LOADING = NotReadyGroup(workload="llama", group="0", reason="NotReady", message="pod llama-0 is Pending")
PULLING = NotReadyGroup(workload="llama", group="0", reason="ImagePullBackOff", message="pod llama-0: no such image")
STALLED = Condition(type="Stalled", status="True", reason="InvalidSpec", message="steps decrease")
WORN = Condition(type="Stalled", status="True", reason="GroupKeepsRestarting", message="rebuilt 3 times")
CHURN = VerdictRecord(condition="Stalled", reason="GroupKeepsRestarting")
WINDOWS = StepRecord(partition_attempts={"0": 4})
WAITING = Condition(type="Reconciling", status="True", reason="Loading", message="1 of 2 ready")


def status(**members: Any) -> RolloutStatus:
    return RolloutStatus(**({"phase": Phase.PROGRESSING, "canary_status": CanaryStatus()} | members))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"message": "another sentence"}),
        ({"not_ready_groups": ()}, {"not_ready_groups": (LOADING,)}),
        ({"conditions": (WAITING,)}, {"conditions": (WAITING.model_copy(update={"message": "2 of 2 ready"}),)}),
        ({"conditions": (STALLED,)}, {"conditions": (STALLED.model_copy(update={"last_update_time": NOW}),)}),
        ({}, {"longest_startup_seconds": 7}),
        ({}, {"timeline": (TimelineEntry(at=NOW, step=1, state="StepUpgrade"),)}),
        ({}, {"canary_status": CanaryStatus(replicas=3, canary_replicas=1, ready_replicas=2)}),
        ({"summary": Summary(state="Loading")}, {"summary": Summary(state="Loading", new="0/1", accelerators="8")}),
        ({"restarts": (FIRST,)}, {"restarts": (FIRST, FIRST.model_copy(update={"group": "1", "uid": "u2"}))}),
        (
            {"conditions": (WORN,), "verdict": CHURN, "restarts": (FIRST,)},
            {
                "conditions": (WORN.model_copy(update={"message": "rebuilt 4 times"}),),
                "verdict": CHURN,
                "restarts": (FIRST, FIRST.model_copy(update={"uid": "u2"})),
            },
        ),
    ],
    ids=[
        "message",
        "loading group",
        "progress",
        "time",
        "load time",
        "past",
        "counts",
        "ratios",
        "first leader",
        "one more",
    ],
)
def test_what_is_on_its_way_can_wait(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert projection(status(**before)) == projection(status(**after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"phase": Phase.HEALTHY}),
        ({"not_ready_groups": (LOADING,)}, {"not_ready_groups": (PULLING,)}),
        ({"conditions": (STALLED,)}, {"conditions": (STALLED.model_copy(update={"message": "no steps"}),)}),
        ({"conditions": (WAITING,)}, {"conditions": (WAITING.model_copy(update={"reason": "Paused"}),)}),
        ({}, {"canary_status": CanaryStatus(updated_ready_replicas=1)}),
        ({"summary": Summary(state="Loading")}, {"summary": Summary(state="Pausing")}),
        ({"restarts": (FIRST,)}, {"restarts": (FIRST, FIRST.model_copy(update={"uid": "u2"}))}),
        (
            {"conditions": (WORN,), "step": WINDOWS},
            {"conditions": (WORN.model_copy(update={"message": "it is not renewed again"}),), "step": WINDOWS},
        ),
        ({}, {"observed_rollout_id": "build-7"}),
        ({}, {"canary_status": CanaryStatus(current_step_index=2)}),
    ],
    ids=[
        "phase",
        "broken group",
        "stalled",
        "reason",
        "ready group",
        "state",
        "rebuilt group",
        "last window",
        "release id",
        "step",
    ],
)
def test_what_a_person_or_a_pipeline_waits_for_is_written(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert projection(status(**before)) != projection(status(**after))


def test_at_rest_every_group_that_stops_being_ready_is_written() -> None:
    whole = status(phase=Phase.HEALTHY, canary_status=CanaryStatus(ready_replicas=4))
    broken = status(phase=Phase.HEALTHY, canary_status=CanaryStatus(ready_replicas=3))
    assert projection(whole) != projection(broken)
