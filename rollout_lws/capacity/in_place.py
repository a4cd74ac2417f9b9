"""Capacity InPlace: groups of the LeaderWorkerSet itself are updated, from the highest ordinal."""

from __future__ import annotations

from fractions import Fraction

from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.capacity.replica_math import portion_beside


class InPlace(CapacityStrategy):
    """The LeaderWorkerSet keeps its R groups: while some are updated, the others serve."""

    name = "InPlace"
    title = "capacity InPlace"
    flag = "in-place"
    help = "Groups of the LeaderWorkerSet itself become new, from the highest ordinal: no accelerator more."
    manifest = ("canary:", "  capacity: InPlace")
    rolling_style = "Partition"

    one_workload = True
    surges = False
    updates_regular = True
    full_set = False
    least_replicas = 2

    def extra(self, new: int) -> int:
        return 0

    def exact_weight(self, new: int, replicas: int) -> Fraction:
        return Fraction(100 * new, max(1, replicas))

    def portion(self, allowed: int, beside: int, replicas: int) -> int:
        return portion_beside(allowed, replicas, replicas)
