"""Maps the API's capacities to strategies."""

from __future__ import annotations

from typing import assert_never

from rollout_lws.api import BlueGreenStrategy, Capacity, Promotion, StyleStrategy
from rollout_lws.capacity import known
from rollout_lws.capacity.base import CapacityStrategy


def strategy_of(capacity: Capacity) -> CapacityStrategy:
    """The strategy of a canary plan with this capacity."""
    match capacity:
        case Capacity.EXTRA_WORKLOAD:
            return known.EXTRA_WORKLOAD
        case Capacity.IN_PLACE:
            return known.IN_PLACE
        case Capacity.SURGE:
            return known.SURGE
        case Capacity.SHIFT:
            return known.SHIFT
        case Capacity.PAIR:
            return known.PAIR
        case _:
            assert_never(capacity)


def strategy_on_record(capacity: Capacity | None, plan: StyleStrategy | None) -> CapacityStrategy:
    """The strategy of the current release: status.capacity records a blue-green one as ExtraWorkload."""
    found = strategy_of(capacity or Capacity.EXTRA_WORKLOAD)
    return _blue_green(plan) if found is known.EXTRA_WORKLOAD and isinstance(plan, BlueGreenStrategy) else found


def recorded(plan: StyleStrategy, *, swapped: bool, gives: bool = False) -> Capacity:
    """What the status says of a release by this plan; ``swapped``: it brings requests home after a swap, which all
    plans do in one way, unless they shift; ``gives``: the workload that serves has given up groups, whatever the plan
    says by now.
    """
    if gives:
        return Capacity.SHIFT
    return Capacity.EXTRA_WORKLOAD if swapped and plan.shifting is None else plan.made_by


def _blue_green(plan: BlueGreenStrategy) -> CapacityStrategy:
    match plan.promotion:
        case Promotion.SWAP:
            return known.SWAP
        case Promotion.IN_PLACE | None:
            return known.BLUE_GREEN
        case _:
            assert_never(plan.promotion)


def strategy_of_plan(plan: StyleStrategy) -> CapacityStrategy:
    """The strategy of a plan's releases."""
    if plan.made_by is Capacity.PAIR and plan.shifting is not None:
        return known.SHIFTED_PAIR
    return _blue_green(plan) if isinstance(plan, BlueGreenStrategy) else strategy_of(plan.made_by)
