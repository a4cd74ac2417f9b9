"""Capacity Surge: new groups stand beside the workload's own until the promotion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollout_lws.capacity.base import CapacityStrategy, Scaling
from rollout_lws.capacity.in_place import InPlace
from rollout_lws.capacity.one_workload import OneWorkload

if TYPE_CHECKING:
    from rollout_lws.capacity.result import CapacityResult


class Surge(OneWorkload):
    """Groups with ordinals from R on run the new version until the promotion has updated [0, R)."""

    name = "Surge"
    title = "capacity Surge"
    flag = "surge"
    help = "New groups come in the {kind} itself, on top of its own; these stay until the promotion."
    manifest = ("canary:", "  capacity: Surge")

    surges = True
    takes_places = False
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
