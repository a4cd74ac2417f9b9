"""The groups of the current step: how many it asks for, and how many of them are ready."""

from __future__ import annotations

from rollout_lws.capacity.batches import Batch, batch, wanted_groups
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.groups.crash_loops import churning


def step_batch(d: Draft) -> Batch:
    """The state of the current step's groups."""
    # A plan shortened while paused applies only after resuming.
    index = max(1, min(d.sub.current_step_index, len(d.strategy.steps)))
    wanted = wanted_groups(d.strategy, index, d.replicas)
    return batch(d.new_groups, wanted, d.strategy.failure_threshold, d.now, d.minimum)


def ready_without_restarting(d: Draft, judged: Batch) -> bool:
    """True if the batch is ready even without the groups that keep restarting."""
    worn = churning(d)
    if not worn:
        return judged.enough
    whole = [group for group in d.new_groups if group.index not in worn]
    return batch(whole, judged.wanted, d.strategy.failure_threshold, d.now, d.minimum).enough
