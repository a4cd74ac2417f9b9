"""Intervals for a share of requests, whose requests are not independent.

Requests that a pod serves in the same seconds have the same luck, and so have those of the next ones, somewhat: a
share of 1,000 requests may tell no more than one of 300 independent ones. How much less is measured by slices: the
variance of a ratio that is estimated from clusters, with what neighbours of a pod have in common (Newey and West's
weights). Wilson's interval is taken for the requests that count; with few slices Student's quantile stands for the
normal one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

#: So many slices further on a pod's luck is another.
_NEIGHBOURS = 3
#: Fewer slices than these say nothing of how requests hang together.
FEWEST_SLICES = 5
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Share:
    """``bad`` of ``total`` requests; ``effective`` is how many independent ones would tell as much."""

    bad: float
    total: float
    slices: int
    effective: float

    @property
    def value(self) -> float:
        return min(1.0, max(0.0, self.bad / self.total)) if self.total else 0.0

    def interval(self, error: float, narrower: float = 1.0) -> tuple[float, float]:
        """Lower and upper bound, each of which is wrong in at most the share ``error`` of cases; ``narrower`` shrinks
        both, see ``both_unlucky``.
        """
        if self.slices < FEWEST_SLICES or self.effective <= 0:
            return 0.0, 1.0
        return wilson(self.value, self.effective, narrower * student(1 - error, self.slices - 1))


def both_unlucky(one: Share, other: Share) -> float:
    """By how much bounds of two shares may be narrower where only a mistake in both at once misleads: from 0.85, for
    shares that are known equally well, to 1. Half of what independent normal shares allow for: of few slices and of
    times between two edges less is known than that.
    """
    if one.effective <= 0 or other.effective <= 0:
        return 1.0
    first, second = 1 / one.effective, 1 / other.effective
    return (1 + sqrt(first + second) / (sqrt(first) + sqrt(second))) / 2


def share(pods: Iterable[Sequence[tuple[float, float]]]) -> Share:
    """From bad and all requests of each pod's slices, one after the other; slices without requests do not count."""
    known = [[(bad, total) for bad, total in slices if total > 0] for slices in pods]
    bad, total = (sum(each[part] for slices in known for each in slices) for part in (0, 1))
    count = sum(map(len, known))
    value = min(1.0, max(0.0, bad / total)) if total else 0.0
    alone = value * (1 - value)
    if count < 2 or alone <= 0:
        return Share(bad, total, count, total)
    together = sum(_spread([bad - value * of for bad, of in slices]) for slices in known)
    return Share(bad, total, count, total / max(1.0, together * count / (count - 1) / (alone * total)))


def _spread(residuals: Sequence[float]) -> float:
    """Their variance, with what neighbours have in common; never less than without."""
    own = sum(each * each for each in residuals)
    shared = sum(
        2 * (1 - far / (_NEIGHBOURS + 1)) * one * other
        for far in range(1, _NEIGHBOURS + 1)
        for one, other in zip(residuals, residuals[far:], strict=False)
    )
    return own + max(0.0, shared)


def wilson(value: float, count: float, quantile: float) -> tuple[float, float]:
    """Wilson's interval of a share ``value`` of ``count`` independent requests."""
    count = float(count)
    square = quantile * quantile
    middle = (value + square / (2 * count)) / (1 + square / count)
    width = quantile / (1 + square / count) * sqrt(value * (1 - value) / count + square / (4 * count * count))
    return max(0.0, middle - width), min(1.0, middle + width)


def normal(share_below: float) -> float:
    """The normal distribution's quantile."""
    return _NORMAL.inv_cdf(share_below)


def normal_share(quantile: float) -> float:
    """The normal distribution's share below a quantile."""
    return _NORMAL.cdf(quantile)


def student(share_below: float, freedom: int) -> float:
    """Student's quantile, by the expansion of Cornish and Fisher; for ``freedom`` of 4 and more."""
    z, n = normal(share_below), freedom
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )
