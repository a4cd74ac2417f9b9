"""What a step has to pass: which gate answers first, and what each of them answers."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from rollout_lws.api import RestartRecord, Step, StepRecord, StepState, SummaryState
from rollout_lws.capacity.result import CapacityResult
from rollout_lws.objects.resources import SERVICES
from rollout_lws.objects.writes import Delete
from rollout_lws.rollout.decision import FieldRef
from rollout_lws.rollout.draft import Advance, Draft
from rollout_lws.rollout.gates import table
from rollout_lws.rollout.gates.base import PASSED, Answer, CurrentStep, Failed, Gate, Waiting
from rollout_lws.rollout.gates.capacity import CAPACITY, WHEN_READY, step_batch
from rollout_lws.rollout.gates.pause import PAUSE
from rollout_lws.rollout.gates.routes import DRAIN, PINS, ROUTES
from rollout_lws.rollout.reasons import Reason
from rollout_lws.rollout.routing.route_result import DONE, Routed
from tests.rollout.build import canary, draft, in_step, rollout
from tests.workload.build import NEW, NOW, pod

CANARY = "llama-canary"
PENDING = Routed(False, "HTTPRoute llama is being written")
MADE = CapacityResult(done=True)
#: Rebuilt three times within a minute.
RESTARTS = tuple(
    RestartRecord(workload=CANARY, group="0", uid=f"uid-{n}", at=NOW - timedelta(seconds=50 - n)) for n in range(4)
)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def release(*, ready: bool = True, status: dict[str, Any] | None = None, **strategy: Any) -> Draft:
    """A release in step 1, which asks for one group and has made it."""
    group = pod(0, revision=NEW, since=ago(60) if ready else None, workload=CANARY)
    status = in_step(paused=False) if status is None else status
    return draft(
        rollout(status=status, **{"steps": ({"replicas": 1}, {"replicas": 2}), **strategy}), canary=canary(group)
    )


def step_of(d: Draft, **found: Any) -> CurrentStep:
    """The current step of a release in which all that was asked for is done, but for what is ``found``."""
    given = CurrentStep(1, d.strategy.steps[0], step_batch(d), DONE, DONE, None, MADE)
    return replace(given, **found)


def judged(gate: Gate, d: Draft, **found: Any) -> tuple[Draft, Answer]:
    return gate.judge(d, step_of(d, **found))


# The order


@pytest.mark.parametrize(
    ("fixed", "state", "reason"),
    [
        ((), StepState.STEP_TRAFFIC_ROUTING, Reason.DRAINING),
        (("drained",), StepState.STEP_UPGRADE, Reason.LOADING),
        (("drained", "ready"), StepState.STEP_UPGRADE, Reason.CHURN),
        (("drained", "ready", "restarts"), StepState.STEP_TRAFFIC_ROUTING, Reason.ROUTING),
        (("drained", "ready", "restarts", "pinned"), StepState.STEP_TRAFFIC_ROUTING, Reason.ROUTE_CONFLICT),
        (("drained", "ready", "restarts", "pinned", "routed"), StepState.STEP_PAUSED, Reason.AWAITING_APPROVAL),
    ],
    ids=["drain", "capacity", "crash loops", "pins", "routes", "pause"],
)
def test_the_first_gate_that_a_step_does_not_pass_answers(
    fixed: tuple[str, ...], state: StepState, reason: Reason
) -> None:
    kept = {"restarts": ()} if "restarts" in fixed or "ready" not in fixed else {"restarts": RESTARTS}
    d = release(ready="ready" in fixed, status=in_step(paused=False, **kept))
    found = {
        "drained": Routed(False, "requests that run get a minute", timed=True),
        "pinned": PENDING,
        "routed": Routed(False, "another manager writes HTTPRoute llama", contested=True),
    }
    after, answer = table.judge(d, step_of(d, **{name: each for name, each in found.items() if name not in fixed}))
    assert isinstance(answer, Waiting | Failed)
    assert (after.sub.current_step_state, answer.reason) == (state, reason)
    assert not after.concluded, "the step machine gives the verdict"


def test_a_step_that_passes_all_gates_has_passed() -> None:
    d = release(status=in_step(), steps=({"replicas": 1, "pause": {"duration": 60}}, {"replicas": 2}))
    after, answer = table.judge(d, step_of(d))
    assert answer == PASSED
    assert after.sub == d.sub


def test_an_approval_outlasts_groups_that_are_lost() -> None:
    d = release(ready=False, status=in_step()).set_sub(current_step_state=StepState.STEP_READY)
    lost, answer = table.judge(d, step_of(d))
    assert isinstance(answer, Waiting)
    assert (answer.reason, lost.sub.current_step_state) == (Reason.LOADING, StepState.STEP_READY)
    back = release(status=in_step()).set_sub(current_step_state=StepState.STEP_READY)
    assert table.judge(back, step_of(back))[1] == PASSED


def test_an_approval_of_a_step_that_was_not_there_yet_does_not_count() -> None:
    d = release().set_sub(current_step_state=StepState.STEP_READY)
    after, answer = table.judge(d, step_of(d))
    assert isinstance(answer, Waiting)
    assert (answer.reason, after.sub.current_step_state) == (Reason.AWAITING_APPROVAL, StepState.STEP_PAUSED)


# Groups

LEFTOVER = Delete(SERVICES, "prod", CANARY, "uid-left", "left of an earlier release")


@pytest.mark.parametrize(
    ("scaled", "strategy", "expected"),
    [
        (CapacityResult(), {}, Waiting(Reason.LOADING, SummaryState.LOADING, "1 of 1 groups of the new version ready")),
        (
            CapacityResult(message="a group is being renewed"),
            {},
            Waiting(Reason.LOADING, SummaryState.LOADING, "a group is being renewed"),
        ),
        (
            CapacityResult(message="leftovers go first", preparing=True),
            {"progressDeadlineSeconds": 1},
            Waiting(Reason.PREPARING, SummaryState.LOADING, "leftovers go first"),
        ),
        (
            CapacityResult(),
            {"progressDeadlineSeconds": 30},
            Failed(Reason.DEADLINE, "no further group became ready within 30 s", WHEN_READY),
        ),
    ],
    ids=["loading", "what it does", "leftovers have no deadline", "the deadline"],
)
def test_a_step_loads_until_its_groups_are_made(
    scaled: CapacityResult, strategy: dict[str, Any], expected: Answer
) -> None:
    # The group was ready before, so the deadline's clock does not start again.
    status = in_step(step=StepRecord(started_at=ago(60), best_ready=1))
    assert judged(CAPACITY, release(status=status, **strategy), scaled=scaled)[1] == expected


@pytest.mark.parametrize(("policy", "written"), [("Pause", (LEFTOVER,)), ("Abort", ())])
def test_only_a_release_that_goes_back_starts_nothing_more_after_a_failure(policy: str, written: Any) -> None:
    status = in_step(step=StepRecord(started_at=ago(60), best_ready=1))
    d = release(status=status, progressDeadlineSeconds=30, onFailure=policy)
    after, answer = judged(CAPACITY, d, scaled=CapacityResult(writes=(LEFTOVER,)))
    assert isinstance(answer, Failed)
    assert after.writes == written


def test_a_group_that_keeps_restarting_is_named_with_the_moment_of_its_forgiveness() -> None:
    d = release(ready=False, status=in_step(restarts=RESTARTS))
    way_on = "it goes on at 12:09:11 UTC if no group is rebuilt until then"
    assert judged(CAPACITY, d)[1] == Failed(Reason.CHURN, "group 0 of llama-canary was rebuilt 3 times", way_on)


# Requests


@pytest.mark.parametrize(
    ("waits", "strategy", "expected"),
    [
        (PENDING, {}, Waiting(Reason.ROUTING, SummaryState.ROUTING, PENDING.message)),
        (
            replace(PENDING, timed=True),
            {"progressDeadlineSeconds": 1},
            Waiting(Reason.DRAINING, SummaryState.ROUTING, PENDING.message),
        ),
        (
            replace(PENDING, contested=True, field=FieldRef("spec.rules", "HTTPRoute", "llama")),
            {"progressDeadlineSeconds": 1},
            Waiting(
                Reason.ROUTE_CONFLICT,
                SummaryState.STALLED,
                PENDING.message,
                field=FieldRef("spec.rules", "HTTPRoute", "llama"),
            ),
        ),
        (
            PENDING,
            {"progressDeadlineSeconds": 60},
            Failed(Reason.DEADLINE, f"traffic was not routed in time: {PENDING.message}", "it goes on when it is"),
        ),
    ],
    ids=["pending", "draining has no deadline", "a conflict has no deadline", "the deadline"],
)
@pytest.mark.parametrize(("gate", "of"), [(DRAIN, "drained"), (PINS, "pinned"), (ROUTES, "routed")])
def test_requests_have_to_be_where_the_step_wants_them(
    gate: Gate, of: str, waits: Routed, strategy: dict[str, Any], expected: Answer
) -> None:
    assert judged(gate, release(**strategy), **{of: waits})[1] == expected


def test_the_step_is_judged_from_when_its_weight_is_accepted() -> None:
    after, answer = judged(ROUTES, release())
    assert answer == PASSED
    assert after.status.step is not None
    assert (after.status.step.routed_at, after.status.step.paused_at) == (NOW, NOW)
    assert [(each.reason, each.note) for each in after.events] == [
        ("BatchReady", "step 1: 1 of 1 groups of the new version ready")
    ]
    again, answer = judged(ROUTES, after.but(o=replace(after.o, now=NOW + timedelta(seconds=9))))
    assert (again.status.step, again.events, answer) == (after.status.step, after.events, PASSED)


# The pause


def paused(seconds: float, **pause_of_step: Any) -> Draft:
    status = in_step(step=StepRecord(started_at=ago(5000), paused_at=ago(seconds)))
    return release(status=status, steps=({"replicas": 1, "pause": pause_of_step}, {"replicas": "100%"}))


ASKS = "step 1 of 2 waits for approval: kubectl rollout-lws promote llama -n prod"


@pytest.mark.parametrize(
    ("d", "expected"),
    [
        (
            paused(59, duration=60),
            Waiting(Reason.PAUSING, SummaryState.PAUSING, "step 1 goes on at 12:00:01 UTC", NOW + timedelta(seconds=1)),
        ),
        (paused(60, duration=60), PASSED),
        (paused(60), Waiting(Reason.AWAITING_APPROVAL, SummaryState.AWAITING_APPROVAL, ASKS)),
        (
            paused(60, approvalTimeoutSeconds=90),
            Waiting(Reason.AWAITING_APPROVAL, SummaryState.AWAITING_APPROVAL, ASKS, NOW + timedelta(seconds=30)),
        ),
        (
            paused(90, approvalTimeoutSeconds=90),
            Failed(
                Reason.APPROVAL_TIMEOUT,
                "step 1 was not approved within 90 s",
                "it still can be approved: kubectl rollout-lws promote llama -n prod",
            ),
        ),
        (paused(60).set_sub(current_step_state=StepState.STEP_READY), PASSED),
        (paused(60).but(intent=Advance.LEAVE_STEP), PASSED),
        (paused(60).but(intent=Advance.PROMOTE_FULL), PASSED),
    ],
    ids=["timed", "over", "approval", "until", "too late", "approved", "jump", "promoted"],
)
def test_a_step_pauses_until_its_time_or_an_approval(d: Draft, expected: Answer) -> None:
    after, answer = judged(PAUSE, d)
    assert (after, answer) == (d, expected)


def test_the_last_step_of_all_groups_does_not_pause() -> None:
    d = release(steps=({"replicas": "100%"},))
    assert PAUSE.judge(d, step_of(d, plan=Step(replicas="100%")))[1] == PASSED
