"""Ending a release: promotion through windows, or the way back; what was only there for the release goes afterwards.

Each task can be repeated without harm; ``status.finalising`` says where we are. ``status.stable`` changes in one write
only, when every group of the stable LWS is new and ready under the hold.
"""

from __future__ import annotations

from rollout_lws.api import (
    AbortedRecord,
    BatchReleasePhase,
    FinalisingRecord,
    FinalisingStep,
    SummaryState,
)
from rollout_lws.release.batches import batch, wanted_groups
from rollout_lws.release.renewal import LAST_SERVING, POINT_OF_NO_RETURN, Renewal
from rollout_lws.release.turn import Turn
from rollout_lws.rollout import actions, handover, routing
from rollout_lws.rollout.adoption import store_version, waits_for_empty
from rollout_lws.rollout.capacity import note_opened, renewal, scale_new, worn_out
from rollout_lws.rollout.churn import churning, remember_leaders
from rollout_lws.rollout.cleaning import clean_up
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.health import deadline_passed, waits_for_capacity
from rollout_lws.rollout.reasons import Ending, EventReason, Reason, Task
from rollout_lws.rollout.refusals import unsafe_pending
from rollout_lws.rollout.shares import green_grows
from rollout_lws.rollout.sides import shares_nothing
from rollout_lws.rollout.unlisted import tell_unlisted
from rollout_lws.workload.hold import is_held
from rollout_lws.workload.revisions import current_revision, is_empty, observed, target_revision


def begin_going_back(d: Draft, ending: Ending, why: str) -> None:
    """Leave the steps without promotion; with a second LWS nothing of stable has to be touched."""
    _tell_way_back(d, ending, why)
    d.begin_finalising(ending, Task.TAKE_BACK if d.one_workload else Task.CLEAN_UP)


def _tell_way_back(d: Draft, ending: Ending, why: str) -> None:
    # What is deleted from now on to be made anew at the old version does not keep failing.
    d.set(restarts=())
    if ending is Ending.CONTINUOUS:
        d.notice(EventReason.SUPERSEDED, f"release {d.sub.observed_rollout_id} ends: {why}")
    else:
        d.notice(EventReason.GOING_BACK, f"back to the stable version: {why}", warning=ending is Ending.ABORTED)
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


def run(d: Draft) -> bool:
    """One pass over a release that is ending, through as many tasks as the world allows; always has the last word."""
    while True:
        record = d.status.finalising
        if record is None:
            raise LookupError("no release is ending")
        ending, task = Ending(record.reason), Task(record.task)
        if task is Task.PROMOTE:
            if _promote(d):
                return True
        elif task is Task.TAKE_BACK:
            if _take_back(d, ending):
                return True
        elif task is Task.GO_BACK:
            if _go_back(d, ending):
                return True
        else:
            return clean_up(d, ending)


def at_zero(d: Draft) -> bool:
    """Without groups a version takes effect by itself: the one in the LWS is stable. True while that is awaited."""
    stable = d.status.stable
    if not is_empty(d.stable):
        return waits_for_empty(d, SummaryState.PROMOTING)
    if stable is not None:
        changes = {"template_hash": d.version.template_hash, "revision": target_revision(d.stable)}
        d.confirm_leader_set("the revision that is recorded as stable")
        d.set(stable=stable.model_copy(update=changes), observed_template_hash=d.version.template_hash)
        store_version(d, d.version, target_revision(d.stable))
    actions.refuse_abort(d, actions.PROMOTED_ALREADY)
    d.begin_finalising(Ending.ROLLED_NATIVELY, Task.CLEAN_UP)
    return False


def _turned(d: Draft) -> tuple[Ending, str] | None:
    """Why a promotion that is under way shall not go on."""
    if d.abort_reason is not None:
        return Ending.ABORTED, d.abort_reason
    stable = d.status.stable
    if stable is not None and d.version.template_hash == stable.template_hash:
        return Ending.ROLLBACK, "stable's template was restored"
    if d.version.template_hash != d.status.observed_template_hash:
        return Ending.CONTINUOUS, "another version was applied"
    return None


def _promote(d: Draft) -> bool:
    """Renew the stable LWS; False when another task goes on in this pass."""
    if d.replicas == 0:
        return at_zero(d)
    revision, own = d.sub.new_revision, renewal(d)
    if _is_new(d, own, revision):
        actions.refuse_abort(d, actions.PROMOTED_ALREADY)
        _became_stable(d, revision)
        return False
    if _frozen(d, own):
        return True
    turned = _turned(d)
    if turned is not None and not _past_return(d, own):
        _tell_way_back(d, *turned)
        from_steps = d.one_workload and not shares_nothing(d)
        d.set_task(Task.TAKE_BACK if from_steps else Task.GO_BACK, turned[0])
        return False
    actions.refuse_abort(d, actions.PROMOTED_ALREADY)
    d.set_sub(finalising_step=FinalisingStep.RESUME_WORKLOAD)
    _follow_canary(d)
    tell_unlisted(d)
    growing = _grows(d)
    remember_leaders(d, d.o.canary if growing else d.stable, revision, d.replicas)
    if growing:
        routing.keep(d)
        return _late(d, own, revision, "promotion", growing) or d.reconciling(
            Reason.PROMOTING, SummaryState.PROMOTING, growing
        )
    routed = handover.for_promotion(d)
    own = renewal(d, emptied=routed.emptied)
    overtaken = d.version.template_hash != d.status.observed_template_hash
    if overtaken and all_went_over(d):
        return False
    # No window may be opened to a version that is not released: what went over to it comes back.
    may_open = not d.paused and not worn_out(d) and routed.done
    turn = own.go_back(revision) if overtaken else own.promote(revision, may_open=may_open)
    d.take(turn)
    note_opened(d, turn)
    used_up = worn_out(d)
    if used_up and not turn.writes:
        return d.stalled(Reason.CHURN, f"{used_up}. It is not renewed again; to go back: {d.command('abort')}")
    if d.paused:
        return d.reconciling(Reason.PAUSED, SummaryState.PAUSED, f"paused in mid-promotion: {turn.message}")
    if routed.contested and not turn.writes:
        return d.stalled(Reason.ROUTE_CONTESTED, routed.message)
    if routed.timed and not turn.writes:
        return d.reconciling(Reason.DRAINING, SummaryState.PROMOTING, routed.message)
    doing = turn.message if routed.done or turn.writes else routed.message
    if _late(d, own, revision, "promotion", doing):
        return True
    return d.reconciling(Reason.PROMOTING, SummaryState.PROMOTING, doing)


def _grows(d: Draft) -> str:
    """What a blue-green promotion waits for before anything of stable goes: as many ready groups as the LWS has."""
    if not green_grows(d):
        return ""
    standing = d.o.canary.lws.spec.replicas if d.o.canary is not None else 0
    turn = d.take(scale_new(d, max(d.replicas, standing)))
    return turn.message or f"{d.canary_ready} of {d.replicas} groups of the new version ready"


def _frozen(d: Draft, own: Renewal) -> bool:
    """Whether a version waits that would damage each group that restarts: then none is deleted and no window opened."""
    refusal = unsafe_pending(d)
    if refusal is None:
        return False
    actions.refuse_abort(d, refusal.message)
    # Requests are kept from whoever stops serving all the same.
    handover.protect(d)
    d.write(own.close("a version waits that must not start"))
    return d.stalled(refusal.reason, refusal.message)


def all_went_over(d: Draft) -> bool:
    """Whether every group has gone over to the version of the template without us (through a window that nobody
    closed, or after zero groups): that one is stable then.
    """
    if not is_held(d.stable.lws) or current_revision(d.stable) != target_revision(d.stable) or not rolled_natively(d):
        return False
    d.set(observed_template_hash=d.version.template_hash, observed_rollout_id=d.release_id)
    d.set_task(Task.CLEAN_UP, Ending.ROLLED_NATIVELY)
    return True


def _past_return(d: Draft, own: Renewal) -> bool:
    """Whether the way back is closed: the promotion is finished then, and a new template waits for its end."""
    stable = d.status.stable
    return bool(own.go_back(stable.revision if stable else "").stuck)


def _follow_canary(d: Draft) -> None:
    """The canary keeps the groups it had at its last step; its batch is judged for the record."""
    if d.o.rollout.spec.strategy.style is None:
        # Edited meanwhile to a strategy that cannot be started; what was begun by the old one is finished.
        return
    if not d.strategy.promotes_at_full:
        d.batch = batch(d.new_groups, d.replicas, d.strategy.failure_threshold, d.now, d.minimum)
        return
    wanted = wanted_groups(d.strategy, min(d.sub.current_step_index, len(d.strategy.steps)), d.replicas)
    d.batch = batch(d.new_groups, wanted, d.strategy.failure_threshold, d.now, d.minimum)


def _late(d: Draft, own: Renewal, revision: str, what: str, doing: str) -> bool:
    """Whether no group has become ready for too long while the release ends: told, but the work goes on."""
    ready = sum(group.ready(d.now, d.minimum) for group in own.regular if group.revision == revision)
    # Groups of each task count from another million, so that they are never mistaken for those of the last step.
    count = ready + (1_000_000 if what == "promotion" else 2_000_000)
    if ready and count > ((d.status.step.best_ready if d.status.step else 0) or 0):
        d.set_step(best_ready=count, best_ready_at=d.now)
    worn, capacity = churning(d), waits_for_capacity(d)
    if worn:
        return d.stalled(
            Reason.CHURN, f"{what}: {next(iter(worn.values())).rstrip('.')}; it goes on by itself: {doing}"
        )
    late = deadline_passed(d, capacity)
    if late is not None:
        return d.stalled(late[0], f"{what}: {late[1].rstrip('.')}; it goes on by itself: {doing}")
    return capacity is not None and d.reconciling(*capacity[:2], f"{what}: {capacity[2].rstrip('.')}; {doing}")


def _is_new(d: Draft, own: Renewal, revision: str) -> bool:
    return d.replicas > 0 and own.promote(revision, may_open=False).done


def _became_stable(d: Draft, revision: str) -> None:
    stable = d.status.stable
    if stable is not None:
        changes = {"template_hash": d.status.observed_template_hash, "revision": revision}
        d.set(stable=stable.model_copy(update=changes))
    d.set_task(Task.CLEAN_UP, Ending.SUCCESS)
    d.notice(EventReason.PROMOTED, f"revision {revision} is stable: all {d.replicas} groups are new and ready")


def _way_back(d: Draft, ending: Ending) -> Ending:
    """Why the release goes back, as it was said last: whoever aborts a release that is superseded means its version."""
    turned = _turned(d)
    if turned is None or turned[0] in (ending, Ending.CONTINUOUS):
        return ending
    _tell_way_back(d, *turned)
    d.begin_finalising(turned[0], Task((d.status.finalising or FinalisingRecord(reason="", task=Task.GO_BACK)).task))
    return turned[0]


def _take_back(d: Draft, ending: Ending) -> bool:
    """Out of the steps, where one LWS holds both versions: what they have renewed comes back at the stable one."""
    ending, revision = _way_back(d, ending), d.status.stable.revision if d.status.stable else ""
    own = renewal(d)
    if _frozen(d, own):
        return True
    turn = own.go_back(revision, from_steps=True)
    if turn.stuck == POINT_OF_NO_RETURN:
        # Requests stay with the groups there are, for none comes that they could go to.
        return _went_back(d, ending, own, turn)
    room = handover.make_room(d)
    own = renewal(d, emptied=room.emptied)
    if not (room.done or own.is_open):
        if room.contested:
            return d.stalled(Reason.ROUTE_CONTESTED, room.message)
        return _late(d, own, revision, "going back", room.message) or d.reconciling(
            Reason.ROUTING, SummaryState.GOING_BACK, room.message
        )
    return _went_back(d, ending, own, own.go_back(revision, from_steps=True))


def _go_back(d: Draft, ending: Ending) -> bool:
    """Out of a promotion: what it has renewed comes back at the stable version, with requests shared as they are."""
    ending, revision = _way_back(d, ending), d.status.stable.revision if d.status.stable else ""
    own = renewal(d)
    if own.go_back(revision).done:
        d.set_task(Task.CLEAN_UP, ending)
        return False
    if _frozen(d, own):
        return True
    own = renewal(d, emptied=handover.for_promotion(d).emptied)
    return _went_back(d, ending, own, own.go_back(revision))


def _went_back(d: Draft, ending: Ending, own: Renewal, turn: Turn) -> bool:
    """Act on a turn of the way back; False when another task goes on in this pass."""
    if turn.done:
        d.set_task(Task.CLEAN_UP, ending)
        return False
    d.take(turn)
    stable = d.status.stable
    if turn.stuck == LAST_SERVING and d.status.finalising and d.status.finalising.task == Task.TAKE_BACK:
        # Nobody has asked for its version: it is kept for as long as it is the only one that serves.
        return d.reconciling(Reason.WAITING_FOR_STABLE, SummaryState.GOING_BACK, turn.message)
    if turn.stuck:
        d.set_task(Task.PROMOTE, Ending.SUCCESS)
        d.set(aborted=None)
        d.notice(EventReason.PROMOTING, actions.PROMOTED_ALREADY, warning=True)
        return False
    d.set_sub(finalising_step=FinalisingStep.RESUME_WORKLOAD)
    remember_leaders(d, d.stable, stable.revision if stable else "", d.replicas)
    if _late(d, own, stable.revision if stable else "", "going back", turn.message):
        return True
    return d.reconciling(Reason.GOING_BACK, SummaryState.GOING_BACK, turn.message)


def record_phase(d: Draft) -> BatchReleasePhase:
    """Where the BatchRelease is, from where the Rollout is."""
    if d.status.finalising is not None:
        return BatchReleasePhase.FINALIZING
    return BatchReleasePhase.PROGRESSING


def follows_template(d: Draft) -> bool:
    """Whether every group of [0, R) carries the version of the LWS's template and is ready."""
    return d.replicas > 0 and observed(d.stable) and renewal(d).all_are(target_revision(d.stable))


def rolled_natively(d: Draft) -> bool:
    """Record the LWS's own template as stable if it rolled without us: every group of [0, R) carries it and is
    ready.
    """
    stable, revision = d.status.stable, target_revision(d.stable)
    if stable is None or not follows_template(d):
        return False
    d.confirm_leader_set("the revision that is recorded as stable")
    changes = {"template_hash": d.version.template_hash, "revision": revision}
    d.set(stable=stable.model_copy(update=changes), hold_fights=())
    store_version(d, d.version, revision)
    d.notice(EventReason.ROLLED_NATIVELY, f"revision {revision} is stable: the LeaderWorkerSet rolled by itself")
    return True
