"""The one decision: from what is observed to what shall be written, as a chain of rules.

Each rule either has the last word or leaves it to the next. Read it from top to bottom: what may not be touched, what
is leaving, what has to be adopted, what has to be held, and only then what is released.
"""

from __future__ import annotations

from rollout_lws.api import Phase, SummaryState
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.rollout import (
    actions,
    adoption,
    autoscalers,
    finalising,
    guard,
    handover,
    history,
    leaving,
    multikueue,
    natively,
    queued,
    report,
    routing,
    start,
    steps,
)
from rollout_lws.rollout.decision import Decision
from rollout_lws.rollout.draft import Draft, HoldState
from rollout_lws.rollout.observation import Observation
from rollout_lws.rollout.reasons import Ending, Reason, Task
from rollout_lws.rollout.refusal import FieldRef
from rollout_lws.rollout.refusals import cannot_manage
from rollout_lws.rollout.rollback import tell_way_back
from rollout_lws.workload.revisions import target_revision


def decide(observation: Observation) -> Decision:
    """What one Rollout needs now. Pure: the same observation always gives the same decision."""
    told = report.tell_refusal(Draft(observation))
    if told is not None:
        return told
    return report.finish(_decided(observation))


def _decided(observation: Observation) -> Draft:
    d = Draft(observation)
    _rules(d)
    autoscalers.follow(d)
    if d.o.stable is not None:
        guard.tell_resets(d)
    queued.tell(d)
    multikueue.tell_pods_here(d)
    return d


def _rules(d: Draft) -> bool:
    refusal = cannot_manage(d)
    d.set(phase=d.status.phase or Phase.INITIAL)
    # Who leaves finishes what is on, and has to know it.
    history.follow_hashes(d)
    history.drop_doubles(d)
    natively.follow_revision(d)
    if leaving.deleting(d):
        return leaving.leave(d, Ending.DELETED)
    if d.o.rollout.spec.disabled:
        return leaving.leave(d, Ending.DISABLED)
    if refusal is not None:
        if d.status.stable is not None and d.status.phase != Phase.DISABLED:
            leaving.leave(d, Ending.DISABLED)
        return d.refuse(refusal)
    if d.o.stable is None:
        return _workload_missing(d)
    if adoption.looks_first(d):
        return True
    if adoption.add_finalizer(d):
        return True
    if adoption.adopt(d):
        return True
    guard.keep_hold(d)
    if d.hold is HoldState.RESTORED and guard.has_windows(d):
        # Before anything is asked of the release: what is filed as done has to be acted on in this very pass.
        return _held_first(d)
    actions.act(d)
    if d.hold is HoldState.RELEASED and _contested(d):
        return True
    return _release(d)


def _held_first(d: Draft) -> bool:
    """What opens and closes windows has to see the hold that is being put back."""
    handover.protect(d)
    ending = d.status.finalising
    state = SummaryState.LOADING if ending is None else SummaryState.ROLLING_BACK
    if ending is not None and ending.task == Task.PROMOTE:
        state = SummaryState.PROMOTING
    return d.reconciling(Reason.PREPARING, state, "the hold is put back first")


def _release(d: Draft) -> bool:
    natively.record_what_runs(d)
    if d.status.finalising is not None:
        finalising.run(d)
        if d.status.finalising is not None or (start.pending(d) and _ended_visibly(d)):
            return True
    elif d.status.phase == Phase.PROGRESSING:
        return steps.run(d)
    if _runs_already(d):
        return finalising.run(d)
    d.settled = start.settle(d)
    return d.settled or steps.run(d)


def _runs_already(d: Draft) -> bool:
    """Whether what is pending, refused or aborted runs in every group all the same: zero groups keep no version."""
    stable = d.status.stable
    renamed = stable is None or target_revision(d.stable) == stable.revision
    return not renamed and start.pending(d) and natively.all_went_over(d)


def _ended_visibly(d: Draft) -> bool:
    """A release that ended is shown as such once, before what is pending next is judged."""
    record = d.o.rollout.status.finalising if d.o.rollout.status else None
    return record is not None and record.reason not in (Ending.CONTINUOUS.value, Ending.DISABLED.value)


def _workload_missing(d: Draft) -> bool:
    ref = d.o.rollout.spec.workload_ref
    if d.status.phase != Phase.PROGRESSING:
        d.set(phase=Phase.INITIAL)
    routing.carry_all(d)
    kept = ", its canary keeps serving" if d.canary_ready else ""
    return d.stalled(
        Reason.WORKLOAD_NOT_FOUND,
        f"LeaderWorkerSet {ref.name} does not exist in namespace {d.o.rollout.metadata.namespace}{kept}: create it, or"
        " delete this Rollout",
        field=FieldRef("", LEADER_WORKER_SETS.kind, ref.name),
    )


def _contested(d: Draft) -> bool:
    """The hold is not ours now: nothing goes forward; a version that has rolled by itself becomes stable."""
    stable, ending = d.status.stable, d.status.finalising
    if ending is not None and ending.task == Task.CLEAN_UP.value:
        return False
    restored = stable is not None and d.version.template_hash == stable.template_hash
    if restored and d.status.phase == Phase.PROGRESSING and natively.follows_template(d):
        # All groups have come back already: there is nothing to take back, and no window of ours to close.
        if ending is None or ending.reason != Ending.ROLLBACK.value:
            tell_way_back(d, Ending.ROLLBACK, "stable's template was restored")
        d.begin_finalising(Ending.ROLLBACK, Task.CLEAN_UP)
        return finalising.run(d)
    if not restored and natively.rolled_natively(d):
        if d.status.phase == Phase.PROGRESSING:
            d.begin_finalising(Ending.ROLLED_OUT_NATIVELY, Task.CLEAN_UP)
            return finalising.run(d)
        return d.ready(Reason.HOLD_RELEASED, SummaryState.HEALTHY, "rolled by itself")
    handover.protect(d)
    return guard.contested(d)
