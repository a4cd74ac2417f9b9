"""The two workloads of a pair that its releases scale: labelled with their roles, the active one held, the other one
without groups unless a release makes some.

The active one has its label before the other one loses its groups, and these go only when no request can reach them.
"""

from __future__ import annotations

from datetime import datetime

from rollout_lws.api import HoldConflict, Phase
from rollout_lws.api.base import with_fields
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout import write_conflicts
from rollout_lws.rollout.autoscaling.autoscalers import scales_a_side
from rollout_lws.rollout.companions import active_workloads, edited_names, inactive_workloads, none_left
from rollout_lws.rollout.decision import BestEffort, ReleaseEvent
from rollout_lws.rollout.draft import Draft, HoldState
from rollout_lws.rollout.history import record_stable
from rollout_lws.rollout.lifecycle import hold_enforcement, native_rollout
from rollout_lws.rollout.observation import Companion
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.rollout.roles.writes import forget_number, label, patch, scaled_to_zero
from rollout_lws.rollout.routing import sides
from rollout_lws.rollout.routing.group_drains import put_back_all
from rollout_lws.rollout.routing.route_result import DONE, Routed
from rollout_lws.rollout.routing.sides import ACTIVE, PARKED
from rollout_lws.rollout.state import CleaningUp, Promoting, RollingBack
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import groups
from rollout_lws.workload.hold import advice, foreign_members, give_back, hold, hold_record, writer_of_strategy
from rollout_lws.workload.revisions import is_empty, target_revision


def hold_sides(d: Draft) -> Draft:
    """Keeps the active side held, so that another template starts nothing where the requests are; and the other one as
    long as a release ends there. While it goes on, the hold comes with the number of groups.
    """
    if not d.scales_sides:
        return d
    d = hold_enforcement.keep_hold(put_back(d))
    for each in d.o.companions:
        d = _keep_companion(d, each)
    ends = isinstance(d.state, RollingBack | CleaningUp)
    for facts in inactive_workloads(d) if ends else ():
        body = hold(facts.workload, d.keys, d.uid, counted=True) if facts.workload.replicas else None
        if body is not None:
            d = d.write((patch(facts, body, "nothing starts until its requests have ended"),))
    return d


def _keep_companion(d: Draft, companion: Companion) -> Draft:
    """Holds a companion that serves, and keeps its number of groups, whatever others write: without it the side's
    version would change by itself.
    """
    facts = companion.stable
    if facts is None or facts.workload.metadata.terminating:
        return d
    lws = facts.workload
    if lws.metadata.annotations.get(d.keys.release_hold) == "true":
        body = give_back(lws, d.keys)
        return d.write((patch(facts, body, "hold released"),)) if body is not None else d
    body = hold(lws, d.keys, d.uid, counted=True)
    if body is None:
        return _keep_number(d, companion, facts)
    if hold_record(lws, d.keys) is not None and "partition" in foreign_members(lws, d.keys):
        d = _file_reset(d, facts)
        if write_conflicts.is_left(_resets(d, facts)):
            return d.wake(_tried_again_at(d, facts))
    return d.write((patch(facts, body, "a companion of a pair is in care"),))


def _file_reset(d: Draft, facts: Facts) -> Draft:
    """Another client has reset the hold of a companion. It is put back at once, but not for ever from a tool that
    answers each time, since each reset may restart a group.
    """
    name, current, manager = facts.name, facts.workload.version.template_hash, writer_of_strategy(facts.workload)
    known = write_conflicts.on_file(_resets(d, facts), d.now)
    fresh = HoldConflict(at=d.now, manager=manager, template_hash=current, workload=name)
    if write_conflicts.is_left(known):
        if known[-1].template_hash == current and _tried_again_at(d, facts) is not None:
            return d
        known = (*known[:-1], known[-1].model_copy(update={"put_back_at": d.now, "template_hash": current}))
    elif write_conflicts.answers(known, d.now, current) >= write_conflicts.MOST_ANSWERS:
        known = (*known, fresh)
        told = f"{manager} resets the hold of {facts.called} each time that it is put back: it is left as it is for now"
        d = d.event(EventReason.HOLD_CONFLICT, f"{told}; {advice(facts.workload, d.keys)}", warning=True)
    else:
        known = (*known, fresh.model_copy(update={"put_back_at": d.now}))
        told = f"{manager} reset the hold of {facts.called}; it was put back"
        d = d.event(EventReason.HOLD_RESET, f"{told}: {advice(facts.workload, d.keys)}", warning=True)
    others = (each for each in d.status.companion_resets if each.workload != name)
    return d.set(companion_resets=(*others, *known[-write_conflicts.MOST_OF_ONE :]))


def _resets(d: Draft, facts: Facts) -> tuple[HoldConflict, ...]:
    return tuple(each for each in d.status.companion_resets if each.workload == facts.name)


def _tried_again_at(d: Draft, facts: Facts) -> datetime | None:
    """When a hold that is left reset is put back; None if now."""
    known = _resets(d, facts)
    at = known[-1].at if known else None
    return d.yet_to_come(at, write_conflicts.wait_seconds(known)) if at is not None else None


def tell_resets(d: Draft) -> Draft:
    """Tells whose resets of a companion's hold are left for now: a new version of it rolls by itself."""
    for each in d.o.companions if d.scales_sides else ():
        facts = each.stable
        if facts is None or not write_conflicts.is_left(_resets(d, facts)):
            continue
        until = _tried_again_at(d, facts)
        told = (
            f"{_resets(d, facts)[-1].manager} resets the partition of {facts.called} each time that the hold is put"
            f" back, so that a new version of it rolls by itself: {advice(facts.workload, d.keys)}"
        )
        told += f"; it is put back at {until:%H:%M:%S} UTC" if until is not None else ""
        d = d.adding(told) if d.status.phase == Phase.PROGRESSING else d.stalled(Reason.HOLD_CONFLICT, told)
    return d


def _keep_number(d: Draft, companion: Companion, facts: Facts) -> Draft:
    """Gives a companion that serves the groups that the Rollout asks for. A release takes none away; when the other
    side has all requests, they are about to go.
    """
    record, live = d.status.traffic, facts.workload.replicas
    moved = record is not None and record.desired is not None and record.desired.weight == 100
    number = d.companion_replicas(companion)
    if d.status.phase == Phase.PROGRESSING:
        number = max(number, live)
    if number == live or scales_a_side(d) is not None or (moved and isinstance(d.state, Promoting)):
        return d
    if number == 0 and (d.stable.workload.replicas or d.status.phase == Phase.PROGRESSING):
        # The workload that it goes with serves as long as it has groups.
        return d
    if live == 0 and (d.own_pending or not is_empty(facts)):
        # Without groups the version of its template takes effect by itself, which has to be on record first.
        return d
    patch = Patch(
        facts.workload.resource,
        facts.workload.metadata.namespace,
        facts.name,
        {"spec": {"replicas": number}},
        f"{d.companion_replicas(companion)} groups go with {d.replicas} of {d.name}",
        facts.workload.metadata.resource_version if live == 0 else None,
        uid=facts.workload.metadata.uid,
        generation=facts.workload.metadata.generation,
    )
    note = f"spec.replicas of {facts.called} was set to {number} instead of {live}"
    return d.write_if_possible((BestEffort(patch, ReleaseEvent(EventReason.SCALED.value, note)),))


def put_back(d: Draft) -> Draft:
    """Gives groups that a release has taken out of their Service their label again, once none takes any."""
    return put_back_all(d) if d.scales_sides and not d.shifts else d


def follow_held(d: Draft) -> Draft:
    """Records the version that the active side has by now without a release: it had no groups, or was not held."""
    if d.own_pending and all(each.workload.replicas == 0 for each in active_workloads(d)):
        if not none_left(d):
            return d
        d = record_stable(d, d.own_version, target_revision(d.stable))
        known = d.status.scaling
        # Whatever the number of groups, there was no other version to go back to.
        d = d.set(scaling=with_fields(known, version=d.own_version.template_hash)) if known is not None else d
        return d.event(
            EventReason.ROLLED_OUT_NATIVELY, f"{d.called} has no groups: the version of its template is stable"
        )
    rolls = d.hold is HoldState.RELEASED or native_rollout.all_went_over(d)
    if d.own_pending and rolls and native_rollout.follows_template(d):
        return native_rollout.record_native_roll(d)
    return native_rollout.record_what_runs(d)


def goes_without_serving(d: Draft) -> bool:
    """True if the active side is being deleted, and no group of it is ready any more."""
    facts = d.o.stable
    if not (d.paired and d.scales_sides) or facts is None or not facts.workload.metadata.terminating:
        return False
    return not any(group.ready(d.now) for group in groups(facts))


def edited_while_active(d: Draft) -> str:
    """What to do with a version that the hold of the active side keeps from starting; "" without one."""
    held = d.scales_sides and d.o.stable is not None and d.stable.workload.can_be_held
    if not (held and d.own_pending) or d.hold is HoldState.RELEASED:
        return ""
    name, other = edited_names(d)
    has = "has" if name == d.name else f"goes with {d.name}, which has"
    return (
        f"{d.kind} {name} {has} all requests, and the version in its template waits: apply it to {other} to release it,"
        f" and restore the template of {name}"
    )


def park(d: Draft, *, ends: bool) -> tuple[Draft, Routed]:
    """Labels both sides, and scales the inactive one to 0 when no request can reach it; done when it has 0 replicas.
    ``refused`` while it serves and the active side does not. ``ends``: called at the end of a release, which has
    withdrawn the requests.
    """
    if not d.scales_sides:
        return d, DONE
    d, labelled = label(d, active_workloads(d), ACTIVE)
    d = forget_number(d)
    others = inactive_workloads(d)
    if not labelled.done:
        return d, labelled
    standing = [each for each in others if each.workload.replicas]
    if not standing:
        return label(d, others, PARKED)
    called = " and ".join(each.called for each in standing)
    if d.o.rollout.spec.replicas == 0 == d.stable.workload.replicas:
        return scaled_to_zero(d, standing, f"the Rollout is scaled to 0, and {called} with it")
    if sides.only_new_serves(d):
        why = f"no group of {d.name} is ready, so that {called} keeps its groups"
        return d, Routed(False, why, refused=True)
    whole = sides.only_new_serves_whole(d)
    if whole:
        return d, Routed(False, whole, refused=True)
    unreached = sides.still_serves(d, withdrawn=ends)
    if not unreached.done:
        return d.wake(unreached.until), Routed(False, f"{called} keeps its groups: {unreached.message}")
    for each in standing:
        # Without the label of a parked side they are of a release whose end had to leave them.
        if not ends and each.workload.metadata.labels.get(d.keys.side) == PARKED:
            note = f"{each.called} had {each.workload.replicas} groups without a release: it was scaled to 0"
            d = d.event(EventReason.REPLICAS_RESET, f"{note}; scale the Rollout instead", warning=True)
    return scaled_to_zero(d, standing, f"{d.name} has all requests, and {called} is scaled to 0")
