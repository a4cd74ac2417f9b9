"""Forecast of a release after which two workloads have changed roles: of a pair, or in a swap.

Where releases scale both workloads, each row loads what it adds, and the hand-over the rest up to R; the one that has
the requests keeps R groups to the end, unless the plan shifts (``shifted_sides``). With ``touch: RouteOnly`` the owner
of a pair has loaded the groups: nothing is loaded, and time begins when the groups that a step waits for are ready.
Each companion has as many groups as go with those of the workload that gets the requests, and a row waits for the
slowest one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from rollout_lws.api import StyleStrategy
from rollout_lws.capacity import known
from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.capacity.batches import is_last_full, wanted_groups
from rollout_lws.capacity.replica_math import in_proportion
from rollout_lws.capacity.table import strategy_of_plan
from rollout_lws.capacity.weights import sharing_step, weight_of_step
from rollout_lws.forecast import shifted_sides
from rollout_lws.forecast.gates import least_seconds
from rollout_lws.forecast.model import Accompanying, Companion, Forecast, Given, Groups, Point, Row
from rollout_lws.forecast.points import Change, Sharing, course, created, loads


def strategy_of(plan: StyleStrategy, given: Given) -> CapacityStrategy:
    """The strategy of the release, which also what stands before it decides."""
    if given.swapped:
        return known.SHIFT_BACK if plan.shifting is not None else known.SWAP_BACK
    strategy = strategy_of_plan(plan)
    scaled = strategy.paired and given.scales_sides and not strategy.shifts
    return known.SCALED_PAIR if scaled else strategy


def forecast(plan: StyleStrategy, strategy: CapacityStrategy, given: Given) -> Forecast:
    """Forecasts a release by this strategy of at least one group."""
    if strategy.shifts:
        return shifted_sides.forecast(plan, strategy, given)
    return Forecast(strategy, given, tuple(_Course.begun(plan, strategy, given).rows()))


@dataclass(frozen=True, slots=True)
class _Moment:
    """``active`` groups of one side, and ``standing`` ones of the other, of which ``wanted`` are ready at least; the
    other side gets ``percent`` percent of requests.
    """

    active: int
    standing: int
    wanted: int
    percent: int | Fraction

    @property
    def load_new(self) -> float:
        return self._load(self.standing)

    @property
    def load_stable(self) -> float:
        return float(100 - self.percent) / 100

    @property
    def peak(self) -> float:
        return max(self._load(self.wanted), self.load_stable)

    def _load(self, groups: int) -> float:
        return float(self.percent * self.active) / (100 * groups) if groups else 0.0

    @property
    def behind(self) -> int:
        """Ready groups of the sides that receive requests."""
        return (self.wanted if self.percent else 0) + (self.active if self.percent < 100 else 0)


@dataclass(frozen=True)
class _Course:
    """The release up to a step: ``now`` is what serves, ``clock`` the seconds since it began, ``made`` those until the
    last groups were created. ``shares``: the other side gets requests, or has had some of which routers still know.
    """

    plan: StyleStrategy
    strategy: CapacityStrategy
    given: Given
    now: _Moment
    clock: float = 0.0
    made: float = 0.0
    shares: bool = False

    @classmethod
    def begun(cls, plan: StyleStrategy, strategy: CapacityStrategy, given: Given) -> _Course:
        standing = given.kept if strategy.makes_groups else given.replicas
        # Routers know groups that have served before.
        return cls(plan, strategy, given, _Moment(given.serving, standing, standing, 0), shares=bool(given.kept))

    def rows(self) -> Iterator[Row]:
        course, waited, matched = self, 0.0, False
        for index, step in enumerate(self.plan.steps if not self.given.kept else (), 1):
            replicas, bounded = self.given.replicas, self.strategy.makes_groups
            wanted = wanted_groups(self.plan, index, replicas, bounded=bounded)
            # A step that asks for more than there are waits until the owner has scaled up.
            standing = max(course.now.standing, wanted)
            percent = self._percent(index, standing)
            matched = self._routed and bool(sharing_step(self.plan, index).matches)
            measured = least_seconds(self.plan, index, float(percent) / 100, self.given.rate)
            # The plan of a release that brings the requests back may be of another capacity.
            promotes = is_last_full(self.plan, index)
            waited = max(0.0 if promotes else float(step.pause.duration or 0), measured)
            after = _Moment(self.given.serving, standing, wanted, percent)
            approval = step.pause.duration is None and not promotes
            row, course = course._row(index, after, waited, shares=percent > 0 or matched, approval=approval)
            yield row
        standing = max(course.now.standing, self.given.replicas)
        after = _Moment(self.given.serving, standing, standing, 100)
        had_all = course.now.percent == 100 and not matched
        yield course._row(None, after, self._handing_over(waited if had_all else 0.0), shares=True, approval=False)[0]

    def _percent(self, index: int, standing: int) -> int | Fraction:
        """The new version's share of requests in a step: without routes, that of its groups among all that Services
        lead to.
        """
        if self._routed:
            bounded = self.strategy.makes_groups
            return weight_of_step(self.plan, index, self.given.replicas, self.given.active, bounded=bounded)
        return Fraction(100 * standing, standing + self.given.serving)

    def _handing_over(self, waited: float) -> float:
        """Seconds that routers and running requests take until the roles have changed, and the other side has no
        requests and no groups. In a pair the ``waited`` ones have counted, for which all requests have moved before.
        """
        grace, drain = self._patience
        if self.strategy.paired:
            return max(0.0, grace + drain - waited)
        # Both sides take turns behind the user's Service, which follows; then the route goes back to it.
        return grace + drain + grace

    @property
    def _routed(self) -> bool:
        return self.strategy.paired or bool(self.plan.traffic_routings)

    @property
    def _patience(self) -> tuple[int, int]:
        """Grace period for routers and drain time for requests."""
        asked = self.plan.traffic_routings[0] if self.plan.traffic_routings else None
        return (asked.grace_period_seconds, asked.drain_seconds) if asked is not None else (0, 0)

    def _row(
        self, index: int | None, after: _Moment, waited: float, *, shares: bool, approval: bool
    ) -> tuple[Row, _Course]:
        """The row that ends with ``after``, ``waited`` seconds after its requests have moved."""
        before, given = self.now, self.given
        own = after.standing - before.standing if self.strategy.makes_groups else 0
        companions = tuple(self._accompanying(each, before, after) for each in given.companions)
        made_groups = own + sum(each.loads for each in companions)
        # All requests wait for no further group once they have moved.
        loaded = self._slowest(own, companions) if before.percent < 100 else 0.0
        pairs = [*zip(given.companions, companions, strict=True)]
        created = max(given.created(own), *(each.created(there.loads) for each, there in pairs), 0.0)
        made = self.clock + created if made_groups else self.made
        # Routers hear of the first group of each before they hear of the first share; in a pair also that the last one
        # was created.
        first = max(given.load_seconds, *(each.load_seconds for each in given.companions), 0.0)
        known_by = 0.0 if not self.strategy.makes_groups else max(first, made) if self.strategy.paired else first
        heard = known_by + self._patience[0] - self.clock - loaded
        shared = loaded + (max(0.0, heard) if shares and not self.shares else 0.0)
        seconds = shared + waited
        row = Row(
            step=index,
            new=after.wanted,
            extra=self.strategy.extra(after.standing + sum(each.new for each in companions)),
            ready=min(before.behind, after.behind),
            share=float(after.percent) / 100,
            load_new=after.load_new,
            load_stable=after.load_stable,
            peak_load=max(before.peak, after.peak),
            windows=0,
            rounds=max(given.rounds(own), *(each.rounds(there.loads) for each, there in pairs), 0),
            loads=made_groups,
            disrupted=self._disrupted if index is None else 0,
            seconds=seconds,
            approval=approval,
            # Until the roles change the active side has all of its groups.
            back_loads=0,
            back_seconds=0,
            back_disrupted=0 if self._routed else after.standing,
            companions=companions,
            points=self._course(own, companions, after, self.clock + shared, self.clock + seconds, ends=index is None),
            waits=waited if index is not None else 0,
            back=self._course_back(after, listed=shares or self.shares) if index is not None else (),
        )
        # In the routes of a pair a side without requests is listed anew.
        listed = shares or (self.shares and not self.strategy.paired)
        return row, replace(self, now=after, clock=self.clock + seconds, made=made, shares=listed)

    def _course(
        self,
        own: int,
        companions: tuple[Accompanying, ...],
        after: _Moment,
        shared: float,
        ended: float,
        *,
        ends: bool,
    ) -> tuple[Point, ...]:
        """The course of a row that makes ``own`` groups and those of companions, whose share holds from the second
        ``shared`` on; ``ends``: the other side has lost its requests then, and its groups by the second ``ended``.
        """
        active = self.now.active
        changes = [*loads(self.given, own, self.clock), Change(shared, share=float(after.percent) / 100)]
        goes = ends and self.strategy.makes_groups
        if goes:
            changes.append(Change(shared, old=Groups(ready=-active, draining=active)))
            changes.append(Change(ended, old=Groups(draining=-active)))
        count = len(companions)
        for number, (companion, there) in enumerate(zip(self.given.companions, companions, strict=True)):
            for made, groups in created(companion, there.loads, self.clock):
                more = tuple(groups if number == each else 0 for each in range(count))
                changes.append(Change(made, companions=more))
        # An owner has scaled up what a step waits for.
        begin = self.now if self.strategy.makes_groups else replace(self.now, standing=after.standing)
        return course(self._at(begin, self.clock), changes, self._sharing)

    def _at(self, now: _Moment, at: float) -> Point:
        beside = tuple(self._beside(each, now.standing, now) for each in self.given.companions)
        return Point(at, Groups(now.active), Groups(now.standing), float(now.percent) / 100, beside)

    @property
    def _sharing(self) -> Sharing | None:
        """How requests follow the ready groups where no weight says who gets them."""
        return None if self._routed else lambda old, new: new / (old + new) if old + new else 1.0

    def _course_back(self, now: _Moment, *, listed: bool) -> tuple[Point, ...]:
        """The course of a way back from what serves ``now``; ``listed``: routers know the new version's groups."""
        changes = [Change(0.0, share=0.0)]
        if self.strategy.makes_groups:
            made, patience = now.standing, float(sum(self._patience)) if self._routed and listed else 0.0
            changes.append(Change(0.0, new=Groups(ready=-made, draining=made)))
            gone = tuple(-self._beside(each, made, now) for each in self.given.companions)
            changes.append(Change(patience, new=Groups(draining=-made), companions=gone))
        return course(self._at(now, 0.0), changes)

    @property
    def _disrupted(self) -> int:
        """Groups of the side that goes at the end which get requests until then, past the routes."""
        past = not self.strategy.paired and (not self._routed or self.given.unlisted)
        return self.given.serving if past else 0

    def _accompanying(self, companion: Companion, before: _Moment, after: _Moment) -> Accompanying:
        wanted, standing, stood = (
            self._beside(companion, each, after) for each in (after.wanted, after.standing, before.standing)
        )
        return Accompanying(wanted, standing - stood if self.strategy.makes_groups else 0)

    def _beside(self, companion: Companion, groups: int, now: _Moment) -> int:
        """Groups of a companion that go with so many ``groups`` of a side."""
        # An owner who scales a side up for a step scales up what its companions' groups are in proportion to.
        return in_proportion(groups, max(self.given.replicas, now.standing), companion.replicas)

    def _slowest(self, own: int, companions: tuple[Accompanying, ...]) -> float:
        """Seconds until the groups that a row makes count as ready: ``own`` ones, and those of companions."""
        pairs = zip(self.given.companions, companions, strict=True)
        loading = [each.created(there.loads) + each.load_seconds for each, there in pairs if there.loads]
        loading += [self.given.created(own) + self.given.load_seconds] if own else []
        return max(loading) + self.given.min_ready_seconds if loading else 0.0
