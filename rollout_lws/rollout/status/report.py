"""Turns the final draft into a decision: status write, BatchRelease, and what to watch next."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from rollout_lws.api import Condition, ConditionType, Phase, ProgressingReason, RolloutStatus, VerdictRecord, rollouts
from rollout_lws.api.base import with_fields
from rollout_lws.objects.json_patch import merge_patch
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout import history
from rollout_lws.rollout.autoscaling import autoscalers
from rollout_lws.rollout.companions import inactive_workloads
from rollout_lws.rollout.decision import Decision, Verdict, Wanted
from rollout_lws.rollout.draft import Draft, HoldState, Persist
from rollout_lws.rollout.field_limits import within_limits
from rollout_lws.rollout.gates import measurements
from rollout_lws.rollout.gates.kinds.jobs import upkeep
from rollout_lws.rollout.groups.watch_demand import explaining_kinds
from rollout_lws.rollout.observation import Observation
from rollout_lws.rollout.reasons import Ending, Reason
from rollout_lws.rollout.routing import draining, orphaned_annotations, scripts, selector_pinning, sides
from rollout_lws.rollout.state import Promoting, RollingBack, ending_of
from rollout_lws.rollout.status import batch_release, counts, throttle, timeline
from rollout_lws.workload.canary import canary_name
from rollout_lws.workload.groups import groups
from rollout_lws.workload.hold import is_held

_ORDER = {each.value: place for place, each in enumerate(ConditionType)}


def report_refusal(observation: Observation) -> Decision | None:
    """Reports a write that the API server refused in the status, before it is retried; None if already reported.

    The rest of the status stays: what the refused decision would have recorded has not happened.
    """
    refused = observation.refused
    if refused is None:
        return None
    d = Draft.of(observation)
    advice = refused.advice or "It is tried again by itself"
    message = f"the API server refuses to {refused.what}: {refused.error.rstrip('. ')}. {advice}"
    if d.said(Reason.WRITE_REFUSED) and d.status.message == message:
        return None
    d = d.set(phase=d.status.phase or Phase.INITIAL).stalled(Reason.WRITE_REFUSED, message, goes_on=True)
    after, _ = _changed(_told(d))
    return Decision(
        writes=(_written(d, after),) if after is not None else (),
        events=d.events,
        aside=True,
        verdict=d.verdict,
    )


def scaling(d: Draft) -> Decision:
    """A decision that records a number of groups and writes it; the rest of the status was not judged, and stays."""
    return Decision(writes=(_written(d, d.status),), best_effort=d.best_effort, aside=True)


def finish(d: Draft) -> Decision:
    """Turns the draft into a decision: the status write is last unless ``Persist.BEFORE_WRITES``;
    best-effort writes apart.
    """
    style = d.o.rollout.spec.strategy.style
    # Until a recreated LWS is adopted, the record is of the deleted one.
    if d.o.stable is not None and d.adopted:
        d = counts.count(d)
        if d.status.phase == Phase.PROGRESSING and style is not None:
            d = batch_release.label_pods(batch_release.follow(d))
    d, status = _status(d)
    if d.at_rest and not (d.writes or status):
        d = history.drop_needless(d)
    first = d.persist is Persist.BEFORE_WRITES
    return Decision(
        writes=(*d.confirms, *status, *d.writes) if first else (*d.confirms, *d.writes, *status),
        best_effort=d.best_effort,
        events=d.events,
        events_after=len((*d.confirms, *status)) if first and status else None,
        wake_at=d.wake_at,
        wanted=_wanted(d),
        verdict=d.verdict,
    )


def _status(d: Draft) -> tuple[Draft, tuple[Patch, ...]]:
    """The status with its verdict, and the status write if it is worth one now."""
    if d.persist is Persist.NOT:
        return d, ()
    d = _told(d)
    if throttle.can_wait(d):
        return d.wake(d.now + timedelta(seconds=throttle.LOOK_AGAIN_SECONDS)), ()
    after, due = _changed(d)
    return d.wake(due), (_written(d, after),) if after is not None else ()


def _told(d: Draft) -> Draft:
    """Adds the verdict to the status."""
    if d.verdict is None:
        return d
    told = _with_leftovers(d, d.verdict)
    return counts.summarize(_conditions(_verdict(d, told), told), told)


def _with_leftovers(d: Draft, verdict: Verdict) -> Verdict:
    """Adds what is left of the canary to the verdict of a finished release: it may hold accelerators. At rest also what
    deleted Rollouts left pinned.
    """
    told = [verdict.message] if verdict.message else []
    left = counts.still_ending(d, verdict)
    if left:
        taken = counts.held_by_ending(d, verdict)
        ends = f"group {', '.join(left[:10])} of {canary_name(d.stable.workload)} still ends"
        told.append(ends + (f" and holds accelerators: {taken}" if taken else ""))
    pinned = orphaned_annotations.others_left(d) if d.at_rest else ""
    if pinned:
        told.append(pinned)
    return replace(verdict, message="; ".join(told))


def _changed(d: Draft) -> tuple[RolloutStatus | None, datetime | None]:
    """The status to write, None if it is not worth a write; and when it may be by time alone."""
    before = d.o.rollout.status or RolloutStatus()
    decided = with_fields(d.status, observed_generation=d.o.rollout.metadata.generation)
    # Mostly nothing has changed, and the stored status is within limits.
    after = decided if decided == before else within_limits(decided)
    if before == after:
        return None, None
    if d.was_ahead or throttle.projection(before) != throttle.projection(after):
        return after, None
    outdated, due = throttle.outdated(d, before, after)
    return after if outdated else None, due


def _written(d: Draft, after: RolloutStatus) -> Patch:
    before, meta = d.o.rollout.status or RolloutStatus(), d.o.rollout.metadata
    # Added to what is written anyway: so it never is a reason to write, and tells what was told.
    after = with_fields(after, timeline=timeline.continued(before, after, d.now))
    seen = before.to_json_dict()
    changes = merge_patch(seen, after.to_json_dict())
    resource = rollouts(d.keys.group)
    body, over = {"status": changes}, {"metadata": {"uid": meta.uid}, "status": seen}
    reason = d.verdict.message if d.verdict else "status"
    return Patch(resource, meta.namespace, meta.name, body, reason, meta.resource_version, "status", over=over)


def _wanted(d: Draft) -> Wanted:
    endpoints, kinds = selector_pinning.watched(d)
    explaining = explaining_kinds(d)
    own = Wanted(_troubled(d), endpoints, (*kinds, *autoscalers.watched(d), *explaining))
    own = own.plus(Wanted(measurements=d.measurements))
    return own.plus(measurements.wanted(d)).plus(upkeep.wanted(d)).plus(scripts.wanted(d))


def _troubled(d: Draft) -> tuple[str, ...]:
    """LWSs whose pods to watch: pods show why a group is not ready, and what requests could still reach. These are LWSs
    with such a group, or in a release.
    """
    wanted = []
    releasing = d.status.phase == Phase.PROGRESSING
    for facts in (d.o.stable, d.o.canary):
        if facts is None:
            continue
        troubled = any(group.ready_since is None for group in groups(facts))
        promoting = isinstance(d.state, Promoting | RollingBack)
        # Without them no group goes, whatever phase others have written.
        if troubled or d.shifts or (releasing and (facts is d.o.canary or facts is d.home or promoting)):
            wanted.append(facts.name)
    for facts in (facts for each in d.o.companions for facts in each.both):
        if releasing or any(group.ready_since is None for group in groups(facts)):
            wanted.append(facts.name)
    return tuple(dict.fromkeys((*wanted, *draining.watched(d))))


def _verdict(d: Draft, verdict: Verdict) -> Draft:
    before, reason = d.status.verdict, verdict.reason.value
    same = before is not None and (before.condition, before.reason) == (verdict.condition, reason)
    return d.set(
        verdict=VerdictRecord(
            condition=verdict.condition,
            reason=reason,
            since=before.since or d.now if before is not None and same else d.now,
            goes_on=verdict.goes_on or None,
            field=verdict.field.record if verdict.field is not None else None,
        )
    )


def _conditions(d: Draft, verdict: Verdict) -> Draft:
    """Sets the conditions: those of Kruise, and those that kstatus reads."""
    ending = ending_of(d.state)
    wanted: dict[ConditionType, tuple[bool, str, str]] = {
        each: (each.value == verdict.condition, verdict.reason.value, verdict.message)
        for each in (ConditionType.READY, ConditionType.RECONCILING, ConditionType.STALLED)
    }
    stable = d.o.stable
    if stable is not None and (not d.paired or d.scales_sides):
        # Our window is part of the hold: only the groups that it names can start.
        held = is_held(stable.workload) or any(
            isinstance(write, Patch)
            and (write.resource, write.name) == (stable.workload.resource, stable.name)
            and "spec" in write.body
            for write in d.writes
        )
        windows = (
            d.capacity.steps_open_windows if ending is None else isinstance(d.state, Promoting) and not d.capacity.swaps
        )
        held = (held or (d.status.phase == Phase.PROGRESSING and windows)) and stable.workload.can_be_held
        wanted[ConditionType.HELD] = (
            held and d.hold is not HoldState.RELEASED,
            "Held" if held and d.hold is not HoldState.RELEASED else verdict.reason.value,
            "a changed template starts nothing by itself" if held and d.hold is not HoldState.RELEASED else "",
        )
    if d.paired and not d.scales_sides:
        wanted[ConditionType.READY_TO_RETIRE] = _retirable(d)
        d = d.wake(sides.still_serves(d).until)
    wanted[ConditionType.PAUSED] = (d.paused, "Paused" if d.paused else "NotPaused", "")
    # Workloads that are not written are not held either, and only their owner retires one.
    other = ConditionType.HELD if d.paired and not d.scales_sides else ConditionType.READY_TO_RETIRE
    known = {each.type: each for each in d.status.conditions if each.type != other}
    if d.status.phase == Phase.PROGRESSING:
        reason = ProgressingReason.IN_ROLLING
        if ending is not None:
            success = ending in (Ending.SUCCESS, Ending.ROLLED_OUT_NATIVELY)
            reason = ProgressingReason.FINALISING if success else ProgressingReason.CANCELLING
        elif d.paused:
            reason = ProgressingReason.PAUSED
        wanted[ConditionType.PROGRESSING] = (True, reason.value, verdict.message)
        known.pop(ConditionType.SUCCEEDED.value, None)
    elif ConditionType.PROGRESSING.value in known and d.status.phase in (Phase.HEALTHY, Phase.ABORTED):
        wanted[ConditionType.PROGRESSING] = (False, ProgressingReason.COMPLETED.value, "")
        if known[ConditionType.PROGRESSING.value].status == "True":
            before = d.o.rollout.status.finalising if d.o.rollout.status else None
            success = before is not None and before.reason in (Ending.SUCCESS.value, Ending.ROLLED_OUT_NATIVELY.value)
            how = before.reason if before is not None else ProgressingReason.COMPLETED.value
            wanted[ConditionType.SUCCEEDED] = (success, how, "")
    if d.o.rollout.metadata.deletion_timestamp is not None:
        wanted[ConditionType.TERMINATING] = (True, "InTerminating", verdict.message)
    for kind, (truth, word, message) in wanted.items():
        known[kind.value] = _condition(d, known.get(kind.value), kind.value, truth, word, message)
    d = d.set(
        conditions=tuple(sorted(known.values(), key=lambda each: _ORDER.get(each.type, len(_ORDER)))),
        message=verdict.message or None,
        current_step_index=d.sub.current_step_index,
        current_step_state=d.sub.current_step_state,
    )
    if d.sub.message != verdict.message and d.status.sub is not None:
        d = d.set_sub(message=verdict.message or None)
    return d


def _retirable(d: Draft) -> tuple[bool, str, str]:
    """Whether a pair's inactive side gets no requests and is not wanted by a release."""
    other = d.o.canary
    if other is None or d.o.stable is None:
        return False, Reason.COUNTERPART_MISSING.value, ""
    wanted = d.status.phase != Phase.ABORTED and (d.status.phase != Phase.HEALTHY or d.pending)
    if wanted or d.o.undecided or not d.adopted:
        return False, "InUse", ""
    drained = sides.still_serves(d)
    if not drained.done:
        return False, "InUse", drained.message
    names = " and ".join(each.name for each in inactive_workloads(d))
    gets = f"{other.called} gets" if names == other.name else f"{names} get"
    return True, "Inactive", f"{gets} no requests: it may be scaled down, changed or deleted"


def _condition(d: Draft, before: Condition | None, kind: str, truth: bool, reason: str, message: str) -> Condition:
    status = "True" if truth else "False"
    told = {
        "status": status,
        "reason": reason,
        "message": message,
        "observed_generation": d.o.rollout.metadata.generation,
    }
    if before is not None and with_fields(before, **told) is before:
        return before
    moment = d.now.replace(microsecond=0)
    return Condition(
        type=kind,
        **told,
        last_transition_time=before.last_transition_time if before and before.status == status else moment,
        last_update_time=moment,
    )
