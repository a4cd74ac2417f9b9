"""Throttles status writes, which cost every watcher: transient states are not written, outdated ones are corrected.

A status that waits is decided again in a second, unless this pass decided something; a state that lasts is written
then.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from rollout_lws.api import Phase, RolloutStatus, WriteConflict
from rollout_lws.rollout.draft import Draft, Persist
from rollout_lws.rollout.status import projection
from rollout_lws.workload.groups import Group, groups

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
)


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
    counted = not projection.keeps_restarting(before)
    if counted and going & ({each.uid for each in after.restarts} - {each.uid for each in before.restarts}):
        return True, due
    if before.message == after.message and _about_traffic(after) in (None, _about_traffic(before)):
        return False, due
    resting = after.phase in (Phase.HEALTHY, Phase.ABORTED)
    if resting and not d.o.remains and _accelerators(before) != _accelerators(after):
        # The canary's last pod has terminated: another workload may be waiting for its accelerators.
        return True, due
    told_at = max((each.last_update_time for each in before.conditions if each.last_update_time), default=d.now)
    ready = max((group.ready_since for _, group in _members(d) if group.ready_since), default=told_at)
    settled = ready + timedelta(seconds=projection.SETTLED_SECONDS)
    corrected = max(settled, told_at + timedelta(seconds=projection.OUTDATED_SECONDS))
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
    usual = projection.LONGER_THAN_USUAL * (d.status.longest_startup_seconds or 0)
    made = [
        group.leader.metadata.creation_timestamp
        for workload, group in _members(d)
        if (workload, group.index) in untold and group.leader.metadata.creation_timestamp is not None
    ]
    due = d.yet_to_come(min(made), max(usual, projection.SETTLED_SECONDS)) if made else None
    return bool(made) and due is None, due
