"""The two workloads of a pair that its releases scale: labelled with their roles, the active one held, the other one
without groups unless a release makes some.

The active one has its label before the other one loses its groups, and these go only when no request can reach them.
"""

from __future__ import annotations

from collections.abc import Mapping

from rollout_lws.api.base import with_fields
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout.draft import Draft, HoldState
from rollout_lws.rollout.history import record_stable
from rollout_lws.rollout.lifecycle import hold_enforcement, native_rollout
from rollout_lws.rollout.reasons import EventReason
from rollout_lws.rollout.routing import sides
from rollout_lws.rollout.routing.group_drains import put_back_all
from rollout_lws.rollout.routing.route_result import DONE, Routed
from rollout_lws.rollout.routing.sides import ACTIVE, PARKED
from rollout_lws.rollout.state import CleaningUp, RollingBack
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import groups
from rollout_lws.workload.hold import hold
from rollout_lws.workload.revisions import is_empty, target_revision


def hold_sides(d: Draft) -> Draft:
    """Keeps the active side held, so that another template starts nothing where the requests are; and the other one as
    long as a release ends there. While it goes on, the hold comes with the number of groups.
    """
    if not d.scales_sides:
        return d
    d, other = hold_enforcement.keep_hold(put_back(d)), d.o.canary
    if other is None or not other.workload.replicas or not isinstance(d.state, RollingBack | CleaningUp):
        return d
    body = hold(other.workload, d.keys, d.uid, counted=True)
    return d.write((_patch(other, body, "nothing starts until its requests have ended"),)) if body is not None else d


def put_back(d: Draft) -> Draft:
    """Gives groups that a release has taken out of their Service their label again, once none takes any."""
    return put_back_all(d) if d.scales_sides and not d.shifts else d


def follow_held(d: Draft) -> Draft:
    """Records the version that the active side has by now without a release: it had no groups, or was not held."""
    if d.own_pending and d.stable.workload.replicas == 0:
        if not is_empty(d.stable):
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
    if not d.scales_sides or facts is None or not facts.workload.metadata.terminating:
        return False
    return not any(group.ready(d.now) for group in groups(facts))


def edited_while_active(d: Draft) -> str:
    """What to do with a version that the hold of the active side keeps from starting; "" without one."""
    if not (d.scales_sides and d.own_pending) or d.hold is HoldState.RELEASED:
        return ""
    return (
        f"{d.called} has all requests, and the version in its template waits: apply it to {d.other_name} to release it,"
        f" and restore the template of {d.name}"
    )


def park(d: Draft, *, ends: bool) -> tuple[Draft, Routed]:
    """Labels both sides, and scales the inactive one to 0 when no request can reach it; done when it has 0 replicas.
    ``refused`` while it serves and the active side does not. ``ends``: called at the end of a release, which has
    withdrawn the requests.
    """
    if not d.scales_sides:
        return d, DONE
    d, labelled = _label(d, d.stable, ACTIVE)
    d = _forget_number(d)
    other = d.o.canary
    if other is None or not labelled.done:
        return d, labelled
    if other.workload.replicas == 0:
        return _label(d, other, PARKED)
    if d.o.rollout.spec.replicas == 0 == d.stable.workload.replicas:
        return _scaled_to_zero(d, other, f"the Rollout is scaled to 0, and {other.called} with it")
    if sides.only_new_serves(d):
        why = f"no group of {d.name} is ready, so that {other.name} keeps its groups"
        return d, Routed(False, why, refused=True)
    unreached = sides.still_serves(d, withdrawn=ends)
    if not unreached.done:
        return d.wake(unreached.until), Routed(False, f"{other.name} keeps its groups: {unreached.message}")
    # Without the label of a parked side they are of a release whose end had to leave them.
    if not ends and other.workload.metadata.labels.get(d.keys.side) == PARKED:
        note = f"{other.called} had {other.workload.replicas} groups without a release: it was scaled to 0"
        d = d.event(EventReason.REPLICAS_RESET, f"{note}; scale the Rollout instead", warning=True)
    return _scaled_to_zero(d, other, f"{d.name} has all requests, and {other.called} is scaled to 0")


def _scaled_to_zero(d: Draft, facts: Facts, told: str) -> tuple[Draft, Routed]:
    metadata: dict[str, object] = {"labels": {d.keys.side: PARKED}}
    if d.keys.replicas in facts.workload.metadata.annotations:
        metadata["annotations"] = {d.keys.replicas: None}
    body = {"metadata": metadata, "spec": {"replicas": 0}}
    return d.write((_patch(facts, body, told),)), Routed(False, told)


def _forget_number(d: Draft) -> Draft:
    """Removes the note of the number that the active side had, once it has that again."""
    workload = d.stable.workload
    if d.keys.replicas not in workload.metadata.annotations or workload.replicas < d.replicas:
        return d
    body = {"metadata": {"annotations": {d.keys.replicas: None}}}
    return d.write((_patch(d.stable, body, "it has all of its groups again"),))


def _label(d: Draft, facts: Facts, role: str) -> tuple[Draft, Routed]:
    if facts.workload.metadata.labels.get(d.keys.side) == role:
        return d, DONE
    patch = _patch(facts, {"metadata": {"labels": {d.keys.side: role}}}, f"it is the {role} side of a pair")
    return d.write((patch,)), Routed(False)


def _patch(facts: Facts, body: Mapping[str, object], reason: str) -> Patch:
    workload, meta = facts.workload, facts.workload.metadata
    return Patch(workload.resource, meta.namespace, meta.name, body, reason, meta.resource_version)
