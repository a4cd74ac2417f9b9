"""Writes the number of groups that ``spec.replicas`` asks for to the workload, and keeps it there.

People and autoscalers set it through the scale subresource of the Rollout. Writing it is a decision of its own, before
the release's, so that no write of a release that is refused holds it up, nor it a release. The status records each
number before it is written; once it was seen in the workload, another one is another client's and is put back, each
further time later.

Each pass judges what it would write by what is there. A number waits where it would do harm:

* In a release an autoscaler takes no group away, since the load of the old version falls as requests move to the new
  one; where both versions share the workload, it adds none either. People may, unless an autoscaler names the Rollout.
* Without groups a pending version would take effect by itself. So 0 waits while one is pending, and a workload without
  groups gets none while its template has another version than stable's.
* Not all groups that serve are taken away while none of those that stay is ready.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, assert_never

import msgspec

from rollout_lws.api import ConditionType, Phase, ScalingRecord, ScalingWait, WaitingReplicas
from rollout_lws.api.base import with_fields
from rollout_lws.objects.owners import OURS
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout.autoscaling import hpa_bounds
from rollout_lws.rollout.backoff import doubled
from rollout_lws.rollout.decision import BestEffort, ReleaseEvent
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import EventReason
from rollout_lws.rollout.write_conflicts import UNKNOWN_WRITER
from rollout_lws.workload.canary import canary_name
from rollout_lws.workload.groups import groups

#: Seconds after which a number that does not stay is written again, doubled each time up to the longest.
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 1.0, 300.0
#: A number that has stood for so many seconds since it was written counts as never overwritten.
STANDS_SECONDS = 600
#: From so many writes on, the message says that the number does not stay.
SAID_FROM = 3

_owned = msgspec.json.Decoder(dict[str, Any])


@dataclass(frozen=True, slots=True)
class _Plan:
    """``record`` is what the status has to say, ``asked`` the groups that the workload must have now. ``writes`` says
    how often that number was written lately in vain, ``due`` when it may be written again; None: at once.
    """

    record: ScalingRecord
    asked: int
    writes: int = 0
    due: datetime | None = None


def scale(d: Draft) -> Draft | None:
    """What a pass that does nothing else has to record and to write, if the Rollout may manage the workload; None if
    there is nothing to write now.
    """
    if not _is_asked(d):
        return None
    plan, workload = _plan(d), d.stable.workload
    if plan.asked == d.replicas or plan.due is not None:
        return None
    patch = Patch(
        workload.resource,
        workload.metadata.namespace,
        workload.metadata.name,
        {"spec": {"replicas": plan.asked}},
        f"the Rollout asks for {plan.asked} groups",
        uid=workload.metadata.uid,
        # Judged was this template, and this number.
        generation=workload.metadata.generation,
    )
    record = with_fields(plan.record, writes=plan.writes + 1, written_at=d.now)
    return d.set(scaling=record).write_if_possible((BestEffort(patch, _event(d, plan)),))


def follow(d: Draft) -> Draft:
    """Tells in the status what was asked and what waits; without ``spec.replicas`` nothing."""
    if d.o.rollout.spec.replicas is None:
        return forget(d)
    if d.o.stable is None or not d.adopted:
        return d
    plan = _plan(d)
    d = d.set(replicas=d.replicas, selector=selector(d), scaling=plan.record)
    told = _words(d, plan)
    return (d.adding(told) if told else d).wake(plan.due)


def forget(d: Draft) -> Draft:
    """Asks for nothing any more: the workload keeps the number that it has."""
    return d.set(scaling=None, replicas=None, selector=None)


def selector(d: Draft) -> str:
    """Label selector of the pods that take requests, of both versions: an autoscaler that divides the load of all of
    them by what one may have gets the number of groups that the load needs, however it is shared.
    """
    labels, workload = d.labels, d.stable.workload
    names = f"{labels.workload} in ({canary_name(workload)},{workload.metadata.name})"
    return names if labels.leader is None else f"{labels.leaders},{names}"


def words(d: Draft) -> str:
    """What waits, or which number does not stay, and what to do; "" if the workload has the number."""
    return _words(d, _plan(d))


def is_contested(d: Draft) -> bool:
    """True if the number was written again and again, and the workload has another one."""
    return _is_contested(d, _plan(d))


def _is_asked(d: Draft) -> bool:
    rollout = d.o.rollout
    if rollout.spec.replicas is None or rollout.metadata.deletion_timestamp is not None or rollout.spec.disabled:
        return False
    if d.o.stable is None or not d.adopted:
        return False
    return not d.stable.workload.metadata.terminating


# What to ask


def _plan(d: Draft) -> _Plan:
    wanted, known = d.o.rollout.spec.replicas, _record(d)
    assert wanted is not None
    standing = known.replicas if known.seen and known.replicas is not None else d.replicas
    waiting = _waiting(d, known, wanted, standing)
    # Only the spec takes groups away, never the status.
    asked = wanted if waiting is None else max(standing, d.replicas)
    unsafe = _unsafe(d, asked)
    if unsafe is not None:
        # What was recorded stays: it is due as soon as it is safe.
        waiting = WaitingReplicas(replicas=asked, waits_for=unsafe, by_autoscaler=waiting and waiting.by_autoscaler)
        return _Plan(with_fields(known, waiting=waiting), d.replicas)
    record = with_fields(known, waiting=waiting)
    if record.replicas != asked:
        record = with_fields(record, replicas=asked, seen=None, writes=None, written_at=None)
    if asked == d.replicas:
        return _Plan(with_fields(record, seen=True), asked)
    writes, last = record.writes or 0, record.written_at
    if last is None or last + timedelta(seconds=STANDS_SECONDS) <= d.now:
        return _Plan(record, asked)
    # No group at all is no number to leave for long.
    wait = doubled(FIRST_WAIT_SECONDS, writes - 1 if d.replicas else 0, LONGEST_WAIT_SECONDS)
    return _Plan(record, asked, writes, d.yet_to_come(last, wait))


def _record(d: Draft) -> ScalingRecord:
    """What this workload was asked; empty for another one of the same name."""
    uid, known = d.stable.workload.metadata.uid, d.status.scaling
    return known if known is not None and known.workload_uid == uid else ScalingRecord(workload_uid=uid)


def _waiting(d: Draft, known: ScalingRecord, wanted: int, standing: int) -> WaitingReplicas | None:
    """``wanted`` as what waits, instead of ``standing``; None if it does not."""
    if wanted == standing == d.replicas:
        return None
    if wanted == 0 and d.pending:
        return WaitingReplicas(replicas=wanted, waits_for=ScalingWait.NOTHING_PENDING)
    takes = wanted < max(standing, d.replicas)
    if not _in_release(d) or not (takes or (d.capacity.pins_replicas and wanted != standing)):
        return None
    # KEDA removes its autoscaler when it is paused: it has asked all the same.
    asked_before = known.waiting is not None and known.waiting.replicas == wanted and known.waiting.by_autoscaler
    by_autoscaler = asked_before or _is_autoscaled(d)
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


def _is_autoscaled(d: Draft) -> bool:
    name = d.o.rollout.metadata.name
    return any(hpa_bounds.scaled_rollout(each, d.keys.group) == name for each in d.o.autoscalers.of_rollout)


def _unsafe(d: Draft, asked: int) -> ScalingWait | None:
    """Why the workload must keep the number that it has, whatever it is asked for."""
    if asked > d.replicas == 0 and d.pending and not d.stable.leaders:
        return ScalingWait.STABLE_TEMPLATE
    if 0 < asked < d.replicas:
        ready = [group.ordinal for group in groups(d.stable) if group.ready_since is not None]
        if ready and min(ready) >= asked:
            return ScalingWait.READY_GROUP
    return None


# What to tell


def _event(d: Draft, plan: _Plan) -> ReleaseEvent:
    if plan.record.seen:
        note = (
            f"{_writer(d) or UNKNOWN_WRITER} set spec.replicas of {d.called} to {d.replicas}, for which this Rollout"
            f" asks for {plan.asked}; it was put back: scale the Rollout instead"
        )
        return ReleaseEvent(EventReason.REPLICAS_RESET.value, note, "Warning")
    note = f"spec.replicas of {d.called} was set to {plan.asked} instead of {d.replicas}"
    return ReleaseEvent(EventReason.SCALED.value, note)


def _words(d: Draft, plan: _Plan) -> str:
    if plan.record.waiting is not None:
        return _waiting_words(d, plan.record.waiting)
    return _contested_words(d, plan) if _is_contested(d, plan) else ""


def _is_contested(d: Draft, plan: _Plan) -> bool:
    return plan.asked != d.replicas and plan.writes >= SAID_FROM


def _waiting_words(d: Draft, waiting: WaitingReplicas) -> str:
    number = waiting.replicas
    match waiting.waits_for:
        case ScalingWait.RELEASE_END:
            why = "an autoscaler asked for it" if waiting.by_autoscaler else "HorizontalPodAutoscalers are being listed"
            return f"spec.replicas {number} waits for the end of the release: {why}"
        case ScalingWait.NOTHING_PENDING:
            return (
                f"spec.replicas {number} waits until no version but the stable one is in {d.called}: without groups it"
                " would start by itself"
            )
        case ScalingWait.STABLE_TEMPLATE:
            return (
                f"{d.called} stays at 0 replicas until it has the template of its stable version: all {number} groups"
                f" would start at the other one; to have that, scale the {d.kind} itself"
            )
        case ScalingWait.READY_GROUP:
            return (
                f"{d.called} stays at {d.replicas} replicas instead of {number} until a group that is kept is ready:"
                " all that serve would go"
            )
        case None:
            return ""
        case unknown:
            assert_never(unknown)


def _contested_words(d: Draft, plan: _Plan) -> str:
    other = _writer(d)
    meta, resource = d.stable.workload.metadata, d.resource
    place = "" if meta.namespace == "default" else f" -n {meta.namespace}"
    body = f'{{"spec":{{"replicas":{plan.asked}}}}}'
    why = (
        f"{other} writes over it"
        if other
        else f"the controller's log has the reason, or kubectl patch {resource} {meta.name}{place} --type=merge"
        f" -p '{body}' --dry-run=server"
    )
    return f"{d.called} has {d.replicas} replicas, {plan.asked} was written {plan.writes} times: {why}"


def _writer(d: Draft) -> str:
    """The field manager that has given the workload its number, if it is not ours; "" if managedFields name none."""
    owners = [each for each in d.stable.workload.metadata.managed_fields if _owns_replicas(_owned.decode(each.fields))]
    latest = max(owners, key=lambda each: each.time.timestamp() if each.time is not None else 0.0, default=None)
    return latest.manager if latest is not None and not latest.manager.startswith(OURS) else ""


def _owns_replicas(fields: Mapping[str, Any]) -> bool:
    return "f:replicas" in (fields.get("f:spec") or {})
