"""Weight limits: without a canary LeaderWorkerSet, a weight that does not fit the groups overloads some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rollout_lws.api import StyleStrategy
from rollout_lws.capacity.batches import wanted_groups
from rollout_lws.capacity.table import strategy_of_plan
from rollout_lws.capacity.weights import MOST, weight_of_step


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

    Only for capacity InPlace and Surge with routed requests: otherwise requests follow the groups. Stable keeps all of
    its ``replicas`` groups in Surge, and all but the updated ones in place.
    """
    strategy = strategy_of_plan(plan)
    if not strategy.one_workload or not plan.traffic_routings or replicas < 1:
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
