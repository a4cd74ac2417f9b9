"""Passes when the step's pause is over, or a user has ended it: by an approval, a jump or a full promotion."""

from __future__ import annotations

from datetime import datetime, timedelta

from rollout_lws.api import StepState, SummaryState
from rollout_lws.capacity.batches import is_last_full
from rollout_lws.rollout.draft import Advance, Draft
from rollout_lws.rollout.gates.base import PASSED, Answer, CurrentStep, Failed, Gate, Waiting
from rollout_lws.rollout.reasons import Reason
from rollout_lws.rollout.routing.unmanaged_backends import and_requests


def _judge(d: Draft, step: CurrentStep) -> tuple[Draft, Answer]:
    approved = d.sub.current_step_state == StepState.STEP_READY
    if approved or isinstance(d.intent, Advance) or is_last_full(d.strategy, step.index):
        # The last step at 100 % of groups needs no pause.
        return d, PASSED
    paused_at = d.status.step.paused_at if d.status.step is not None else None
    pause = step.plan.pause
    if pause is not None and pause.duration is not None and paused_at is not None:
        return _timed(d, step, paused_at + timedelta(seconds=pause.duration))
    limit = pause.approval_timeout_seconds if pause is not None else None
    expires = None
    if limit is not None and paused_at is not None:
        # While gates are measured a user is not asked yet.
        measured = (gate.finished_at for gate in d.status.gates if gate.finished_at is not None)
        expires = d.yet_to_come(max((paused_at, *measured)), limit)
        if expires is None:
            message = f"step {step.index} was not approved within {limit} s"
            return d, Failed(Reason.APPROVAL_TIMEOUT, message, f"it still can be approved: {d.command('promote')}")
    told = f"step {step.index} of {len(d.strategy.steps)} waits for approval: {d.command('promote')}"
    return d, Waiting(Reason.AWAITING_APPROVAL, SummaryState.AWAITING_APPROVAL, and_requests(d, told), expires)


def _timed(d: Draft, step: CurrentStep, until: datetime) -> tuple[Draft, Answer]:
    if until <= d.now:
        return d, PASSED
    message = f"step {step.index} goes on at {until:%H:%M:%S} UTC"
    return d, Waiting(Reason.PAUSING, SummaryState.PAUSING, and_requests(d, message), until)


PAUSE = Gate(StepState.STEP_PAUSED, _judge)
