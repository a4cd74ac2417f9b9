"""The plan of one release: the values that `plan` prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from rollout_lws.analysis.kinds import Engine
from rollout_lws.api import TrafficRouting
from rollout_lws.api.words import DrainUntil
from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.cli.plan.scripted import Scripted
from rollout_lws.cli.plan.written import Planned
from rollout_lws.forecast.gates import Demand
from rollout_lws.forecast.model import Forecast, Given, Order, Row

Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LoadTimes:
    """Startup times of groups in seconds, from creation to ready, measured or given; () when unknown."""

    seconds: tuple[float, ...] = ()
    source: str = ""
    """Their source, as it continues "a group loads for about 12m, "."""

    @property
    def typical(self) -> float:
        """The median, so that a group that became unready long after its start does not count; 0 when unknown."""
        return median(self.seconds) if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Part:
    """A step, or the promotion, with the groups and accelerators of both versions."""

    row: Row
    old: int
    """Groups of the old version at its end; of a pair that shifts those that have kept their requests."""
    accelerators: Amounts
    """Peak during it, by resource name."""
    pause: int | None = None
    """Seconds of its pause, which its time includes; None without a duration."""
    gates: tuple[Demand, ...] = ()
    """What its gates of figures need."""


@dataclass(frozen=True, slots=True)
class Beside:
    """A companion of a pair: its workloads by the roles of their sides before the release, with the groups that each
    has; the active one with those that it keeps while a release is on. At full size the inactive one has ``replicas``.
    """

    active: str
    active_groups: int
    inactive: str
    inactive_groups: int
    replicas: int
    size: int
    """Pods of a group of the new version."""
    change: str
    """What the new version changes, in words; "" for nothing."""
    loads: LoadTimes
    old: Amounts
    """Accelerators of a group of the version that runs."""
    new: Amounts
    """The same of the new version."""
    order: Order | None = None
    """In which its inactive workload makes groups."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """When the release of a version of several workloads begins, in words, and ``seconds`` from now; None: that depends
    on a person.
    """

    when: str
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Sides:
    """Two workloads that change roles, by their roles before the release, with the groups that each has; the active one
    with those that the Rollout asks for. Of a pair ``companions`` go with them, in the order of the spec.

    In a swap ``made`` is the one that releases make, "" in a pair. The next release goes the other way, unless the plan
    swaps no more: ``then`` names its strategy.
    """

    active: str
    active_groups: int
    inactive: str
    inactive_groups: int
    companions: tuple[Beside, ...] = ()
    made: str = ""
    then: str = ""

    @property
    def is_back(self) -> bool:
        """Whether the release brings the requests back to the user's workload."""
        return self.made == self.active


@dataclass(frozen=True)
class Plan:
    """The plan of one release. ``parts`` is empty when a release in steps is impossible or not needed.

    Of two workloads that change roles ``workload`` is the active one, and ``replicas`` are the groups of the inactive
    one, to which the release moves requests, or which it is to have.
    """

    rollout: str
    namespace: str
    workload: str
    kind: str
    """Of all of its workloads."""
    replicas: int
    size: int
    strategy: CapacityStrategy | None
    change: str
    """What the new version changes, in words; "" when the template already runs."""
    at: str
    """Position of a release in progress: ``step 2``, ``promotion``; "" at rest."""
    given: Given
    engine: Engine | None
    """The model server, if the strategy says it."""
    loads: LoadTimes
    now: Amounts
    """Accelerators that scheduled pods hold."""
    requested: Amounts
    """Accelerators that all existing pods request, which is what a quota counts."""
    afterwards: Amounts
    old: Amounts
    """Accelerators of a group of the version that runs; those of companions are theirs."""
    new: Amounts
    """The same of the new version."""
    parts: tuple[Part, ...] = ()
    forecast: Forecast | None = None
    writes: tuple[Planned, ...] = ()
    scripted: tuple[Scripted, ...] = ()
    """What scripts write in objects of ``customNetworkRefs``."""
    refusals: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    sides: Sides | None = None
    """The workloads of a pair, or of a swap; None for other plans."""
    begins: Beginning | None = None
    """Of a pair with companions whose release is possible and has not begun; None for other plans."""

    @property
    def how(self) -> str:
        """Its capacity, as its header says it; "" without a strategy."""
        by = self.strategy
        if by is None:
            return ""
        return f"{by.title} with shift" if by.shifts and by.paired else by.title

    @property
    def owned(self) -> Sides | None:
        """The workloads of a pair whose groups their owner loads, so that the release only moves requests; None for
        other plans.
        """
        return None if self.given.scales_sides else self.sides

    @property
    def is_timed(self) -> bool:
        """Whether it is known how long the release takes."""
        return bool(self.loads.seconds) or self.owned is not None

    @property
    def beside(self) -> tuple[Beside, ...]:
        """Companions of a pair."""
        return self.sides.companions if self.sides is not None else ()

    @property
    def loads_afterwards(self) -> int:
        """Groups that the way back loads when the release of two workloads is over."""
        return 0 if self.owned is not None else self.replicas + sum(each.replicas for each in self.beside)

    @property
    def gates(self) -> tuple[Demand, ...]:
        """What gates of figures need."""
        return tuple(each for part in self.parts for each in part.gates)

    @cached_property
    def peak(self) -> Amounts:
        """Peak number of accelerators during the release, by resource name."""
        return most(self.now, *(part.accelerators for part in self.parts))


def name_of(row: Row) -> str:
    """What a plan calls the row: ``step 2``, ``promotion``."""
    return "promotion" if row.step is None else f"step {row.step}"


def unit(resource: str) -> str:
    """``nvidia.com/gpu`` as ``GPU``."""
    return resource.rpartition("/")[2].upper()


def when_drained(asked: TrafficRouting, lost: str) -> str:
    """How long what runs on groups that go has from when they have ``lost`` their requests, for a sentence."""
    if asked.draining.until is DrainUntil.IDLE:
        longest = asked.grace_period_seconds + asked.draining.longest
        return f"when nothing runs there any more, {longest} s after it has lost {lost} at the latest"
    seconds = asked.grace_period_seconds + asked.drain_seconds
    return f"{seconds} s after it has lost {lost} (gracePeriodSeconds and drainSeconds)"


def parked_first(called: str, count: int) -> str:
    """That groups of a side without requests go, which no release has made, for a caution."""
    return f"{called} has {groups_of(count)} and no requests: it is scaled to 0 before anything is released on it"


def groups_of(count: int) -> str:
    """The number with its noun."""
    return f"{count} group{'' if count == 1 else 's'}"


def times(amounts: Amounts, count: int) -> Amounts:
    """The amounts of so many groups; {} for none."""
    return {name: amount * count for name, amount in amounts.items() if count}


def summed(*several: Amounts) -> Amounts:
    """The sum of each name."""
    names = sorted({name for each in several for name in each})
    return {name: sum(each.get(name, 0) for each in several) for name in names}


def most(*several: Amounts) -> Amounts:
    """The largest amount of each name."""
    names = sorted({name for each in several for name in each})
    return {name: max(each.get(name, 0) for each in several) for name in names}
