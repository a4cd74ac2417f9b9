"""Capacity ExtraWorkload: new groups in a second LeaderWorkerSet."""

from __future__ import annotations

from fractions import Fraction

from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.capacity.replica_math import portion_beside


class ExtraWorkload(CapacityStrategy):
    """The stable LeaderWorkerSet is left alone until the promotion."""

    name = "ExtraWorkload"
    title = "capacity ExtraWorkload"
    flag = "canary"
    help = "New groups come in a second LeaderWorkerSet; the old ones stay until the promotion."
    manifest = ("canary:",)
    rolling_style = "Canary"

    one_workload = False
    surges = False
    updates_regular = False
    full_set = False
    least_replicas = 1

    def extra(self, new: int) -> int:
        return new

    def exact_weight(self, new: int, replicas: int) -> Fraction:
        return Fraction(100 * new, replicas + new)

    def portion(self, allowed: int, beside: int, replicas: int) -> int:
        return portion_beside(allowed, beside, replicas)
