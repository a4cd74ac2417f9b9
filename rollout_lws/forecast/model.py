"""The result of a forecast: a row for each step and for the promotion, and their totals."""

from __future__ import annotations

from dataclasses import dataclass

from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.targets.target import Target


@dataclass(frozen=True, slots=True)
class Order:
    """Of a workload that makes each group only when all before it are ready: for ``seconds`` they have to be."""

    seconds: float = 0


def order_of(workload: Target) -> Order | None:
    """The order in which it makes groups; None if it makes all of them together."""
    return Order(workload.min_ready_seconds) if workload.ordered else None


class Loading:
    """A workload whose groups load: ``order`` is that in which it makes them, None for all together."""

    __slots__ = ()
    load_seconds: float
    order: Order | None

    def rounds(self, groups: int) -> int:
        """Consecutive startups of so many groups that are asked for together."""
        return min(groups, 1) if self.order is None else groups

    def created(self, groups: int) -> float:
        """Seconds until the last of so many groups that are asked for together is created."""
        return (groups - 1) * (self.load_seconds + self.order.seconds) if self.order is not None and groups else 0.0


@dataclass(frozen=True, slots=True)
class Companion(Loading):
    """The input for a companion of a pair: the groups that it has at full size, and the seconds until one of them is
    ready.
    """

    replicas: int
    load_seconds: float = 0
    order: Order | None = None


@dataclass(frozen=True, slots=True)
class Given(Loading):
    """The input of a forecast besides the plan: the LWS's ``replicas``; the user's maxUnavailable in groups, as LWS
    resolves it (maxSurge does not count: the hold has none); and the seconds until a group is ready and for which it
    then must be (minReadySeconds). ``rate`` is the number of requests a second that both versions get, 0 if unknown.

    ``unlisted``: a Service or InferencePool that trafficRoutings do not name also selects the LWS's groups.
    ``reached``: without trafficRoutings, whether the Services that select the LWS's groups also select those of a
    canary LWS; one that selects by LWS's own name label does not.
    ``named``: pods carry the name of their workload. Where they do not, the Service of a plan with trafficRoutings
    leads to groups of both workloads while a promotion renews some.

    Of a pair, ``replicas`` are the inactive workload's groups and ``active`` those of the active one, to which requests
    go at rest; None for other plans. ``scales_sides``: its releases scale both workloads, so that ``replicas`` are
    those which the inactive one is to have, and of a plan with ``shift`` those of both together. ``unavailable``,
    ``unlisted`` and ``reached`` do not count. ``companions`` go with each side, in the order of the spec.

    ``swapped``: the release brings the requests back to the user's workload, from one that another release has made.
    ``kept``: groups of the version that have stayed since it served; they get all requests, without steps.
    """

    replicas: int
    unavailable: int = 1
    load_seconds: float = 0
    min_ready_seconds: float = 0
    rate: float = 0
    unlisted: bool = False
    reached: bool = True
    named: bool = True
    active: int | None = None
    scales_sides: bool = False
    companions: tuple[Companion, ...] = ()
    swapped: bool = False
    kept: int = 0
    order: Order | None = None

    def loading(self, groups: int) -> float:
        """Seconds until so many groups that are asked for together count as ready; 0 for none."""
        return self.created(groups) + self.ready_after if groups else 0.0

    @property
    def ready_after(self) -> float:
        """Seconds from when a group is created until it counts as ready."""
        return self.load_seconds + self.min_ready_seconds

    @property
    def serving(self) -> int:
        """Groups that share the requests at rest: the load of each of them is 1.0."""
        return self.replicas if self.active is None else max(1, self.active)


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of a version by their state: those that are ready and may get requests, those that load, and those that
    are ready, have lost their requests, and are about to go.
    """

    ready: int = 0
    loading: int = 0
    draining: int = 0

    def __add__(self, other: Groups) -> Groups:
        return Groups(self.ready + other.ready, self.loading + other.loading, self.draining + other.draining)

    @property
    def count(self) -> int:
        return self.ready + self.loading + self.draining


@dataclass(frozen=True, slots=True)
class Point:
    """What is so from the second ``at`` of a release on: groups of the old and the new version, and the new one's share
    of requests, 0 to 1. ``companions`` are the groups of each companion of a pair on the new version's side, in the
    order of the spec.
    """

    at: float
    old: Groups
    new: Groups
    share: float = 0.0
    companions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Accompanying:
    """A companion in a row: ``new`` of its groups of the new version are waited for, ``loads`` of them load in it."""

    new: int
    loads: int


@dataclass(frozen=True, slots=True)
class Row:
    """A step, or the promotion. Loads are relative: 1.0 is a group's load while all R groups share the requests evenly;
    None is a version without groups.

    Where two workloads change roles, as in a pair, the promotion is the hand-over. ``new`` are the ready groups that
    the row waits for; all groups of the inactive workload share the new version's requests, so that ``load_new`` is
    theirs, and ``peak_load`` that of as few as are waited for. After the hand-over the way back is another release,
    which loads R groups where releases scale the sides. ``extra`` and ``loads`` count groups of companions, too; of
    ``new``, ``ready`` and the loads of groups they are no part, since requests go to the workload that they go with.

    Of a pair that shifts, groups that have lost their requests stand until these have had their time, be it in the next
    row; the way back assumes that they are gone. Without extra groups the last group of the new version is created when
    the hand-over is done: it is among the row's ``loads``, and in none of its ``rounds`` and ``seconds``.
    """

    step: int | None
    """The step's number, from 1; None is the promotion."""
    new: int
    """Groups of the new version at the end of the step; in the promotion, when the first batch goes down."""
    extra: int
    """Groups beyond R."""
    ready: int
    """Fewest ready groups, of versions that receive requests, at any moment; not those that have lost theirs."""
    share: float
    """The new version's share of requests, 0 to 1, at rest; in the promotion, while its first batch is down."""
    load_new: float | None
    """Load of a group of the new version at that share."""
    load_stable: float | None
    """Load of a group of the LWS that is not at the new version, at that share; in the promotion, of any group that is
    up.
    """
    peak_load: float
    """Highest load of any group at any moment."""
    windows: int
    """How many partition windows are opened."""
    rounds: int
    """Consecutive startups that it waits for."""
    loads: int
    """Groups that load the model."""
    disrupted: int
    """Groups that are deleted while they receive requests: without a preStop, or a drain on SIGTERM, each loses what
    runs on it and what routers send it until they know.
    """
    seconds: float
    """Duration: startups, grace, drain, and a pause with a duration, or its gates of figures if they take longer."""
    approval: bool
    """True if the user has to approve it."""
    back_loads: int
    """Groups that load the old version if the release is rolled back at its end; in the promotion, at most."""
    back_seconds: float
    """Seconds until all R groups are at the old version and ready; 0 if they always are."""
    back_disrupted: int
    """Groups that are deleted while they receive requests if the release is rolled back at its end; in the promotion,
    at most.
    """
    standing: tuple[tuple[int, int], ...] = ()
    """Of a pair that shifts: groups of the old and of the new version that stand at the same time, each combination
    once, in their order; () for other plans.
    """
    companions: tuple[Accompanying, ...] = ()
    """Of a pair: its companions, in the order of the spec; () without any."""
    points: tuple[Point, ...] = ()
    """Its course: what changes in it, and when. The first point is its begin, the seconds are those of the release."""
    waits: float = 0
    """Seconds at its end for which it waits while nothing loads: its pause, or its gates of figures."""
    back: tuple[Point, ...] = ()
    """The course of a way back that begins when the row has ended, from the second 0 on; () in the promotion."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """All rows, the promotion last."""

    strategy: CapacityStrategy
    given: Given
    rows: tuple[Row, ...]

    @property
    def begin(self) -> Point:
        """What stands before the release."""
        first = self.rows[0].points[0]
        old = self.given.replicas if self.strategy.shifts else self.given.serving
        new = self.given.kept if self.strategy.makes_groups else first.new.count
        beside = first.companions if not self.strategy.makes_groups else (0,) * len(first.companions)
        return Point(0.0, Groups(old), Groups(new), 0.0, beside)

    @property
    def extra(self) -> int:
        """Groups beyond R, at the peak."""
        return max(row.extra for row in self.rows)

    @property
    def ready(self) -> int:
        return min(row.ready for row in self.rows)

    @property
    def peak_load(self) -> float:
        return max(row.peak_load for row in self.rows)

    @property
    def windows(self) -> int:
        return sum(row.windows for row in self.rows)

    @property
    def rounds(self) -> int:
        return sum(row.rounds for row in self.rows)

    @property
    def loads(self) -> int:
        return sum(row.loads for row in self.rows)

    @property
    def disrupted(self) -> int:
        """Groups that are deleted while they receive requests."""
        return sum(row.disrupted for row in self.rows)

    @property
    def disrupted_load(self) -> float:
        """At most so much of all requests is received by these groups when they are deleted, summed: 1.0 is as many as
        run at one moment.
        """
        return sum(row.disrupted * row.peak_load for row in self.rows) / self.given.serving

    @property
    def cuts(self) -> int:
        """How often a connection that a client keeps to a group, past every router, is cut at most: in each window that
        renews groups, and when those beyond R go. Windows of a step with surge groups only add some. A pair that shifts
        has none: each time that the old side loses groups.
        """
        if self.strategy.shifts:
            return len({old for row in self.rows for old, _ in row.standing}) - 1
        renewing = sum(row.windows for row in self.rows if row.step is None or self.strategy.takes_places)
        return renewing + (1 if self.extra else 0)

    @property
    def seconds(self) -> float:
        """Duration of the release without waits for approvals."""
        return sum(row.seconds for row in self.rows)

    @property
    def approvals(self) -> tuple[int, ...]:
        """Steps that the user has to approve."""
        return tuple(row.step for row in self.rows if row.approval and row.step is not None)
