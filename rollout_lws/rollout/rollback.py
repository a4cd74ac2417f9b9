"""The ways back of one LWS that holds both versions: out of the steps, and for every capacity out of a promotion."""

from __future__ import annotations

from rollout_lws.api import AbortedRecord, FinalisingRecord, FinalisingStep, SummaryState
from rollout_lws.capacity.partition_update import LAST_SERVING, POINT_OF_NO_RETURN, Renewal
from rollout_lws.capacity.result import Turn
from rollout_lws.rollout import actions, handover
from rollout_lws.rollout.capacity import renewal
from rollout_lws.rollout.churn import remember_leaders
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.ending import frozen, is_patient, keep_time, late, overdue, turned_round
from rollout_lws.rollout.evictions import forgive
from rollout_lws.rollout.natively import past_stable
from rollout_lws.rollout.reasons import Ending, EventReason, Reason, Task


def begin_rollback(d: Draft, ending: Ending, why: str) -> None:
    """Leave the steps without promotion. With a second LWS nothing of stable has to be touched, unless groups of it
    went over while it was not held.
    """
    tell_way_back(d, ending, why)
    takes_back = d.one_workload or (d.o.stable is not None and past_stable(d))
    d.begin_finalising(ending, Task.ROLL_BACK_STEPS if takes_back else Task.CLEAN_UP)


def tell_way_back(d: Draft, ending: Ending, why: str) -> None:
    # What is deleted from now on to be made anew at the old version does not keep failing.
    d.set(restarts=())
    forgive(d)
    if ending is Ending.CONTINUOUS:
        d.notice(EventReason.SUPERSEDED, f"release {d.sub.observed_rollout_id} ends: {why}")
    else:
        d.notice(EventReason.ROLLING_BACK, f"back to the stable version: {why}", warning=ending is Ending.ABORTED)
    if ending is Ending.ABORTED and d.o.stable is not None:
        d.set(
            aborted=AbortedRecord(
                template_hash=d.status.observed_template_hash or "",
                revision=d.sub.new_revision,
                release_id=d.status.observed_rollout_id,
                at=d.now,
                reason=why,
                message=why,
            )
        )


def take_back(d: Draft, ending: Ending) -> bool:
    """Out of the steps, where one LWS holds both versions: what they have renewed comes back at the stable one."""
    ending, revision = _way_back(d, ending), d.status.stable.revision if d.status.stable else ""
    own = renewal(d)
    if frozen(d, own):
        return True
    turn = own.go_back(revision, from_steps=True)
    if turn.stuck == POINT_OF_NO_RETURN:
        # Requests stay with the groups there are, for none comes that they could go to.
        return _went_back(d, ending, own, turn)
    room = handover.make_room(d)
    own = renewal(d, emptied=room.emptied)
    if not (room.done or own.is_open):
        if room.contested:
            return d.stalled(Reason.ROUTE_CONFLICT, room.message, field=room.field)
        return late(d, own, revision, "going back", room.message) or d.reconciling(
            Reason.ROUTING, SummaryState.ROLLING_BACK, room.message
        )
    return _went_back(d, ending, own, own.go_back(revision, from_steps=True, patient=is_patient(d, own)))


def go_back(d: Draft, ending: Ending) -> bool:
    """Out of a promotion: what it has renewed comes back at the stable version, with requests shared as they are."""
    ending, revision = _way_back(d, ending), d.status.stable.revision if d.status.stable else ""
    own = renewal(d)
    if own.go_back(revision).done:
        d.set_task(Task.CLEAN_UP, ending)
        return False
    if frozen(d, own):
        return True
    own = renewal(d, emptied=handover.for_promotion(d).emptied)
    return _went_back(d, ending, own, own.go_back(revision, patient=is_patient(d, own)))


def _way_back(d: Draft, ending: Ending) -> Ending:
    """Why the release goes back, as it was said last: whoever aborts a release that is superseded means its version."""
    turned = turned_round(d)
    if turned is None or turned[0] in (ending, Ending.CONTINUOUS):
        return ending
    tell_way_back(d, *turned)
    d.begin_finalising(
        turned[0], Task((d.status.finalising or FinalisingRecord(reason="", task=Task.ROLL_BACK_PROMOTION)).task)
    )
    return turned[0]


def _went_back(d: Draft, ending: Ending, own: Renewal, turn: Turn) -> bool:
    """Act on a turn of the way back; False when another task goes on in this pass."""
    keep_time(d)
    stable, passed = d.status.stable, overdue(d)
    if turn.done:
        if passed is not None and stable is not None and not own.all_are(stable.revision):
            # Whatever waits next, a version that mends it above all, must not be held back by a broken stable version.
            d.notice(
                EventReason.ROLLING_BACK,
                f"every group is back at revision {stable.revision}, but not ready, and is not waited for any longer:"
                f" {passed[1]}",
                warning=True,
            )
        d.set_task(Task.CLEAN_UP, ending)
        return False
    d.take(turn)
    if turn.stuck == LAST_SERVING and d.status.finalising and d.status.finalising.task == Task.ROLL_BACK_STEPS:
        # Nobody has asked for its version: it is kept for as long as it is the only one that serves.
        if passed is not None and ending in (Ending.DELETED, Ending.DISABLED):
            return d.stalled(passed[0], turn.message, goes_on=True)
        return d.reconciling(Reason.WAITING_FOR_STABLE, SummaryState.ROLLING_BACK, turn.message)
    if turn.stuck:
        d.set_task(Task.PROMOTE, Ending.SUCCESS)
        d.set(aborted=None)
        d.notice(EventReason.PROMOTING, actions.PROMOTED_ALREADY, warning=True)
        return False
    d.set_sub(finalising_step=FinalisingStep.RESUME_WORKLOAD)
    remember_leaders(d, d.stable, stable.revision if stable else "", d.replicas)
    if late(d, own, stable.revision if stable else "", "going back", turn.message):
        return True
    return d.reconciling(Reason.ROLLING_BACK, SummaryState.ROLLING_BACK, turn.message)
