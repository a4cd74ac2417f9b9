"""Writes the number of groups that ``spec.replicas`` asks for to the workload, and keeps it there.

People and autoscalers set it through the scale subresource of the Rollout. Writing it is a decision of its own, before
the release's, so that no write of a release that is refused holds it up, nor it a release. The status records each
number before it is written; once it was seen in the workload, another one is another client's and is put back, each
further time later.

Each pass judges what it would write by what is there, and the status alone neither adds groups nor takes any away. A
number waits where it would do harm:

* In a release an autoscaler takes no group away, since the load of the old version falls as requests move to the new
  one; where both versions share the workload, it adds none either. People may, unless an autoscaler names the Rollout.
* Without groups a pending version would take effect by itself. So 0 waits while one is pending, and a workload without
  groups gets none of a version that no release has brought to its end.
* Not all groups that serve are taken away while none of those that stay is ready.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import assert_never

from rollout_lws.api import ConditionType, Phase, ScalingRecord, ScalingWait, WaitingReplicas, rollouts
from rollout_lws.api.base import with_fields
from rollout_lws.objects.owners import OURS
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout.autoscaling.autoscalers import scales_a_side
from rollout_lws.rollout.backoff import doubled
from rollout_lws.rollout.decision import BestEffort, ReleaseEvent
from rollout_lws.rollout.draft import Draft, Persist
from rollout_lws.rollout.groups.shifting import room_for_stable
from rollout_lws.rollout.reasons import EventReason
from rollout_lws.rollout.state import Promoting
from rollout_lws.rollout.write_conflicts import UNKNOWN_WRITER
from rollout_lws.workload.applied import owns_replicas
from rollout_lws.workload.groups import groups

#: Seconds after which a number that does not stay is written again, doubled each time up to the longest.
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 1.0, 300.0
#: Seconds after the last try from which a number counts as never tried.
FORGOTTEN_SECONDS = 600
#: From so many tries on, the message says that the number does not stay.
SAID_FROM = 3
#: Limit of recorded tries.
MOST_TRIES = 1000


class _Unsafe(Enum):
    """Why no number may be written at the moment."""

    PENDING_VERSION = auto()
    """There are no groups, and all would start at a version that no release has brought to its end."""
    LAST_SERVING = auto()
    """All groups that serve would go."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the Rollout's message says of its number; ``contested`` if it was written again and again in vain."""

    text: str
    contested: bool = False


@dataclass(frozen=True, slots=True)
class _Plan:
    """``number`` is what the workload must have now, and ``record`` what the status has to say of it. ``unsafe`` is why
    it stays as it is although another number is due. ``tries`` says how often the number was tried lately, ``due`` when
    it may be tried again; None: at once.
    """

    number: int
    record: ScalingRecord
    unsafe: _Unsafe | None = None
    tries: int = 0
    due: datetime | None = None


def scale(d: Draft) -> Draft | None:
    """What a pass for the number alone has to record and to write, if the Rollout may manage the workload; None if
    there is nothing to do now.
    """
    if not _may_scale(d):
        return None
    plan, workload = _plan(d), d.stable.workload
    number = _with_room(d, plan.number)
    if number == _live(d) or plan.due is not None:
        # A release whose write is refused does not get to write its status.
        shown = _shown(d, plan) if d.o.refused is not None else d
        return shown if shown.status is not d.status else None
    patch = Patch(
        workload.resource,
        workload.metadata.namespace,
        workload.metadata.name,
        {"spec": {"replicas": number}},
        f"the Rollout asks for {plan.number} groups",
        uid=workload.metadata.uid,
        # Judged was this template, and this number.
        generation=workload.metadata.generation,
    )
    record = with_fields(plan.record, tries=min(plan.tries + 1, MOST_TRIES), tried_at=d.now)
    return d.set(scaling=record).write_if_possible((BestEffort(patch, _event(d, plan)),))


def seed(d: Draft) -> Draft | None:
    """A pair whose workloads a release scales has a number of its own, so that it stays when the roles change: the
    active side's, if none was given; None if there is nothing to do.
    """
    asked = d.o.rollout.spec
    if not (asked.scales_sides or d.swapped) or asked.replicas is not None:
        return None
    meta, known = d.o.rollout.metadata, d.status.scaling
    # What a person has just scaled a side to is no number of the Rollout's.
    count = (known.replicas if known is not None else None) or d.own_size
    body = {"spec": {"replicas": count}}
    why = f"{d.called} has so many groups"
    patch = Patch(rollouts(d.keys.group), meta.namespace, meta.name, body, why, meta.resource_version)
    # The response to this patch triggers the reconcile that writes the status, with the new resourceVersion.
    return d.write((patch,)).but(persist=Persist.NOT)


def _live(d: Draft) -> int:
    """The number that the workload has, of two that change roles the active one; while a release takes groups of that,
    the one that it had before.
    """
    if not d.shifts:
        return d.stable.workload.replicas
    # A number that was asked for meanwhile is a matter of the release.
    known = d.status.scaling
    return (known.replicas if known is not None else None) or d.own_size


def judge(d: Draft) -> Draft:
    """Records whether the number waits, before a release makes as many groups."""
    if not d.scales_sides or d.o.rollout.spec.replicas is None or not d.adopted:
        return d
    return d.set(scaling=_plan(d).record)


def follow(d: Draft) -> Draft:
    """Tells in the status what was asked and what waits; without ``spec.replicas`` nothing."""
    if d.o.rollout.spec.replicas is None or (d.paired and not d.scales_sides):
        return forget(d)
    if d.o.stable is None or not d.adopted:
        return d
    plan = _plan(d)
    text = _told(d, plan).text
    d = _shown(d, plan)
    return (d.adding(text) if text else d).wake(plan.due)


def forget(d: Draft) -> Draft:
    """Asks for nothing any more: the workload keeps the number that it has."""
    return d.set(scaling=None, replicas=None, selector=None)


def selector(d: Draft) -> str:
    """Label selector of the pods that take requests, of both versions: an autoscaler that divides the load of all of
    them by what one may have gets the number of groups that the load needs, however it is shared.
    """
    labels = d.labels
    if labels.workload is None:
        return ",".join(f"{key}={value}" for key, value in sorted(d.stable.workload.selector.items()))
    names = f"{labels.workload} in ({d.other_name},{d.name})"
    return names if labels.leader is None else f"{'='.join(labels.leader)},{names}"


def told(d: Draft) -> Told:
    """What waits, or which number does not stay, and what to do; without text if the workload has the number, or the
    Rollout asks for none.
    """
    return _told(d, _plan(d)) if _may_scale(d) else Told("")


def _may_scale(d: Draft) -> bool:
    rollout = d.o.rollout
    if (
        (d.paired and not d.scales_sides)
        or rollout.spec.replicas is None
        or rollout.metadata.deletion_timestamp is not None
        or rollout.spec.disabled
    ):
        return False
    if d.o.stable is None or not d.adopted or d.stable.workload.metadata.terminating:
        return False
    return not d.scales_sides or _may_scale_active(d)


def _may_scale_active(d: Draft) -> bool:
    """False while an autoscaler scales a side, or may do, since what it asks for counts until it scales the Rollout;
    from when the other side has all requests, since the groups of this one go; and while a release takes groups of one
    side as the other one gets some.
    """
    autoscalers = d.o.autoscalers
    if d.shifts:
        return False
    if scales_a_side(d) is not None or not (autoscalers.synced or autoscalers.trouble):
        return False
    record = d.status.traffic
    wanted = record.desired.weight if record is not None and record.desired is not None else 0
    return not (isinstance(d.state, Promoting) and wanted == 100)


def _with_room(d: Draft, number: int) -> int:
    """The number, as far as a pair that shifts has room for it beside the groups of the other side that still go."""
    live = _live(d)
    return max(live, min(number, live + room_for_stable(d))) if d.capacity.shifts and number > live else number


def _shown(d: Draft, plan: _Plan) -> Draft:
    return d.set(replicas=_live(d), selector=selector(d), scaling=plan.record)


# What to ask


def _plan(d: Draft) -> _Plan:
    """The *wanted* number is that of the spec; the *standing* one is the last that the workload is known to have had,
    and stays while the wanted one waits.
    """
    wanted, before = d.o.rollout.spec.replicas, _record(d)
    assert wanted is not None
    standing = before.replicas if before.seen and before.replicas is not None else _live(d)
    waiting = _waiting(d, before, wanted, standing)
    number = wanted if waiting is None else _kept(d, wanted, standing)
    record = with_fields(before, waiting=waiting)
    unsafe = _unsafe(d, before, number)
    if unsafe is not None or (waiting is not None and number != standing):
        # Nothing was asked for: what was is due as soon as it is safe.
        return _Plan(_live(d), record, unsafe)
    if record.replicas != number:
        record = with_fields(record, replicas=number, seen=None, tries=None, tried_at=None)
    if number == _live(d):
        return _Plan(number, _seen(d, record))
    last, tries = record.tried_at, record.tries or 0
    if last is None or last + timedelta(seconds=FORGOTTEN_SECONDS) <= d.now:
        return _Plan(number, record)
    # Groups that serve go, or load for nothing, until its number is back.
    wait = FIRST_WAIT_SECONDS if d.scales_sides else doubled(FIRST_WAIT_SECONDS, tries - 1, LONGEST_WAIT_SECONDS)
    return _Plan(number, record, None, tries, d.yet_to_come(last, wait))


def _record(d: Draft) -> ScalingRecord:
    """What this workload was asked; empty for another one of the same name."""
    uid, known = d.stable.workload.metadata.uid, d.status.scaling
    return known if known is not None and known.workload_uid == uid else ScalingRecord(workload_uid=uid)


def _seen(d: Draft, record: ScalingRecord) -> ScalingRecord:
    """The record of a number that the workload has. Tries that a busy server has cost are no other client's fault."""
    tries = record.tries if record.seen or not record.tries else 1
    stable = d.status.stable
    return with_fields(record, seen=True, tries=tries, version=stable.template_hash if stable is not None else None)


def _waiting(d: Draft, before: ScalingRecord, wanted: int, standing: int) -> WaitingReplicas | None:
    """The wanted number, if it waits."""
    if wanted == standing == _live(d):
        return None
    if wanted == 0 and d.own_pending:
        return WaitingReplicas(replicas=wanted, waits_for=ScalingWait.NOTHING_PENDING)
    if wanted == 0 and d.scales_sides and d.status.phase == Phase.PROGRESSING:
        # Requests move to groups of the other side, which are as many.
        return WaitingReplicas(replicas=wanted, waits_for=ScalingWait.RELEASE_END)
    takes = wanted < max(standing, _live(d))
    if not _in_release(d) or not (takes or (d.capacity.pins_replicas and wanted != standing)):
        return None
    # KEDA removes its autoscaler when it is paused: it has asked all the same.
    asked_before = before.waiting is not None and before.waiting.replicas == wanted and before.waiting.by_autoscaler
    by_autoscaler = asked_before or bool(d.o.autoscalers.of_rollout)
    if by_autoscaler or not d.o.autoscalers.synced:
        return WaitingReplicas(
            replicas=wanted, waits_for=ScalingWait.RELEASE_END, by_autoscaler=True if by_autoscaler else None
        )
    return None


def _in_release(d: Draft) -> bool:
    """True in a release, and between two of them."""
    if d.status.phase == Phase.PROGRESSING:
        return True
    last = d.verdict.condition if d.verdict is not None else d.status.verdict and d.status.verdict.condition
    return d.pending and last != ConditionType.STALLED


def _kept(d: Draft, wanted: int, standing: int) -> int:
    """The number while the wanted one waits. One that another client has lowered is put back as long as the groups are
    still there; one that it has raised stays.
    """
    return max(_live(d), min(standing, max(wanted, d.there)))


def _unsafe(d: Draft, before: ScalingRecord, number: int) -> _Unsafe | None:
    """Why the workload must keep the number that it has, whatever it is asked for."""
    if number > _live(d) == 0 and not d.stable.leaders:
        stable, served = d.status.stable, before.version
        if d.own_pending or (served is not None and stable is not None and served != stable.template_hash):
            return _Unsafe.PENDING_VERSION
    if 0 < number < _live(d):
        ready = [group.ordinal for group in groups(d.stable) if group.ready_since is not None]
        if ready and min(ready) >= number:
            return _Unsafe.LAST_SERVING
    return None


# What to tell


def _event(d: Draft, plan: _Plan) -> ReleaseEvent:
    if plan.record.seen and d.own_size <= _live(d):
        note = (
            f"{_writer(d) or UNKNOWN_WRITER} set spec.replicas of {d.called} to {_live(d)}, for which this Rollout"
            f" asks for {plan.number}; it was put back: scale the Rollout instead"
        )
        return ReleaseEvent(EventReason.REPLICAS_RESET.value, note, "Warning")
    note = f"spec.replicas of {d.called} was set to {plan.number} instead of {_live(d)}"
    return ReleaseEvent(EventReason.SCALED.value, note)


def _told(d: Draft, plan: _Plan) -> Told:
    text = _unsafe_words(d, plan.unsafe) or _waiting_words(d, plan.record.waiting)
    if text:
        return Told(text)
    if plan.number == _live(d) or plan.tries < SAID_FROM:
        return Told("")
    # Without the count, which would cost a write of the status for each try.
    return Told(f"{d.called} has {_live(d)} replicas, and {plan.number} does not stay: {_why(d, plan)}", True)


def _unsafe_words(d: Draft, unsafe: _Unsafe | None) -> str:
    match unsafe:
        case None:
            return ""
        case _Unsafe.PENDING_VERSION:
            return (
                f"{d.called} stays at 0 replicas: all groups would start at a version that no release has brought to"
                f" its end. Restore the template, or scale the {d.kind} itself to start it"
            )
        case _Unsafe.LAST_SERVING:
            return (
                f"{d.called} stays at {_live(d)} replicas until a group that spec.replicas"
                f" {d.o.rollout.spec.replicas} keeps is ready: all that serve would go"
            )
        case unknown:
            assert_never(unknown)


def _waiting_words(d: Draft, waiting: WaitingReplicas | None) -> str:
    if waiting is None:
        return ""
    match waiting.waits_for:
        case None:
            return ""
        case ScalingWait.RELEASE_END:
            if waiting.replicas == 0 and d.paired:
                return "spec.replicas 0 waits for the end of the release"
            why = "since an autoscaler may have asked for it"
            if not d.o.autoscalers.synced:
                trouble = d.o.autoscalers.trouble or "they are being listed"
                why = f"since HorizontalPodAutoscalers that may have asked for it are not known: {trouble}"
            return f"spec.replicas {waiting.replicas} waits for the end of the release, {why}"
        case ScalingWait.NOTHING_PENDING:
            return (
                f"spec.replicas {waiting.replicas} waits until no version but the stable one is in {d.called}: without"
                " groups it would start by itself"
            )
        case unknown:
            assert_never(unknown)


def _why(d: Draft, plan: _Plan) -> str:
    """Why a number does not stay: its other writer, or how to find out."""
    other = _writer(d) if plan.record.seen else ""
    if other:
        return f"{other} writes over it"
    meta = d.stable.workload.metadata
    place = "" if meta.namespace == "default" else f" -n {meta.namespace}"
    body = f'{{"spec":{{"replicas":{plan.number}}}}}'
    patch = f"kubectl patch {d.resource} {meta.name}{place} --type=merge -p '{body}' --dry-run=server"
    return f"the controller's log has the reason, or {patch}"


def _writer(d: Draft) -> str:
    """The field manager that has given the workload its number, if it is not ours; "" if managedFields name none."""
    owners = [each for each in d.stable.workload.metadata.managed_fields if owns_replicas(each)]
    latest = max(owners, key=lambda each: each.time.timestamp() if each.time is not None else 0.0, default=None)
    return latest.manager if latest is not None and not latest.manager.startswith(OURS) else ""
