"""Forecast of a release that shifts, of a pair or not: groups of one workload go as those of the other one come.

It goes from moment to moment: the numbers of groups and the weights are those that the functions which decide in the
release give for what stands by then, until groups have loaded, or have had their time after their requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from rollout_lws.api import StyleStrategy
from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.capacity.batches import is_last_full, wanted_groups
from rollout_lws.capacity.shifted_pair import Margin, Shift, Side, shift
from rollout_lws.capacity.weights import MOST, sharing_step, weight_in_place, weight_of_step
from rollout_lws.forecast.gates import least_seconds
from rollout_lws.forecast.model import Forecast, Given, Groups, Point, Row
from rollout_lws.forecast.points import course, loads


def forecast(plan: StyleStrategy, strategy: CapacityStrategy, given: Given) -> Forecast:
    """Forecasts the release of a plan that shifts. ValueError, with the fix, for one group that would go first."""
    asked = plan.shifting
    assert asked is not None, "the plan shifts"
    margin = Margin.of(asked.max_extra_groups, asked.max_unavailable_groups, given.replicas)
    if given.replicas == 1 and not margin.extra:
        what = "pair" if strategy.paired else "workload"
        raise ValueError(
            f"the {what} has 1 group, and with shift.maxExtraGroups 0 it would go before another one serves: set"
            " maxExtraGroups to 1, or scale the Rollout to 2"
        )
    return Forecast(strategy, given, tuple(_Course(plan, strategy, given, margin).rows()))


@dataclass(frozen=True, slots=True)
class _Batch:
    """Groups that load, or that have lost their requests, together: until the second ``until``. ``after``: so many
    start-ups, one after the other, came before.
    """

    count: int
    until: float
    after: int
    made: float = 0.0
    """When groups that load are created."""
    ready: float = 0.0
    """When they are ready, and have yet to be so for minReadySeconds."""


@dataclass(frozen=True, slots=True)
class _Workload(Side):
    """One side: ``asked`` groups, of which the highest ordinals load, or drain, the oldest batch first."""

    loading: tuple[_Batch, ...] = ()
    draining: tuple[_Batch, ...] = ()

    @property
    def loaded(self) -> int:
        """Ready groups. One that drains is ready until it goes."""
        return self.asked - sum(each.count for each in self.loading)

    @property
    def serving(self) -> int:
        """Ready groups that a Service or pool leads to."""
        return self.loaded - sum(each.count for each in self.draining)

    def ready(self, number: int) -> int:
        """The lowest ordinals are ready, whatever ``groups`` would say of each."""
        return min(number, self.loaded)

    def created(self, clock: float) -> int:
        """Groups that have been created by this second."""
        return self.asked - sum(each.count for each in self.loading if each.made > clock)

    @property
    def ends(self) -> Iterator[float]:
        every = (*self.loading, *self.draining)
        return (moment for each in every for moment in (each.made, each.until))

    def by_state(self, clock: float) -> Groups:
        """Its groups that have been created by this second."""
        ready = sum(each.count for each in self.loading if each.ready <= clock)
        loading = sum(each.count for each in self.loading if each.made <= clock < each.ready)
        return Groups(self.serving + ready, loading, sum(each.count for each in self.draining))

    def loads(self, count: int, clock: float, after: int, given: Given, *, counts: bool = True) -> _Workload:
        """So many more groups are asked for at this second; ``counts``: they are ready when they count as such."""
        load, ready = given.load_seconds, given.ready_after if counts else given.load_seconds
        if given.order is None:
            loading = (*self.loading, _Batch(count, clock + ready, after, clock, clock + load))
            return replace(self, asked=self.asked + count, loading=loading)
        # Each is created when the one before is ready, also those that were asked for before.
        unit = load + given.order.seconds
        begun = max((clock, *(each.made + unit for each in self.loading)))
        before = max((after, *(each.after + 1 for each in self.loading)))
        made = ((begun + at * unit, before + at) for at in range(count))
        loading = (*self.loading, *(_Batch(1, each + ready, rounds, each, each + load) for each, rounds in made))
        return replace(self, asked=self.asked + count, loading=loading)

    def drains(self, number: int, until: float, after: int) -> _Workload:
        """The groups from ``number`` on lose their requests, if they still have them."""
        count = self.serving - number
        return replace(self, draining=(*self.draining, _Batch(count, until, after))) if count > 0 else self

    def at(self, clock: float) -> _Workload:
        """What is left of it at this second: groups that have drained are gone."""
        gone = sum(each.count for each in self.draining if each.until <= clock)
        return _Workload(
            self.asked - gone,
            loading=tuple(each for each in self.loading if each.until > clock),
            draining=tuple(each for each in self.draining if each.until > clock),
        )


@dataclass(frozen=True, slots=True)
class _Moment:
    """What stands ``clock`` seconds after the release began, and the new version's ``percent`` of requests.

    ``shared``: it has had some, ``matched``: it has those that match besides; ``moved`` is when its requests changed
    last. ``made`` and ``first`` are when its last group was created, and when its first one was ready.

    ``rounds`` are start-ups one after the other until its last ready group was, and ``freed`` those until the other
    side's last group that is gone lost its requests.
    """

    stable: _Workload
    new: _Workload
    clock: float = 0.0
    percent: int = 0
    shared: bool = False
    matched: bool = False
    moved: float = 0.0
    made: float = 0.0
    first: float | None = None
    rounds: int = 0
    freed: int = 0

    @property
    def behind(self) -> int:
        """Ready groups that receive requests."""
        return (self.new.serving if self.percent else 0) + (self.stable.serving if self.percent < 100 else 0)

    @property
    def standing(self) -> tuple[int, int]:
        return self.stable.created(self.clock), self.new.created(self.clock)

    @property
    def point(self) -> Point:
        return _point(self.clock, self.stable, self.new, self.percent)

    def load_new(self, replicas: int) -> float | None:
        return self.percent * replicas / (100 * self.new.serving) if self.new.serving else None

    def load_stable(self, replicas: int) -> float | None:
        return (100 - self.percent) * replicas / (100 * self.stable.serving) if self.stable.serving else None

    def peak(self, replicas: int) -> float:
        return max(self.load_new(replicas) or 0.0, self.load_stable(replicas) or 0.0)

    def at(self, clock: float) -> _Moment:
        """The moment when so much time has passed, before anything is decided."""
        ready = [each.after + 1 for each in self.new.loading if each.until <= clock]
        gone = [each.after for each in self.stable.draining if each.until <= clock]
        return replace(
            self,
            clock=clock,
            stable=self.stable.at(clock),
            new=self.new.at(clock),
            rounds=max(self.rounds, *ready, 0),
            freed=max(self.freed, *gone, 0),
        )


def _point(clock: float, stable: _Workload, new: _Workload, percent: int) -> Point:
    return Point(clock, stable.by_state(clock), new.by_state(clock), percent / 100)


@dataclass(frozen=True, slots=True)
class _Aim:
    """What a row is on the way to: ``wanted`` groups of the new version, and ``percent`` percent of requests from when
    ``enough`` of them are ready. ``matched``: requests that match go to it besides, from its first ready group on.
    ``after``: start-ups one after the other before the row.
    """

    wanted: int
    enough: int
    percent: int
    after: int
    matched: bool = False

    def has_arrived(self, now: _Moment) -> bool:
        shares = now.shared or not (self.percent or self.matched)
        return now.new.loaded >= self.enough and shares


@dataclass(frozen=True)
class _Course:
    """A release of a plan: its rows."""

    plan: StyleStrategy
    strategy: CapacityStrategy
    given: Given
    margin: Margin

    @property
    def replicas(self) -> int:
        return self.given.replicas

    @property
    def _patience(self) -> tuple[int, int]:
        """Grace period for routers and drain time for requests."""
        asked = self.plan.traffic_routings[0] if self.plan.traffic_routings else None
        return (asked.grace_period_seconds, asked.drain_seconds) if asked is not None else (0, 0)

    def rows(self) -> Iterator[Row]:
        now = _Moment(_Workload(self.replicas), _Workload(0))
        for index, step in enumerate(self.plan.steps, 1):
            wanted = wanted_groups(self.plan, index, self.replicas)
            percent = weight_of_step(self.plan, index, self.replicas)
            aim = _Aim(wanted, wanted, percent, now.rounds, bool(sharing_step(self.plan, index).matches))
            every = [now, *self._on_the_way(now, aim)]
            now = every[-1]
            rest = [*self._until(now, aim, now.moved + self._patience[0])]
            promotes, pause = is_last_full(self.plan, index), step.pause.duration
            approval = pause is None and not promotes
            # Gates are measured while a step pauses.
            measured = least_seconds(self.plan, index, percent / 100, self.given.rate)
            waits = max(0 if promotes else float(pause or 0), measured)
            every += self._until(now, aim, now.clock + waits)
            now = every[-1]
            # While an approval is thought about, groups lose their requests, and go.
            row = self._row(every, rest if approval else [], rest[-1], rest[-1].stable.serving)
            back = _apart(_point(*each) for each in self._way_back(rest[-1], rest[-1].stable.serving))
            yield replace(row, step=index, approval=approval, waits=waits, back=back)
        yield self._hand_over(now)

    def _hand_over(self, now: _Moment) -> Row:
        # All but the last group of the old version may go before it has lost its requests.
        enough = min(self.replicas, max(1, self.replicas + self.margin.extra - 1))
        aim = _Aim(self.replicas, enough, 100, now.rounds)
        every = [now, *self._on_the_way(now, aim)]
        every += self._until(every[-1], aim, self._over(every[-1]))
        last = every[-1]
        # The old side's groups go at the end, and the new side has its own by then, or gets the last one.
        ended = replace(last, stable=_Workload(0), new=_Workload(self.replicas))
        row = self._row(every, [], last, last.stable.asked)
        # The old side's groups go, and the last group of the new one is created where there was no room for it.
        gone = replace(last.point, old=Groups())
        after = course(gone, loads(self.given, self.replicas - last.new.asked, last.clock))
        points = (*row.points, *after)
        return replace(
            row,
            loads=self.replicas - now.new.asked,
            standing=_distinct(every, ended),
            points=_apart(_emptied(each) if each.share == 1 else each for each in points),
        )

    def _over(self, now: _Moment) -> float:
        """When the roles have changed, and the old side has no requests."""
        grace, drain = self._patience
        if self.strategy.paired:
            return now.moved + grace + drain
        # Both sides take turns behind the user's Service, which follows; then the route goes back to it.
        return now.clock + grace + drain + grace

    # What a row takes

    def _row(self, every: list[_Moment], after: list[_Moment], rest: _Moment, kept: int) -> Row:
        """The row of these moments. ``rest`` is there in the end, and those ``after`` until it is approved; a way back
        begins with ``kept`` groups of the old version.
        """
        before, last, replicas = every[0], every[-1], self.replicas
        # What is changed in the same second is not there for long enough to count.
        lasting = [each for each, then in pairwise(every) if then.clock > each.clock]
        counted = [*(lasting or [before]), *after]
        back_loads, back_seconds = self._back(rest, kept)
        return Row(
            step=None,
            new=rest.new.loaded,
            extra=max(0, *(sum(each.standing) - replicas for each in every)),
            ready=min(each.behind for each in counted),
            share=rest.percent / 100,
            load_new=rest.load_new(replicas),
            load_stable=rest.load_stable(replicas),
            peak_load=max(each.peak(replicas) for each in counted),
            windows=0,
            rounds=last.rounds - before.rounds,
            loads=last.new.asked - before.new.asked,
            disrupted=0,
            seconds=last.clock - before.clock,
            approval=False,
            back_loads=back_loads,
            back_seconds=back_seconds,
            back_disrupted=0,
            standing=_distinct(every),
            points=_apart(_points(every)),
        )

    # Forward

    def _on_the_way(self, now: _Moment, aim: _Aim) -> Iterator[_Moment]:
        """The moments until the new version has its groups and its requests."""
        now = self._settled(now, aim)
        yield now
        while not aim.has_arrived(now):
            then = self._next(now)
            assert then < float("inf"), "groups load, or make room for others"
            now = self._settled(now.at(then), aim)
            yield now

    def _until(self, now: _Moment, aim: _Aim, until: float) -> Iterator[_Moment]:
        """The moments from then to the second ``until``, or none if that has passed."""
        until = max(now.clock, until)
        while (then := self._next(now)) <= until:
            now = self._settled(now.at(then), aim)
            yield now
        yield now.at(until)

    def _next(self, now: _Moment) -> float:
        """When something changes by itself."""
        routed = now.moved + self._patience[0] if now.shared else self._shares_from(now)
        ends = (*now.stable.ends, *now.new.ends, routed)
        return min((each for each in ends if each > now.clock), default=float("inf"))

    def _shares_from(self, now: _Moment) -> float:
        """When routers have had their grace period for the first group, in a pair also for the last one made."""
        if now.first is None:
            return float("inf")
        return (max(now.first, now.made) if self.strategy.paired else now.first) + self._patience[0]

    def _settled(self, now: _Moment, aim: _Aim) -> _Moment:
        """The moment with all that is decided in it."""
        while (decided := self._decided(now, aim)) != now:
            now = decided
        return now

    def _decided(self, now: _Moment, aim: _Aim) -> _Moment:
        numbers = self._numbers(now.stable, now.new, stable_to=max(1, self.replicas - aim.wanted), new_to=aim.wanted)
        percent, matched = self._weight(now, numbers, aim), aim.matched and now.new.loaded > 0
        shares = now.shared or percent > 0 or matched
        if shares == now.shared or self._shares_from(now) <= now.clock:
            moved = now.clock if (percent, matched) != (now.percent, now.matched) else now.moved
            now = replace(now, percent=percent, shared=shares, matched=matched, moved=moved)
            # Requests move, and routers act on it, before groups of the other side lose theirs.
            if not now.shared or now.moved + self._patience[0] <= now.clock:
                stable = now.stable.drains(numbers.stable, now.clock + sum(self._patience), now.rounds)
                now = replace(now, stable=stable).at(now.clock)
        made = numbers.new - now.new.asked
        if made <= 0:
            return now
        new = now.new.loads(made, now.clock, max(aim.after, now.freed), self.given)
        last = max((now.clock, *(each.made for each in new.loading)))
        first = now.clock + self.given.load_seconds if now.first is None else now.first
        return replace(now, new=new, made=last, first=first).at(now.clock)

    def _numbers(self, stable: _Workload, new: _Workload, *, stable_to: int, new_to: int) -> Shift:
        return shift(self.margin, self.replicas, stable, new, stable_to=stable_to, new_to=new_to)

    def _weight(self, now: _Moment, numbers: Shift, aim: _Aim) -> int:
        """As ``aim`` says when there are enough groups; until then by those that stay."""
        if now.new.loaded >= aim.enough:
            return aim.percent
        return weight_in_place(aim.percent, now.new.loaded, numbers.stable, self.replicas) if now.new.loaded else 0

    # Back

    def _back(self, now: _Moment, kept: int) -> tuple[int, float]:
        """Groups that load the old version again, if ``kept`` have stayed, and the seconds until all R are ready."""
        *_, (clock, _, _, _) = self._way_back(now, kept)
        return self.replicas - kept, clock if kept < self.replicas else 0.0

    def _way_back(self, now: _Moment, kept: int) -> Iterator[tuple[float, _Workload, _Workload, int]]:
        """What stands of either version, from second to second, if ``kept`` groups of the old one have stayed, and the
        new one's percentage of requests. Old groups get all requests as soon as they can carry them; until then groups
        of the new version go as they come.
        """
        stable, new, percent = _Workload(kept), _Workload(now.new.asked), now.percent
        clock, moved, emptied = 0.0, float("-inf"), float("inf")
        yield clock, stable, new, percent
        while stable.loaded < self.replicas or new.asked:
            before = stable, new, percent
            numbers = self._numbers(stable, new, stable_to=self.replicas, new_to=0)
            if stable.loaded * MOST < self.replicas:
                staying = new.ready(numbers.new), stable.ready(numbers.stable)
                percent = weight_in_place(percent, *staying, self.replicas)
                moved = moved if percent == before[2] else clock
                if moved + self._patience[0] <= clock:
                    new = new.drains(numbers.new, clock + sum(self._patience), 0)
            else:
                emptied, percent = min(emptied, clock + (sum(self._patience) if now.shared else 0)), 0
                # All of them go together, also those that have lost their requests before.
                new = _Workload(new.asked, draining=(_Batch(new.asked, emptied, 0),))
            if numbers.stable > stable.asked:
                stable = stable.loads(numbers.stable - stable.asked, clock, 0, self.given, counts=False)
            stable, new = stable.at(clock), new.at(clock)
            if (stable, new, percent) == before:
                ends = (*stable.ends, *new.ends, emptied, moved + self._patience[0])
                clock = min(each for each in ends if each > clock)
                stable, new = stable.at(clock), new.at(clock)
            yield clock, stable, new, percent


def _emptied(point: Point) -> Point:
    """Its groups of the old version have lost their requests, and are about to go."""
    old = point.old
    return replace(point, old=Groups(loading=old.loading, draining=old.draining + old.ready))


def _points(every: list[_Moment]) -> Iterator[Point]:
    """Those of the moments, and of what happens between them: groups are ready before they count as such."""
    for moment, until in pairwise([*every, every[-1]]):
        yield moment.point
        between = sorted(each.ready for each in moment.new.loading if moment.clock < each.ready < until.clock)
        yield from (replace(moment, clock=each).point for each in between)


def _apart(points: Iterable[Point]) -> tuple[Point, ...]:
    """One point for each second: the last of those in which several things change."""
    return tuple({each.at: each for each in points}.values())


def _distinct(every: list[_Moment], *more: _Moment) -> tuple[tuple[int, int], ...]:
    """The numbers of groups that stand together, each once."""
    return tuple(dict.fromkeys(each.standing for each in (*every, *more)))
