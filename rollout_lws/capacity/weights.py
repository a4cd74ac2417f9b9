"""Traffic weights from numbers of groups, and their limits, for routing, previews and preflight checks.

A weight is the new version's share of requests in whole percent. Without a canary workload, a weight that does not fit
the groups overloads some.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rollout_lws.api import Step, StyleStrategy
from rollout_lws.capacity.batches import makes_no_groups, wanted_groups
from rollout_lws.capacity.table import strategy_of_plan
from rollout_lws.objects import scaling

#: Limit of a group's load, as a multiple of its load while all groups of the LWS share the requests evenly.
MOST = 2


def sharing_step(plan: StyleStrategy, index: int) -> Step:
    """The step whose weight applies in step ``index`` (1-based): the step before, if this one is only the promotion."""
    return plan.steps[index - 2 if makes_no_groups(plan, index) else index - 1]


def weight_of_step(
    plan: StyleStrategy, index: int, replicas: int, beside: int | None = None, *, bounded: bool | None = None
) -> int:
    """The new version's weight in step ``index`` (1-based) of an LWS of ``replicas`` groups once its groups are ready;
    ``beside`` are the stable version's groups of a pair, as many by default; ``bounded`` as in ``wanted_groups``.

    0 if the step has neither traffic nor matches; "auto" is in proportion to groups, at least 1. In place the last
    group stays old until the promotion, so "100%" leaves it its proportion.
    """
    step, strategy = sharing_step(plan, index), strategy_of_plan(plan)
    if not step.traffic:
        return 0
    new = wanted_groups(plan, index, replicas, bounded=bounded)
    whole = strategy.takes_places and step.traffic == "100%" and new == replicas - 1
    if step.traffic != "auto" and not whole:
        return scaling.scaled(step.traffic, 100)
    sharing = strategy.sharing(new, replicas if beside is None else beside)
    return max(1, min(round(100 * new / sharing), 99 if strategy.takes_places else 100))


def weight_in_place(weight: int, new: int, stable: int, replicas: int) -> int:
    """The new version's weight while an LWS of ``replicas`` groups is updated or rolled back, with ``new`` and
    ``stable`` ready groups: in proportion to them, at most the intended ``weight``; but no stable group gets more than
    MOST times its load at rest.
    """
    if new < 1:
        return 0
    return max(min(100 * new // (new + stable), weight), 100 - MOST * 100 * stable // replicas)


def weight_of_groups(weight: int, new: int, stable: int, replicas: int) -> int:
    """The intended ``weight``, but with ``new`` and ``stable`` ready groups of ``replicas`` no group gets more than
    MOST times its load at rest, first of all no stable one.
    """
    return max(min(weight, MOST * 100 * new // replicas), 100 - MOST * 100 * stable // replicas)


def weight_in_promotion(weight: int, new: int, replicas: int, batch_size: int) -> int:
    """The canary's weight while ``batch_size`` of the ``replicas`` stable groups are down together: at least the
    proportion of its ``new`` groups among all that stay up, rounded up, and not less than its ``weight`` before.
    """
    staying = new + replicas - batch_size
    return max(weight, -(-100 * new // staying) if staying else 0)


@dataclass(frozen=True, slots=True)
class Overload:
    """A step (1-based) whose ``weight``, the new version's share of requests in percent, gives each of the ``groups``
    of one version ``factor`` times the load that a group of the LWS has at rest.
    """

    step: int
    side: Literal["new", "stable"]
    weight: int
    groups: int
    factor: float
    way_out: str

    @property
    def message(self) -> str:
        share = self.weight if self.side == "new" else 100 - self.weight
        return (
            f"step {self.step} sends {share}% of requests to {_counted(self.groups)} of the {self.side} version,"
            f" {self.factor:.3g} times what a group has at rest and more than the {MOST} times that it may have:"
            f" {self.way_out}"
        )


def overload(plan: StyleStrategy, replicas: int) -> Overload | None:
    """The first step that gives a group more than twice its load at rest; None if there is none.

    Only for capacity InPlace and Surge with routed requests, and for a pair that shifts: otherwise requests follow the
    groups, or both versions have enough. Stable keeps all of its ``replicas`` groups in Surge, and else all but those
    whose places new ones take.
    """
    strategy = strategy_of_plan(plan)
    fixed = strategy.one_workload or strategy.shifts
    if not fixed or not plan.traffic_routings or replicas < 1:
        return None
    for index in range(1, len(plan.steps) + 1):
        weight, new = weight_of_step(plan, index, replicas), wanted_groups(plan, index, replicas)
        stable = replicas - new + strategy.extra(new)
        if weight * replicas > 100 * MOST * new:
            way_out = f"raise its replicas, or lower its traffic to at most {100 * MOST * new // replicas}%"
            return Overload(index, "new", weight, new, weight * replicas / (100 * new), way_out)
        if (100 - weight) * replicas > 100 * MOST * stable > 0:
            least = 100 - 100 * MOST * stable // replicas
            way_out = f"lower its replicas, or raise its traffic to at least {least}%"
            return Overload(index, "stable", weight, stable, (100 - weight) * replicas / (100 * stable), way_out)
    return None


def _counted(groups: int) -> str:
    return f"{groups} group" if groups == 1 else f"{groups} groups"
