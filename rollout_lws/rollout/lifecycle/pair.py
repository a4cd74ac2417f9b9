"""A pair at rest: adopts its two sides, keeps the route as it is, and starts releases of the inactive side's versions.

A version takes effect on the inactive side by itself, where no request reaches it; what is released is the requests.
With ``touch: RouteOnly`` no workload is written.
"""

from __future__ import annotations

from rollout_lws.api import Phase, StableRecord, StepState, SummaryState, TrafficRecord
from rollout_lws.capacity.batch_release import dismiss
from rollout_lws.rollout.autoscaling import autoscalers
from rollout_lws.rollout.companions import (
    active_workloads,
    await_complete,
    edited_names,
    inactive_workloads,
    missing_from_active,
    missing_from_inactive,
    none_left,
    record_complete,
)
from rollout_lws.rollout.decision import FieldRef
from rollout_lws.rollout.draft import Draft, HoldState, Persist
from rollout_lws.rollout.groups.shifting import goes_back
from rollout_lws.rollout.history import drop_surplus, record_stable, store_version, stored_as
from rollout_lws.rollout.lifecycle import handing_over, hold_enforcement, idle
from rollout_lws.rollout.lifecycle.adoption import (
    AT_REST,
    running_together,
    waits_for_empty,
    waits_for_workload,
    write_hold,
)
from rollout_lws.rollout.lifecycle.parking import edited_while_active, follow_held, park
from rollout_lws.rollout.lifecycle.unfinished import is_unfinished, resume_rollback
from rollout_lws.rollout.preflight import cannot_release, cannot_scale, invalid_spec
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.rollout.recent_writes import applied_lately
from rollout_lws.rollout.routing import sides
from rollout_lws.rollout.routing.route_result import DONE, Routed
from rollout_lws.rollout.routing.routing_preflight import obstacles
from rollout_lws.rollout.state import CleaningUp, Detaching, Idle
from rollout_lws.targets.owner import made_for_groups, renamed_with_each_version
from rollout_lws.traffic.routers.of_rollout import pair_routers
from rollout_lws.workload.revisions import observed, target_revision


def adopt(d: Draft) -> Draft:
    """Records which side is active; always gives a verdict. A release of an earlier active side is over."""
    facts = d.o.routing
    if facts is not None and facts.waits:
        # What the route says is not known yet: the record stays as it is.
        told = d.reconciling(Reason.ADOPTING, SummaryState.ADOPTING, facts.waits)
        return told if facts.trouble or d.status.stable is None else told.but(persist=Persist.NOT)
    if d.o.undecided:
        return _undecided(d)
    if _has_groups_unasked(d):
        return _both_have_groups(d)
    lacks = missing_from_active(d)
    if lacks:
        return companion_missing(d, lacks)
    for each in active_workloads(d):
        if not observed(each):
            return waits_for_workload(d, SummaryState.ADOPTING, each)
    # What cannot be released is protected all the same.
    unfinished = is_unfinished(d) or _leaves_groups(d)
    d, rested = (d, DONE) if unfinished else sides.rest(d)
    if d.scales_sides and not d.o.autoscalers.synced:
        return autoscalers.await_list(d)
    refusal = invalid_spec(d) or next(obstacles(d), None) or cannot_scale(d)
    if refusal is not None:
        return d.refuse(refusal)
    if not rested.done:
        return _not_rested(d, rested, SummaryState.ADOPTING)
    version, revision = d.own_version, target_revision(d.stable)
    if d.scales_sides:
        d, running = running_together(d)
        if running is None:
            return d
        version, revision = running
        for each in active_workloads(d):
            d = d.confirm_leader_set("the revision that is recorded as stable", each)
        # Companions are held from the next pass on, like everything that others have changed.
        d = write_hold(d, "a pair is in care")
    if d.o.batch_release is not None:
        d = d.write(dismiss(d.o.batch_release, d.keys))
    workload, other = d.stable.workload, d.o.canary
    # One that was recreated in its place takes no decision back that was made on the other side.
    same = d.status.active == d.name and d.status.inactive_hash is not None and not d.on_record
    own, released_from = version.template_hash, d.status.stable if d.on_record else None
    d = store_version(d, version, revision)
    d = d.set(
        phase=Phase.HEALTHY,
        stable=StableRecord(template_hash=own, revision=revision, workload_uid=workload.metadata.uid),
        active=d.name,
        inactive_hash=d.status.inactive_hash if same else _known_at_adoption(d, own),
        arriving=None,
        start_requested=None,
        traffic=None,
        aborted=d.status.aborted if same else None,
        paused=None,
        **AT_REST,
    )
    d = d if same else record_complete(d)
    d = d.begin_sub(
        stable_revision=revision, new_revision=revision, next_step_index=-1, current_step_state=StepState.COMPLETED
    )
    if other is None or missing_from_inactive(d):
        return _counterpart_missing(d.event(EventReason.ADOPTED, f"{d.called} is the active side of the pair"))
    if unfinished:
        return resume_rollback(d)
    start = "" if d.asks_for_stable else f", whose version is released by request: {d.command('start')}"
    note = f"{d.called} is the active side of the pair, {other.name} the inactive one{start}"
    if released_from is not None and released_from.workload_uid == other.workload.metadata.uid:
        note = f"{other.name} cannot serve any more, so that the release is over: {note}"
    d = d.event(EventReason.ADOPTED, note, warning=released_from is not None)
    return _tells(idle.rests(d), rested)


def _known_at_adoption(d: Draft, own: str) -> str | None:
    """The version of the inactive side that no release has to bring there. Of a workload that is made later any version
    is a new one; of a side that lacks companions it is known once they are there.
    """
    if d.o.canary is None:
        return own
    return None if missing_from_inactive(d) else d.version.template_hash


def _leaves_groups(d: Draft) -> bool:
    """True if the Rollout leaves, and a release that is not on record has left groups on the inactive side."""
    leaves = d.o.rollout.metadata.deletion_timestamp is not None or bool(d.o.rollout.spec.disabled)
    other = d.o.canary
    leaves = leaves and d.keys.rollout_finalizer in d.o.rollout.metadata.finalizers
    return leaves and goes_back(d) and other is not None and other.workload.replicas > 0 and sides.is_on_record(d)


def must_go_back(d: Draft) -> bool:
    """True if the status does not say that a release takes groups of the active side, and one has, or if the Rollout
    leaves before those that it has made are gone.
    """
    leaves_first = not handing_over.is_known(d) and _leaves_groups(d)
    over = isinstance(d.state, Idle | Detaching | CleaningUp) and not sides.have_turned(d)
    return leaves_first or (over and is_unfinished(d))


def without_active(d: Draft) -> Draft:
    """Gives the verdict while the active side does not exist and the other one cannot serve."""
    if d.scales_sides and sides.may_serve(d) and sides.is_reached(d):
        told = f"{d.other_name} becomes the active side when no group of {d.name} gets requests any more"
        return d.reconciling(Reason.ADOPTING, SummaryState.ADOPTING, told)
    if d.scales_sides and sides.may_serve(d):
        d = sides.turn(d).event(
            EventReason.ADOPTED,
            f"{d.kind} {d.name} was deleted: {d.other_name} becomes the active side",
            warning=True,
        )
        return d.reconciling(Reason.ADOPTING, SummaryState.ADOPTING, f"{d.other_name} becomes the active side")
    why = f"no group of {d.other_name} is ready"
    if d.scales_sides and d.o.canary is not None:
        why = f"the version of {d.other_name} was not released before"
    maker = d.o.made_by.get(d.name)
    if maker is not None:
        return d.stalled(
            Reason.WORKLOAD_NOT_FOUND, made_for_groups(d.name, maker), field=FieldRef("spec.workloadRef.kind")
        )
    way_out = renamed_with_each_version(d.o.canary.workload) if d.o.canary is not None else ""
    way_out = way_out or "create it, or delete this Rollout"
    return d.stalled(
        Reason.WORKLOAD_NOT_FOUND,
        f"{d.kind} {d.name} does not exist in namespace {d.o.rollout.metadata.namespace}, and {why}: {way_out}",
        field=FieldRef("", d.kind, d.name),
    )


def _undecided(d: Draft) -> Draft:
    facts = d.o.routing
    missing = next((each.state.missing for each in pair_routers(facts) if each.state.missing), "") if facts else ""
    if missing:
        return d.stalled(Reason.ROUTE_PROBLEM, f"{missing} does not exist: create it", field=sides.field_of_route(d))
    return d.stalled(
        Reason.ACTIVE_SIDE_UNKNOWN,
        f"requests go to both {d.name} and {d.other_name}, or to neither: set the weight of one of them to 0 in the"
        " route, or name the side that serves in spec.activeSide",
        field=FieldRef("spec.activeSide"),
    )


def _has_groups_unasked(d: Draft) -> bool:
    """True if the inactive side has groups, and neither a Rollout before nor ``activeSide`` has said that they go. What
    is named there has to have some itself.
    """
    other, workload = d.o.canary, d.stable.workload
    if not d.scales_sides or other is None or sides.is_on_record(d) or d.keys.side in workload.metadata.labels:
        return False
    named = d.o.rollout.spec.active_side == d.name and workload.replicas > 0
    return not named and any(each.workload.replicas or each.leaders for each in inactive_workloads(d))


def _both_have_groups(d: Draft) -> Draft:
    # Nothing is written: a note of ours in the route would say that it was decided.
    asked = d.o.rollout.spec.active_side
    if asked == d.other_name:
        return d.stalled(
            Reason.ACTIVE_SIDE_UNKNOWN,
            f"spec.activeSide names {asked}, and the route gives the requests to {d.name}: name that side, or give"
            f" {asked} all the weight in the route",
            field=FieldRef("spec.activeSide"),
        )
    return d.stalled(
        Reason.ACTIVE_SIDE_UNKNOWN,
        f"{d.name} would be the active side, and the groups of {d.other_name} would go: name the side that serves in"
        f" spec.activeSide, or scale {d.other_name} to 0",
        field=FieldRef("spec.activeSide"),
    )


def _counterpart_missing(d: Draft) -> Draft:
    d, lacks = d.set(start_requested=None), missing_from_inactive(d)
    named = " and ".join(lacks)
    way_out = renamed_with_each_version(d.stable.workload) or f"create {named} to release a version on it"
    maker = d.o.made_by.get(lacks[0])
    if maker is not None:
        told = made_for_groups(lacks[0], maker)
        return d.stalled(Reason.COUNTERPART_MISSING, told, field=FieldRef("spec.counterpartRef.kind"))
    return d.stalled(
        Reason.COUNTERPART_MISSING,
        f"{d.kind} {named} does not exist; {d.name} has all requests: {way_out}",
        field=FieldRef("", d.kind, lacks[0]),
    )


def companion_missing(d: Draft, lacks: tuple[str, ...]) -> Draft:
    """Gives the verdict while the active side lacks companions: everything stays as it is, whatever is on."""
    named = " and ".join(lacks)
    going = any(each.stable is not None for each in d.o.companions if each.name in lacks)
    what = "is being deleted" if going else "does not exist"
    d = d if d.status.phase == Phase.PROGRESSING else d.set(phase=Phase.INITIAL)
    way_out = renamed_with_each_version(d.stable.workload)
    way_out = way_out or f"create {named}, or take it out of spec.companions of a Rollout that is disabled"
    return d.stalled(
        Reason.COMPANION_MISSING,
        f"{d.kind} {named} {what} in namespace {d.o.rollout.metadata.namespace}, and goes with {d.name}, which has the"
        f" requests: {way_out}",
        field=FieldRef("spec.companions", d.kind, lacks[0]),
    )


def _not_rested(d: Draft, rested: Routed, state: SummaryState) -> Draft:
    if rested.contested:
        return d.stalled(Reason.ROUTE_CONFLICT, rested.message, field=rested.field)
    return d.persist_later(brief=bool(d.writes)).reconciling(Reason.ROUTING, state, rested.message)


def _tells(d: Draft, rested: Routed) -> Draft:
    """With what users are affected by at rest, if they are."""
    return d.adding(rested.message) if rested.message else d


def settle(d: Draft) -> Draft:
    """Judges a pair at rest; gives a verdict unless it has just started a release."""
    # What cannot be released is protected all the same.
    d, kept = sides.keep(d)
    refusal = invalid_spec(d)
    if refusal is not None:
        return d.refuse(refusal)
    if not kept.done:
        return _not_rested(d, kept, SummaryState.ROUTING)
    d, parked = park(d, ends=False)
    d = _judged(sides.forget_conflicts(d), parked)
    if not d.concluded and sides.shares(d):
        # It has all requests while the active side has no ready group: no step takes them away.
        d = d.set(traffic=TrafficRecord(since=d.now))
    return _tells(d, kept)


def _judged(d: Draft, parked: Routed) -> Draft:
    """Judges the inactive side; gives a verdict unless it has just started a release. That waits until no group of an
    earlier version is asked for there.
    """
    if missing_from_inactive(d):
        return _counterpart_missing(d)
    for each in inactive_workloads(d):
        if not observed(each):
            return waits_for_workload(d, SummaryState.PREPARING, each)
    aborted = d.status.aborted
    if aborted is not None and aborted.template_hash == d.version.template_hash and not d.asks_for_stable:
        d = idle.stays_aborted(idle.judged(d).set(phase=Phase.ABORTED)).adding(parked.message)
        return d.adding(edited_while_active(d))
    if not d.pending:
        return _nothing_pending(d).adding(parked.message)
    d, incomplete = await_complete(d)
    if not d.pending:
        return _nothing_pending(d).adding(parked.message)
    if incomplete is not None:
        reason = Reason.VERSION_INCOMPLETE if incomplete.until is None else Reason.PREPARING
        return d.reconciling(reason, SummaryState.PREPARING, incomplete.message).adding(parked.message)
    refusal = cannot_release(d)
    if refusal is not None:
        return idle.refuse(d, refusal).adding(parked.message)
    if not parked.done:
        told = parked.message or f"{d.name} and {d.other_name} are being labelled"
        return d.reconciling(Reason.PREPARING, SummaryState.PREPARING, told)
    if d.replicas == 0 and d.scales_sides and d.stable.workload.replicas:
        return d.reconciling(Reason.PREPARING, SummaryState.PREPARING, f"{d.called} is scaled to 0 first")
    if d.replicas == 0 and d.scales_sides and not none_left(d):
        return waits_for_empty(d, SummaryState.PREPARING)
    if d.replicas == 0 and d.scales_sides:
        return sides.turn(d).reconciling(
            Reason.PREPARING,
            SummaryState.PREPARING,
            f"{d.edited.name} becomes the active side: it has another version, and neither side has groups",
        )
    if d.replicas == 0:
        message = f"{d.edited.called} has another version and 0 groups: its release begins when it is scaled up"
        d = d.set(observed_workload_generation=d.edited.workload.metadata.generation)
        return d.reconciling(Reason.PREPARING, SummaryState.PREPARING, message)
    facts = d.o.routing
    if facts is not None and facts.waits:
        d = d.brief_until(applied_lately(d) if not facts.trouble else None)
        return d.reconciling(Reason.PREPARING, SummaryState.ROUTING, facts.waits)
    if d.scales_sides and not d.o.autoscalers.synced:
        d = d.brief_until(applied_lately(d) if not d.o.autoscalers.trouble else None)
        return autoscalers.await_list(d)
    return idle.start(d)


def follow_active(d: Draft) -> Draft:
    """Records the version that the active side's owner has given it; it rolls by itself."""
    stable, version = d.status.stable, d.own_version
    if stable is None or not d.adopted or not all(map(observed, active_workloads(d))):
        return d
    if d.scales_sides and d.stable.workload.can_be_held:
        return follow_held(d)
    if stable.template_hash == version.template_hash:
        revision = target_revision(d.stable)
        return d.set(stable=stable.model_copy(update={"revision": revision})) if revision != stable.revision else d
    d = record_stable(d, version, target_revision(d.stable))
    return d.event(
        EventReason.ROLLED_OUT_NATIVELY,
        f"the template of {d.called} was changed while it has all requests: its groups are renewed by its own strategy,"
        " not step by step",
        warning=True,
    )


def _nothing_pending(d: Draft) -> Draft:
    # What was released last stays on record, and not what its workload's counterpart has; what was given up does not.
    released = d.status.stable is not None and d.status.observed_template_hash == d.status.stable.template_hash
    d = d if released and not d.asks_for_stable else idle.judged(d)
    d = d.set(
        phase=Phase.HEALTHY,
        start_requested=None,
        inactive_hash=d.status.inactive_hash or d.version.template_hash,
        arriving=None,
        observed_workload_generation=d.edited.workload.metadata.generation,
    )
    d = record_complete(d.set_sub(stable_revision=d.stable_revision, new_revision=d.stable_revision))
    if d.hold is HoldState.RELEASED:
        return hold_enforcement.contested(d)
    edited = edited_while_active(d)
    if edited:
        field = FieldRef(f"spec.{d.stable.workload.template}", d.kind, edited_names(d)[0])
        return d.stalled(Reason.ACTIVE_SIDE_EDITED, edited, field=field)
    return idle.rests(drop_surplus(d)).adding(_not_released(d))


def _not_released(d: Draft) -> str:
    """That the parked side has a version which no release has brought there, and how to have it released."""
    if not d.scales_sides or d.asks_for_stable or stored_as(d, d.version.template_hash) is not None:
        return ""
    return f"the version of {d.edited.called} is released by request: {d.command('start')}"
