"""Capacity Surge: new groups in the LeaderWorkerSet itself, beyond its own."""

from __future__ import annotations

from fractions import Fraction

from rollout_lws.capacity.base import CapacityStrategy


class Surge(CapacityStrategy):
    """Groups with ordinals from R on carry the new version until the promotion has updated [0, R)."""

    name = "Surge"
    title = "capacity Surge"
    flag = "surge"
    help = "New groups come in the LeaderWorkerSet itself, on top of its own; these stay until the promotion."
    manifest = ("canary:", "  capacity: Surge")
    rolling_style = "Partition"

    one_workload = True
    surges = True
    updates_regular = False
    full_set = False
    least_replicas = 1

    def extra(self, new: int) -> int:
        return new

    def exact_weight(self, new: int, replicas: int) -> Fraction:
        return Fraction(100 * new, max(1, replicas))

    def portion(self, allowed: int, beside: int, replicas: int) -> int:
        return beside
