"""The step machine: enters a step, follows what users change, and goes on when the step's gates have passed.

It goes as far in one pass as the cluster's state allows. A step ends (by its timer, an approval, a forward jump or a
full promotion) only while its batch is ready; until then an approval is kept and an elapsed timer waits.
"""

from __future__ import annotations

from typing import assert_never

from rollout_lws.api import BatchRelease, StepRecord, StepState, SummaryState
from rollout_lws.capacity.batch_release import dismiss
from rollout_lws.capacity.batches import Batch
from rollout_lws.capacity.extra_workload import remove
from rollout_lws.rollout.companions import places
from rollout_lws.rollout.draft import Abort, Advance, Draft
from rollout_lws.rollout.gates import records, release, table
from rollout_lws.rollout.gates.analysis import passed_by
from rollout_lws.rollout.gates.base import CurrentStep, Failed, Passed, Waiting, aborts
from rollout_lws.rollout.gates.capacity import ready_without_restarting, step_batch
from rollout_lws.rollout.gates.telling import waits
from rollout_lws.rollout.groups.crash_loops import await_quiet, remember_leaders
from rollout_lws.rollout.groups.scaling import close_window, leaving, scale_new
from rollout_lws.rollout.lifecycle import actions, finalize, handing_over
from rollout_lws.rollout.lifecycle.actions import stays_paused
from rollout_lws.rollout.lifecycle.native_rollout import all_went_over, at_zero, follow_groups
from rollout_lws.rollout.lifecycle.rollback import begin_rollback
from rollout_lws.rollout.lifecycle.shifting import halt, shift
from rollout_lws.rollout.preflight import cannot_release, surge_under_kueue
from rollout_lws.rollout.reasons import Ending, EventReason, Reason
from rollout_lws.rollout.routing import route, selector_pinning, sides, traffic_shift
from rollout_lws.rollout.routing.backend_listing import list_backend
from rollout_lws.rollout.routing.route_result import DONE, Routed
from rollout_lws.rollout.routing.unmanaged_backends import report_unmanaged
from rollout_lws.rollout.routing.weights import carries
from rollout_lws.rollout.state import Promoting
from rollout_lws.rollout.status import batch_release
from rollout_lws.rollout.step_plan import next_index, plan_hash, resumed_index
from rollout_lws.workload.revisions import observed, target_revision


def run(d: Draft) -> Draft:
    """One pass over a release in its steps; always gives a verdict."""
    over = handing_over.no_release(d)
    if over:
        return finalize.run(begin_rollback(d, Ending.ROLLBACK, over))
    if isinstance(d.intent, Abort):
        return finalize.run(begin_rollback(d, Ending.ABORTED, d.intent.reason))
    if d.asks_for_stable:
        return finalize.run(begin_rollback(d, Ending.ROLLBACK, "stable's template was restored"))
    if d.version.template_hash != d.status.observed_template_hash:
        return finalize.run(begin_rollback(d, Ending.CONTINUOUS, "another version was applied"))
    gone = _taken_away(d) if d.capacity.shifts and not d.beside_users else ""
    if gone:
        return finalize.run(begin_rollback(d, Ending.CONTINUOUS, gone))
    ended = None if d.beside_users else _over(d)
    if ended is not None:
        return ended
    d = _follow_release(d)
    ends = surge_under_kueue(d)
    if ends is not None:
        # Kueue would end the surge groups while they serve.
        return finalize.run(begin_rollback(d, Ending.ROLLBACK, ends.message))
    refusal = cannot_release(d)
    if refusal:
        d, _ = route.keep(selector_pinning.keep_pinned(halt(d)))
        return close_window(d).refuse(refusal)
    d = release.follow(d)
    if d.paused:
        d = close_window(_with(d, step_batch(d)))
        d, _ = route.keep(selector_pinning.keep_pinned(halt(d)))
        return stays_paused(records.halt(d))
    d = records.go_on(d)
    d = _jump(_edited_plan(d))
    failure = release.failed(d)
    if failure is not None and not isinstance(d.intent, Advance):
        d = close_window(_with(d, step_batch(d)))
        d, _ = route.keep(selector_pinning.keep_pinned(halt(d)))
        return _failed(d, failure)
    record = d.o.batch_release
    if record is not None and record.metadata.deletion_timestamp is not None:
        return _without_record(d, record).reconciling(
            Reason.PREPARING, SummaryState.LOADING, "the BatchRelease was deleted by hand and is made again"
        )
    return batch_release.begin(_advance(d))


def _taken_away(d: Draft) -> str:
    """That what the new version's groups belong to was deleted, while old groups lack that could take their requests;
    "" if it was not.
    """
    record = d.o.batch_release
    going = record is not None and record.metadata.deletion_timestamp is not None
    return "the BatchRelease was deleted" if going else handing_over.deleted(d)


def _over(d: Draft) -> Draft | None:
    """Gives a verdict if the stable LWS has no groups, or none at the stable version any more; else None."""
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
    return None


def _follow_release(d: Draft) -> Draft:
    """Records a new ID or generation of an unchanged template; that starts no release."""
    generation = d.edited.workload.metadata.generation
    d = d.set(observed_rollout_id=d.release_id, observed_workload_generation=generation)
    d = d.set_sub(observed_rollout_id=d.release_id, observed_workload_generation=generation)
    revision = target_revision(d.edited)
    if observed(d.edited) and revision != d.sub.new_revision:
        # A different LWS version names the revision differently, or the sub-status was wiped.
        d = d.confirm_leader_set("the revision that is released")
        d = d.set_sub(new_revision=revision, stable_revision=d.stable_revision)
    return d


def _without_record(d: Draft, record: BatchRelease) -> Draft:
    """Deleting the BatchRelease deletes its canary LWS too; the controller recreates both. Groups in the stable LWS
    stay.
    """
    if not (d.capacity.one_workload or d.beside_users):
        d, withdrawn = route.withdraw(d)
        if not withdrawn.done:
            return d
    result = remove(d.made, d.keys)
    d = d.take(result)
    return d.write(dismiss(record, d.keys)) if result.done else d


def _edited_plan(d: Draft) -> Draft:
    asked = plan_hash(d.o.rollout.spec.strategy)
    steps, index = d.strategy.steps, d.sub.current_step_index
    # Any writer of the status may put any number there.
    if d.sub.rollout_hash == asked and 1 <= index <= len(steps):
        return d
    standing = d.capacity.standing(d.new_groups, d.o.canary)
    target = resumed_index(d.strategy, index, standing, d.replicas)
    d = d.set_sub(rollout_hash=asked)
    other_groups = d.capacity.makes_groups and d.wanted(target) != standing
    if target != index or other_groups:
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
    if asked > index and not ready_without_restarting(d, step_batch(d)):
        return d
    # Forward without gates that have not passed; back, and those of the release are watched again.
    d = release.passed_by(passed_by(d)) if asked > index else release.again(d)
    d = d.event(EventReason.STEP_CHANGED, f"jump from step {index} to step {asked}")
    return _enter(d, asked)


def _enter(d: Draft, index: int) -> Draft:
    # The status is written first. Otherwise a controller that created the groups but could not record the step would
    # delete them as surplus of the step before and recreate them, for as long as the write is refused.
    return (
        d.persist_first()
        .set(step=StepRecord(started_at=d.now), gates=())
        .set_sub(
            current_step_index=index,
            next_step_index=next_index(d.strategy.steps, index),
            current_step_state=StepState.BEFORE_STEP_UPGRADE,
        )
    )


def _with(d: Draft, judged: Batch) -> Draft:
    """Records the batch's readiness, and wakes when its next group counts as ready."""
    return d.but(batch=judged).wake(judged.next_ready_at)


def _advance(d: Draft) -> Draft:
    """Passes through as many steps as their gates allow."""
    steps = d.strategy.steps
    wanted = d.wanted(d.sub.current_step_index)
    below = d.replicas if d.paired else d.capacity.of_new(d.replicas, 0) + wanted
    d = remember_leaders(d, d.home, d.new_revision, below, places(d, d.replicas))
    d = await_quiet(d)
    d, pinned = selector_pinning.prepare(d)
    d = list_backend(report_unmanaged(d), pinned)
    while True:
        d, step = _asked(d, pinned)
        d, answer = table.judge(d, step)
        match answer:
            case Waiting():
                return _waiting(d, answer)
            case Failed():
                return _failed(d, answer)
            case Passed():
                d = release.passed_by(d) if isinstance(d.intent, Advance) else d
                d = actions.step_left(d)
            case unknown:
                assert_never(unknown)
        if d.intent is Advance.PROMOTE_FULL or step.index == len(steps):
            d = d.set_sub(current_step_state=StepState.COMPLETED)
            how = f"{d.name} hands over" if d.capacity.swaps else f"the stable {d.kind} is renewed"
            d = d.event(EventReason.PROMOTING, f"step {step.index} done: {how}")
            return finalize.run(d.enter(Promoting(Ending.SUCCESS)))
        d = d.event(EventReason.STEP_CHANGED, f"step {step.index} done, step {step.index + 1} begins")
        d = _enter(d, step.index + 1)


def _asked(d: Draft, pinned: Routed) -> tuple[Draft, CurrentStep]:
    """Asks for what the current step needs; ``pinned`` is the result of pinning in this pass."""
    index, judged = d.sub.current_step_index, step_batch(d)
    d = _with(d, judged)
    drained, routed = DONE, None
    if d.capacity.shifts:
        d, routed = route.route(d, index)
        d, drained, scaled = shift(d, judged.wanted, routed)
        return d, CurrentStep(index, d.strategy.steps[index - 1], judged, pinned, drained, routed, scaled)
    going = leaving(d, judged.wanted)
    if going:
        # These groups must stop receiving requests and drain first.
        d, drained = traffic_shift.make_room(d, index, going)
    elif d.capacity.takes_places:
        # The new groups need their traffic weight before the next old group goes.
        d, routed = route.route(d, index)
    scaled = scale_new(d, judged.wanted, emptied=drained.emptied, waits=routed.message if routed else "")
    return d, CurrentStep(index, d.strategy.steps[index - 1], judged, pinned, drained, routed, scaled)


def _waiting(d: Draft, answer: Waiting) -> Draft:
    d = _told(d.wake(answer.until), answer)
    return d.adding(f"no group of {d.name} is ready, so that its requests fail") if sides.is_down(d) else d


def _told(d: Draft, answer: Waiting) -> Draft:
    if answer.state is SummaryState.STALLED:
        return d.stalled(answer.reason, answer.message, field=answer.field)
    return d.reconciling(answer.reason, answer.state, answer.message)


def _failed(d: Draft, answer: Failed) -> Draft:
    """Rolls back, or reports and waits for the user, as ``onFailure`` says."""
    if aborts(d):
        return finalize.run(begin_rollback(d, Ending.ABORTED, answer.message))
    return waits(d, answer, "release")
