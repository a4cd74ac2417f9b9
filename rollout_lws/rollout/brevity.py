"""What is over in a moment is not told: nobody could read it, and each status costs everybody who watches a write.

A status says the same in a second, unless something was decided in this pass; what lasts is told then.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from rollout_lws.api import RolloutStatus, RouteFight
from rollout_lws.objects.workloads import LeaderWorkerSet
from rollout_lws.rollout.draft import Draft
from rollout_lws.traffic.split import Object

#: A status that can wait is looked at again after so many seconds.
LOOK_AGAIN_SECONDS = 1
#: Seconds for which a write counts as one of this moment; times in managedFields are whole seconds.
LATELY_SECONDS = 2
#: How the managers begin that this controller writes as.
OURS = "rollout-lws"

_DECIDED = ("phase", "current_step_index", "finalising", "stable", "paused", "flaps", "hold_fights", "autoscalers")


def can_wait(d: Draft) -> bool:
    """Whether the status may stay as it is for a second: what is awaited mostly comes before anybody could read that it
    is. What was decided for good in this pass is told at once.
    """
    before = d.o.rollout.status
    if not d.is_brief or before is None or before.requested_action is not None:
        return False
    if any(getattr(before, each) != getattr(d.status, each) for each in _DECIDED) or _fights(before) != _fights(
        d.status
    ):
        return False
    d.wake(d.now + timedelta(seconds=LOOK_AGAIN_SECONDS))
    return True


def _fights(status: RolloutStatus) -> tuple[RouteFight, ...]:
    return status.traffic.fights if status.traffic else ()


def written_lately(d: Draft, live: Object | None) -> bool:
    """Whether we have written the object ourselves within the last moments, by the API server's clock."""
    entries = live["metadata"].get("managedFields") or () if live is not None else ()
    ours = (str(each.get("time", "")) for each in entries if str(each.get("manager", "")).startswith(OURS))
    try:
        return _lately(d, [datetime.fromisoformat(each) for each in ours])
    except ValueError:
        return False


def scaled_lately(d: Draft, lws: LeaderWorkerSet) -> bool:
    """The same of a LeaderWorkerSet that is ours."""
    entries = lws.metadata.managed_fields
    return _lately(d, [each.time for each in entries if each.time and each.manager.startswith(OURS)])


def applied_lately(d: Draft) -> bool:
    """Whether somebody has written the stable LWS's template within the last moments."""
    entries = d.stable.lws.metadata.managed_fields
    return _lately(d, [each.time for each in entries if each.time and b"f:leaderWorkerTemplate" in bytes(each.fields)])


def _lately(d: Draft, times: Iterable[datetime]) -> bool:
    written = max(times, default=None)
    return written is not None and written <= d.now and not d.wake_in(written, LATELY_SECONDS)
