"""Passes when requests have left the groups that the step removes; at once if it removes none."""

from __future__ import annotations

from rollout_lws.api import StepState
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates.base import PASSED, Answer, CurrentStep, Gate
from rollout_lws.rollout.gates.routes import not_routed


def _judge(d: Draft, step: CurrentStep) -> tuple[Draft, Answer]:
    return (d, PASSED) if step.drained.done else not_routed(d, step.drained)


GATE = Gate(StepState.STEP_TRAFFIC_ROUTING, _judge)
