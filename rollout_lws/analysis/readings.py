"""What a pod said of a signal at one moment, as counters and gauges have it, and what came to it since.

A reading is cumulative where it counts. ``since`` is None where an earlier reading is of another life of the process: a
counter that went back, or other buckets. What was counted in between is not known then.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import TypeAlias

#: Edges of a histogram; vLLM's have some 20.
MOST_EDGES = 256


@dataclass(frozen=True, slots=True)
class Sample:
    """One series and its value."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Exposition:
    """Samples by the name of their line (``…_bucket``), and what families are said to be (``histogram``)."""

    samples: Mapping[str, tuple[Sample, ...]]
    types: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Histogram:
    """``counts[i]`` requests took longer than ``edges[i - 1]`` and at most ``edges[i]`` seconds; the last count has no
    upper edge.
    """

    edges: tuple[float, ...]
    counts: tuple[float, ...]

    @property
    def total(self) -> float:
        return sum(self.counts)

    @property
    def reached(self) -> bool:
        """Whether requests have reached the pod."""
        return self.total > 0

    def since(self, earlier: Histogram) -> Histogram | None:
        if earlier.edges != self.edges:
            return None
        ends = [now - then for now, then in zip(self._ends(), earlier._ends(), strict=True)]
        return None if min(ends) < 0 else _between_ends(self.edges, ends)

    def plus(self, other: Histogram) -> Histogram:
        """The sum, on the edges that both have: what lies between those is counted together."""
        if other.edges == self.edges:
            return Histogram(self.edges, tuple(a + b for a, b in zip(self.counts, other.counts, strict=True)))
        edges = tuple(sorted(set(self.edges) & set(other.edges)))
        return self._on(edges).plus(other._on(edges))

    def above(self, limit: float, inside: float) -> float:
        """Requests that took longer than ``limit``, with the share ``inside`` of those in the bucket that the limit
        divides: 0 counts what surely did, 1 what maybe did.
        """
        at = bisect_left(self.edges, limit)
        if at < len(self.edges) and self.edges[at] == limit:
            return sum(self.counts[at + 1 :])
        return sum(self.counts[at + 1 :]) + inside * self.counts[at]

    def up_to(self) -> tuple[float, ...]:
        """Cumulative counts, by edge."""
        return self._ends()[:-1]

    def _ends(self) -> tuple[float, ...]:
        """Cumulative counts, of all requests last."""
        return tuple(accumulate(self.counts))

    def around(self, limit: float) -> tuple[float | None, float | None]:
        """The edges beside ``limit``, which are the limit itself where it is one; None where there is no such edge."""
        at = bisect_left(self.edges, limit)
        above = self.edges[at] if at < len(self.edges) else None
        if above == limit:
            return limit, limit
        return self.edges[at - 1] if at else None, above

    def _on(self, edges: tuple[float, ...]) -> Histogram:
        known = dict(zip(self.edges, self.up_to(), strict=True))
        return _between_ends(edges, (*(known[edge] for edge in edges), self.total))


@dataclass(frozen=True, slots=True)
class Counts:
    """Of ``total`` that were counted, ``bad`` ones."""

    bad: float
    total: float

    @property
    def reached(self) -> bool:
        """Whether requests have reached the pod."""
        return self.total > 0

    def since(self, earlier: Counts) -> Counts | None:
        more = Counts(self.bad - earlier.bad, self.total - earlier.total)
        return None if more.bad < 0 or more.total < 0 else more

    def plus(self, other: Counts) -> Counts:
        return Counts(self.bad + other.bad, self.total + other.total)


@dataclass(frozen=True, slots=True)
class Level:
    """Sum and number of values of a gauge: one reading is one value. With the requests that the pod ran at that moment,
    and those that it has completed: a gauge of a pod that no request has reached says nothing.
    """

    value: float
    readings: int = 1
    running: float = 0.0
    completed: float = 0.0

    @property
    def reached(self) -> bool:
        """Whether requests have reached the pod."""
        return self.running > 0 or self.completed > 0

    def since(self, earlier: Level | None) -> Level:
        """With the requests that were completed in between; none of them if that is unknown."""
        more = self.completed - earlier.completed if earlier is not None else 0.0
        return replace(self, completed=max(0.0, more))

    def plus(self, other: Level) -> Level:
        return Level(
            self.value + other.value,
            self.readings + other.readings,
            self.running + other.running,
            self.completed + other.completed,
        )


@dataclass(frozen=True, slots=True)
class Work:
    """Requests that run, and tokens that were generated. What came since an earlier reading has the requests that ran
    at both moments, at least as many.
    """

    running: float
    tokens: float

    @property
    def reached(self) -> bool:
        """Whether requests have reached the pod."""
        return self.running > 0 or self.tokens > 0

    def since(self, earlier: Work) -> Work | None:
        """With ``running`` of now, and the tokens in between."""
        more = self.tokens - earlier.tokens
        return None if more < 0 else Work(min(self.running, earlier.running), more)

    def plus(self, other: Work) -> Work:
        return Work(min(self.running, other.running), self.tokens + other.tokens)


Reading: TypeAlias = Histogram | Counts | Level | Work


@dataclass(frozen=True, slots=True)
class Nothing:
    """The pod is a model server of the kind, and has counted nothing of the signal yet."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a pod cannot be read. ``silent`` if it does not answer at all, as one that has ended does not."""

    why: str
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Same:
    """Nothing newer is known of the pod than what was read before."""


Read: TypeAlias = Reading | Nothing | Trouble | Same


def histogram_of(buckets: Iterable[Sample]) -> Histogram | Trouble:
    """The sum over all series that only differ in other labels than ``le``."""
    sums: dict[float, float] = {}
    series: dict[float, int] = {}
    for each in buckets:
        try:
            edge = float(each.labels["le"])
        except (KeyError, ValueError):
            return Trouble("a bucket has no edge (le)")
        sums[edge] = sums.get(edge, 0) + each.value
        if len(sums) > MOST_EDGES:
            return Trouble(f"its histogram has more than {MOST_EDGES} edges")
        series[edge] = series.get(edge, 0) + 1
    if len(set(series.values())) != 1:
        return Trouble("its series have different buckets")
    edges = sorted(sums)
    if edges[-1] != float("inf") or len(edges) < 2:
        return Trouble("a histogram without a bucket for all requests (le=+Inf) and one more")
    ends = [sums[edge] for edge in edges]
    if any(not 0 <= end < float("inf") for end in ends):
        return Trouble("a bucket's count is not a number")
    return _between_ends(_shared(tuple(edges[:-1])), ends)


@lru_cache(maxsize=64)
def _shared(edges: tuple[float, ...]) -> tuple[float, ...]:
    """The same tuple for equal edges: each slice of a window keeps its own, and they are two thirds of it."""
    return edges


def _between_ends(edges: tuple[float, ...], ends: Iterable[float]) -> Histogram:
    """From cumulative counts. Buckets are not read at one moment: a request may be in one and not yet in the next."""
    risen = tuple(accumulate(ends, max))
    return Histogram(edges, tuple(whole(end - start) for start, end in zip((0, *risen), risen, strict=False)))


def whole(value: float) -> float:
    """As an int where it is one: Python keeps small ones once, and windows have many."""
    return int(value) if value % 1 == 0 else value
