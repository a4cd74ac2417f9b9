"""Capacity InPlace: the workload's own groups become new, one window after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollout_lws.capacity.base import CapacityStrategy, Scaling
from rollout_lws.capacity.one_workload import OneWorkload
from rollout_lws.capacity.replica_math import largest_batch

if TYPE_CHECKING:
    from rollout_lws.capacity.result import CapacityResult


class InPlace(OneWorkload):
    """Groups are updated from the highest ordinal. The LeaderWorkerSet keeps its R groups: while some are updated, the
    others serve.
    """

    name = "InPlace"
    title = "capacity InPlace"
    flag = "in-place"
    help = "Groups of the {kind} itself become new, from the highest ordinal: no accelerator more."
    manifest = ("canary:", "  capacity: InPlace")

    surges = False
    takes_places = True
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
