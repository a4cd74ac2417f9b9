"""How many groups of the new version a step asks for, and when that batch is ready."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rollout_lws.api import StyleStrategy
from rollout_lws.capacity import replica_math
from rollout_lws.capacity.table import strategy_of_plan
from rollout_lws.objects import scaling
from rollout_lws.workload.groups import Group, moment_ready


def is_last_full(plan: StyleStrategy, index: int) -> bool:
    """True if step ``index`` (1-based) is the last one and asks for all groups, and so is the promotion."""
    promotes = not strategy_of_plan(plan).full_set
    return promotes and index == len(plan.steps) and plan.steps[index - 1].replicas == replica_math.ALL


def makes_no_groups(plan: StyleStrategy, index: int) -> bool:
    """True for a last step of 100 % without traffic or matches, the promotion itself: its groups would be deleted."""
    # Any writer of the status may put any number there.
    step = plan.steps[max(1, min(index, len(plan.steps))) - 1]
    return replica_math.is_bare_promotion(
        step.replicas,
        shares=bool(step.traffic or step.matches),
        last=1 < index == len(plan.steps),
        promotes_at_full=not strategy_of_plan(plan).full_set,
    )


def wanted_groups(plan: StyleStrategy, index: int, replicas: int, *, bounded: bool | None = None) -> int:
    """Groups of the new version at step ``index`` (1-based) of an LWS of ``replicas`` groups; at least 1.

    Percentages are rounded up; no step asks for more than ``replicas`` groups, nor for fewer than a step before it. In
    place the last group is left to the promotion: once all are new, the StatefulSet can no longer roll back. Not
    ``bounded`` (None: as the plan's capacity is), a count may be more than ``replicas``.
    """
    # Any writer of the status may put any number there.
    index = max(1, min(index, len(plan.steps)))
    asked = plan.steps[: index - 1 if makes_no_groups(plan, index) else index]
    strategy = strategy_of_plan(plan)
    return replica_math.groups_after(
        [step.replicas for step in asked],
        replicas,
        keeps_one=strategy.takes_places,
        bounded=strategy.makes_groups if bounded is None else bounded,
    )


@dataclass(frozen=True, slots=True)
class Batch:
    """State of a batch: ``wanted``, ``made`` and ``ready`` groups, and when the next ready one will count."""

    wanted: int
    made: int
    ready: int
    enough: bool
    next_ready_at: datetime | None
    tolerated: int = 0
    """Groups that may fail."""


def batch(
    groups: Sequence[Group], wanted: int, threshold: int | str | None, now: datetime, minimum: float = 0
) -> Batch:
    """Judges a batch: ``wanted`` groups ready for ``minimum`` seconds, less the tolerated ones (rounded up), at least
    one.
    """
    standing = [group for group in groups if not group.terminating]
    ready = sum(group.ready(now, minimum) for group in standing)
    tolerated = scaling.scaled(threshold, wanted) if threshold else 0
    moments = [moment for group in standing if (moment := moment_ready(group, minimum, now))]
    return Batch(
        wanted=wanted,
        made=len(standing),
        ready=ready,
        enough=ready >= max(1, wanted - tolerated),
        next_ready_at=min(moments, default=None),
        tolerated=min(tolerated, wanted - 1),
    )
