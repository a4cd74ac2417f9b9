"""Figures out of a journal: waits, counts and lateness of one release, by plain arithmetic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from tests.bench.journal import EVENT, LABEL, RELEASE, WINDOW, Accepted, Counted, Entry, Ready, Write

#: Writes that take a release further; Events and leader labels answer nothing.
_STEERING = (RELEASE, WINDOW)


def waits(entries: Iterable[Entry], until: type[Ready | Counted | Accepted] = Ready) -> list[float]:
    """Seconds from each moment at which what was waited for was there (all pods ready, or a route accepted) until the
    controller's next write arrived. What counts is a write that takes the release further and was accepted; of several
    moments before one write the last.
    """
    found: list[float] = []
    since: float | None = None
    for entry in entries:
        if isinstance(entry, until):
            since = entry.at
        elif isinstance(entry, Write) and since is not None and entry.purpose in _STEERING and entry.accepted:
            found.append(entry.at - since)
            since = None
    return found


def writes(entries: Iterable[Entry], purposes: Iterable[str] = (RELEASE,)) -> Counter[str]:
    """How often each verb was used on each object, in accepted writes of these purposes."""
    wanted = set(purposes)
    return Counter(
        f"{each.what} {each.name}"
        for each in entries
        if isinstance(each, Write) and each.accepted and each.purpose in wanted
    )


def refused(entries: Iterable[Entry]) -> Counter[str]:
    """Writes that the server did not accept, as ``409 patch rollouts/status``."""
    return Counter(f"{each.code} {each.what}" for each in entries if isinstance(each, Write) and not each.accepted)


def purposes(entries: Iterable[Entry]) -> dict[str, int]:
    """Accepted writes by what they are for, in a fixed order."""
    counted = Counter(each.purpose for each in entries if isinstance(each, Write) and each.accepted)
    return {purpose: counted[purpose] for purpose in (RELEASE, WINDOW, LABEL, EVENT)}


def pauses(entries: Iterable[Entry], seconds: float) -> list[float]:
    """By how many seconds each pause of ``seconds`` was exceeded: from ``pausedAt`` on record until the first write of
    the next step arrived. Negative: it ended early. A wait for an approval must not be among ``entries``.
    """
    found: list[float] = []
    began: float | None = None
    for entry in entries:
        if not isinstance(entry, Write):
            continue
        status = entry.body.get("status") or {}
        goes_on = entry.resource == LEADER_WORKER_SETS.plural or "currentStepIndex" in status
        if began is not None and goes_on:
            found.append(entry.at - began - seconds)
            began = None
        if status.get("currentStepState") == "StepPaused":
            began = datetime.fromisoformat(status["step"]["pausedAt"]).timestamp()
    return found
