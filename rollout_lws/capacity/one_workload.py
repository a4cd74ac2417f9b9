"""Capacities InPlace and Surge: one LeaderWorkerSet runs both versions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from rollout_lws.capacity.base import CapacityStrategy, Scaling
from rollout_lws.capacity.replica_math import largest_batch

if TYPE_CHECKING:
    from rollout_lws.capacity.result import CapacityResult
    from rollout_lws.workload.facts import Facts
    from rollout_lws.workload.groups import Group

_T = TypeVar("_T")


class OneWorkload(CapacityStrategy):
    """Groups are updated or created through partition windows of the stable LeaderWorkerSet."""

    rolling_style = "Partition"
    one_workload = True
    steps_open_windows = True
    full_set = False
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


class InPlace(OneWorkload):
    """Groups are updated from the highest ordinal. The LeaderWorkerSet keeps its R groups: while some are updated, the
    others serve.
    """

    name = "InPlace"
    title = "capacity InPlace"
    flag = "in-place"
    help = "Groups of the LeaderWorkerSet itself become new, from the highest ordinal: no accelerator more."
    manifest = ("canary:", "  capacity: InPlace")

    surges = False
    updates_regular = True
    least_replicas = 2
    fits_kueue = True

    def in_promotion(self, *, queued: bool) -> CapacityStrategy:
        return self

    def extra(self, new: int) -> int:
        return 0

    def batch_size(self, allowed: int, beside: int, replicas: int) -> int:
        return largest_batch(allowed, replicas, replicas)

    def place(self, ordinal: int, replicas: int, *, in_canary: bool) -> int | None:
        return replicas - 1 - ordinal

    def make(self, asked: Scaling, regular: int) -> CapacityResult:
        return asked.own.renew(asked.new_revision, asked.wanted, may_open=asked.may_open)


class Surge(OneWorkload):
    """Groups with ordinals from R on run the new version until the promotion has updated [0, R)."""

    name = "Surge"
    title = "capacity Surge"
    flag = "surge"
    help = "New groups come in the LeaderWorkerSet itself, on top of its own; these stay until the promotion."
    manifest = ("canary:", "  capacity: Surge")

    surges = True
    updates_regular = False
    least_replicas = 1
    # Kueue deletes the Workloads of surge groups once LWS counts as many new groups as replicas.
    fits_kueue = False

    def in_promotion(self, *, queued: bool) -> CapacityStrategy:
        return InPlace() if queued else self

    def extra(self, new: int) -> int:
        return new

    def batch_size(self, allowed: int, beside: int, replicas: int) -> int:
        return beside

    def place(self, ordinal: int, replicas: int, *, in_canary: bool) -> int | None:
        return ordinal - replicas if ordinal >= replicas else None

    def make(self, asked: Scaling, regular: int) -> CapacityResult:
        # Surge groups that became regular ones by scaling exist already.
        missing = max(0, asked.wanted - regular)
        return asked.own.extend(asked.new_revision, missing, may_open=asked.may_open)
