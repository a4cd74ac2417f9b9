"""The status's verdict and conditions: those of Kruise, and those that kstatus reads."""

from __future__ import annotations

from rollout_lws.api import Condition, ConditionType, Phase, ProgressingReason, VerdictRecord
from rollout_lws.api.base import with_fields
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout.decision import Verdict
from rollout_lws.rollout.draft import Draft, HoldState
from rollout_lws.rollout.reasons import Ending
from rollout_lws.rollout.state import Promoting, ending_of
from rollout_lws.workload.hold import is_held

_ORDER = {each.value: place for place, each in enumerate(ConditionType)}


def tell(d: Draft, verdict: Verdict) -> Draft:
    """Sets verdict and conditions."""
    return _conditions(_verdict(d, verdict), verdict)


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
    ending = ending_of(d.state)
    wanted: dict[ConditionType, tuple[bool, str, str]] = {
        each: (each.value == verdict.condition, verdict.reason.value, verdict.message)
        for each in (ConditionType.READY, ConditionType.RECONCILING, ConditionType.STALLED)
    }
    stable = d.o.stable
    if stable is not None:
        # Our window is part of the hold: only the groups that it names can start.
        held = is_held(stable.workload) or any(
            isinstance(write, Patch)
            and (write.resource, write.name) == (stable.workload.resource, stable.name)
            and "spec" in write.body
            for write in d.writes
        )
        windows = d.capacity.steps_open_windows if ending is None else isinstance(d.state, Promoting)
        held = held or (d.status.phase == Phase.PROGRESSING and windows)
        wanted[ConditionType.HELD] = (
            held and d.hold is not HoldState.RELEASED,
            "Held" if held and d.hold is not HoldState.RELEASED else verdict.reason.value,
            "a changed template starts nothing by itself" if held and d.hold is not HoldState.RELEASED else "",
        )
    wanted[ConditionType.PAUSED] = (d.paused, "Paused" if d.paused else "NotPaused", "")
    known = {each.type: each for each in d.status.conditions}
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
