"""The gates of a step, in the order in which they are asked; the first that does not pass answers for the step."""

from __future__ import annotations

from rollout_lws.api import StepState
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates.analysis import ANALYSIS, BEFORE_TRAFFIC
from rollout_lws.rollout.gates.base import PASSED, Answer, CurrentStep, Passed
from rollout_lws.rollout.gates.capacity import CAPACITY, CRASH_LOOPS
from rollout_lws.rollout.gates.pause import PAUSE
from rollout_lws.rollout.gates.routes import DRAIN, PINS, ROUTES

#: What a step has to pass, in this order. Its pause is timed from when it has passed ``ROUTES``, whatever gates follow.
GATES = (DRAIN, CAPACITY, CRASH_LOOPS, PINS, BEFORE_TRAFFIC, ROUTES, ANALYSIS, PAUSE)


def judge(d: Draft, step: CurrentStep) -> tuple[Draft, Answer]:
    """The answer of the first gate that does not pass; Passed if all do."""
    for gate in GATES:
        d, answer = gate.judge(d, step)
        if not isinstance(answer, Passed):
            return _showing(d, gate.state), answer
    return d, PASSED


def _showing(d: Draft, state: StepState) -> Draft:
    """Records where the step stands. An approval, which is recorded in the same field, stays."""
    paused_at = d.status.step.paused_at if d.status.step is not None else None
    approved = d.sub.current_step_state == StepState.STEP_READY and paused_at is not None
    return d if approved else d.set_sub(current_step_state=state)
