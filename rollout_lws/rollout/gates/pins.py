"""Passes when each pinned Service and pool selects one version only.

Pins are asked for before any group exists, and have to be accepted before the step's traffic weight is routed.
"""

from __future__ import annotations

from rollout_lws.api import StepState
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates.base import PASSED, Answer, CurrentStep, Gate
from rollout_lws.rollout.gates.routes import not_routed
from rollout_lws.rollout.routing import route


def _judge(d: Draft, step: CurrentStep) -> tuple[Draft, Answer]:
    if step.pinned.done:
        return d, PASSED
    # Until then requests for stable reach the new version too, which would distort the traffic weight.
    if step.routed is None:
        d, _ = route.keep(d)
    return not_routed(d, step.pinned)


GATE = Gate(StepState.STEP_TRAFFIC_ROUTING, _judge)
