"""What a course is made of in a picture: spans, bands and steps of lines, as coordinates and paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rollout_lws.drawing.course import Course, Kind, Moment, Wait
from rollout_lws.drawing.scales import APPROVAL, Numbers, Times
from rollout_lws.drawing.svg import number

Version = Literal["old", "new"]
State = Literal["ready", "draining", "loading"]


@dataclass(frozen=True, slots=True)
class Span:
    """What is so between two edges."""

    left: float
    right: float
    moment: Moment


@dataclass(frozen=True, slots=True)
class Box:
    """A wait between two edges."""

    left: float
    right: float
    wait: Wait


@dataclass(frozen=True, slots=True)
class Band:
    """Groups of a version in one state, which stand on all bands before it in ``BANDS``."""

    version: Version
    state: State

    def count(self, moment: Moment) -> int:
        groups = moment.old if self.version == "old" else moment.new
        return {"ready": groups.ready, "draining": groups.draining, "loading": groups.loading}[self.state]

    def below(self, moment: Moment) -> int:
        return sum(each.count(moment) for each in BANDS[: BANDS.index(self)])


_VERSIONS: tuple[Version, ...] = ("old", "new")
_STATES: tuple[State, ...] = ("ready", "draining", "loading")
#: From the bottom to the top.
BANDS = tuple(Band(version, state) for version in _VERSIONS for state in _STATES)


def spans(course: Course, times: Times) -> Iterator[Span]:
    """What stands, from the left edge to the right one."""
    yield Span(times.left, times.x(0, 0), course.rest)
    passed, last = 0, course.rest
    for stretch in course.stretches:
        starts = [each.at for each in stretch.moments]
        for moment, until in zip(stretch.moments, [*starts[1:], max(stretch.ends, *starts[-1:])], strict=True):
            yield Span(times.x(moment.at, passed), times.x(until, passed), moment)
            last = moment
        if stretch.approval:
            yield Span(times.x(stretch.ends, passed), times.x(stretch.ends, passed + 1), last)
            passed += 1
    yield Span(times.x(course.seconds, passed), times.right, last)


def boxes(course: Course, times: Times) -> Iterator[Box]:
    """All waits; of an approval that has no time the width that it is given."""
    passed = 0
    for each in course.stretches:
        for wait in each.waits:
            yield Box(times.x(wait.begins, passed), times.x(wait.ends, passed), wait)
        if each.approval:
            left = times.x(each.ends, passed)
            yield Box(left, left + APPROVAL, Wait(Kind.APPROVAL, each.ends, each.ends))
            passed += 1


def lanes(every: Iterable[Box]) -> tuple[tuple[Box, ...], ...]:
    """Boxes in as few lanes as they need, so that none covers another."""
    found: tuple[tuple[Box, ...], ...] = ()
    for box in every:
        at = next((at for at, lane in enumerate(found) if lane[-1].right <= box.left), len(found))
        lane = (*(found[at] if at < len(found) else ()), box)
        found = (*found[:at], lane, *found[at + 1 :])
    return found


def runs(edges: Iterable[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Those that touch each other, joined."""
    found: tuple[tuple[float, float], ...] = ()
    for left, right in edges:
        if found and abs(found[-1][1] - left) < 1e-6:
            found = (*found[:-1], (found[-1][0], right))
        else:
            found = (*found, (left, right))
    return found


def area(every: Sequence[Span], band: Band, scale: Numbers) -> str:
    """The path of a band: a shape for each run of spans in which it has groups; "" without any."""
    there = [each for each in every if band.count(each.moment)]
    return "".join(
        _shape([each for each in there if left <= each.left < right], band, scale)
        for left, right in runs((each.left, each.right) for each in there)
    )


def _shape(every: Sequence[Span], band: Band, scale: Numbers) -> str:
    upper = [scale.y(band.below(each.moment) + band.count(each.moment)) for each in every]
    lower = [scale.y(band.below(each.moment)) for each in every]
    there = "".join(f"V{number(y)}H{number(each.right)}" for each, y in zip(every, upper, strict=True))
    back = "".join(
        f"V{number(y)}H{number(each.left)}" for each, y in zip(reversed(every), reversed(lower), strict=True)
    )
    return f"M{number(every[0].left)} {number(lower[0])}{there}{back}Z"


def below(every: Sequence[Span], y: Callable[[Moment], float], bottom: float) -> str:
    """The path of what is between such a line and the bottom."""
    return f"{line(every, y)}V{number(bottom)}H{number(every[0].left)}Z"


def line(every: Sequence[Span], y: Callable[[Moment], float]) -> str:
    """The path of a line with a step for each change."""
    # What is changed in the same second cannot be seen.
    lasting = [each for each in every if each.right - each.left > 0.01]
    steps = "".join(f"V{number(y(each.moment))}H{number(each.right)}" for each in lasting)
    return f"M{number(every[0].left)} {number(y(every[0].moment))}{steps}"


def cuts(every: Sequence[Span], scale: Numbers) -> str:
    """The path of the lines between groups."""
    most = max(each.moment.count for each in every)
    return "".join(
        f"M{number(left)} {number(scale.y(level))}H{number(right)}"
        for level in range(1, most)
        for left, right in runs((each.left, each.right) for each in every if each.moment.count > level)
    )


def place(every: Sequence[Span], band: Band, scale: Numbers, width: float, height: float) -> tuple[float, float] | None:
    """The middle of the highest place in a band that a text has room in, the first of these; None if there is none."""
    best: tuple[float, float, float] | None = None
    edges = {each.left for each in every} | {each.right - width for each in every}
    for left in sorted(each for each in edges if each >= every[0].left):
        over = [each.moment for each in every if each.left < left + width and each.right > left]
        if left + width > every[-1].right or not over:
            continue
        bottom = max(band.below(each) for each in over)
        top = min(band.below(each) + band.count(each) for each in over)
        room = scale.y(bottom) - scale.y(top)
        if room >= height and (best is None or room > best[0] + 1e-6):
            best = room, left + width / 2, (scale.y(bottom) + scale.y(top)) / 2
    return None if best is None else best[1:]
