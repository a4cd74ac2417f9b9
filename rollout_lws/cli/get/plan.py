"""The steps of a release from its Rollout: groups, traffic, and the peak number of groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rollout_lws.capacity import known
from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.capacity.replica_math import groups_after, is_bare_promotion
from rollout_lws.cli.rollouts import recorded_capacity, style
from rollout_lws.cli.sides import scales_sides

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step: ``groups`` of the new version at its end; ``size`` and ``traffic`` as written in the spec."""

    index: int
    size: str
    groups: int
    traffic: str
    promotes: bool
    """Whether the step is only the promotion."""
    gates: int = 0
    """How many gates it has."""

    def __str__(self) -> str:
        words = ["promote" if self.promotes else self.size, "" if self.promotes else self.traffic]
        words.append(f"({self.gates} gate{'s' if self.gates > 1 else ''})" if self.gates else "")
        return f"{self.index}  {' '.join(filter(None, words))}"


def strategy_of(rollout: Object) -> CapacityStrategy:
    """Capacity of the current release, else of the plan; ExtraWorkload for a value that this version does not know."""
    strategy = rollout["spec"].get("strategy") or {}
    if strategy.get("blueGreen"):
        return known.BLUE_GREEN
    if (rollout.get("status") or {}).get("capacity") or scales_sides(rollout):
        return recorded_capacity(rollout)
    canary = strategy.get("canary") or {}
    written = known.IN_PLACE if canary.get("enableExtraWorkloadForCanary") is False else known.EXTRA_WORKLOAD
    return known.BY_NAME.get(canary.get("capacity") or "", written)


def planned_steps(rollout: Object, replicas: int) -> tuple[PlannedStep, ...]:
    """Steps for an LWS with ``replicas`` groups; () for a plan that the controller would refuse."""
    steps = style(rollout).get("steps") or ()
    strategy = strategy_of(rollout)
    found, sizes = [], list[int | str]()
    for index, step in enumerate(steps, 1):
        size = step.get("replicas", "100%")
        promotes = is_bare_promotion(
            size,
            shares=bool(step.get("traffic") or step.get("matches")),
            last=1 < index == len(steps),
            promotes_at_full=not strategy.full_set,
        )
        if not promotes:
            sizes.append(size)
        try:
            groups = groups_after(sizes, replicas, keeps_one=strategy.takes_places, bounded=strategy.makes_groups)
        except ValueError:
            return ()
        traffic = str(step.get("traffic") or ("matches" if step.get("matches") else ""))
        found.append(PlannedStep(index, _size(size), groups, traffic, promotes, len(step.get("gates") or ())))
    return tuple(found)


def _size(size: int | str) -> str:
    return str(size) if isinstance(size, str) else f"{size} group" + ("" if size == 1 else "s")


@dataclass(frozen=True, slots=True)
class Peak:
    """The largest number of groups that a release adds, and the step that reaches it, 0 for the end of the release."""

    extra: int
    step: int


def peak(rollout: Object, steps: tuple[PlannedStep, ...], replicas: int) -> Peak | None:
    """The peak, None when the release adds no groups."""
    strategy = strategy_of(rollout)
    most = max((replicas if strategy.full_set else 0, *(step.groups for step in steps)))
    reached = next((step.index for step in steps if step.groups == most), 0)
    extra = strategy.extra(most) if steps else 0
    return Peak(extra, reached) if extra else None
