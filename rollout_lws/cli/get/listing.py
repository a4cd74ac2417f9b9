"""Renders the list of Rollouts, one line each, and the colours and line widths that both pictures share. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from rollout_lws.cli.rollouts import summary
from rollout_lws.cli.view import age, cut, table

Object = dict[str, Any]
#: Minimum width for wrapping and cutting; below it, nothing readable would remain.
NARROWEST = 40
#: Colours of summary states: green is fine, yellow waits or needs attention, red has failed.
_COLOURS = {
    "Healthy": 32,
    **dict.fromkeys(("Stalled", "Aborted"), 31),
    **dict.fromkeys(("AwaitingApproval", "Paused", "WaitingForQuota", "WaitingForAccelerators", "HoldReleased"), 33),
}
_STATES = re.compile(rf"\b({'|'.join(_COLOURS)})\b")


def overview(
    rollouts: Iterable[Object], now: datetime, *, namespaces: bool, wide: bool = False, width: int | None = None
) -> list[str]:
    """One line per Rollout; ``namespaces`` adds their column, ``wide`` the columns of ``kubectl get -o wide``."""
    heading = ("NAMESPACE", "NAME", "STATUS", "STEP", "TRAFFIC", "NEW", "STABLE", "AGE")
    more = ("ACCELERATORS", "SINCE", "PHASE", "MESSAGE")
    rows = [(*heading, *more)]
    for each in rollouts:
        said, meta, status = summary(each), each["metadata"], each.get("status") or {}
        words = (said["state"] or "Unknown", said["step"], said["traffic"], said["new"], said["stable"])
        rest = (said["accelerators"], age(said["since"], now), status.get("phase") or "", status.get("message") or "")
        rows.append((meta["namespace"], meta["name"], *words, age(meta.get("creationTimestamp"), now), *rest))
    first, last = 0 if namespaces else 1, None if wide else len(heading)
    return [fitted(line, width) for line in table(row[first:last] for row in rows)]


def coloured(line: str) -> str:
    """A line with terminal colours: states in colour, table headings in bold."""
    if line.startswith(("NAME ", "NAMESPACE ")):
        return f"\x1b[1m{line}\x1b[0m"
    return _STATES.sub(lambda match: f"\x1b[{_COLOURS[match[1]]}m{match[1]}\x1b[0m", line, count=1)


def fitted(line: str, width: int | None) -> str:
    """A line of a table, cut to the terminal's width; None keeps it whole."""
    return line if width is None else cut(line, max(width, NARROWEST))
