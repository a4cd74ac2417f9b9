"""What capacities InPlace and Surge have in common: one workload runs both versions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from rollout_lws.capacity.base import CapacityStrategy, Scaling

if TYPE_CHECKING:
    from rollout_lws.capacity.result import CapacityResult
    from rollout_lws.workload.facts import Facts
    from rollout_lws.workload.groups import Group

_T = TypeVar("_T")


class OneWorkload(CapacityStrategy):
    """Groups are updated or created through partition windows of the stable LeaderWorkerSet."""

    rolling_style = "Partition"
    one_workload = True
    makes_groups = True
    paired = False
    swaps = False
    steps_open_windows = True
    full_set = False
    shifts = False
    pins_replicas = True

    def of_new(self, stable: _T, canary: _T) -> _T:
        return stable

    def sharing(self, new: int, replicas: int) -> int:
        return max(1, replicas)

    def beside(self, new: Sequence[Group], replicas: int) -> Sequence[Group]:
        return [group for group in new if group.ordinal >= replicas]

    def standing(self, new: Sequence[Group], canary: Facts | None) -> int:
        return max(1, sum(not group.terminating for group in new))

    def leaving(self, new: Sequence[Group], wanted: int, replicas: int, canary: Facts | None) -> tuple[Group, ...]:
        regular = [group for group in new if group.ordinal < replicas]
        stays = replicas + max(0, wanted - len(regular))
        return (*regular[: max(0, len(regular) - wanted)], *self.beside(new, stays))

    def scale(self, asked: Scaling) -> CapacityResult:
        own = asked.own
        if own.is_open:
            return own.in_window(asked.new_revision)
        regular = sum(group.ordinal < own.replicas for group in asked.new)
        if regular > asked.wanted and asked.stable_revision is not None:
            back = own.take_back(asked.stable_revision, keep=asked.wanted)
            if not back.done:
                return back
        made = self.make(asked, regular)
        return replace(made, message=asked.waits) if asked.waits and not (made.done or made.writes) else made

    @abstractmethod
    def make(self, asked: Scaling, regular: int) -> CapacityResult:
        """Creates the missing groups; no window is open, ``regular`` <= wanted groups of [0, R) are new."""
