"""How far an LWS rolling update may proceed: partition and replicas of the leader StatefulSet, as in v0.10.

All counts are in whole groups; the partition is the lowest ordinal that the StatefulSet controller may update.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class GroupState:
    """One group: ``ready`` if leader and workers are ready, ``updated`` if both have the current revision."""

    ready: bool = False
    updated: bool = False

    @property
    def done(self) -> bool:
        return self.ready and self.updated


@dataclass(frozen=True, slots=True)
class Leaders:
    """The live leader StatefulSet; ``scaled_for`` is the LWS replica count at its last apply."""

    replicas: int
    partition: int
    scaled_for: int


@dataclass(frozen=True, slots=True)
class Strategy:
    """rollingUpdateConfiguration in groups."""

    replicas: int
    partition: int
    max_unavailable: int
    max_surge: int

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> Strategy:
        replicas = int(spec["replicas"])
        rolling = spec["rolloutStrategy"]["rollingUpdateConfiguration"]
        return cls(
            replicas,
            int(rolling.get("partition", 0)),
            resolve(rolling.get("maxUnavailable", 1), replicas, up=False),
            min(resolve(rolling.get("maxSurge", 0), replicas, up=True), replicas),
        )

    def wanted(self, unready: int) -> int:
        """Replicas of the leader StatefulSet while ``unready`` groups are not ready at the current revision."""
        if unready <= self.max_surge:
            return self.replicas + max(0, unready - self.max_unavailable)
        return self.replicas + self.max_surge


def resolve(value: int | str, replicas: int, *, up: bool) -> int:
    """A count, or "N%" of ``replicas`` rounded up or down."""
    if isinstance(value, int):
        return value
    share = int(value.removesuffix("%")) * replicas / 100
    return math.ceil(share) if up else math.floor(share)


def partition_and_replicas(
    strategy: Strategy, leaders: Leaders | None, groups: Sequence[GroupState], template_updated: bool
) -> tuple[int, int]:
    """(partition, replicas) to apply in this pass.

    ``groups`` covers at least the ordinals 0 to leaders.replicas - 1; an absent group is neither ready nor updated.
    """
    partition, replicas = _native(strategy, leaders, groups, template_updated)
    return max(partition, strategy.partition), replicas


def _native(
    strategy: Strategy, leaders: Leaders | None, groups: Sequence[GroupState], template_updated: bool
) -> tuple[int, int]:
    replicas = strategy.replicas
    if leaders is None:
        return 0, replicas
    if template_updated:
        wanted = replicas if leaders.replicas < replicas else strategy.wanted(replicas)
        return min(replicas, leaders.replicas), wanted
    if leaders.partition == 0 and leaders.replicas == replicas:
        return 0, replicas
    if leaders.replicas < replicas:
        return leaders.partition, replicas
    wanted = strategy.wanted(sum(not group.done for group in groups[:replicas]))
    if leaders.scaled_for != replicas:
        return min(leaders.partition, replicas + strategy.max_surge), wanted
    return min(_next_partition(strategy, leaders.replicas, groups), leaders.partition), wanted


def _next_partition(strategy: Strategy, present: int, groups: Sequence[GroupState]) -> int:
    """Move past the finished groups at the top and one more step, within the limit on unavailable groups."""
    step = strategy.max_unavailable + strategy.max_surge - (strategy.replicas + strategy.max_surge - present)
    tail = 0
    while tail < present and groups[present - 1 - tail].done:
        tail += 1
    base = max(0, present - tail - step)
    partition = base + sum(not group.ready for group in groups[:base])
    for ordinal in range(min(partition, present - 1), base - 1, -1):
        if groups[ordinal].ready and not groups[ordinal].updated:
            break
        partition = ordinal
    return partition
