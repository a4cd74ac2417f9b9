"""Passes when as many groups of the new version as the step asks for exist and are ready.

Fails when they cannot become ready: groups keep restarting, or may not restart again, Kueue has given them up, a window
was opened too often, or the progress deadline has passed.
"""

from __future__ import annotations

from collections.abc import Collection

from rollout_lws.api import StepRecord, StepState, SummaryState
from rollout_lws.capacity.batches import Batch, batch
from rollout_lws.rollout.companions import lacking, tolerated_of_companions, with_companions
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates.base import PASSED, Answer, CurrentStep, Failed, Gate, Waiting, aborts
from rollout_lws.rollout.groups.crash_loops import churning, quiet_at
from rollout_lws.rollout.groups.evictions import given_up
from rollout_lws.rollout.groups.health import (
    CapacityWait,
    await_capacity,
    deadline_passed,
    keep_clock,
    loading_words,
    used_up,
    waits_for_capacity,
)
from rollout_lws.rollout.groups.scaling import record_window, worn_out
from rollout_lws.rollout.reasons import Reason
from rollout_lws.rollout.routing import route
from rollout_lws.workload.revisions import target_revision

#: How a release that waits for groups continues.
WHEN_READY = "it goes on when its groups become ready"


def step_batch(d: Draft, worn: Collection[tuple[str, str]] = ()) -> Batch:
    """The state of the current step's groups; those that are ``worn``, by workload and index, do not count."""
    # A plan shortened while paused applies only after resuming.
    index = max(1, min(d.sub.current_step_index, len(d.strategy.steps)))
    wanted = d.wanted(index)
    place = d.home.name if d.home is not None else ""
    whole = [group for group in d.new_groups if (place, group.index) not in worn]
    judged = batch(whole, wanted, d.strategy.failure_threshold, d.now, d.minimum)
    return with_companions(d, judged, worn)


def _judge(d: Draft, step: CurrentStep) -> tuple[Draft, Answer]:
    d = _best_ready(d)
    return (d, PASSED) if step.batch.enough and step.scaled.done else _loads(d, step)


def _best_ready(d: Draft) -> Draft:
    step, ready = d.status.step or StepRecord(started_at=d.now), d.ready_of_all
    return d.set_step(best_ready=ready, best_ready_at=d.now) if ready > (step.best_ready or 0) else d


def _loads(d: Draft, step: CurrentStep) -> tuple[Draft, Answer]:
    """The answer while groups are created or removed, which goes on after a failure that aborts nothing."""
    result = step.scaled
    d = await_capacity(d)
    capacity = waits_for_capacity(d)
    if not result.preparing:
        # Termination takes its time: the progress deadline does not run.
        d = keep_clock(d, capacity)
    failure = _failure(d, step, capacity)
    if failure is None or not aborts(d):
        # A release that rolls back starts nothing new.
        if step.routed is None:
            # First, since a write of groups that is refused ends the pass.
            d, _ = route.keep(d)
        d = record_window(d.take(result), result)
    if failure is not None:
        return d, failure
    if result.preparing:
        return d, Waiting(Reason.PREPARING, SummaryState.LOADING, result.message)
    if capacity is not None:
        return d, Waiting(*capacity)
    told = result.message or ready_of(d, step.batch)
    return d, Waiting(Reason.LOADING, SummaryState.LOADING, told + loading_words(d))


def _failure(d: Draft, step: CurrentStep, capacity: CapacityWait | None) -> Failed | None:
    """Why the step makes no progress; None if it may."""
    worn = churning(d)
    for facts, tolerated in ((d.home, step.batch.tolerated), *tolerated_of_companions(d, step.batch.wanted)):
        if facts is None:
            continue
        ended = used_up(d, facts)
        if len(ended) > tolerated:
            return Failed(Reason.RESTARTS_EXHAUSTED, ended[0], f"to have it made again: {d.command('retry')}")
        broken = [message for (workload, _), message in worn.items() if workload == facts.name]
        if len(broken) > tolerated:
            way_on = f"it goes on at {quiet_at(d):%H:%M:%S} UTC if no group is rebuilt until then"
            return Failed(Reason.CHURN, broken[0], way_on)
        lost = given_up(d, facts, target_revision(facts))
        if len(lost) > tolerated:
            return Failed(Reason.DEADLINE, next(iter(lost.values())), WHEN_READY)
    came_back = worn_out(d)
    if came_back:
        return Failed(Reason.CHURN, came_back, f"to have it tried again: {d.command('retry')}")
    late = None if step.scaled.preparing else deadline_passed(d, capacity)
    return Failed(*late, WHEN_READY) if late is not None else None


def ready_of(d: Draft, judged: Batch) -> str:
    """How many groups of the batch are ready, or leave."""
    if judged.ready > judged.wanted and d.paired:
        return f"{judged.ready} groups of the new version ready, and {judged.wanted} asked for"
    if judged.ready > judged.wanted:
        return f"{judged.ready - judged.wanted} groups of the new version go: the step asks for {judged.wanted}"
    others = lacking(d, judged.wanted)
    return f"{judged.ready} of {judged.wanted} groups of the new version ready" + (f", {others}" if others else "")


def ready_without_restarting(d: Draft, judged: Batch) -> bool:
    """True if the step's batch is ready even without the groups that keep restarting."""
    worn = churning(d)
    return step_batch(d, worn).enough if worn else judged.enough


def _judge_crash_loops(d: Draft, step: CurrentStep) -> tuple[Draft, Answer]:
    return (d, PASSED) if ready_without_restarting(d, step.batch) else _loads(d, step)


CAPACITY = Gate(StepState.STEP_UPGRADE, _judge)
#: Asked after ``CAPACITY``, which a group in a crash loop passes between two crashes. Passes when enough groups of the
#: step are ready without those that keep restarting; else it waits, and fails for the reasons for which ``CAPACITY``
#: does.
CRASH_LOOPS = Gate(StepState.STEP_UPGRADE, _judge_crash_loops)
