"""Rollbacks of an LWS that runs both versions: from the steps, and with every capacity from a promotion."""

from __future__ import annotations

from dataclasses import replace

from rollout_lws.api import FinalisingStep, Phase, SummaryState
from rollout_lws.api.base import with_fields
from rollout_lws.capacity.partition_update import LAST_SERVING, POINT_OF_NO_RETURN, PartitionUpdate
from rollout_lws.capacity.result import CapacityResult
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates import release
from rollout_lws.rollout.groups.crash_loops import remember_leaders
from rollout_lws.rollout.groups.evictions import forgive
from rollout_lws.rollout.groups.scaling import partition_update
from rollout_lws.rollout.groups.shifting import goes_back
from rollout_lws.rollout.lifecycle import actions
from rollout_lws.rollout.lifecycle.finalize_common import frozen, is_patient, keep_time, late, overdue, turned_round
from rollout_lws.rollout.lifecycle.native_rollout import past_stable
from rollout_lws.rollout.reasons import Ending, EventReason, Reason
from rollout_lws.rollout.routing import traffic_shift
from rollout_lws.rollout.state import CleaningUp, Promoting, RollingBack


def begin_rollback(d: Draft, ending: Ending, why: str) -> Draft:
    """Leaves the steps without promotion. With a canary LWS no stable group is touched, unless some were updated while
    the LWS was not held.
    """
    d = record_ending(d, ending, why)
    takes_back = d.capacity.steps_open_windows or (d.o.stable is not None and not d.paired and past_stable(d))
    takes_back = takes_back or goes_back(d)
    return d.enter(RollingBack(ending, promotion=False) if takes_back else CleaningUp(ending))


def record_ending(d: Draft, ending: Ending, why: str) -> Draft:
    # Groups that are now deleted, to be recreated at the old version, do not count as restarting.
    d = d.set(restarts=())
    d = forgive(d)
    if ending is Ending.CONTINUOUS:
        known = d.status.complete
        # Templates may come after the rollout-id that they belong to: it starts a release once more.
        d = d.set(complete=with_fields(known, release_id=None) if known is not None else None)
        d = d.event(EventReason.SUPERSEDED, f"release {d.sub.observed_rollout_id} ends: {why}")
    else:
        d = d.event(EventReason.ROLLING_BACK, f"back to the stable version: {why}", warning=ending is Ending.ABORTED)
    if ending is Ending.ABORTED and d.o.stable is not None:
        version, release = d.status.observed_template_hash or "", d.status.observed_rollout_id
        d = d.record_abort(why, version, revision=d.sub.new_revision, release_id=release)
    return d


def roll_back(d: Draft, state: RollingBack) -> Draft:
    """Rolls updated groups back to stable; without a verdict if another task continues in this pass."""
    turned = turned_round(d)
    if turned is not None and turned[0] not in (state.ending, Ending.CONTINUOUS):
        # The latest reason for the rollback counts: an abort of a superseded release aborts its version.
        state = replace(state, ending=turned[0])
        # Others may have written another phase, in which autoscalers are not held and nothing of a release is watched.
        d = record_ending(d, *turned).enter(state).set(phase=Phase.PROGRESSING)
    return _out_of_promotion(d, state) if state.promotion else _out_of_steps(d, state)


def _out_of_steps(d: Draft, state: RollingBack) -> Draft:
    """Rolls back from the steps: one LWS runs both versions, or stable groups were updated while it was not held."""
    own, revision = partition_update(d), d.stable_revision
    stands = frozen(d, own)
    if stands is not None:
        return stands
    result = own.go_back(revision, from_steps=True)
    if result.blocked == POINT_OF_NO_RETURN:
        # Traffic stays with the existing groups: none will come that it could move to.
        return _went_back(d, state, own, result)
    d, room = traffic_shift.make_room(d)
    own = partition_update(d, emptied=room.emptied)
    if not (room.done or own.is_open):
        if room.contested:
            return d.stalled(Reason.ROUTE_CONFLICT, room.message, field=room.field)
        if room.timed:
            return d.reconciling(Reason.DRAINING, SummaryState.ROLLING_BACK, room.message)
        d = late(d, own, revision, "going back", room.message)
        return d if d.concluded else d.reconciling(Reason.ROUTING, SummaryState.ROLLING_BACK, room.message)
    return _went_back(d, state, own, own.go_back(revision, from_steps=True, patient=is_patient(d, own)))


def _out_of_promotion(d: Draft, state: RollingBack) -> Draft:
    """Rolls back from a promotion, with the traffic weights unchanged."""
    own, revision = partition_update(d), d.stable_revision
    if own.go_back(revision).done:
        return d.enter(CleaningUp(state.ending))
    stands = frozen(d, own)
    if stands is not None:
        return stands
    d, handed = traffic_shift.for_promotion(d)
    own = partition_update(d, emptied=handed.emptied)
    if handed.timed and not own.is_open:
        return d.reconciling(Reason.DRAINING, SummaryState.ROLLING_BACK, handed.message)
    return _went_back(d, state, own, own.go_back(revision, patient=is_patient(d, own)))


def _went_back(d: Draft, state: RollingBack, own: PartitionUpdate, result: CapacityResult) -> Draft:
    """Acts on the rollback's result; without a verdict if another task continues in this pass."""
    d = keep_time(d)
    passed = overdue(d)
    if result.done:
        if passed is not None and d.status.stable is not None and not own.all_are(d.stable_revision):
            # A broken stable version must not block what comes next, least of all a version that fixes it.
            d = d.event(
                EventReason.ROLLING_BACK,
                f"every group is back at revision {d.stable_revision}, but not ready, and is not waited for any longer:"
                f" {passed[1]}",
                warning=True,
            )
        return d.enter(CleaningUp(state.ending))
    d = d.take(result)
    if result.blocked == LAST_SERVING and (not state.promotion or release.failed(d) is not None):
        # The group's version is no longer wanted; it stays only while it is the only one that serves.
        if passed is not None and state.ending in (Ending.DELETED, Ending.DISABLED):
            return d.stalled(passed[0], result.message, goes_on=True)
        return d.reconciling(Reason.WAITING_FOR_STABLE, SummaryState.ROLLING_BACK, result.message)
    if result.blocked:
        d = d.enter(Promoting(Ending.SUCCESS)).set(aborted=None)
        return d.event(EventReason.PROMOTING, actions.PROMOTED_ALREADY, warning=True)
    d = d.set_sub(finalising_step=FinalisingStep.RESUME_WORKLOAD)
    d = remember_leaders(d, d.stable, d.stable_revision, d.replicas)
    d = late(d, own, d.stable_revision, "going back", result.message)
    return d if d.concluded else d.reconciling(Reason.ROLLING_BACK, SummaryState.ROLLING_BACK, result.message)
