"""When figures are judged: once early, and at each quarter of the requests and of the time that a verdict needs.

Who judges at every scrape finds a version that is exactly at its limit too slow in a third of releases, since one of
many looks is unlucky. So there are five looks, and the error that is allowed is divided between them. A version fails
at any look, and passes at the last one only, since a window is the least time that it is watched; so that error need
not be divided.
"""

from __future__ import annotations

from math import sqrt

from rollout_lws.analysis.shares import normal, wilson

LOOKS = 5
_QUARTERS = LOOKS - 1
#: How probable the verdict is that is right; a little more than the 80 % that are promised, for what slices cost.
POWER = 0.85
#: The early look comes after these requests at the latest: a version that is far off is found by them.
EARLY = 2_000
#: More requests than these are never planned.
MOST_REQUESTS = 10_000_000


def to_fail(confidence: float) -> float:
    """How often the bound that fails a version may be wrong at one look."""
    return (1 - confidence) / LOOKS


def to_pass(confidence: float) -> float:
    """How often the bound that passes a version may be wrong."""
    return 1 - confidence


def of_window(confidence: float, before: int) -> float:
    """The confidence of one of many windows, after so many ``before`` it: together they are wrong no more often than
    one window of ``confidence`` is.
    """
    return 1 - (1 - confidence) / ((before + 1) * (before + 2))


def due(done: int, requests: float, planned: float, time: float) -> bool:
    """Whether the look after ``done`` ones is due, after so many of the ``planned`` requests, and such a part of the
    time (1 is all). The early look, which finds a version that is far off, asks for requests only.
    """
    if done == 0:
        return requests >= min(planned / _QUARTERS, EARLY)
    quarter = done / _QUARTERS
    return done < LOOKS and requests >= quarter * planned and time >= quarter


def taken(time: float) -> int:
    """Looks that may have been taken in such a part of the time (1 is all)."""
    return min(LOOKS - 1, int(time * _QUARTERS))


def is_last(done: int) -> bool:
    """Whether the look after ``done`` ones is the last."""
    return done + 1 == LOOKS


def planned(limit: float, confidence: float, good: float | None = None) -> int:
    """Independent requests with which a version whose share is ``good`` (half the limit by default) is passed, and one
    with twice the limit failed, with a probability of POWER each.
    """
    good = limit / 2 if good is None else good
    bad = min(2 * limit, (1 + limit) / 2)
    passes, fails, power = normal(1 - to_pass(confidence)), normal(1 - to_fail(confidence)), normal(POWER)

    def decides(count: int) -> bool:
        unlucky = min(1.0, good + power * sqrt(good * (1 - good) / count))
        lucky = max(0.0, bad - power * sqrt(bad * (1 - bad) / count))
        return wilson(unlucky, count, passes)[1] < limit < wilson(lucky, count, fails)[0]

    enough = 1
    while not decides(enough):
        if enough >= MOST_REQUESTS:
            return MOST_REQUESTS
        enough *= 2
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        too_few, enough = (too_few, middle) if decides(middle) else (middle, enough)
    return enough
