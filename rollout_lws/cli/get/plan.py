"""The steps of a release from its Rollout: groups, traffic, and the peak number of groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rollout_lws.capacity import known
from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.capacity.replica_math import groups_after, in_proportion, is_bare_promotion
from rollout_lws.capacity.shifted_pair import Margin
from rollout_lws.cli.rollouts import recorded_capacity, style
from rollout_lws.cli.sides import scales_sides, shift_of, sides_of, standing_in, swaps
from rollout_lws.objects.scaling import scaled

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
    if swaps(rollout):
        back, there = (known.SWAP_BACK, known.SWAP) if shift_of(rollout) is None else (known.SHIFT_BACK, known.SHIFT)
        return back if standing_in(rollout) else there
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


def margin_of(rollout: Object, replicas: int) -> Margin | None:
    """By how much the groups of both sides may differ from ``replicas`` in a release that takes those of one side as
    the other one gets some; None of others, and for a plan that the controller would refuse.
    """
    asked = shift_of(rollout)
    if asked is None:
        return None
    try:
        return Margin.of(asked.get("maxExtraGroups", 1), asked.get("maxUnavailableGroups", 0), replicas)
    except ValueError:
        return None


def staying(replicas: int, new: int) -> int:
    """Groups of the active side that such a release leaves there once the other side has ``new``."""
    return max(1, replicas - new)


def accompanying(rollout: Object, replicas: int, groups: int) -> tuple[int, ...]:
    """Groups of each companion of a pair that go with ``groups`` of ``replicas``; () for a plan that the controller
    would refuse, and where their owner scales them.
    """
    asked = [each.get("replicas") for each in rollout["spec"].get("companions") or ()]
    if None in asked or not scales_sides(rollout):
        return ()
    try:
        return tuple(in_proportion(groups, replicas, scaled(each, replicas)) for each in asked)
    except ValueError:
        return ()


@dataclass(frozen=True, slots=True)
class Peak:
    """The most accelerators that groups of both versions take, and the step that reaches it, 0 for the end of the
    release.
    """

    accelerators: int
    step: int


def peak(
    rollout: Object, steps: tuple[PlannedStep, ...], replicas: int, *, standing: int, each: tuple[int, int]
) -> Peak | None:
    """The peak; None when the release takes no more than the ``standing`` groups of the old version. ``each``:
    accelerators of a group of the old and of the new version.
    """
    strategy, margin = strategy_of(rollout), margin_of(rollout, replicas)
    if not steps:
        return None
    if margin is not None:
        return _peak_of_shift(steps, replicas, margin, each)
    most = max((replicas if strategy.full_set else 0, *(step.groups for step in steps)))
    reached = next((step.index for step in steps if step.groups == most), 0)
    extra = strategy.extra(most)
    if not extra:
        return None
    taken, renewed = standing * each[0] + extra * each[1], (replicas + extra) * each[1]
    # Where the own groups are renewed, the last of those stand beside the extra ones.
    renews = sides_of(rollout) is None and not swaps(rollout)
    return Peak(renewed, 0) if renews and renewed > taken else Peak(taken, reached)


def _peak_of_shift(steps: tuple[PlannedStep, ...], replicas: int, margin: Margin, each: tuple[int, int]) -> Peak | None:
    """The peak of a release that takes groups of one side as the other one gets some: when the first new ones of a step
    have come, or, where those need more, when the last ones have.
    """
    found, before, most = list[Peak](), 0, replicas + margin.extra
    for index, new in (*((step.index, step.groups) for step in steps), (0, replicas)):
        old = staying(replicas, before)
        first, rest = max(before, min(new, most - old)), min(old, most - new)
        taken = max(old * each[0] + first * each[1], rest * each[0] + new * each[1])
        found.append(Peak(taken, index))
        before = new
    highest = max(found, key=lambda reached: reached.accelerators)
    return highest if highest.accelerators > replicas * each[0] else None
