"""The decision: a chain of rules that turns an observation into the writes to carry out.

Rules run in order; the first that returns a verdict ends the pass. From top to bottom: LWSs that must not be touched,
Rollouts that detach, adoption, the hold, and only then the release.
"""

from __future__ import annotations

from typing import assert_never

from rollout_lws.api import Phase, SummaryState
from rollout_lws.rollout import history
from rollout_lws.rollout.autoscaling import autoscalers, replicas
from rollout_lws.rollout.companions import missing_from_active
from rollout_lws.rollout.decision import Decision, FieldRef
from rollout_lws.rollout.draft import Draft, HoldState
from rollout_lws.rollout.gates.kinds.jobs import upkeep
from rollout_lws.rollout.groups import kueue_admission, multikueue
from rollout_lws.rollout.lifecycle import (
    actions,
    adoption,
    detach,
    finalize,
    handing_over,
    hold_enforcement,
    idle,
    keeping,
    native_rollout,
    pair,
    parking,
    steps,
    unfinished,
)
from rollout_lws.rollout.lifecycle.rollback import record_ending
from rollout_lws.rollout.observation import Observation
from rollout_lws.rollout.preflight import cannot_manage
from rollout_lws.rollout.reasons import Ending, Reason
from rollout_lws.rollout.roles import swapping
from rollout_lws.rollout.routing import route, serving, traffic_shift
from rollout_lws.rollout.state import CleaningUp, Detaching, Idle, InSteps, Promoting, RollingBack, ending_of
from rollout_lws.rollout.status import report
from rollout_lws.targets.owner import made_for_groups
from rollout_lws.workload.revisions import target_revision


def decide(observation: Observation) -> Decision:
    """Decides what one Rollout needs now. Pure: the same observation always gives the same decision."""
    told = report.report_refusal(observation)
    if told is not None:
        return told
    d = Draft.of(observation)
    scaled = replicas.scale(d)
    if scaled is not None and cannot_manage(d) is None:
        return report.scaling(scaled)
    return report.finish(_decided(d))


def decide_release(observation: Observation) -> Decision:
    """The same for the release alone, whatever number of groups is due."""
    return report.finish(_decided(Draft.of(observation)))


def _decided(d: Draft) -> Draft:
    d = upkeep.follow(autoscalers.follow(_rules(d)))
    if d.o.stable is not None and (not d.paired or d.scales_sides):
        d = hold_enforcement.report_resets(d)
    return multikueue.report_local_pods(kueue_admission.tell(serving.tell_who_answers(d)))


def _rules(d: Draft) -> Draft:
    refusal = cannot_manage(d)
    d = d.set(phase=d.status.phase or Phase.INITIAL)
    # A Rollout that is deleted or disabled finishes its release first, so its revisions must be current.
    d = history.drop_doubles(d)
    d = d if d.paired and not d.scales_sides else native_rollout.follow_revision(d)
    if d.paired and d.o.stable is not None and pair.must_go_back(d):
        return unfinished.resume_rollback(d) if handing_over.is_known(d) else pair.adopt(d)
    if unfinished.must_go_back(d):
        return unfinished.resume_rollback(d) if d.adopted else adoption.adopt(d)
    if detach.deleting(d) and not swapping.goes_home(d):
        return detach.leave(replicas.forget(d), Ending.DELETED)
    if d.o.rollout.spec.disabled and not swapping.goes_home(d):
        return detach.leave(replicas.forget(d), Ending.DISABLED)
    if refusal is not None:
        if d.status.stable is not None and d.status.phase != Phase.DISABLED and not d.swapped:
            d = detach.leave(d, Ending.DISABLED)
        return replicas.forget(d).refuse(refusal)
    if d.o.stable is None or parking.goes_without_serving(d):
        return pair.without_active(d) if d.paired else _workload_missing(d)
    not_yet = (None if d.paired else adoption.looks_first(d)) or adoption.add_finalizer(d)
    if not_yet is not None:
        return not_yet
    if d.paired:
        if not handing_over.is_known(d):
            return pair.adopt(d)
        lacks = missing_from_active(d)
        if lacks:
            d = traffic_shift.protect(parking.hold_sides(replicas.judge(d)))
            return replicas.follow(pair.companion_missing(d, lacks))
        seeded = replicas.seed(d)
        if seeded is not None:
            return seeded
        d = actions.act(parking.hold_sides(replicas.judge(d)).set(active=d.name))
        d = parking.tell_resets(replicas.follow(_release(d)))
        return d.adding(parking.edited_while_active(d)) if d.status.phase == Phase.PROGRESSING else d
    if not (d.adopted or handing_over.have_turned(d)):
        d = adoption.adopt(d)
        if d.concluded:
            return d
    seeded = replicas.seed(d)
    if seeded is not None:
        return seeded
    after = replicas.follow(_managed(swapping.follow_role(replicas.judge(d))))
    given_up = swapping.goes_home(d) and not swapping.goes_home(after) and after.status.finalising is None
    if given_up and (detach.deleting(d) or d.o.rollout.spec.disabled):
        return detach.stays(after, Ending.DELETED if detach.deleting(d) else Ending.DISABLED)
    return after


def _managed(d: Draft) -> Draft:
    d = swapping.hold_parked(hold_enforcement.keep_hold(parking.put_back(d)))
    if d.hold is HoldState.RESTORED and hold_enforcement.has_windows(d):
        # Before the release is judged: an action that is recorded as done must be carried out in this very pass.
        return _held_first(d)
    d = actions.act(d)
    # The template of what a release has made stays, so that nothing rolls there, held or not.
    contested = _contested(d) if d.hold is HoldState.RELEASED and not d.swapped else None
    return contested if contested is not None else _release(d)


def _held_first(d: Draft) -> Draft:
    """Ends the pass: rules that open and close partition windows need to see the restored hold first."""
    d = traffic_shift.protect(d)
    return d.reconciling(Reason.PREPARING, _shown(d), "the hold is put back first")


def _shown(d: Draft) -> SummaryState:
    match d.state:
        case Idle() | InSteps() | Detaching():
            return SummaryState.LOADING
        case Promoting():
            return SummaryState.PROMOTING
        case RollingBack() | CleaningUp():
            return SummaryState.ROLLING_BACK


def _release(d: Draft) -> Draft:
    d = pair.follow_active(d) if d.paired else native_rollout.record_what_runs(d)
    match d.state:
        case InSteps():
            return steps.run(d)
        case CleaningUp(keeps=True):
            d = keeping.run(d)
            if d.concluded:
                return d
        case Promoting() | RollingBack() | CleaningUp():
            d = finalize.run(d)
            if d.status.finalising is not None or (d.pending and _ended_visibly(d)):
                return d
        case Idle() | Detaching():
            pass
        case unknown:
            assert_never(unknown)
    if not d.paired and _runs_already(d):
        return finalize.run(native_rollout.follow_groups(d))
    d = d.but(verdict=None)
    d = pair.settle(d) if d.paired else idle.settle(d)
    if d.concluded:
        return d.but(at_rest=True)
    return steps.run(d) if d.status.finalising is None else finalize.run(d)


def _runs_already(d: Draft) -> bool:
    """True if the pending, refused or aborted version runs in every group anyway (zero groups run any version)."""
    stable = d.status.stable
    renamed = stable is None or target_revision(d.stable) == stable.revision
    return not renamed and d.pending and native_rollout.all_went_over(d)


def _ended_visibly(d: Draft) -> bool:
    """True if the status should report the ended release once before the next pending version is judged."""
    record = d.o.rollout.status.finalising if d.o.rollout.status else None
    return record is not None and record.reason not in (Ending.CONTINUOUS.value, Ending.DISABLED.value)


def _workload_missing(d: Draft) -> Draft:
    ref = d.o.rollout.spec.workload_ref
    if d.status.phase != Phase.PROGRESSING:
        d = d.set(phase=Phase.INITIAL)
    d = route.carry_all(d)
    kept = ", its canary keeps serving" if d.canary_ready else ""
    maker = d.o.made_by.get(ref.name)
    if maker is not None:
        return d.stalled(
            Reason.WORKLOAD_NOT_FOUND, made_for_groups(ref.name, maker), field=FieldRef("spec.workloadRef.kind")
        )
    return d.stalled(
        Reason.WORKLOAD_NOT_FOUND,
        f"{d.called} does not exist in namespace {d.o.rollout.metadata.namespace}{kept}: create it, or"
        " delete this Rollout",
        field=FieldRef("", ref.kind, ref.name),
    )


def _contested(d: Draft) -> Draft | None:
    """Handles a released hold: no release advances, and a version that rolled out natively becomes stable. None while a
    release is only being cleaned up.
    """
    restored = d.asks_for_stable
    if isinstance(d.state, CleaningUp):
        return None
    if restored and d.status.phase == Phase.PROGRESSING and native_rollout.follows_template(d):
        # All groups are back at stable already: there is nothing to roll back and no window to close.
        if ending_of(d.state) is not Ending.ROLLBACK:
            d = record_ending(d, Ending.ROLLBACK, "stable's template was restored")
        return finalize.run(d.enter(CleaningUp(Ending.ROLLBACK)))
    if not restored and native_rollout.follows_template(d):
        d = native_rollout.record_native_roll(d)
        if d.status.phase == Phase.PROGRESSING:
            return finalize.run(d.enter(CleaningUp(Ending.ROLLED_OUT_NATIVELY)))
        return d.ready(Reason.HOLD_RELEASED, SummaryState.HEALTHY, "rolled by itself")
    return hold_enforcement.contested(traffic_shift.protect(d))
