"""The course of a release as points in time: the groups of either version by their state, and who gets requests.

Forecasts make it of changes, each with its second: groups are created, become ready, lose their requests, and go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from operator import add

from rollout_lws.forecast.model import Groups, Loading, Point

NONE = Groups()
#: The new version's share of requests, 0 to 1, where it follows the ready groups of the old and the new version.
Sharing = Callable[[int, int], float]


@dataclass(frozen=True, slots=True)
class Change:
    """What changes at the second ``at``: so many groups more, or fewer, in each state; and the new version's share of
    requests, if it is another one from then on.
    """

    at: float
    old: Groups = NONE
    new: Groups = NONE
    share: float | None = None
    companions: tuple[int, ...] = ()
    """Groups of each companion more, on the side of the new version."""


def created(loading: Loading, count: int, at: float) -> Iterator[tuple[float, int]]:
    """When so many groups that are asked for at the second ``at`` are created: the second, and how many then."""
    if loading.order is None:
        yield from [(at, count)] if count else []
        return
    unit = loading.load_seconds + loading.order.seconds
    yield from ((at + number * unit, 1) for number in range(count))


def loads(loading: Loading, count: int, at: float) -> Iterator[Change]:
    """So many groups of the new version are asked for at the second ``at``, and load."""
    for made, groups in created(loading, count, at):
        yield Change(made, new=Groups(loading=groups))
        yield Change(made + loading.load_seconds, new=Groups(ready=groups, loading=-groups))


def renews(loading: Loading, count: int, at: float, *, emptied: bool = False) -> Iterator[Change]:
    """So many groups of the old version go from the second ``at`` on, and load the new one; ``emptied``: they have no
    requests, and go together, even if they are created one after the other.
    """
    going = [(at, count)] if emptied else created(loading, count, at)
    for gone, groups in going:
        yield Change(gone, old=Groups(draining=-groups) if emptied else Groups(ready=-groups))
    yield from loads(loading, count, at)


def turned(changes: Iterable[Change]) -> Iterator[Change]:
    """The same changes with the versions in each other's place; shares are those of the new version all the same."""
    return (replace(each, old=each.new, new=each.old) for each in changes)


def course(begin: Point, changes: Iterable[Change], sharing: Sharing | None = None) -> tuple[Point, ...]:
    """The points from ``begin`` on, one for each second in which something changes; ``sharing``: shares follow the
    groups, whatever changes say of them.
    """
    points = [begin if sharing is None else replace(begin, share=sharing(begin.old.ready, begin.new.ready))]
    for at, together in groupby(sorted(changes, key=lambda each: each.at), key=lambda each: each.at):
        point = points[-1]
        for change in together:
            share = point.share if change.share is None else change.share
            beside = tuple(map(add, point.companions, change.companions)) if change.companions else point.companions
            point = Point(at, point.old + change.old, point.new + change.new, share, beside)
        point = point if sharing is None else replace(point, share=sharing(point.old.ready, point.new.ready))
        points = [*points[: -1 if points[-1].at == point.at else None], point]
    return tuple(points)
