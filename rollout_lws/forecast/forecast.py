"""Forecast of a release before anything is written: groups, model loads, traffic weights and time.

Pure arithmetic on the plan, phase by phase, with the functions that decide in the release itself. R is the LWS's number
of regular groups. It assumes that R stays and that every group starts up at the first try. It leaves out waits for
approvals, and the seconds that LWS, routers and terminating pods take.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from rollout_lws.api import StyleStrategy, TrafficRouting
from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.capacity.batches import is_last_full, wanted_groups
from rollout_lws.capacity.table import strategy_of_plan
from rollout_lws.capacity.weights import MOST, sharing_step, weight_in_place, weight_in_promotion, weight_of_step
from rollout_lws.forecast import two_workloads
from rollout_lws.forecast.gates import least_seconds
from rollout_lws.forecast.model import Forecast, Given, Groups, Point, Row
from rollout_lws.forecast.points import Change, Sharing, course, loads, renews, turned


def forecast(plan: StyleStrategy, given: Given) -> Forecast:
    """Forecasts a release. ValueError, with the fix, for a number of groups that cannot be released in steps."""
    strategy = two_workloads.strategy_of(plan, given)
    if given.replicas < 1:
        raise ValueError(_without_groups(strategy))
    if strategy.swaps:
        return two_workloads.forecast(plan, strategy, given)
    if given.replicas < strategy.least_replicas:
        raise ValueError(
            f"{strategy.title} needs at least {strategy.least_replicas} groups, one to serve while the other is"
            " renewed: scale up, or use Surge or ExtraWorkload"
        )
    return _Course.begun(plan, strategy, given).run()


def _without_groups(strategy: CapacityStrategy) -> str:
    if not strategy.paired:
        return "the workload has 0 groups, and a version takes effect there by itself: nothing is done in steps"
    if strategy.makes_groups:
        return (
            "the pair has 0 groups, and the side that gets another version becomes the active one: nothing is done in"
            " steps; scale the Rollout up"
        )
    return "no workload of the pair has groups: scale one of them up, and requests have somewhere to go"


@dataclass(frozen=True, slots=True)
class _Moment:
    """Ready groups of both versions, and the new version's share of requests."""

    new: int
    stable: int
    share: Fraction
    replicas: int

    @property
    def load_new(self) -> float | None:
        return float(self.share * self.replicas / self.new) if self.new else None

    @property
    def load_stable(self) -> float | None:
        return float((1 - self.share) * self.replicas / self.stable) if self.stable else None

    @property
    def peak(self) -> float:
        return max(self.load_new or 0.0, self.load_stable or 0.0)

    @property
    def behind(self) -> int:
        """Ready groups of the versions that receive requests."""
        return (self.new if self.share > 0 else 0) + (self.stable if self.share < 1 else 0)


@dataclass(frozen=True, slots=True)
class _BatchBack:
    """So many ``groups`` that are rolled back together, after the seconds ``waited`` for routers and for requests that
    run on them; ``asked``: they get requests until they go. ``weights`` are the new version's from when that wait
    begins, and from when the groups go.
    """

    groups: int
    waited: float
    asked: bool
    weights: tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Around:
    """Seconds of a promotion in which routers learn of changes and running requests drain: before the new version's
    ``first`` share; until groups may be ``renewed``; until routers have ``heard`` of the first of these; and until the
    groups beyond R have ``drained``.
    """

    first: float = 0
    routed: float = 0
    heard: float = 0
    drained: float = 0

    @property
    def seconds(self) -> float:
        return self.first + self.routed + self.heard + self.drained


def _alone(replicas: int) -> _Moment:
    """Only the LWS's regular groups serve, as before and after a release."""
    return _Moment(0, replicas, Fraction(0), replicas)


@dataclass(frozen=True)
class _Course:
    """The release up to a step: ``now`` is what serves, ``clock`` the seconds since it began."""

    plan: StyleStrategy
    strategy: CapacityStrategy
    given: Given
    now: _Moment
    clock: float = 0.0

    @classmethod
    def begun(cls, plan: StyleStrategy, strategy: CapacityStrategy, given: Given) -> _Course:
        return cls(plan, strategy, given, _alone(given.replicas))

    def run(self) -> Forecast:
        """The whole forecast."""
        course, rows = self, []
        for index in range(1, len(self.plan.steps) + 1):
            row, course = course._step(index)
            rows.append(row)
        return Forecast(self.strategy, self.given, (*rows, course._promotion()))

    @property
    def replicas(self) -> int:
        return self.given.replicas

    @property
    def allowed(self) -> int:
        return 1 if self.given.order is not None else max(1, self.given.unavailable)

    def _rounds(self, groups: int, batch: int) -> int:
        """Consecutive startups of so many groups in batches of this size."""
        return sum(self.given.rounds(each) for each in _batches(groups, batch))

    def _loading(self, groups: int, batch: int) -> float:
        """Seconds that they take."""
        return sum(self.given.loading(each) for each in _batches(groups, batch))

    @property
    def routing(self) -> TrafficRouting | None:
        return self.plan.traffic_routings[0] if self.plan.traffic_routings else None

    @property
    def _batch_size(self) -> int:
        """Batch size without canary or surge groups."""
        return min(self.allowed, self.replicas - 1)

    def _even(self, new: int, stable: int) -> _Moment:
        """All ready groups that receive requests have the same load."""
        reached = new if self.given.reached or self.routing or self.strategy.one_workload else 0
        every = reached + stable
        return _Moment(new, stable, Fraction(reached, every) if every else Fraction(0), self.replicas)

    def _shared(self, new: int, stable: int, weight: int) -> _Moment:
        return _Moment(new, stable, Fraction(weight, 100), self.replicas)

    def _step(self, index: int) -> tuple[Row, _Course]:
        before, new = self.now, wanted_groups(self.plan, index, self.replicas)
        made, stable = new - before.new, self.replicas - new + self.strategy.extra(new)
        weight = weight_of_step(self.plan, index, self.replicas)
        rest = self._shared(new, stable, weight) if self.routing else self._even(new, stable)
        batch = self._batch_size if self.strategy.takes_places else made
        rounds = self._rounds(made, batch)
        if self.strategy.takes_places:
            windows = len(_batches(made, batch))
            loading = [self._while_loading(before, made, each, weight) for each in range(windows)]
        else:
            windows, loading = min(made, 1) if self.strategy.surges else 0, []
        pause = self.plan.steps[index - 1].pause.duration
        promotes = is_last_full(self.plan, index)
        loaded = self._loading(made, batch) + self._share_between(windows, rest.share)
        # Gates are measured while a step pauses.
        measured = least_seconds(self.plan, index, float(rest.share), self.given.rate)
        shared = loaded + self._first_share(rest.share, loaded)
        waits = max(0.0 if promotes else float(pause or 0), measured)
        seconds = shared + waits
        back = new if self.strategy.takes_places else 0
        row = Row(
            step=index,
            new=new,
            extra=self.strategy.extra(new),
            ready=min(each.behind for each in (before, *loading, rest)),
            share=float(rest.share),
            load_new=rest.load_new,
            load_stable=rest.load_stable,
            peak_load=max(each.peak for each in (before, *loading, rest)),
            windows=windows,
            rounds=rounds,
            loads=made,
            disrupted=made if self.strategy.takes_places else 0,
            seconds=seconds,
            approval=pause is None and not promotes,
            back_loads=back,
            back_seconds=self._back(back, rest.share),
            back_disrupted=self._back_disrupted(new, rest.share),
            points=self._course_of_step(made, loading, rest, self.clock + shared),
            waits=waits,
            back=self._course_back(rest),
        )
        return row, replace(self, now=rest, clock=self.clock + seconds)

    @property
    def _begin(self) -> Point:
        return Point(self.clock, Groups(self.now.stable), Groups(self.now.new), float(self.now.share))

    @property
    def _sharing(self) -> Sharing | None:
        """How requests follow the ready groups where no weight says who gets them."""
        return None if self.routing is not None else lambda stable, new: float(self._even(new, stable).share)

    def _course_of_step(self, made: int, loading: list[_Moment], rest: _Moment, shared: float) -> tuple[Point, ...]:
        """The course of a step that makes so many groups; its share holds from the second ``shared`` on."""
        changes = [Change(shared, share=float(rest.share))]
        if not self.strategy.takes_places:
            return course(self._begin, [*loads(self.given, made, self.clock), *changes], self._sharing)
        at = self.clock
        for number, (batch, down) in enumerate(zip(_batches(made, self._batch_size), loading, strict=True)):
            at += self._share_between(number + 1, rest.share) if number == 1 else 0
            changes += [Change(at, share=float(down.share)), *renews(self.given, batch, at)]
            at += self.given.loading(batch)
        return course(self._begin, changes, self._sharing)

    def _share_between(self, batches: int, share: Fraction) -> float:
        """Seconds that the second batch of a step in place waits until the groups of the first receive requests."""
        if not (self.strategy.takes_places and batches > 1 and self.routing and share) or self.now.share > 0:
            return 0
        return max(0, self.routing.grace_period_seconds - self.given.min_ready_seconds)

    def _while_loading(self, before: _Moment, made: int, batch: int, weight: int) -> _Moment:
        """While the ``batch``-th batch of a step in place, from 0, is down: weights follow the ready groups."""
        new = before.new + batch * self._batch_size
        stable = before.stable - min(made, (batch + 1) * self._batch_size)
        if self.routing is None:
            return self._even(new, stable)
        return self._shared(new, stable, weight_in_place(weight, new, stable, self.replicas))

    def _batches_back(self, groups: int, share: Fraction) -> Iterator[_BatchBack]:
        """Batches in which so many updated groups are rolled back. One after the other, and the weight follows the
        groups that stay, until the others can carry all requests; then the new version has none, its requests drain,
        and the rest goes together.
        """
        stable, shared = self.replicas - groups, self.routing is not None and share > 0
        weight, quiet = int(share * 100), 0.0
        while groups:
            batch, waited = min(self._batch_size, groups), 0.0
            carries = self.routing is not None and stable * MOST >= self.replicas
            if self.routing and shared:
                wanted = 0 if carries else weight_in_place(weight, groups - batch, stable, self.replicas)
                settles = self.routing.grace_period_seconds + (0 if wanted else self.routing.drain_seconds)
                waited = max(0, settles - quiet) if wanted != weight or not weight else 0
                weight, quiet = wanted, quiet + waited if not wanted else 0
            emptied = carries and not self.given.unlisted
            batch = groups if emptied else batch
            groups, before = groups - batch, weight
            # From when the batch goes down.
            weight = self._while_going(weight, groups, stable) if weight else 0
            yield _BatchBack(batch, waited, asked=before > 0 or self.given.unlisted, weights=(before, weight))
            quiet, stable = quiet + self.given.loading(batch) if not weight else 0, stable + batch

    def _course_back(self, now: _Moment) -> tuple[Point, ...]:
        """The course of a way back from what serves ``now``."""
        begin = Point(0.0, Groups(now.stable), Groups(now.new), float(now.share))
        if not self.strategy.takes_places:
            shares = self.routing is not None and now.share > 0
            changes = [
                Change(0.0, new=Groups(ready=-now.new, draining=now.new), share=0.0),
                Change(float(sum(self._patience)) if shares else 0.0, new=Groups(draining=-now.new)),
            ]
            return course(begin, changes)
        at, changes = 0.0, [Change(0.0)]
        for each in self._batches_back(now.new, now.share):
            waiting, going = (weight / 100 for weight in each.weights)
            changes += [Change(at, share=waiting), Change(at + each.waited, share=going)]
            emptied = self.routing is not None and not each.asked
            if emptied:
                changes.append(Change(at, new=Groups(ready=-each.groups, draining=each.groups)))
            at += each.waited
            changes += turned(renews(self.given, each.groups, at, emptied=emptied))
            at += self.given.loading(each.groups)
        return course(begin, changes, self._sharing)

    @property
    def _patience(self) -> tuple[int, int]:
        """Grace period for routers and drain time for requests."""
        return (self.routing.grace_period_seconds, self.routing.drain_seconds) if self.routing is not None else (0, 0)

    def _while_going(self, weight: int, new: int, stable: int) -> int:
        """The new version's weight before its next groups are rolled back, and while they are, with so many ready ones
        of both versions. While they are, the groups that go next lose their part; the last ones keep theirs.
        """
        return weight_in_place(weight, max(0, new - self._batch_size) or new, stable, self.replicas)

    def _back(self, groups: int, share: Fraction) -> float:
        """Seconds until so many updated groups are rolled back and ready."""
        return sum(each.waited + self.given.loading(each.groups) for each in self._batches_back(groups, share))

    def _back_disrupted(self, new: int, share: Fraction) -> int:
        """Groups of the new version that a rollback deletes while they receive requests."""
        if self.routing and not self.given.unlisted and (not share or not self.strategy.takes_places):
            return 0
        if self.strategy.takes_places:
            return sum(each.groups for each in self._batches_back(new, share) if each.asked or not self.routing)
        return new if self._reached_past_routes else 0

    @property
    def _reached_past_routes(self) -> bool:
        """Whether requests reach groups beyond R without a weight."""
        if self.strategy.one_workload:
            return self.routing is None or self.given.unlisted
        return self.routing is None and self.given.reached

    def _ending(self, new: int) -> int:
        """Groups beyond R that receive requests until the promotion deletes them."""
        return self.strategy.extra(new) if self.strategy.surges or self._reached_past_routes else 0

    def _loading_back(self, groups: int) -> float:
        """Seconds until so many updated groups are rolled back after a promotion."""
        return self._loading(groups, self._batch_size if self.strategy.takes_places else self.allowed)

    def _first_share(self, share: Fraction, loaded: float) -> float:
        """Seconds that the new version's first weight waits, ``loaded`` seconds from now: routers learn of its first
        group before they learn of its weight.
        """
        if self.routing is None or share == 0 or self.now.share > 0:
            return 0
        return max(0, self.routing.grace_period_seconds + self.given.load_seconds - self.clock - loaded)

    def _promotion(self) -> Row:
        before = self.now
        grown = self.replicas - before.new if self.strategy.full_set else 0
        new, waited = before.new + grown, self.given.loading(grown)
        # A canary with enough groups takes all requests, so that the stable LWS can be updated in one batch.
        takes_over = self.routing is not None and not self.strategy.one_workload and new >= self.replicas
        emptied = takes_over and not self.given.unlisted
        renewed, batch_size = self._renewal(new, emptied)
        staying = self.replicas - batch_size
        if self.strategy.takes_places:
            down = self._even(new, staying - new)
        elif self.routing is None or self.strategy.surges or not (takes_over or self.given.named):
            down = self._even(new, staying)
        else:
            weight = weight_of_step(self.plan, len(self.plan.steps), self.replicas)
            weight = 100 if takes_over else weight_in_promotion(weight, new, self.replicas, batch_size)
            down = self._shared(new, staying, weight)
        renewing = self._loading(renewed, batch_size)
        end = _alone(self.replicas)
        around = self._around(down.share, renewing, takes_over, waited)
        return Row(
            step=None,
            new=new,
            extra=self.strategy.extra(new),
            ready=min(each.behind for each in (before, down, end)),
            share=float(down.share),
            load_new=down.load_new,
            load_stable=down.load_stable,
            peak_load=max(each.peak for each in (before, down, end)),
            windows=len(_batches(renewed, batch_size)),
            rounds=self._rounds(renewed, batch_size) + self.given.rounds(grown),
            loads=renewed + grown,
            disrupted=0 if emptied else renewed + self._ending(new),
            seconds=waited + around.seconds + renewing,
            approval=False,
            back_loads=self.replicas,
            back_seconds=self.given.loading(self.replicas) if emptied else self._loading_back(self.replicas),
            back_disrupted=0 if emptied else self.replicas + self._ending(new),
            points=self._course_of_promotion(grown, _batches(renewed, batch_size), down, around, emptied=emptied),
        )

    def _course_of_promotion(
        self, grown: int, batches: list[int], down: _Moment, around: _Around, *, emptied: bool
    ) -> tuple[Point, ...]:
        """The course of a promotion that makes ``grown`` groups and renews others in batches, with so many seconds
        ``around``, before and after them, for routers and requests.
        """
        extra, stable = self.strategy.extra(down.new), self.now.stable
        shares = self.clock + self.given.loading(grown) + around.first
        at = shares + around.routed
        changes = [*loads(self.given, grown, self.clock)]
        if emptied:
            changes.append(Change(shares, old=Groups(ready=-stable, draining=stable)))
        for batch in batches:
            changes += renews(self.given, batch, at, emptied=emptied)
            at += self.given.loading(batch)
        at += around.heard
        # Those beyond R have no requests any more, and go.
        changes.append(Change(at, new=Groups(ready=-extra, draining=extra)))
        changes.append(Change(at + around.drained, new=Groups(draining=-extra)))
        weighed = self.routing is not None and not self.strategy.one_workload
        follows = not weighed or not (self.given.named or down.share == 1)
        switched = shares if weighed else self.clock
        until = course(self._begin, (each for each in changes if each.at < switched), self._sharing)
        begin = replace(until[-1], at=switched)
        sharing = self._sharing_in_promotion(extra, None if follows else float(down.share))
        return (*until, *course(begin, (each for each in changes if each.at >= switched), sharing))

    def _sharing_in_promotion(self, extra: int, weight: float | None) -> Sharing:
        """How requests follow the ready groups while those of [0, R) are renewed, with ``extra`` groups beyond R that
        have so much ``weight``, None: as much as all others.
        """
        counts = weight is None and (self.given.reached or self.routing is not None)

        def sharing(stable: int, new: int) -> float:
            renewed = new if counts else max(0, new - extra)
            every = stable + renewed
            followed = renewed / every if every else 1.0
            return followed if weight is None else weight + (1 - weight) * followed

        return sharing

    def _renewal(self, new: int, emptied: bool) -> tuple[int, int]:
        """Groups of [0, R) that the promotion updates, and its batch size."""
        left = self.replicas - new + self.strategy.extra(new)
        return left, left if emptied else min(left, self.strategy.batch_size(self.allowed, new, self.replicas))

    def _around(self, share: Fraction, renewing: float, takes_over: bool, waited: float) -> _Around:
        if self.routing is None:
            return _Around()
        grace, drain = self._patience
        if self.strategy.one_workload:
            # Without a weight there is no removal of it that routers have to learn of.
            shares = self.now.share > 0 or sharing_step(self.plan, len(self.plan.steps)).matches
            return _Around(routed=grace if shares else 0)
        first = self._first_share(share, waited)
        if not takes_over:
            return _Around(first, drained=grace + drain)
        heard = max(0, grace + self.given.load_seconds - renewing)
        return _Around(first, grace + drain, heard, grace + drain)


def _batches(groups: int, size: int) -> list[int]:
    """So many groups in batches of at most this size."""
    return [min(size, groups - done) for done in range(0, groups, max(1, size))]


def step_of_much_extra(plan: StyleStrategy, replicas: int) -> int:
    """The first step (1-based) that adds more than half of the LWS's groups; 0 if there is none.

    Blue-green is chosen for that purpose and causes no warning; nor does one group, the least that a step can add.
    """
    strategy, steps = strategy_of_plan(plan), range(1, len(plan.steps) + 1)
    if strategy.full_set:
        return 0
    extra = ((index, strategy.extra(wanted_groups(plan, index, replicas))) for index in steps)
    return next((index for index, groups in extra if 2 * groups > max(replicas, 2)), 0)


def much_extra(plan: StyleStrategy, replicas: int) -> str:
    """A warning about that step; "" if there is none."""
    index = step_of_much_extra(plan, replicas)
    if not index:
        return ""
    return (
        f"step {index} takes {wanted_groups(plan, index, replicas)} groups beside the workload's {replicas},"
        " more than half as many again: lower its replicas, or use capacity InPlace, which takes none"
    )
