"""Capacity ExtraWorkload: creates new groups in a canary LeaderWorkerSet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from rollout_lws.capacity import canary as canaries
from rollout_lws.capacity.base import CapacityStrategy, Scaling
from rollout_lws.capacity.replica_math import largest_batch

if TYPE_CHECKING:
    from rollout_lws.capacity.result import CapacityResult
    from rollout_lws.workload.facts import Facts
    from rollout_lws.workload.groups import Group


_T = TypeVar("_T")


class ExtraWorkload(CapacityStrategy):
    """The stable LeaderWorkerSet stays untouched until the promotion."""

    name = "ExtraWorkload"
    title = "capacity ExtraWorkload"
    flag = "canary"
    help = "New groups come in a second LeaderWorkerSet; the old ones stay until the promotion."
    manifest: tuple[str, ...] = ("canary:",)
    rolling_style = "Canary"

    one_workload = False
    steps_open_windows = False
    surges = False
    updates_regular = False
    full_set = False
    least_replicas = 1
    fits_kueue = True
    pins_replicas = False

    def of_new(self, stable: _T, canary: _T) -> _T:
        return canary

    def in_promotion(self, *, queued: bool) -> CapacityStrategy:
        return self

    def extra(self, new: int) -> int:
        return new

    def sharing(self, new: int, replicas: int) -> int:
        return max(1, replicas + new)

    def batch_size(self, allowed: int, beside: int, replicas: int) -> int:
        return largest_batch(allowed, beside, replicas)

    def beside(self, new: Sequence[Group], replicas: int) -> Sequence[Group]:
        return new

    def standing(self, new: Sequence[Group], canary: Facts | None) -> int:
        return canary.workload.replicas if canary is not None else 1

    def leaving(self, new: Sequence[Group], wanted: int, replicas: int, canary: Facts | None) -> tuple[Group, ...]:
        """All of them if the user deleted the canary."""
        found = canary.workload if canary is not None else None
        if found is None or not (found.metadata.terminating or found.replicas > wanted):
            return ()
        kept = 0 if found.metadata.terminating else wanted
        return tuple(group for group in new if group.ordinal >= kept)

    def place(self, ordinal: int, replicas: int, *, in_canary: bool) -> int | None:
        return ordinal if in_canary else None

    def scale(self, asked: Scaling) -> CapacityResult:
        return canaries.scale(asked)


class BlueGreen(ExtraWorkload):
    """Like ExtraWorkload, but the promotion first scales the canary LeaderWorkerSet to R groups."""

    name = "BlueGreen"
    title = "blue-green"
    flag = "blue-green"
    help = "A full second set of groups comes first, so the accelerators double while a release is on."
    manifest = ("blueGreen:",)
    rolling_style = "BlueGreen"

    full_set = True
