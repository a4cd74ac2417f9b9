"""Waits: what a rule waits for, and the exponential backoff between two tries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Wait:
    """``message`` names the cause; ``until`` is when the wait ends by time alone, None if it never does."""

    message: str
    until: datetime | None = None


#: Limit of doublings: a thousand times any first wait exceeds the longest one.
MOST_TIMES = 10


def doubled(first: float, times: int, most: float) -> float:
    """``first`` seconds, doubled ``times`` times, at most ``most``. ``times`` may come from a status, where any writer
    can put any number.
    """
    return min(first * 2.0 ** min(max(times, 0), MOST_TIMES), most)
