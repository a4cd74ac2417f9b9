"""The steps of a release from its Rollout: groups and traffic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rollout_lws.capacity import known
from rollout_lws.capacity.replica_math import groups_after, is_bare_promotion
from rollout_lws.cli.rollouts import recorded_capacity, style

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

    def __str__(self) -> str:
        words = ["promote" if self.promotes else self.size, "" if self.promotes else self.traffic]
        return f"{self.index}  {' '.join(filter(None, words))}"


def planned_steps(rollout: Object, replicas: int) -> tuple[PlannedStep, ...]:
    """Steps for an LWS with ``replicas`` groups; () for a plan that the controller would refuse."""
    steps = style(rollout).get("steps") or ()
    is_blue_green = (rollout["spec"].get("strategy") or {}).get("blueGreen")
    strategy = known.BLUE_GREEN if is_blue_green else recorded_capacity(rollout)
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
            groups = groups_after(sizes, replicas, keeps_one=strategy.updates_regular)
        except ValueError:
            return ()
        traffic = str(step.get("traffic") or ("matches" if step.get("matches") else ""))
        found.append(PlannedStep(index, _size(size), groups, traffic, promotes))
    return tuple(found)


def _size(size: int | str) -> str:
    return str(size) if isinstance(size, str) else f"{size} group" + ("" if size == 1 else "s")
