"""Where seconds and numbers are in a picture, and which of them are written at its axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from rollout_lws.drawing.course import Course

#: Widths in a picture: what stood before, what stands after it, and an approval, which has no time.
REST, END, APPROVAL = 10.0, 16.0, 16.0


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of time for courses of at least so many seconds, and how many of it may lie between two numbers."""

    least: float
    seconds: float
    name: str
    steps: tuple[int, ...]


_UNITS = (
    Unit(3 * 86400.0, 86400.0, "d", (1, 2, 5, 10, 20, 50, 100)),
    Unit(8 * 3600.0, 3600.0, "h", (1, 2, 3, 6, 12, 24)),
    Unit(120.0, 60.0, "min", (1, 2, 5, 10, 15, 20, 30, 60, 120)),
    Unit(0.0, 1.0, "s", (1, 2, 5, 10, 15, 20, 30, 60)),
)


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of a course between two edges. Approvals have a width of their own, each after the seconds before it."""

    left: float
    right: float
    seconds: float
    scale: float
    approvals: tuple[float, ...]

    @classmethod
    def of(cls, course: Course, among: Sequence[Course], left: float, right: float) -> Times:
        """Those of a course, on the scale on which the longest of all has room."""
        room = right - left - REST - END
        scale = min((room - APPROVAL * len(_asked(each))) / max(each.seconds, 1e-9) for each in (course, *among))
        return cls(left, right, course.seconds, scale, _asked(course))

    def x(self, at: float, passed: int) -> float:
        """Where a second is when so many approvals have passed."""
        return self.left + REST + at * self.scale + passed * APPROVAL

    def before(self, at: float) -> int:
        """Approvals that have passed at a second, those of this very second not among them."""
        return sum(each < at for each in self.approvals)

    def ticks(self, room: float) -> Iterator[Tick]:
        """Numbers of the axis that are at least ``room`` apart."""
        unit = self.unit
        step = next((each for each in unit.steps if each * unit.seconds * self.scale >= room), unit.steps[-1])
        last = float("-inf")
        for number in count(step=step):
            at = number * unit.seconds
            x = self.x(at, self.before(at))
            if x > self.right:
                return
            if x - last >= room:
                last = x
                yield Tick(x, str(number))

    @property
    def unit(self) -> Unit:
        """The unit of the axis."""
        return next(each for each in _UNITS if (self.right - self.left) / self.scale >= each.least)


def _asked(course: Course) -> tuple[float, ...]:
    """When approvals that have no time are waited for."""
    return tuple(each.ends for each in course.stretches if each.approval)


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers from 0 to ``most`` between the bottom and the top of a panel."""

    bottom: float
    top: float
    most: float

    def y(self, number: float) -> float:
        return self.bottom - (self.bottom - self.top) * number / max(self.most, 1e-9)
