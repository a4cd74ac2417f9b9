"""Which strategy the API's words ask for."""

from __future__ import annotations

from typing import assert_never

from rollout_lws.api import BlueGreenStrategy, Capacity, StyleStrategy
from rollout_lws.capacity import known
from rollout_lws.capacity.base import CapacityStrategy


def strategy_of(capacity: Capacity) -> CapacityStrategy:
    """How a canary of this capacity makes its groups."""
    match capacity:
        case Capacity.EXTRA_WORKLOAD:
            return known.EXTRA_WORKLOAD
        case Capacity.IN_PLACE:
            return known.IN_PLACE
        case Capacity.SURGE:
            return known.SURGE
        case _:
            assert_never(capacity)


def strategy_on_record(capacity: Capacity | None, plan: StyleStrategy | None) -> CapacityStrategy:
    """How a release that is on makes its groups: the record says of a blue-green one what it says of ExtraWorkload."""
    found = strategy_of(capacity or Capacity.EXTRA_WORKLOAD)
    return known.BLUE_GREEN if found is known.EXTRA_WORKLOAD and isinstance(plan, BlueGreenStrategy) else found


def strategy_of_plan(plan: StyleStrategy) -> CapacityStrategy:
    """How the releases of a plan make their groups."""
    return known.BLUE_GREEN if isinstance(plan, BlueGreenStrategy) else strategy_of(plan.made_by)
