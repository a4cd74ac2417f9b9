"""The step's groups are ready even without those that keep restarting, which look ready between two crashes."""

from __future__ import annotations

from rollout_lws.api import StepState
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates.base import PASSED, Answer, CurrentStep, Gate
from rollout_lws.rollout.gates.capacity import loads
from rollout_lws.rollout.groups.step_batch import ready_without_restarting


def _judge(d: Draft, step: CurrentStep) -> tuple[Draft, Answer]:
    return (d, PASSED) if ready_without_restarting(d, step.batch) else loads(d, step)


GATE = Gate(StepState.STEP_UPGRADE, _judge)
