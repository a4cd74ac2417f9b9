"""What is told of one release before it begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.cli.plan.written import Planned
from rollout_lws.forecast.model import Forecast, Given, Row

Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LoadTimes:
    """Seconds that groups took, or are said to take, from their making until they were ready; () when nobody knows."""

    seconds: tuple[float, ...] = ()
    source: str = ""
    """Who says so, as it goes on from "a group loads for about 12m, "."""

    @property
    def typical(self) -> float:
        """Their median: a group that was not ready for a while, long after its start, must not count; 0 when nobody
        knows.
        """
        return median(self.seconds) if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Part:
    """A step, or the promotion, with what the groups of either version take."""

    row: Row
    old: int
    """Groups of the old version at its end."""
    accelerators: Amounts
    """Most at any moment of it, by resource name."""
    pause: int | None = None
    """Seconds of its pause, which are part of its time; None where it has none with a duration."""


@dataclass(frozen=True)
class Plan:
    """All that is told of one release. ``parts`` is empty where nothing can be, or need be, done in steps."""

    rollout: str
    namespace: str
    workload: str
    replicas: int
    size: int
    strategy: CapacityStrategy | None
    change: str
    """What the new version changes, in words; "" when the template is the one that runs."""
    at: str
    """Where a release that is on is: ``step 2``, ``promotion``; "" at rest."""
    given: Given
    loads: LoadTimes
    now: Amounts
    """What pods hold that have a node."""
    requested: Amounts
    """What all pods that stand ask for, which is what a quota counts."""
    afterwards: Amounts
    parts: tuple[Part, ...] = ()
    forecast: Forecast | None = None
    writes: tuple[Planned, ...] = ()
    refusals: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()

    @cached_property
    def peak(self) -> Amounts:
        """Most accelerators at any moment, by resource name."""
        return most(self.now, *(part.accelerators for part in self.parts))


def most(*several: Amounts) -> Amounts:
    """The largest amount of each name."""
    names = sorted({name for each in several for name in each})
    return {name: max(each.get(name, 0) for each in several) for name in names}
