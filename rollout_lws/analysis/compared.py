"""A new version's latency against the stable version's: is its quantile at most so many times that of stable?

Stable's quantile is itself only known as an interval. Between two edges of a histogram nothing is known, and servers'
edges lie so far apart that edges alone would decide nothing; so times are taken to be spread in between as they are in
a lognormal distribution. On such, on exponential ones and on mixtures a version at its limit is not judged by mistake.
"""

from __future__ import annotations

from math import exp, log

from rollout_lws.analysis.readings import Histogram
from rollout_lws.analysis.shares import Share, normal, normal_share

#: A share of nothing or of everything has no quantile: half a request is taken instead.
_HALF = 0.5
_RARE = 1e-9
#: Stands for an edge of 0 seconds, which has no logarithm.
_SOON = 1e-6


def share_above(histogram: Histogram, limit: float, *, beyond: float = 1.0) -> float:
    """The share of the bucket that ``limit`` divides which lies above the limit; ``beyond`` for a limit above
    the last edge, where nothing says how long requests took.
    """
    low, high = histogram.around(limit)
    total, cumulative = histogram.total, (0.0, *histogram.up_to())
    if high == limit or total <= 0:
        return 0.0
    at = 0 if low is None else histogram.edges.index(low) + 1
    start, end = cumulative[at], cumulative[at + 1] if high is not None else total
    if high is None:
        return beyond
    if end <= start:
        return 1.0
    edges = log(max(low or 0.0, _SOON)), log(max(high, _SOON))
    score = _between(*edges, _score(start, total), _score(end, total), log(max(limit, _SOON)))
    return min(1.0, max(0.0, (end - normal_share(score) * total) / (end - start)))


def quantile(histogram: Histogram, below: float) -> float | None:
    """Seconds within which the share ``below`` of requests are done; None beyond the last edge, or without any."""
    total, start = histogram.total, 0.0
    edge_before = _SOON
    for edge, end in zip(histogram.edges, histogram.up_to(), strict=True):
        if total > 0 and end / total >= below and end > start:
            at = _between(_score(start, total), _score(end, total), log(edge_before), log(edge), normal(below))
            return min(edge, max(edge_before, exp(at)))
        start, edge_before = end, max(edge, _SOON)
    return None


def quantiles(
    histogram: Histogram, below: float, told: Share, error: float, narrower: float
) -> tuple[float | None, float | None]:
    """Bounds of that quantile: of the shares that the effective requests of ``told`` allow for."""
    spread = Share(told.total * below, told.total, told.slices, told.effective).interval(error, narrower)
    low, high = (min(max(each, _RARE), 1 - _RARE) for each in spread)
    return quantile(histogram, low), quantile(histogram, high)


def _score(cumulative: float, total: float) -> float:
    """The normal quantile of a cumulative share."""
    return normal(min(max(cumulative, _HALF), total - _HALF) / total) if total > 2 * _HALF else 0.0


def _between(x0: float, x1: float, y0: float, y1: float, x: float) -> float:
    return y0 if x1 <= x0 else y0 + (y1 - y0) * (x - x0) / (x1 - x0)
