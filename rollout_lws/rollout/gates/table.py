"""The gates of a step, in the order in which they are asked; the first that does not pass answers for the step."""

from __future__ import annotations

from rollout_lws.api import StepState
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates import capacity, crash_loops, drain, pause, pins, routes
from rollout_lws.rollout.gates.base import PASSED, Answer, CurrentStep, Passed

#: What a step has to pass, in this order. Its pause is timed from when it has passed ``routes``, whatever gates follow.
GATES = (drain.GATE, capacity.GATE, crash_loops.GATE, pins.GATE, routes.GATE, pause.GATE)


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
