"""Forecast of the release of a pair: its owner has loaded the groups, and the release moves requests to them.

Nothing is loaded, taken down or added by the release, so only shares, loads of groups and time are of interest. Time
begins when the groups that a step waits for are ready.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rollout_lws.api import StyleStrategy
from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.capacity.batches import wanted_groups
from rollout_lws.capacity.weights import sharing_step, weight_of_step
from rollout_lws.forecast.gates import least_seconds
from rollout_lws.forecast.model import Forecast, Given, Row


def forecast(plan: StyleStrategy, strategy: CapacityStrategy, given: Given) -> Forecast:
    """Forecasts the release of a plan with capacity Pair. ValueError, with the fix, without groups to release to."""
    if given.replicas < 1:
        raise ValueError("no workload of the pair has groups: scale one of them up, and requests have somewhere to go")
    return Forecast(strategy, given, tuple(_rows(plan, given)))


@dataclass(frozen=True, slots=True)
class _Moment:
    """``active`` groups of one side, and ``standing`` ones of the other, of which ``wanted`` are ready at least; the
    other side gets ``percent`` percent of requests.
    """

    active: int
    standing: int
    wanted: int
    percent: int

    @property
    def load_new(self) -> float:
        return self.percent * self.active / (100 * self.standing)

    @property
    def load_stable(self) -> float:
        return (100 - self.percent) / 100

    @property
    def peak(self) -> float:
        return max(self.percent * self.active / (100 * self.wanted), self.load_stable)

    @property
    def behind(self) -> int:
        """Ready groups of the sides that receive requests."""
        return (self.wanted if self.percent else 0) + (self.active if self.percent < 100 else 0)


def _rows(plan: StyleStrategy, given: Given) -> Iterator[Row]:
    routing = plan.traffic_routings[0] if plan.traffic_routings else None
    grace, drain = (routing.grace_period_seconds, routing.drain_seconds) if routing is not None else (0, 0)
    reached, matched, waited = False, False, 0.0
    now = _Moment(given.serving, given.replicas, given.replicas, 0)
    for index, step in enumerate(plan.steps, 1):
        wanted = wanted_groups(plan, index, given.replicas)
        percent = weight_of_step(plan, index, given.replicas, given.serving)
        # A step that asks for more than there are waits until the owner has scaled up.
        before, now = now, _Moment(given.serving, max(now.standing, wanted), wanted, percent)
        matched = bool(sharing_step(plan, index).matches)
        shares = percent > 0 or matched
        # Routers learn of the first group before they learn of its weight.
        first = float(grace) if shares and not reached else 0.0
        reached = reached or shares
        pause = step.pause.duration
        waited = max(float(pause or 0), least_seconds(plan, index, percent / 100, given.rate))
        yield _row(index, before, now, first + waited, approval=pause is None)
    # What the last step's pause has taken counts as drained if all requests had moved by then.
    drained = max(0.0, grace + drain - waited) if now.percent == 100 and not matched else float(grace + drain)
    first = 0.0 if reached else float(grace)
    yield _row(None, now, replace(now, wanted=now.standing, percent=100), first + drained, approval=False)


def _row(index: int | None, before: _Moment, now: _Moment, seconds: float, *, approval: bool) -> Row:
    return Row(
        step=index,
        new=now.wanted,
        extra=0,
        ready=min(before.behind, now.behind),
        share=now.percent / 100,
        load_new=now.load_new,
        load_stable=now.load_stable,
        peak_load=max(before.peak, now.peak),
        windows=0,
        rounds=0,
        loads=0,
        disrupted=0,
        seconds=seconds,
        approval=approval,
        back_loads=0,
        back_seconds=0,
        back_disrupted=0,
    )
