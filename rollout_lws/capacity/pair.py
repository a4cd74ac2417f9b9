"""Capacity Pair: the user owns two workloads, and a release moves requests from one to the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rollout_lws.capacity.base import Scaling
from rollout_lws.capacity.extra_workload import ExtraWorkload
from rollout_lws.capacity.result import CapacityResult
from rollout_lws.workload.facts import Facts

if TYPE_CHECKING:
    from rollout_lws.workload.groups import Group


class Pair(ExtraWorkload):
    """The new version's groups are in the inactive workload. A release waits for as many as a step asks for, and
    creates none.
    """

    name = "Pair"
    title = "capacity Pair"
    flag = "pair"
    help = "You own two workloads with a Service each; requests move between them, and their roles change."
    manifest = ("canary:", "  capacity: Pair")

    paired = True
    full_set = True

    def extra(self, new: int) -> int:
        return 0

    def standing(self, new: Sequence[Group], canary: Facts | None) -> int:
        return 1

    def leaving(self, new: Sequence[Group], wanted: int, replicas: int, canary: Facts | None) -> tuple[Group, ...]:
        return ()

    def scale(self, asked: Scaling) -> CapacityResult:
        """Done when the owner of the workload has asked for enough groups."""
        if asked.canary is None:
            return CapacityResult(message="the other workload of the pair does not exist")
        workload = asked.canary.workload
        if workload.replicas >= asked.wanted:
            return CapacityResult(done=True)
        return CapacityResult(
            message=f"{asked.canary.called} has {workload.replicas} replicas, and this step waits for {asked.wanted}"
            " ready groups: scale it up"
        )
