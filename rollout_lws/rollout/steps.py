"""The step machine: capacity, then the wait, then the next step, as far in one go as the world allows.

A step is left (by its timer, an approval, a forward jump, or the promotion of everything) only while its batch is
ready; until then an approval is kept and an elapsed timer waits.
"""

from __future__ import annotations

from datetime import timedelta

from rollout_lws.api import Capacity, Step, StepRecord, StepState, SummaryState
from rollout_lws.capacity.batch_release import dismiss
from rollout_lws.capacity.batches import Batch, batch, is_last_full, wanted_groups
from rollout_lws.capacity.canary import remove
from rollout_lws.capacity.result import Turn
from rollout_lws.rollout import actions, borrowing, finalising, handover, routing
from rollout_lws.rollout.capacity import close_window, leaving, note_opened, scale_new, worn_out
from rollout_lws.rollout.churn import await_quiet, churning, quiet_at, remember_leaders
from rollout_lws.rollout.draft import Abort, Advance, Draft
from rollout_lws.rollout.evictions import given_up
from rollout_lws.rollout.health import (
    CapacityWait,
    await_capacity,
    deadline_passed,
    keep_clock,
    loading_words,
    waits_for_capacity,
)
from rollout_lws.rollout.natively import all_went_over, at_zero
from rollout_lws.rollout.pausing import stays_paused
from rollout_lws.rollout.plan import next_index, plan_hash, resumed_index
from rollout_lws.rollout.reach import no_requests
from rollout_lws.rollout.reasons import Ending, EventReason, Reason, Task
from rollout_lws.rollout.refusals import cannot_release, surge_under_kueue
from rollout_lws.rollout.rollback import begin_rollback
from rollout_lws.rollout.routed import Routed
from rollout_lws.rollout.shares import carries
from rollout_lws.rollout.unlisted import tell_unlisted
from rollout_lws.workload.revisions import observed, target_revision

#: How a release that waits for groups goes on.
WHEN_READY = "it goes on when its groups become ready"


def run(d: Draft) -> bool:
    """One pass over a release that is in its steps; always has the last word."""
    stable, version = d.status.stable, d.version
    if isinstance(d.intent, Abort):
        begin_rollback(d, Ending.ABORTED, d.intent.reason)
        return finalising.run(d)
    if stable is not None and version.template_hash == stable.template_hash:
        begin_rollback(d, Ending.ROLLBACK, "stable's template was restored")
        return finalising.run(d)
    if version.template_hash != d.status.observed_template_hash:
        begin_rollback(d, Ending.CONTINUOUS, "another version was applied")
        return finalising.run(d)
    if d.replicas == 0 and carries(d) and not d.one_workload:
        routing.keep(d)
        return d.stalled(
            Reason.SCALED_TO_ZERO,
            f"LeaderWorkerSet {d.stable.lws.metadata.name} has 0 groups, and its canary carries requests: it keeps"
            " serving until there are groups again: scale up",
        )
    if d.replicas == 0:
        return at_zero(d) or finalising.run(d)
    if all_went_over(d):
        # It was scaled to zero and up again, or rolled natively, while nobody looked.
        return finalising.run(d)
    _follow_release(d)
    ends = surge_under_kueue(d)
    if ends is not None:
        # Its groups would end while they serve.
        begin_rollback(d, Ending.ROLLBACK, ends.message)
        return finalising.run(d)
    refusal = cannot_release(d)
    if refusal:
        borrowing.keep_pinned(d)
        routing.keep(d)
        close_window(d)
        return d.refuse(refusal)
    if d.paused:
        _judge(d)
        close_window(d)
        borrowing.keep_pinned(d)
        routing.keep(d)
        return stays_paused(d)
    if _deleted_record(d):
        return d.reconciling(
            Reason.PREPARING, SummaryState.LOADING, "the BatchRelease was deleted by hand and is made again"
        )
    _edited_plan(d)
    _jump(d)
    return _advance(d)


def _follow_release(d: Draft) -> None:
    """A new id or generation on an unchanged template starts nothing; the record follows."""
    d.set(observed_rollout_id=d.release_id, observed_workload_generation=d.stable.lws.metadata.generation)
    d.set_sub(observed_rollout_id=d.release_id, observed_workload_generation=d.stable.lws.metadata.generation)
    revision = target_revision(d.stable)
    if observed(d.stable) and revision != d.sub.new_revision:
        # Another release of LeaderWorkerSet calls the version differently, or the sub-status was wiped.
        d.confirm_leader_set("the revision that is released")
        stable = d.status.stable
        d.set_sub(new_revision=revision, stable_revision=stable.revision if stable else "")


def _deleted_record(d: Draft) -> bool:
    """A BatchRelease that is being deleted takes its canary with it; both are made again. Groups that are not in an LWS
    of their own stay.
    """
    record = d.o.batch_release
    if record is None or record.metadata.deletion_timestamp is None:
        return False
    if not (d.one_workload or routing.withdraw(d).done):
        return True
    turn = d.take(remove(d.o.canary, d.keys))
    if turn.done:
        d.write(dismiss(record, d.keys))
    return True


def _edited_plan(d: Draft) -> None:
    asked = plan_hash(d.o.rollout.spec.strategy)
    if d.sub.rollout_hash == asked:
        return
    steps, index = d.strategy.steps, d.sub.current_step_index
    standing = _standing(d)
    target = resumed_index(d.strategy, index, standing, d.replicas)
    d.set_sub(rollout_hash=asked)
    if target != index or wanted_groups(d.strategy, target, d.replicas) != standing:
        _enter(d, target)
    else:
        d.set_sub(next_step_index=next_index(steps, index))


def _standing(d: Draft) -> int:
    """Groups of the new version that are asked for already, at least 1."""
    if d.one_workload:
        return max(1, sum(not group.terminating for group in d.new_groups))
    return d.o.canary.lws.spec.replicas if d.o.canary else 1


def _jump(d: Draft) -> None:
    """A nextStepIndex other than the one we wrote is a jump; what is no step's number is put right."""
    steps, index, asked = d.strategy.steps, d.sub.current_step_index, d.sub.next_step_index
    own = next_index(steps, index)
    if asked == own:
        return
    if not 1 <= asked <= len(steps):
        d.set_sub(next_step_index=own)
        return
    judged = _judge(d) if asked > index else None
    if judged is not None and not (judged.enough and _is_whole(d, judged)):
        return
    d.notice(EventReason.STEP_CHANGED, f"jump from step {index} to step {asked}")
    _enter(d, asked)


def _enter(d: Draft, index: int) -> None:
    # On record before its first write: whoever has made its groups and could not write that down would take them away
    # again, as more than the step before asks for, and make them anew, for as long as a write is refused.
    d.persist_first()
    d.step_entered = True
    d.set(step=StepRecord(started_at=d.now))
    d.set_sub(
        current_step_index=index,
        next_step_index=next_index(d.strategy.steps, index),
        current_step_state=StepState.BEFORE_STEP_UPGRADE,
    )


def _judge(d: Draft) -> Batch:
    steps = d.strategy.steps
    # A plan that was shortened while paused is followed only afterwards.
    index = max(1, min(d.sub.current_step_index, len(steps)))
    wanted = wanted_groups(d.strategy, index, d.replicas)
    d.batch = batch(d.new_groups, wanted, d.strategy.failure_threshold, d.now, d.minimum)
    if d.batch.next_ready_at:
        d.wake(d.batch.next_ready_at)
    return d.batch


def _advance(d: Draft) -> bool:
    steps = d.strategy.steps
    wanted = wanted_groups(d.strategy, d.sub.current_step_index, d.replicas)
    if d.one_workload:
        remember_leaders(d, d.stable, d.sub.new_revision, d.replicas + wanted)
    else:
        remember_leaders(d, d.o.canary, target_revision(d.o.canary) if d.o.canary else "", wanted)
    await_quiet(d)
    pinned = borrowing.prepare(d)
    d.prepared = True
    tell_unlisted(d)
    while True:
        index = d.sub.current_step_index
        step, judged = steps[index - 1], _judge(d)
        emptied, shared = False, None
        if leaving(d, judged.wanted):
            # They must not be sent requests any more, and be done with those they have.
            room = handover.make_room(d, index)
            if not room.done:
                return _routing(d, room)
            emptied = room.emptied
        elif d.capacity is Capacity.IN_PLACE:
            # Before the next old group goes the new ones have to have their part.
            shared = routing.route(d, index)
        turn = scale_new(d, judged.wanted, emptied=emptied, waits=shared.message if shared else "")
        _best_ready(d, judged)
        if not (judged.enough and turn.done) or not _is_whole(d, judged):
            return _loading(d, judged, turn, shared)
        if not pinned.done:
            # Until then the stable version's requests reach the new one too, and the share would be another.
            if shared is None:
                routing.keep(d)
            return _routing(d, pinned)
        routed = shared or routing.route(d, index)
        if not routed.done:
            return _routing(d, routed)
        approved = (
            d.sub.current_step_state == StepState.STEP_READY
            and d.status.step is not None
            and d.status.step.paused_at is not None
        )
        if d.status.step is None or d.status.step.paused_at is None:
            d.set_step(routed_at=d.now, paused_at=d.now)
            d.notice(EventReason.BATCH_READY, _and_requests(d, f"step {index}: {_ready_of(judged)}"))
        d.set_sub(current_step_state=StepState.STEP_PAUSED)
        if not (isinstance(d.intent, Advance) or approved or _pause_over(d, step, index)):
            return _waiting(d, step, index)
        actions.step_left(d)
        if d.intent is Advance.PROMOTE_FULL or index == len(steps):
            d.set_sub(current_step_state=StepState.COMPLETED)
            d.notice(EventReason.PROMOTING, f"step {index} done: the stable LeaderWorkerSet is renewed")
            d.begin_finalising(Ending.SUCCESS, Task.PROMOTE)
            return finalising.run(d)
        d.notice(EventReason.STEP_CHANGED, f"step {index} done, step {index + 1} begins")
        _enter(d, index + 1)


def _routing(d: Draft, routed: Routed) -> bool:
    """The last word while routers have not accepted what is asked of them."""
    if d.sub.current_step_state != StepState.STEP_READY or d.status.step is None or d.status.step.paused_at is None:
        d.set_sub(current_step_state=StepState.STEP_TRAFFIC_ROUTING)
    if routed.contested:
        return d.stalled(Reason.ROUTE_CONFLICT, routed.message, field=routed.field)
    if routed.timed:
        return d.reconciling(Reason.DRAINING, SummaryState.ROUTING, routed.message)
    keep_clock(d, None)
    late = deadline_passed(d, None)
    if late is not None:
        return failed(d, late[0], f"traffic was not routed in time: {routed.message}", "it goes on when it is")
    return d.reconciling(Reason.ROUTING, SummaryState.ROUTING, routed.message)


def _pause_over(d: Draft, step: Step, index: int) -> bool:
    """Whether the step's own pause lets it go on; the last step at 100 % of groups has nothing left to wait for."""
    if is_last_full(d.strategy, index):
        return True
    if step.pause is None or step.pause.duration is None or d.status.step is None or d.status.step.paused_at is None:
        return False
    return d.wake_in(d.status.step.paused_at, step.pause.duration)


def _waiting(d: Draft, step: Step, index: int) -> bool:
    paused_at = d.status.step.paused_at if d.status.step else None
    if step.pause is not None and step.pause.duration is not None and paused_at is not None:
        until = paused_at + timedelta(seconds=step.pause.duration)
        told = f"step {index} goes on at {until:%H:%M:%S} UTC"
        return d.reconciling(Reason.PAUSING, SummaryState.PAUSING, _and_requests(d, told))
    limit = step.pause.approval_timeout_seconds if step.pause else None
    if limit is not None and paused_at is not None and d.wake_in(paused_at, limit):
        message = f"step {index} was not approved within {limit} s"
        return failed(d, Reason.APPROVAL_TIMEOUT, message, f"it still can be approved: {d.command('promote')}")
    told = f"step {index} of {len(d.strategy.steps)} waits for approval: {d.command('promote')}"
    return d.reconciling(Reason.AWAITING_APPROVAL, SummaryState.AWAITING_APPROVAL, _and_requests(d, told))


def _aborts(d: Draft) -> bool:
    return d.o.rollout.spec.strategy.on_failure == "Abort"


def failed(d: Draft, reason: Reason, message: str, way_on: str) -> bool:
    """The release does not get on: go back, or tell a person and wait, as ``onFailure`` says."""
    if _aborts(d):
        begin_rollback(d, Ending.ABORTED, message)
        return finalising.run(d)
    return d.stalled(reason, f"{message.rstrip('.')}. The release waits, {way_on}; to go back: {d.command('abort')}")


def _is_whole(d: Draft, judged: Batch) -> bool:
    """Whether a batch that is ready is so without the groups that keep being rebuilt, too."""
    worn = churning(d)
    whole = [group for group in d.new_groups if group.index not in worn]
    return not worn or batch(whole, judged.wanted, d.strategy.failure_threshold, d.now, d.minimum).enough


def _best_ready(d: Draft, judged: Batch) -> None:
    step = d.status.step or StepRecord(started_at=d.now)
    if judged.ready > (step.best_ready or 0):
        d.set_step(best_ready=judged.ready, best_ready_at=d.now)


def _loading(d: Draft, judged: Batch, turn: Turn, shared: Routed | None) -> bool:
    """The last word while groups are made, or taken back; ``shared``: what routers say where that was asked before."""
    if d.sub.current_step_state != StepState.STEP_READY or d.status.step is None or d.status.step.paused_at is None:
        d.set_sub(current_step_state=StepState.STEP_UPGRADE)
    await_capacity(d)
    capacity = waits_for_capacity(d)
    goes = bool(turn.message) and not d.one_workload
    if not goes:
        # What is on its way out takes the time it takes.
        keep_clock(d, capacity)
    trouble = _trouble(d, judged, turn, capacity)
    if trouble is None or not _aborts(d):
        # A release that goes back begins nothing any more.
        d.take(turn)
        note_opened(d, turn)
        if shared is None:
            routing.keep(d)
    if trouble is not None:
        return failed(d, *trouble)
    if goes:
        return d.reconciling(Reason.PREPARING, SummaryState.LOADING, turn.message)
    if capacity is not None:
        return d.reconciling(*capacity)
    told = turn.message if d.one_workload and turn.message else _ready_of(judged)
    return d.reconciling(Reason.LOADING, SummaryState.LOADING, told + loading_words(d))


def _trouble(d: Draft, judged: Batch, turn: Turn, capacity: CapacityWait | None) -> tuple[Reason, str, str] | None:
    """Why the step does not get on, with how it goes on nevertheless."""
    worn = churning(d)
    if len(worn) > judged.tolerated:
        way_on = f"it goes on at {quiet_at(d):%H:%M:%S} UTC if no group is rebuilt until then"
        return Reason.CHURN, next(iter(worn.values())), way_on
    facts = d.o.stable if d.one_workload else d.o.canary
    lost = given_up(d, facts, target_revision(facts) if facts is not None else "")
    if len(lost) > judged.tolerated:
        return Reason.DEADLINE, next(iter(lost.values())), WHEN_READY
    used_up = worn_out(d) if d.one_workload else ""
    if used_up:
        return Reason.CHURN, used_up, f"to have it tried again: {d.command('retry')}"
    late = None if turn.message and not d.one_workload else deadline_passed(d, capacity)
    return (*late, WHEN_READY) if late is not None else None


def _and_requests(d: Draft, told: str) -> str:
    """Whoever is to judge the new version hears at once that no request can tell anything of it."""
    return ". ".join(filter(None, (told, no_requests(d))))


def _ready_of(judged: Batch) -> str:
    if judged.ready > judged.wanted:
        return f"{judged.ready - judged.wanted} groups of the new version go: the step asks for {judged.wanted}"
    return f"{judged.ready} of {judged.wanted} groups of the new version ready"
