"""Which status changes are worth a write: a status changes in many small ways while groups start, and most can wait.

A projection drops incidental fields. The controller writes the whole status when its projection changes, so dropped
fields catch up with every step, verdict, and group that becomes ready or unready. The message about what is awaited is
corrected after a while even if nothing else changes.
"""

from __future__ import annotations

from typing import Any

from rollout_lws.api import Condition, ConditionType, Phase, RolloutStatus, StepState, SummaryState
from rollout_lws.capacity.table import strategy_on_record
from rollout_lws.rollout.reasons import Reason
from rollout_lws.rollout.state import CleaningUp, Promoting, RollingBack, state_of
from rollout_lws.workload.pod_words import ON_THE_WAY

#: An outdated message about the current state is corrected after this many seconds at the latest.
OUTDATED_SECONDS = 30
#: But only if no group has become ready for so many seconds: many do at about the same time.
SETTLED_SECONDS = 3
#: A starting group is reported when it takes so many times as long as the slowest one before it.
LONGER_THAN_USUAL = 1.25


def of_rollout(status: RolloutStatus) -> dict[str, Any]:
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
            "summary",
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
    serving = (summary.stable, counted) if summary and status.finalising is None else None
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
