"""The judgement behind `status`: which Rollout ends a wait, and with which exit code."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.cli.status.gate import Goal, Pin, judge, judge_id

PINNED = Pin(rollout_generation=2, workload_generation=41, template_hash="new")


def rollout(**status: Any) -> dict[str, Any]:
    seen = {"observedGeneration": 2, "observedWorkloadGeneration": 41, "observedTemplateHash": "new"}
    return {"metadata": {"name": "llama", "generation": 2}, "status": seen | status}


def code(goal: str, **status: Any) -> int | None:
    verdict = judge(rollout(**status), Goal.parse(goal), PINNED)
    return None if verdict is None else verdict.code


HEALTHY = {"phase": "Healthy", "stable": {"templateHash": "new"}}
PAUSED = {
    "phase": "Progressing",
    "currentStepIndex": 2,
    "currentStepState": "StepPaused",
    "summary": {"state": "AwaitingApproval"},
}
LOADING = {
    "phase": "Progressing",
    "currentStepIndex": 2,
    "currentStepState": "StepUpgrade",
    "summary": {"state": "Loading"},
}
STALLED = LOADING | {
    "conditions": [{"type": "Stalled", "status": "True", "reason": "DeadlineExceeded", "observedGeneration": 2}]
}


@pytest.mark.parametrize(
    ("goal", "status", "expected"),
    [
        ("healthy", HEALTHY, 0),
        ("healthy", LOADING, None),
        ("healthy", PAUSED, 5),
        ("healthy", PAUSED | {"summary": {"state": "Pausing"}}, None),
        ("healthy", PAUSED | {"requestedAction": {"type": "Approve", "id": "1"}}, None),
        ("healthy", {"phase": "Aborted"}, 3),
        ("healthy", STALLED, 3),
        ("healthy", {"phase": "Healthy", "stable": {"templateHash": "old"}}, None),
        ("paused", PAUSED, 0),
        ("paused", LOADING, None),
        ("paused", HEALTHY, 3),
        ("aborted", {"phase": "Aborted"}, 0),
        ("aborted", STALLED, None),
        ("aborted", HEALTHY, 3),
        ("step=1", LOADING, 0),
        ("step=2", LOADING, None),
        ("step=2", PAUSED, 0),
        ("step=3", PAUSED, None),
        ("step=3", HEALTHY, 0),
    ],
)
def test_a_state_ends_the_wait_with_its_code(goal: str, status: dict[str, Any], expected: int | None) -> None:
    assert code(goal, **status) == expected


@pytest.mark.parametrize("older", [{"observedGeneration": 1}, {"observedWorkloadGeneration": 40}])
def test_nothing_is_said_from_a_status_older_than_what_was_applied(older: dict[str, int]) -> None:
    assert code("healthy", **(HEALTHY | older)) is None


def test_another_version_seen_later_is_superseded_whatever_it_does() -> None:
    assert code("healthy", **(HEALTHY | {"observedTemplateHash": "newer", "observedWorkloadGeneration": 42})) == 6


def test_a_stalled_condition_of_an_older_generation_ends_nothing() -> None:
    old = [{"type": "Stalled", "status": "True", "reason": "DeadlineExceeded", "observedGeneration": 1}]
    assert code("healthy", **(LOADING | {"conditions": old})) is None


@pytest.mark.parametrize(
    ("phase", "reason", "goal", "expected"),
    [
        ("Initial", "WorkloadOwned", "healthy", 3),
        ("Disabled", "InvalidSpec", "paused", 3),
        ("Initial", "SecondRollout", "aborted", None),
        # Applied in another order, what is lacking comes.
        ("Initial", "WorkloadNotFound", "healthy", None),
        ("Initial", "CompanionMissing", "healthy", None),
        # Of the version before.
        ("Healthy", "RouteNotUsable", "healthy", None),
        ("Progressing", "GateFailed", "healthy", None),
    ],
)
def test_a_rollout_that_manages_nothing_is_not_waited_for(
    phase: str, reason: str, goal: str, expected: int | None
) -> None:
    told = [{"type": "Stalled", "status": "True", "reason": reason, "message": "it is so", "observedGeneration": 2}]
    assert code(goal, phase=phase, conditions=told, observedWorkloadGeneration=None) == expected


@pytest.mark.parametrize("text", ["", "ready", "step", "step=0", "step=x", "healthy=1"])
def test_a_goal_that_does_not_exist_is_refused_with_those_that_do(text: str) -> None:
    with pytest.raises(ValueError, match="healthy, paused, step=N or aborted"):
        Goal.parse(text)


@pytest.mark.parametrize(
    ("observed", "generation", "verdict"),
    [
        ("new", 41, 0),
        ("other", 41, 0),
        ("new", 42, 0),
        ("other", 42, 6),
    ],
    ids=["pinned", "another hash", "scaled", "edited"],
)
def test_an_edit_of_the_version_supersedes_and_an_unchanged_spec_never_does(
    observed: str, generation: int, verdict: int
) -> None:
    seen = rollout(
        phase="Healthy",
        observedTemplateHash=observed,
        observedWorkloadGeneration=generation,
        stable={"templateHash": observed},
    )
    found = judge(seen, Goal("healthy"), PINNED)
    assert found is not None and found.code == verdict


def test_healthy_with_another_version_is_no_end() -> None:
    assert code("healthy", phase="Healthy", stable={"templateHash": "before"}) is None


QUOTA = LOADING | {"summary": {"state": "WaitingForQuota"}, "message": "quota team-a is used up"}
NO_NODE = LOADING | {"summary": {"state": "WaitingForAccelerators"}}


@pytest.mark.parametrize(
    ("goal", "status", "expected"),
    [
        ("healthy", QUOTA, 7),
        ("healthy", NO_NODE, 7),
        ("paused", QUOTA, 7),
        ("step=2", QUOTA, 7),
        ("step=1", QUOTA, 0),
        ("aborted", QUOTA, None),
        ("healthy", LOADING, None),
        ("healthy", QUOTA | {"conditions": STALLED["conditions"]}, 3),
        ("healthy", QUOTA | {"observedWorkloadGeneration": 40}, None),
    ],
)
def test_waiting_for_capacity_ends_a_wait_that_wants_that(
    goal: str, status: dict[str, Any], expected: int | None
) -> None:
    verdict = judge(rollout(**status), Goal.parse(goal), PINNED, fail_on_capacity=True)
    assert (None if verdict is None else verdict.code) == expected
    assert code(goal, **status) == (None if expected == 7 else expected)


def test_a_wait_for_capacity_says_what_it_waits_for() -> None:
    verdict = judge(rollout(**QUOTA), Goal("healthy"), PINNED, fail_on_capacity=True)
    assert verdict is not None
    assert verdict.text == "rollout/llama waits for capacity: quota team-a is used up"


@pytest.mark.parametrize(
    ("told", "carried", "known", "superseded"),
    [
        ("b2", "b2", False, False),
        ("b1", "b2", False, False),
        ("b1", "b2", True, False),
        ("b1", "b1", False, False),
        ("b1", "b1", True, True),
        ("b2", "b3", False, True),
        ("b3", "b3", True, True),
        ("b3", "b3", False, False),
        ("", "", False, False),
        ("b2", "", False, False),
        ("9f6d", "", True, True),
    ],
    ids=[
        "there",
        "not seen yet",
        "not seen yet, and looked again",
        "not applied yet",
        "the one before again",
        "the next is applied already",
        "the next is on",
        "an id that nobody knows",
        "no controller, no id",
        "a revision for an id",
        "the id was taken away",
    ],
)
def test_an_id_is_superseded_when_it_was_there_and_another_is(
    told: str, carried: str, known: bool, superseded: bool
) -> None:
    labels = {"g/rollout-id": carried} if carried else {}
    seen = rollout(observedRolloutID=told)
    verdict = judge_id(seen, {"metadata": {"labels": labels}}, "g", "b2", known=known)
    assert (verdict is not None and verdict.code == 6) is superseded


def test_an_id_may_stand_in_an_annotation() -> None:
    workload = {"metadata": {"annotations": {"g/rollout-id": "b3"}}}
    verdict = judge_id(rollout(observedRolloutID="b2"), workload, "g", "b2", known=True)
    assert verdict is not None and verdict.text == "rollout/llama: release b3 took the place of b2"


def test_an_lws_that_was_made_anew_is_not_waited_for() -> None:
    """Its generations begin again at 1, so nothing would ever be seen of the pinned one."""
    pinned = Pin(1, 41, "h", ("old", ""))
    about = rollout(observedWorkloadGeneration=1, stable={"workloadUID": "new"})
    about["spec"] = {"workloadRef": {"name": "llama"}}
    verdict = judge(about, Goal("healthy"), pinned)
    assert verdict is not None and (verdict.code, verdict.word) == (6, "superseded")
    known = rollout(observedWorkloadGeneration=40, stable={"workloadUID": "old"})
    assert judge(known, Goal("healthy"), pinned) is None


def test_one_that_was_made_anew_before_the_gate_began_is_waited_for() -> None:
    before = rollout(observedWorkloadGeneration=0, stable={"workloadUID": "old"})
    assert judge(before, Goal("healthy"), Pin(1, 1, "h", ("new", "old"))) is None
