"""Requests: which are done, which refused and why, and which wait; each is filed once."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.api import AbortedRecord, FinalisingRecord, LastAction, Phase, StepState
from rollout_lws.rollout.draft import Advance, Draft
from rollout_lws.rollout.lifecycle.actions import PROMOTED_ALREADY, act, refuse_abort
from tests.rollout.build import HASH, OTHER_HASH, at_rest, draft, held, in_step, rollout


def asked(kind: str, status: dict[str, Any], *, paused: bool | None = None, replicas: int = 4, **members: Any) -> Draft:
    request = {"type": kind, "id": "a1", **members}
    d = draft(rollout(status=status | {"requested_action": request}, paused=paused), stable=held(replicas))
    return act(d)


def outcome(d: Draft) -> tuple[str, str | None]:
    last = d.status.last_action
    assert last is not None
    assert d.status.requested_action is None
    return last.outcome, last.message


PROMOTED = FinalisingRecord(reason="Success", task="CleanUp")
ROLLING_BACK = FinalisingRecord(reason="Rollback", task="CleanUp")


@pytest.mark.parametrize(
    ("kind", "status", "members", "why"),
    [
        ("Approve", at_rest(), {}, "no release waits for approval"),
        ("Approve", in_step(paused=False), {}, "step 1 does not wait for approval yet"),
        ("Approve", in_step(), {"step": 2}, "it was meant for step 2, the release is at step 1"),
        (
            "Approve",
            in_step(),
            {"templateHash": "x"},
            "it was meant for another version; look again: kubectl rollout-lws get llama -n prod",
        ),
        ("Jump", at_rest(), {"toStep": 1}, "no release is in its steps"),
        ("Jump", in_step(), {}, "toStep must be a number from 1 to 3"),
        ("Jump", in_step(), {"toStep": 4}, "toStep must be a number from 1 to 3"),
        ("Abort", at_rest(), {}, "no release is on"),
        ("Abort", in_step(finalising=PROMOTED), {}, PROMOTED_ALREADY),
        ("Abort", in_step(finalising=ROLLING_BACK), {}, "the release is going back already"),
        ("Retry", at_rest(), {}, "there is no aborted version to try again: apply it first"),
        ("PromoteFull", at_rest(), {}, "no release is in its steps"),
        ("PromoteFull", in_step(finalising=PROMOTED), {}, "no release is in its steps"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_with_the_reason(
    kind: str, status: dict[str, Any], members: dict[str, Any], why: str
) -> None:
    d = asked(kind, status, **members)
    assert outcome(d) == ("Refused", why)
    assert [(event.reason, event.type) for event in d.events] == [("ActionRefused", "Warning")]


def test_a_resume_does_not_override_the_spec() -> None:
    d = asked("Resume", in_step(paused=True), paused=True)
    assert outcome(d) == ("Refused", "spec.strategy.paused is true: set it to false")


def test_an_abort_at_zero_groups_is_refused() -> None:
    kind, why = outcome(asked("Abort", in_step(), replicas=0))
    assert (kind, (why or "").split(",")[0]) == ("Refused", "the LeaderWorkerSet has 0 groups")


def test_an_approval_is_kept_in_the_status_until_the_step_can_be_left() -> None:
    d = asked("Approve", in_step())
    assert outcome(d) == ("Done", None)
    assert d.sub.current_step_state == StepState.STEP_READY


def test_a_promotion_of_everything_stays_requested_until_it_is_acted_on() -> None:
    d = asked("PromoteFull", in_step())
    assert d.intent is Advance.PROMOTE_FULL
    assert d.status.requested_action is not None
    assert d.status.last_action is None


def test_an_abort_that_turns_out_to_be_impossible_is_filed_as_refused() -> None:
    d = asked("Abort", in_step(finalising=FinalisingRecord(reason="Success", task="Promote")), by="ann")
    assert outcome(d) == ("Done", None)
    d = refuse_abort(d, "too late")
    assert outcome(d) == ("Refused", "too late")
    assert d.intent is None


def test_a_retry_in_a_step_starts_its_clock_anew() -> None:
    d = asked("Retry", in_step(paused=False))
    assert outcome(d) == ("Done", None)
    assert d.status.step is not None
    assert d.status.step.best_ready_at == d.now


@pytest.mark.parametrize(("named", "expected"), [(HASH, "Done"), (None, "Done"), (OTHER_HASH, "Refused")])
def test_a_retry_names_the_version_that_was_aborted(named: str | None, expected: str) -> None:
    status = at_rest(phase=Phase.ABORTED, aborted=AbortedRecord(template_hash=HASH))
    given = {"templateHash": named} if named else {}
    assert outcome(asked("Retry", status, **given))[0] == expected


def test_an_id_that_was_filed_is_removed_and_not_run_again() -> None:
    before = LastAction(type="Approve", id="a1", outcome="Done")
    d = asked("Approve", in_step(last_action=before))
    assert d.status.requested_action is None
    assert d.status.last_action == before
    assert d.sub.current_step_state == StepState.STEP_PAUSED
    assert d.events == ()


PROMOTING = FinalisingRecord(reason="Success", task="Promote")


@pytest.mark.parametrize(
    ("ending", "asked_for", "why"),
    [
        (PROMOTING, 1, "the release is being promoted; to go back: kubectl rollout-lws abort llama -n prod"),
        (PROMOTED, 2, "the release is ending"),
        (ROLLING_BACK, 2, "the release is ending"),
        (PROMOTING, -1, None),
        (PROMOTING, 3, None),
        (PROMOTING, 0, None),
        (None, 1, None),
    ],
)
def test_a_step_back_that_comes_too_late_is_refused_and_forgotten(
    ending: FinalisingRecord | None, asked_for: int, why: str | None
) -> None:
    status = in_step(3, finalising=ending)
    status["canary_status"] |= {"nextStepIndex": asked_for}
    d = draft(rollout(status=status))
    d = act(d)
    told = [f"jump to step {asked_for} was refused: {why}"] if why else []
    assert [event.note for event in d.events] == told
    assert d.sub.next_step_index == (-1 if why else asked_for)
