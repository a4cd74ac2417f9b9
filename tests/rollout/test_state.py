"""Where a release is by its status."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.api import Capacity, FinalisingRecord, Phase, RolloutStatus
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout.decide import decide
from rollout_lws.rollout.reasons import Ending, Task
from rollout_lws.rollout.state import (
    CleaningUp,
    Detaching,
    Idle,
    InSteps,
    Promoting,
    ReleaseState,
    RollingBack,
    ending_of,
    state_of,
    task_of,
)
from tests.rollout.build import at_rest, canary, draft, held, rollout
from tests.workload.build import NEW, NOW, pod

ENDS = [
    each
    for ending in Ending
    for each in (
        Promoting(ending),
        RollingBack(ending, promotion=True),
        RollingBack(ending, promotion=False),
        CleaningUp(ending),
    )
]


@pytest.mark.parametrize(
    ("phase", "state"),
    [
        (None, Idle()),
        (Phase.INITIAL, Idle()),
        (Phase.HEALTHY, Idle()),
        (Phase.ABORTED, Idle()),
        (Phase.DISABLED, Idle()),
        (Phase.PROGRESSING, InSteps()),
        (Phase.TERMINATING, Detaching()),
        (Phase.DISABLING, Detaching()),
    ],
)
def test_without_an_end_the_phase_tells(phase: Phase | None, state: ReleaseState) -> None:
    assert (state_of(RolloutStatus(phase=phase)), ending_of(state)) == (state, None)


@pytest.mark.parametrize("state", ENDS, ids=lambda state: f"{type(state).__name__}-{state.ending}")
def test_an_end_is_told_by_its_words(state: Promoting | RollingBack | CleaningUp) -> None:
    record = FinalisingRecord(reason=state.ending.value, task=task_of(state).value)
    # Whatever the phase says: it follows.
    for phase in (Phase.PROGRESSING, Phase.HEALTHY):
        assert state_of(RolloutStatus(phase=phase, finalising=record)) == state
    assert ending_of(state) is state.ending


@pytest.mark.parametrize(("reason", "task"), [("Success", "Explode"), ("Because", Task.PROMOTE.value), ("", "")])
@pytest.mark.parametrize(
    ("capacity", "promotion"),
    [(None, True), (Capacity.EXTRA_WORKLOAD, True), (Capacity.IN_PLACE, False), (Capacity.SURGE, False)],
)
def test_words_that_others_have_written_promote_nothing(reason: str, task: str, capacity: Any, promotion: bool) -> None:
    status = RolloutStatus(
        phase=Phase.PROGRESSING, capacity=capacity, finalising=FinalisingRecord(reason=reason, task=task)
    )
    assert state_of(status) == RollingBack(Ending.CONTINUOUS, promotion=promotion)


@pytest.mark.parametrize(
    ("task", "replicas"), [(Task.ROLL_BACK_STEPS, 4), (Task.PROMOTE, 0)], ids=["turned round", "without groups"]
)
def test_a_phase_that_others_have_written_is_put_right_by_what_ends_a_release(task: Task, replicas: int) -> None:
    ending = FinalisingRecord(reason=Ending.SUCCESS.value, task=task.value, since=NOW)
    # Its canary goes first, so it does not end at once.
    seen = draft(rollout(status=at_rest(finalising=ending)), stable=held(replicas), canary=canary(pod(0, revision=NEW)))
    told = [each.body["status"] for each in decide(seen.o).writes if isinstance(each, Patch) and each.subresource]
    assert [status["phase"] for status in told] == [Phase.PROGRESSING]
