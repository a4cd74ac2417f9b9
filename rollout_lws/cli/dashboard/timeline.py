"""What a release did since when, as ``status.timeline`` tells it; nothing where the controller does not. Pure."""

from __future__ import annotations

from typing import Any

from rollout_lws.cli.sides import PROMOTIONS, sides_of, swaps

Object = dict[str, Any]


def timeline(rollout: Object) -> list[Object]:
    """Each entry holds until the next one; weights are None where requests are not shared."""
    found: list[Object] = []
    promoted, paired, turns = False, sides_of(rollout) is not None, swaps(rollout)
    for told in (rollout.get("status") or {}).get("timeline") or ():
        entry = _entry(told)
        if entry["state"] != "CleanUp":
            promoted = entry["state"] == "Promote"
        renews = entry["state"] in PROMOTIONS and not turns and entry["accepted"] != 100
        if not paired and (renews or (promoted and entry["state"] == "CleanUp")):
            # What groups beside the workload's own get says less once those are renewed, as sides.tells_share knows.
            entry |= {"asked": None, "accepted": None}
        found.append(entry)
    return found


def _entry(told: Object) -> Object:
    return {
        "at": str(told.get("at") or ""),
        "step": told.get("step"),
        "state": str(told.get("state") or ""),
        "asked": told.get("desired"),
        "accepted": told.get("applied"),
        "new": {"ready": told.get("new")},
        "stable": {"ready": told.get("stable")},
    }


def last_step(entries: list[Object], count: int) -> int:
    """The step that was on last, of so many; 0 where that is not told."""
    if any(each["state"] == "Promote" for each in entries):
        return count
    return next((int(each["step"]) for each in reversed(entries) if each["step"]), 0)


def step_times(entries: list[Object], index: int) -> tuple[str, str]:
    """Since when and until when the step was on, the last time; "" for what is not known."""
    on = [place for place, each in enumerate(entries) if each["step"] == index]
    if not on:
        return "", ""
    last = first = on[-1]
    while first > 0 and entries[first - 1]["step"] == index:
        first -= 1
    return entries[first]["at"], entries[last + 1]["at"] if last + 1 < len(entries) else ""
