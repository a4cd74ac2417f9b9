"""The promotion: updates the stable LWS's regular groups through partition windows.

``status.stable`` changes in one write only, when every group of the stable LWS is updated and ready under the hold.
"""

from __future__ import annotations

from rollout_lws.api import FinalisingStep, SummaryState
from rollout_lws.capacity.batches import batch
from rollout_lws.capacity.partition_update import LAST_SERVING, POINT_OF_NO_RETURN, PartitionUpdate
from rollout_lws.capacity.result import CapacityResult
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates import release
from rollout_lws.rollout.gates.base import Failed, aborts
from rollout_lws.rollout.gates.telling import waits
from rollout_lws.rollout.groups.crash_loops import remember_leaders
from rollout_lws.rollout.groups.multikueue import waits_for_workloads
from rollout_lws.rollout.groups.scaling import partition_update, record_window, scale_new, worn_out
from rollout_lws.rollout.lifecycle import actions
from rollout_lws.rollout.lifecycle.actions import stays_paused
from rollout_lws.rollout.lifecycle.finalize_common import frozen, is_patient, keep_time, late, turned_round
from rollout_lws.rollout.lifecycle.native_rollout import all_went_over, at_zero, follow_groups, went_over
from rollout_lws.rollout.lifecycle.rollback import record_ending
from rollout_lws.rollout.reasons import Ending, EventReason, Reason
from rollout_lws.rollout.routing import route, traffic_shift
from rollout_lws.rollout.routing.unmanaged_backends import report_unmanaged
from rollout_lws.rollout.routing.versions import has_no_weight
from rollout_lws.rollout.routing.weights import green_grows
from rollout_lws.rollout.state import CleaningUp, RollingBack
from rollout_lws.workload.revisions import current_revision


def promote(d: Draft) -> Draft:
    """Updates the stable LWS; without a verdict if another task continues in this pass."""
    if d.replicas == 0:
        return at_zero(d)
    revision, own = d.sub.new_revision, partition_update(d)
    d = release.follow(d)
    failure = release.failed(d)
    if failure is not None and own.go_back(d.stable_revision).blocked == POINT_OF_NO_RETURN:
        # Nothing is left to stop.
        failure = None
    if _is_new(d, own, revision) and failure is None:
        return _became_stable(actions.refuse_abort(d, actions.PROMOTED_ALREADY), revision)
    stands = frozen(d, own)
    if stands is not None:
        return stands
    turned = turned_round(d)
    if failure is not None and turned is None and aborts(d) and not d.paused:
        turned = Ending.ABORTED, failure.message
    if turned is not None and (failure is not None or not _past_return(d, own)):
        d = record_ending(d, *turned)
        from_steps = d.capacity.one_workload and not has_no_weight(d)
        return d.enter(RollingBack(turned[0], promotion=not from_steps))
    d = actions.refuse_abort(d, actions.PROMOTED_ALREADY)
    d = d.set_sub(finalising_step=FinalisingStep.RESUME_WORKLOAD)
    d = _follow_canary(d)
    if failure is not None and not d.paused:
        return _stops(d, own, failure)
    d = report_unmanaged(d)
    d, growing = _grows(d)
    d = remember_leaders(d, d.o.canary if growing else d.stable, revision, d.replicas)
    if growing:
        d, _ = route.keep(d)
        d = late(d, own, revision, "promotion", growing)
        return d if d.concluded else d.reconciling(Reason.PROMOTING, SummaryState.PROMOTING, growing)
    d, routed = traffic_shift.for_promotion(d)
    own = partition_update(d, emptied=routed.emptied)
    overtaken = d.version.template_hash != d.status.observed_template_hash
    if overtaken and all_went_over(d):
        return follow_groups(d)
    # No window opens to a version that is not released: groups that were updated to it are rolled back.
    unlisted = waits_for_workloads(d)
    d = d.wake(unlisted.until if unlisted is not None else None)
    may_open = not d.paused and not worn_out(d) and routed.done and unlisted is None
    if overtaken:
        d, result = _overtaken(d, own)
    else:
        result = own.promote(revision, may_open=may_open)
    if overtaken and result.done:
        return _became_stable(d, revision) if current_revision(d.stable) == revision else went_over(d)
    d = record_window(d.take(result), result)
    used_up = worn_out(d)
    if used_up and not result.writes:
        return d.stalled(Reason.CHURN, f"{used_up}. It is not renewed again; to go back: {d.command('abort')}")
    if d.paused:
        return stays_paused(d, f"promotion: {result.message.rstrip('.')}")
    if routed.contested and not result.writes:
        return d.stalled(Reason.ROUTE_CONFLICT, routed.message, field=routed.field)
    if routed.timed and not result.writes:
        return d.reconciling(Reason.DRAINING, SummaryState.PROMOTING, routed.message)
    if result.blocked == LAST_SERVING:
        return d.reconciling(Reason.WAITING_FOR_STABLE, SummaryState.PROMOTING, result.message)
    if result.blocked:
        return d.stalled(Reason.REVISION_MISSING, _no_way_out(d))
    waits = routed.message if unlisted is None or not routed.done else unlisted.message
    doing = result.message if result.writes or not waits else waits
    d = late(d, own, revision, "promotion", doing)
    return d if d.concluded else d.reconciling(Reason.PROMOTING, SummaryState.PROMOTING, doing)


def _stops(d: Draft, own: PartitionUpdate, failure: Failed) -> Draft:
    """Updates no further group after a gate of the release has failed."""
    d = traffic_shift.protect(d)
    return waits(d.write(own.close("a gate of the release has failed")), failure, "promotion")


def _overtaken(d: Draft, own: PartitionUpdate) -> tuple[Draft, CapacityResult]:
    """Rolls groups back after another template was applied; past the point of no return, to the revision that all
    groups restart with. Their readiness is not awaited for ever, or a broken version would block its fix.
    """
    back = own.go_back(d.stable_revision)
    if back.blocked != POINT_OF_NO_RETURN:
        return d, back
    d = keep_time(d)
    return d, own.go_back(current_revision(d.stable), patient=is_patient(d, own))


def _no_way_out(d: Draft) -> str:
    runs = current_revision(d.stable)
    return (
        f"another version waits, but groups of {d.called} restart with revision {runs}, whose"
        f" ControllerRevision is gone: annotate it {d.keys.release_hold}=true to let the version of its template roll"
        " by itself"
    )


def _grows(d: Draft) -> tuple[Draft, str]:
    """What a blue-green promotion waits for before any stable group goes: as many ready groups as the LWS has."""
    if not green_grows(d):
        return d, ""
    standing = d.o.canary.workload.replicas if d.o.canary is not None else 0
    result = scale_new(d, max(d.replicas, standing))
    return d.take(result), result.message or f"{d.canary_ready} of {d.replicas} groups of the new version ready"


def _past_return(d: Draft, own: PartitionUpdate) -> bool:
    """True if the promotion can no longer be rolled back: it is finished, and a new template waits for its end."""
    return bool(own.go_back(d.stable_revision).blocked)


def _follow_canary(d: Draft) -> Draft:
    """Keeps the canary's groups of its last step, and judges its batch for the BatchRelease."""
    if d.o.rollout.spec.strategy.style is None:
        # The strategy was edited to one that cannot start; the release finishes what the old one began.
        return d
    wanted = d.replicas
    if not d.capacity.full_set:
        wanted = d.wanted(min(d.sub.current_step_index, len(d.strategy.steps)))
    return d.but(batch=batch(d.new_groups, wanted, d.strategy.failure_threshold, d.now, d.minimum))


def _is_new(d: Draft, own: PartitionUpdate, revision: str) -> bool:
    return d.replicas > 0 and own.promote(revision, may_open=False).done


def _became_stable(d: Draft, revision: str) -> Draft:
    stable = d.status.stable
    if stable is not None:
        changes = {"template_hash": d.status.observed_template_hash, "revision": revision}
        d = d.set(stable=stable.model_copy(update=changes))
    d = d.enter(CleaningUp(Ending.SUCCESS))
    whole = partition_update(d).all_are(revision)
    how = f"all {d.replicas} groups are new and ready" if whole else "every group is new, but not all are ready"
    bad = release.failed(d)
    # Once every group is new no window is left to close, and LWS goes back to no other revision.
    how += f", although it failed when the last of them was on its way: {bad.message}" if bad is not None else ""
    return d.event(EventReason.PROMOTED, f"revision {revision} is stable: {how}", warning=not whole or bad is not None)
