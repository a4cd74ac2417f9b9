"""The steps of a release: where it is, since when, and what it waits for. Pure."""

from __future__ import annotations

from typing import Any

from rollout_lws.cli.dashboard.timeline import last_step, step_times
from rollout_lws.cli.get.plan import PlannedStep
from rollout_lws.cli.rollouts import has_succeeded, message, releasing, style, summary
from rollout_lws.cli.sides import goes_back

Object = dict[str, Any]
_DONE, _CURRENT, _STOPPED, _AHEAD = "done", "current", "stopped", "ahead"


def step_view(rollout: Object, step: PlannedStep, entries: list[Object]) -> Object:
    """One step of the plan; ``since`` and ``until`` are "" where they are not known."""
    planned = style(rollout)["steps"][step.index - 1]
    pause = planned.get("pause")
    since, until = step_times(entries, step.index)
    return {
        "index": step.index,
        "size": step.size,
        "groups": step.groups,
        "traffic": step.traffic,
        "promotes": step.promotes,
        "approval": pause is not None and not pause.get("duration"),
        "pause": (pause or {}).get("duration"),
        "gates": [str(each.get("name")) for each in planned.get("gates") or ()],
        "state": _state(rollout, step, entries),
        "since": since,
        "until": until,
    }


def _state(rollout: Object, step: PlannedStep, entries: list[Object]) -> str:
    status = rollout.get("status") or {}
    ending = status.get("finalising") or {}
    at, how = int(status.get("currentStepIndex") or 0), ending.get("reason")
    if not releasing(rollout):
        # What was done last, as long as that is told.
        at = last_step(entries, len(style(rollout)["steps"]))
        how = "Success" if has_succeeded(rollout) else "Stopped"
    if how == "Success":
        if step.promotes and ending.get("task") == "Promote":
            return _CURRENT
        return _DONE if entries or releasing(rollout) else _AHEAD
    if step.index == at:
        return _STOPPED if how else _CURRENT
    return _DONE if step.index < at else _AHEAD


def current(rollout: Object) -> Object:
    """What is on: the step, 0 at rest and at the end of a release; its state; what is waited for; since when it is in
    that state; and since when the step's pause runs, which is measured from before its gates, "" until it does.
    """
    status = rollout.get("status") or {}
    in_steps = releasing(rollout) and not status.get("finalising")
    sub: Object = (status.get("canaryStatus") or status.get("blueGreenStatus") or {}) if in_steps else {}
    step: Object = (status.get("step") or {}) if in_steps else {}
    return {
        "step": int(status.get("currentStepIndex") or 0) if in_steps else 0,
        "state": str(status.get("currentStepState") or "") if in_steps else "",
        "waitsFor": message(rollout),
        "since": str(sub.get("lastUpdateTime") or summary(rollout)["since"]),
        "pausedAt": str(step.get("pausedAt") or ""),
    }


def ending(rollout: Object) -> str:
    """How a release that is past its steps ends, in a word; "" for others."""
    found = (rollout.get("status") or {}).get("finalising") or {}
    if not found or not releasing(rollout):
        return ""
    if goes_back(rollout):
        return "way back"
    return "clean-up" if found.get("task") == "CleanUp" else "promotion"
