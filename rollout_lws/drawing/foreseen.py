"""The course of a release that has not begun, or of a way back, of its forecast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rollout_lws.drawing.course import Course, Kind, Moment, Stretch, Wait
from rollout_lws.forecast.model import Forecast, Point, Row

Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Held:
    """Accelerators by resource: of a group of the old version, and of one of the new version."""

    old: Amounts = field(default_factory=dict)
    new: Amounts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Beside:
    """A companion of a pair: its groups on the side of the old version, and what a group holds."""

    active: int
    held: Held


@dataclass(frozen=True, slots=True)
class Asked:
    """What a step waits for when its groups have loaded: seconds of its pause, and of each of its gates."""

    pause: float = 0.0
    gates: tuple[tuple[str, float], ...] = ()


def course(
    found: Forecast,
    title: str,
    facts: str,
    held: Held,
    companions: Sequence[Beside] = (),
    asked: Mapping[int, Asked] | None = None,
) -> Course:
    """The course of the release; ``companions`` in the order of the spec, ``asked`` by the number of the step."""
    return _Courses(found, held, tuple(companions), asked or {}).whole(title, facts)


def way_back(
    found: Forecast, step: int, title: str, facts: str, held: Held, asked: Mapping[int, Asked] | None = None
) -> Course:
    """The course of a release that goes back when step ``step`` has ended."""
    return _Courses(found, held, (), asked or {}).back(step, title, facts)


@dataclass(frozen=True)
class _Courses:
    found: Forecast
    held: Held
    companions: tuple[Beside, ...]
    asked: Mapping[int, Asked]

    def whole(self, title: str, facts: str) -> Course:
        return self._course(title, facts, self._stretches(self.found.rows))

    def back(self, step: int, title: str, facts: str) -> Course:
        rows = self.found.rows[:step]
        at = sum(row.seconds for row in rows)
        moments = tuple(self._moment(replace(each, at=at + each.at)) for each in rows[-1].back)
        *before, last = self._stretches(rows)
        going = Stretch("way back", at, moments[-1].at, moments)
        # What was to be approved is aborted.
        return self._course(title, facts, (*before, replace(last, approval=False), going))

    def _course(self, title: str, facts: str, stretches: tuple[Stretch, ...]) -> Course:
        begin = self.found.begin
        return Course(title, facts, begin.old.count, self._moment(begin), stretches, self._resources)

    def _stretches(self, rows: Sequence[Row]) -> tuple[Stretch, ...]:
        begins = [sum(row.seconds for row in rows[:at]) for at in range(len(rows))]
        return tuple(self._stretch(row, begin) for row, begin in zip(rows, begins, strict=True))

    def _stretch(self, row: Row, begins: float) -> Stretch:
        ends = begins + row.seconds
        asked = self.asked.get(row.step or 0, Asked())
        since = ends - row.waits
        waits = [Wait(Kind.PAUSE, since, since + asked.pause)] if asked.pause else []
        waits += [Wait(Kind.GATE, since, since + seconds, name) for name, seconds in asked.gates]
        name = "promotion" if row.step is None else f"step {row.step}"
        return Stretch(name, begins, ends, tuple(map(self._moment, row.points)), tuple(waits), row.approval)

    @property
    def _resources(self) -> tuple[str, ...]:
        every = [self.held, *(each.held for each in self.companions)]
        return tuple(sorted({name for each in every for name in (*each.old, *each.new)}))

    def _moment(self, point: Point) -> Moment:
        return Moment(
            point.at, point.old, point.new, point.share, tuple(self._of(point, name) for name in self._resources)
        )

    def _of(self, point: Point, name: str) -> int:
        """Accelerators of this name that all groups hold."""
        own = point.old.count * self.held.old.get(name, 0) + point.new.count * self.held.new.get(name, 0)
        beside = 0
        for companion, new in zip(self.companions, point.companions, strict=True):
            # Companions go with the old side's groups.
            active = companion.active if point.old.count else 0
            beside += active * companion.held.old.get(name, 0) + new * companion.held.new.get(name, 0)
        return own + beside
