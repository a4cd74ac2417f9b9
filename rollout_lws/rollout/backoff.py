"""Waits that get twice as long each time."""

from __future__ import annotations

#: More often nothing is doubled: a thousand times any first wait is longer than the longest.
MOST_TIMES = 10


def doubled(first: float, times: int, most: float) -> float:
    """``first`` seconds, doubled so many ``times``, at most ``most``. How often may be read off a status, where
    whoever may write it can claim any number.
    """
    return min(first * 2.0 ** min(max(times, 0), MOST_TIMES), most)
