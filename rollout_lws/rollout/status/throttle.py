"""Throttles status writes, which cost every watcher: incidental changes and transient states are not written, outdated
statuses are corrected.

A status changes in many small ways while groups start. A projection drops incidental fields. The controller writes the
whole status when its projection changes, so dropped fields catch up with every step, verdict, and group that becomes
ready or unready. The message about what is awaited is corrected after a while even if nothing else changes. A status
that waits is decided again in a second, unless this pass decided something; a state that lasts is written then.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from rollout_lws.api import Condition, ConditionType, Phase, RolloutStatus, StepState, SummaryState, WriteConflict
from rollout_lws.capacity.table import strategy_on_record
from rollout_lws.rollout.draft import Draft, Persist
from rollout_lws.rollout.reasons import Reason
from rollout_lws.rollout.state import CleaningUp, Promoting, RollingBack, state_of
from rollout_lws.workload.groups import Group, groups
from rollout_lws.workload.pod_words import ON_THE_WAY

#: An outdated message about the current state is corrected after this many seconds at the latest.
OUTDATED_SECONDS = 30
#: But only if no group has become ready for so many seconds: many do at about the same time.
SETTLED_SECONDS = 3
#: A starting group is reported when it takes so many times as long as the slowest one before it.
LONGER_THAN_USUAL = 1.25
#: Seconds after which a waiting status is decided again.
LOOK_AGAIN_SECONDS = 1

_DECIDED = (
    "phase",
    "current_step_index",
    "stable",
    "paused",
    "flaps",
    "hold_conflicts",
    "hold_released_at",
    "autoscalers",
    "scaling",
)


def projection(status: RolloutStatus) -> dict[str, Any]:
    """The fields of a Rollout's status whose change is worth a write."""
    releasing = status.phase == Phase.PROGRESSING
    state = state_of(status)
    cleaning, renewing = isinstance(state, CleaningUp), isinstance(state, Promoting | RollingBack)
    sub, summary = status.sub, status.summary
    kept = status.model_dump(
        exclude={
            "message",
            "conditions",
            "canary_status",
            "blue_green_status",
            "groups",
            "companions",
            "summary",
            "timeline",
            "not_ready_groups",
            "restarts",
            "longest_startup_seconds",
            *({"observed_workload_generation"} if releasing and _makes_generations(status) else ()),
        }
    )
    worn = keeps_restarting(status)
    kept["conditions"] = [
        (each.type, each.status, each.reason, each.message if _is_stalled(each) and not worn else "")
        for each in status.conditions
    ]
    kept["groups"] = sorted(
        (each.workload, each.group, each.reason) for each in status.not_ready_groups if each.reason not in ON_THE_WAY
    )
    # Serving groups are reported even if nothing else changes; a promotion, which updates them, reports each window.
    counted = status.groups.stable if status.groups is not None else None
    at_rest = status.finalising is None or (isinstance(state, CleaningUp) and state.keeps)
    serving = (summary.stable, counted) if summary and at_rest else None
    kept["summary"] = (summary.state, summary.step, summary.traffic, serving, _freed(status)) if summary else None
    if not worn:
        kept["restarts"] = _rebuilt(status), [record.message for record in status.restarts if record.message]
    if renewing:
        for record in ("step", "finalising"):
            kept[record] = {
                name: value for name, value in (kept[record] or {}).items() if not name.startswith("best_ready")
            }
    if kept.get("traffic"):
        kept["traffic"].pop("message", None)
    if sub is not None:
        kept["sub"] = sub.model_dump(
            exclude={
                "message",
                "last_update_time",
                "observed_workload_generation",
                "canary_replicas",
                "canary_ready_replicas",
                "replicas",
                "updated_replicas",
                *({"ready_replicas"} if releasing else ()),
                *({"updated_ready_replicas", "finalising_step"} if cleaning else ()),
                *({"updated_ready_replicas"} if renewing else ()),
            }
        )
    return kept


def keeps_restarting(status: RolloutStatus) -> bool:
    """True if the status already reports a crash loop: further restarts are reported with the next write, or a group
    that crashes every few seconds would cause a write each time. Groups updated by a window are no crash loop, and the
    use of a group's last window is reported at once.
    """
    forward = not isinstance(state_of(status), RollingBack | CleaningUp)
    if forward and status.step is not None and status.step.partition_attempts:
        return False
    last = status.verdict
    return last is not None and (last.condition, last.reason) == (ConditionType.STALLED, Reason.CHURN)


def _is_stalled(condition: Condition) -> bool:
    return condition.type == ConditionType.STALLED and condition.status == "True"


def _makes_generations(status: RolloutStatus) -> bool:
    """True if the release itself edits its LWS now, through windows; any other edit comes from another writer, and a
    gate that begins after it waits until it has been observed.
    """
    if status.finalising is not None:
        return True
    waits = status.sub is not None and status.sub.current_step_state == StepState.STEP_PAUSED
    return strategy_on_record(status.capacity, None).steps_open_windows and not waits


def _freed(status: RolloutStatus) -> tuple[int | None, int | None] | None:
    """Accelerators while the release waits for some: the user who frees some has to know which workload holds them."""
    summary = status.summary
    for_room = (SummaryState.WAITING_FOR_ACCELERATORS, SummaryState.WAITING_FOR_QUOTA)
    if summary is None or summary.state not in for_room:
        return None
    return summary.accelerators, summary.new_accelerators


def _rebuilt(status: RolloutStatus) -> list[str]:
    """Leaders that replaced another one; a group's first leader is reported when its group becomes ready."""
    first = {(record.workload, record.group): record.uid for record in reversed(status.restarts)}
    return [record.uid for record in status.restarts if first[record.workload, record.group] != record.uid]


def can_wait(d: Draft) -> bool:
    """True if the status write may wait a second: an awaited event mostly arrives before a user could read the status.
    Lasting decisions of this pass are written at once.
    """
    before = d.o.rollout.status
    if (
        d.persist is not Persist.MAY_WAIT
        or before is None
        or before.requested_action is not None
        or d.events
        or d.was_ahead
    ):
        # The written status is what keeps an Event from being repeated.
        return False
    decided = any(getattr(before, each) != getattr(d.status, each) for each in _DECIDED)
    decided = decided or _task(before) != _task(d.status)
    return not (decided or _conflicts(before) != _conflicts(d.status))


def _task(status: RolloutStatus) -> tuple[str, str, datetime | None] | None:
    """The task without its progress."""
    ending = status.finalising
    return (ending.reason, ending.task, ending.since) if ending is not None else None


def _conflicts(status: RolloutStatus) -> tuple[WriteConflict, ...]:
    return status.traffic.conflicts if status.traffic else ()


def outdated(d: Draft, before: RolloutStatus, after: RolloutStatus) -> tuple[bool, datetime | None]:
    """True if the written status has been wrong for so long that it is worth a write, or if a leader's record must be
    removed before the next leader comes. With the moment when it may be by time alone.
    """
    long, due = _loads_for_long(d, before)
    if long or {each.uid for each in before.restarts} - {each.uid for each in after.restarts}:
        return True, due
    going = {group.uid for _, group in _members(d) if group.terminating}
    counted = not keeps_restarting(before)
    if counted and going & ({each.uid for each in after.restarts} - {each.uid for each in before.restarts}):
        return True, due
    resting = after.phase in (Phase.HEALTHY, Phase.ABORTED)
    if resting and not (going or d.o.remains) and _accelerators(before) != _accelerators(after):
        # The last pod that had to go has: another workload may be waiting for its accelerators.
        return True, due
    if before.message == after.message and _about_traffic(after) in (None, _about_traffic(before)):
        return False, due
    told_at = max((each.last_update_time for each in before.conditions if each.last_update_time), default=d.now)
    ready = max((group.ready_since for _, group in _members(d) if group.ready_since), default=told_at)
    settled = ready + timedelta(seconds=SETTLED_SECONDS)
    corrected = max(settled, told_at + timedelta(seconds=OUTDATED_SECONDS))
    if corrected <= d.now:
        return True, due
    return False, min(corrected, due) if due is not None else corrected


def _about_traffic(status: RolloutStatus) -> str | None:
    return status.traffic.message if status.traffic else None


def _accelerators(status: RolloutStatus) -> int | None:
    return status.summary.accelerators if status.summary else None


def _members(d: Draft) -> Iterable[tuple[str, Group]]:
    """All existing groups, with the names of their LWSs."""
    for facts in (d.o.stable, d.o.canary):
        if facts is not None:
            yield from ((facts.name, group) for group in groups(facts))


def _loads_for_long(d: Draft, before: RolloutStatus) -> tuple[bool, datetime | None]:
    """True if a group that the status does not name takes longer to start than any before it; for the first one the
    usual time is unknown. With the moment when it will.
    """
    told = {(each.workload, each.group) for each in before.not_ready_groups}
    untold = {(each.workload, each.group) for each in d.status.not_ready_groups} - told
    usual = LONGER_THAN_USUAL * (d.status.longest_startup_seconds or 0)
    made = [
        group.leader.metadata.creation_timestamp
        for workload, group in _members(d)
        if (workload, group.index) in untold and group.leader.metadata.creation_timestamp is not None
    ]
    due = d.yet_to_come(min(made), max(usual, SETTLED_SECONDS)) if made else None
    return bool(made) and due is None, due
