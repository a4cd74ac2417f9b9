"""Passes when enough groups of the step are ready without counting those that keep restarting.

A group in a crash loop looks ready between two crashes. When there are too many of them, the capacity gate's answer
applies: it waits, or the step fails.
"""

from __future__ import annotations

from rollout_lws.api import StepState
from rollout_lws.capacity.batches import Batch, batch
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates.base import PASSED, Answer, CurrentStep, Gate
from rollout_lws.rollout.gates.capacity import loads
from rollout_lws.rollout.groups.crash_loops import churning


def ready_without_restarting(d: Draft, judged: Batch) -> bool:
    """True if the step's batch is ready even without the groups that keep restarting."""
    worn = churning(d)
    if not worn:
        return judged.enough
    whole = [group for group in d.new_groups if group.index not in worn]
    return batch(whole, judged.wanted, d.strategy.failure_threshold, d.now, d.minimum).enough


def _judge(d: Draft, step: CurrentStep) -> tuple[Draft, Answer]:
    return (d, PASSED) if ready_without_restarting(d, step.batch) else loads(d, step)


GATE = Gate(StepState.STEP_UPGRADE, _judge)
