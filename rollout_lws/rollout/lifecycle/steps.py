"""The step machine: capacity, gates, then the next step, as far in one pass as the cluster's state allows.

A step ends (by its timer, an approval, a forward jump or a full promotion) only while its batch is ready; until then an
approval is kept and an elapsed timer waits.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from rollout_lws.api import BatchRelease, Step, StepRecord, StepState, SummaryState
from rollout_lws.capacity.batch_release import dismiss
from rollout_lws.capacity.batches import Batch, batch, is_last_full, wanted_groups
from rollout_lws.capacity.canary import remove
from rollout_lws.capacity.result import CapacityResult
from rollout_lws.rollout.draft import Abort, Advance, Draft
from rollout_lws.rollout.groups.crash_loops import await_quiet, churning, quiet_at, remember_leaders
from rollout_lws.rollout.groups.evictions import given_up
from rollout_lws.rollout.groups.health import (
    CapacityWait,
    await_capacity,
    deadline_passed,
    keep_clock,
    loading_words,
    waits_for_capacity,
)
from rollout_lws.rollout.groups.scaling import close_window, leaving, note_opened, scale_new, worn_out
from rollout_lws.rollout.lifecycle import actions, finalize
from rollout_lws.rollout.lifecycle.native_rollout import all_went_over, at_zero, follow_groups
from rollout_lws.rollout.lifecycle.paused import stays_paused
from rollout_lws.rollout.lifecycle.rollback import begin_rollback
from rollout_lws.rollout.preflight import cannot_release, surge_under_kueue
from rollout_lws.rollout.reasons import Ending, EventReason, Reason
from rollout_lws.rollout.routing import route, selector_pinning, traffic_shift
from rollout_lws.rollout.routing.reach import no_requests
from rollout_lws.rollout.routing.route_result import Routed
from rollout_lws.rollout.routing.unmanaged_backends import tell_unlisted
from rollout_lws.rollout.routing.weights import carries
from rollout_lws.rollout.state import Promoting
from rollout_lws.rollout.status import batch_release
from rollout_lws.rollout.step_plan import next_index, plan_hash, resumed_index
from rollout_lws.workload.revisions import observed, target_revision

#: How a release that waits for groups continues.
WHEN_READY = "it goes on when its groups become ready"


def run(d: Draft) -> Draft:
    """One pass over a release in its steps; always gives a verdict."""
    stable, version = d.status.stable, d.version
    if isinstance(d.intent, Abort):
        return finalize.run(begin_rollback(d, Ending.ABORTED, d.intent.reason))
    if stable is not None and version.template_hash == stable.template_hash:
        return finalize.run(begin_rollback(d, Ending.ROLLBACK, "stable's template was restored"))
    if version.template_hash != d.status.observed_template_hash:
        return finalize.run(begin_rollback(d, Ending.CONTINUOUS, "another version was applied"))
    if d.replicas == 0 and carries(d) and not d.capacity.one_workload:
        d, _ = route.keep(d)
        return d.stalled(
            Reason.SCALED_TO_ZERO,
            f"{d.stable.called} has 0 groups, and its canary carries requests: it keeps"
            " serving until there are groups again: scale up",
        )
    if d.replicas == 0:
        d = at_zero(d)
        return d if d.concluded else finalize.run(d)
    if all_went_over(d):
        # The LWS was scaled to zero and up again, or rolled natively, while no controller ran.
        return finalize.run(follow_groups(d))
    d = _follow_release(d)
    ends = surge_under_kueue(d)
    if ends is not None:
        # Kueue would end the surge groups while they serve.
        return finalize.run(begin_rollback(d, Ending.ROLLBACK, ends.message))
    refusal = cannot_release(d)
    if refusal:
        d, _ = route.keep(selector_pinning.keep_pinned(d))
        return close_window(d).refuse(refusal)
    if d.paused:
        d = close_window(_with(d, _judge(d)))
        d, _ = route.keep(selector_pinning.keep_pinned(d))
        return stays_paused(d)
    record = d.o.batch_release
    if record is not None and record.metadata.deletion_timestamp is not None:
        return _without_record(d, record).reconciling(
            Reason.PREPARING, SummaryState.LOADING, "the BatchRelease was deleted by hand and is made again"
        )
    return batch_release.begin(_advance(_jump(_edited_plan(d))))


def _follow_release(d: Draft) -> Draft:
    """Records a new ID or generation of an unchanged template; that starts no release."""
    d = d.set(observed_rollout_id=d.release_id, observed_workload_generation=d.stable.workload.metadata.generation)
    d = d.set_sub(observed_rollout_id=d.release_id, observed_workload_generation=d.stable.workload.metadata.generation)
    revision = target_revision(d.stable)
    if observed(d.stable) and revision != d.sub.new_revision:
        # A different LWS version names the revision differently, or the sub-status was wiped.
        d = d.confirm_leader_set("the revision that is released")
        stable = d.status.stable
        d = d.set_sub(new_revision=revision, stable_revision=stable.revision if stable else "")
    return d


def _without_record(d: Draft, record: BatchRelease) -> Draft:
    """Deleting the BatchRelease deletes its canary LWS too; the controller recreates both. Groups in the stable LWS
    stay.
    """
    if not d.capacity.one_workload:
        d, withdrawn = route.withdraw(d)
        if not withdrawn.done:
            return d
    result = remove(d.o.canary, d.keys)
    d = d.take(result)
    return d.write(dismiss(record, d.keys)) if result.done else d


def _edited_plan(d: Draft) -> Draft:
    asked = plan_hash(d.o.rollout.spec.strategy)
    if d.sub.rollout_hash == asked:
        return d
    steps, index = d.strategy.steps, d.sub.current_step_index
    standing = d.capacity.standing(d.new_groups, d.o.canary)
    target = resumed_index(d.strategy, index, standing, d.replicas)
    d = d.set_sub(rollout_hash=asked)
    if target != index or wanted_groups(d.strategy, target, d.replicas) != standing:
        return _enter(d, target)
    return d.set_sub(next_step_index=next_index(steps, index))


def _jump(d: Draft) -> Draft:
    """Follows a ``nextStepIndex`` that the user changed; resets one that is no step's number."""
    steps, index, asked = d.strategy.steps, d.sub.current_step_index, d.sub.next_step_index
    own = next_index(steps, index)
    if asked == own:
        return d
    if not 1 <= asked <= len(steps):
        return d.set_sub(next_step_index=own)
    judged = _judge(d) if asked > index else None
    if judged is not None and not (judged.enough and _is_whole(d, judged)):
        return d
    d = d.notice(EventReason.STEP_CHANGED, f"jump from step {index} to step {asked}")
    return _enter(d, asked)


def _enter(d: Draft, index: int) -> Draft:
    # The status is written first. Otherwise a controller that created the groups but could not record the step would
    # delete them as surplus of the step before and recreate them, for as long as the write is refused.
    return (
        d.persist_first()
        .set(step=StepRecord(started_at=d.now))
        .set_sub(
            current_step_index=index,
            next_step_index=next_index(d.strategy.steps, index),
            current_step_state=StepState.BEFORE_STEP_UPGRADE,
        )
    )


def _judge(d: Draft) -> Batch:
    steps = d.strategy.steps
    # A plan shortened while paused applies only after resuming.
    index = max(1, min(d.sub.current_step_index, len(steps)))
    wanted = wanted_groups(d.strategy, index, d.replicas)
    return batch(d.new_groups, wanted, d.strategy.failure_threshold, d.now, d.minimum)


def _with(d: Draft, judged: Batch) -> Draft:
    """Records the batch's readiness, and wakes when its next group counts as ready."""
    return d.but(batch=judged).wake(judged.next_ready_at)


def _advance(d: Draft) -> Draft:
    steps = d.strategy.steps
    wanted = wanted_groups(d.strategy, d.sub.current_step_index, d.replicas)
    d = remember_leaders(d, d.home, d.new_revision, d.capacity.of_new(d.replicas, 0) + wanted)
    d = await_quiet(d)
    d, pinned = selector_pinning.prepare(d)
    d = tell_unlisted(d)
    while True:
        index = d.sub.current_step_index
        step, judged = steps[index - 1], _judge(d)
        d = _with(d, judged)
        emptied, shared = False, None
        if leaving(d, judged.wanted):
            # These groups must stop receiving requests and drain first.
            d, room = traffic_shift.make_room(d, index)
            if not room.done:
                return _routing(d, room)
            emptied = room.emptied
        elif d.capacity.updates_regular:
            # The new groups need their traffic weight before the next old group goes.
            d, shared = route.route(d, index)
        result = scale_new(d, judged.wanted, emptied=emptied, waits=shared.message if shared else "")
        d = _best_ready(d, judged)
        if not (judged.enough and result.done) or not _is_whole(d, judged):
            return _loading(d, judged, result, shared)
        if not pinned.done:
            # Until then requests for stable reach the new version too, which would distort the traffic weight.
            if shared is None:
                d, _ = route.keep(d)
            return _routing(d, pinned)
        d, routed = (d, shared) if shared is not None else route.route(d, index)
        if not routed.done:
            return _routing(d, routed)
        approved = (
            d.sub.current_step_state == StepState.STEP_READY
            and d.status.step is not None
            and d.status.step.paused_at is not None
        )
        if d.status.step is None or d.status.step.paused_at is None:
            d = d.set_step(routed_at=d.now, paused_at=d.now)
            d = d.notice(EventReason.BATCH_READY, _and_requests(d, f"step {index}: {_ready_of(judged)}"))
        d = d.set_sub(current_step_state=StepState.STEP_PAUSED)
        ends_at = _pause_ends_at(d, step, index)
        elapsed = ends_at is not None and ends_at <= d.now
        if not (isinstance(d.intent, Advance) or approved or elapsed):
            return _waiting(d.wake(ends_at), step, index)
        d = actions.step_left(d)
        if d.intent is Advance.PROMOTE_FULL or index == len(steps):
            d = d.set_sub(current_step_state=StepState.COMPLETED)
            d = d.notice(EventReason.PROMOTING, f"step {index} done: the stable LeaderWorkerSet is renewed")
            return finalize.run(d.enter(Promoting(Ending.SUCCESS)))
        d = d.notice(EventReason.STEP_CHANGED, f"step {index} done, step {index + 1} begins")
        d = _enter(d, index + 1)


def _routing(d: Draft, routed: Routed) -> Draft:
    """Gives the verdict while routers have not accepted the requested weights."""
    if d.sub.current_step_state != StepState.STEP_READY or d.status.step is None or d.status.step.paused_at is None:
        d = d.set_sub(current_step_state=StepState.STEP_TRAFFIC_ROUTING)
    if routed.contested:
        return d.stalled(Reason.ROUTE_CONFLICT, routed.message, field=routed.field)
    if routed.timed:
        return d.reconciling(Reason.DRAINING, SummaryState.ROUTING, routed.message)
    d = keep_clock(d, None)
    late = deadline_passed(d, None)
    if late is not None:
        return failed(d, late[0], f"traffic was not routed in time: {routed.message}", "it goes on when it is")
    return d.reconciling(Reason.ROUTING, SummaryState.ROUTING, routed.message)


def _pause_ends_at(d: Draft, step: Step, index: int) -> datetime | None:
    """When the step's own pause ends, None if it never does; the last step at 100 % of groups needs no pause."""
    if is_last_full(d.strategy, index):
        return d.now
    if step.pause is None or step.pause.duration is None or d.status.step is None or d.status.step.paused_at is None:
        return None
    return d.status.step.paused_at + timedelta(seconds=step.pause.duration)


def _waiting(d: Draft, step: Step, index: int) -> Draft:
    paused_at = d.status.step.paused_at if d.status.step else None
    if step.pause is not None and step.pause.duration is not None and paused_at is not None:
        until = paused_at + timedelta(seconds=step.pause.duration)
        told = f"step {index} goes on at {until:%H:%M:%S} UTC"
        return d.reconciling(Reason.PAUSING, SummaryState.PAUSING, _and_requests(d, told))
    limit = step.pause.approval_timeout_seconds if step.pause is not None else None
    if limit is not None and paused_at is not None:
        expires = d.yet_to_come(paused_at, limit)
        if expires is None:
            message = f"step {index} was not approved within {limit} s"
            return failed(d, Reason.APPROVAL_TIMEOUT, message, f"it still can be approved: {d.command('promote')}")
        d = d.wake(expires)
    told = f"step {index} of {len(d.strategy.steps)} waits for approval: {d.command('promote')}"
    return d.reconciling(Reason.AWAITING_APPROVAL, SummaryState.AWAITING_APPROVAL, _and_requests(d, told))


def _aborts(d: Draft) -> bool:
    return d.o.rollout.spec.strategy.on_failure == "Abort"


def failed(d: Draft, reason: Reason, message: str, way_on: str) -> Draft:
    """The release is stuck: rolls back, or reports and waits for the user, as ``onFailure`` says."""
    if _aborts(d):
        return finalize.run(begin_rollback(d, Ending.ABORTED, message))
    return d.stalled(reason, f"{message.rstrip('.')}. The release waits, {way_on}; to go back: {d.command('abort')}")


def _is_whole(d: Draft, judged: Batch) -> bool:
    """True if a ready batch is ready even without the groups that keep restarting."""
    worn = churning(d)
    whole = [group for group in d.new_groups if group.index not in worn]
    return not worn or batch(whole, judged.wanted, d.strategy.failure_threshold, d.now, d.minimum).enough


def _best_ready(d: Draft, judged: Batch) -> Draft:
    step = d.status.step or StepRecord(started_at=d.now)
    if judged.ready > (step.best_ready or 0):
        d = d.set_step(best_ready=judged.ready, best_ready_at=d.now)
    return d


def _loading(d: Draft, judged: Batch, result: CapacityResult, shared: Routed | None) -> Draft:
    """Gives the verdict while groups are created or removed; ``shared``: the routing result if already asked for."""
    if d.sub.current_step_state != StepState.STEP_READY or d.status.step is None or d.status.step.paused_at is None:
        d = d.set_sub(current_step_state=StepState.STEP_UPGRADE)
    d = await_capacity(d)
    capacity = waits_for_capacity(d)
    if not result.preparing:
        # Termination takes its time: the progress deadline does not run.
        d = keep_clock(d, capacity)
    trouble = _trouble(d, judged, result, capacity)
    if trouble is None or not _aborts(d):
        # A release that rolls back starts nothing new.
        d = note_opened(d.take(result), result)
        if shared is None:
            d, _ = route.keep(d)
    if trouble is not None:
        return failed(d, *trouble)
    if result.preparing:
        return d.reconciling(Reason.PREPARING, SummaryState.LOADING, result.message)
    if capacity is not None:
        return d.reconciling(*capacity)
    told = result.message or _ready_of(judged)
    return d.reconciling(Reason.LOADING, SummaryState.LOADING, told + loading_words(d))


def _trouble(
    d: Draft, judged: Batch, result: CapacityResult, capacity: CapacityWait | None
) -> tuple[Reason, str, str] | None:
    """Why the step makes no progress, and how the release continues anyway."""
    worn = churning(d)
    if len(worn) > judged.tolerated:
        way_on = f"it goes on at {quiet_at(d):%H:%M:%S} UTC if no group is rebuilt until then"
        return Reason.CHURN, next(iter(worn.values())), way_on
    lost = given_up(d, d.home, target_revision(d.home) if d.home is not None else "")
    if len(lost) > judged.tolerated:
        return Reason.DEADLINE, next(iter(lost.values())), WHEN_READY
    used_up = worn_out(d)
    if used_up:
        return Reason.CHURN, used_up, f"to have it tried again: {d.command('retry')}"
    late = None if result.preparing else deadline_passed(d, capacity)
    return (*late, WHEN_READY) if late is not None else None


def _and_requests(d: Draft, told: str) -> str:
    """Warns the user who judges the new version if it receives no requests at all."""
    return ". ".join(filter(None, (told, no_requests(d))))


def _ready_of(judged: Batch) -> str:
    if judged.ready > judged.wanted:
        return f"{judged.ready - judged.wanted} groups of the new version go: the step asks for {judged.wanted}"
    return f"{judged.ready} of {judged.wanted} groups of the new version ready"
