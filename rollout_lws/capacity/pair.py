"""Capacity Pair: the user owns two workloads, and a release moves requests from one to the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rollout_lws.capacity.base import Scaling
from rollout_lws.capacity.extra_workload import ExtraWorkload
from rollout_lws.capacity.result import CapacityResult
from rollout_lws.objects.writes import Patch
from rollout_lws.workload.facts import Facts

if TYPE_CHECKING:
    from rollout_lws.workload.groups import Group


class Pair(ExtraWorkload):
    """The new version's groups are in the inactive workload, which its owner scales. A release waits for as many as a
    step asks for, and creates none.
    """

    name = "Pair"
    title = "capacity Pair"
    flag = "pair"
    help = "You own two workloads with a Service each; requests move between them, and their roles change."
    manifest = ("canary:", "  capacity: Pair")

    paired = True
    swaps = True
    full_set = True
    makes_groups = False

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


class ScaledPair(Pair):
    """Releases scale both workloads. The one that has no requests at rest has no groups either."""

    makes_groups = True

    def extra(self, new: int) -> int:
        return new

    def standing(self, new: Sequence[Group], canary: Facts | None) -> int:
        return max(1, canary.workload.replicas) if canary is not None else 1

    def leaving(self, new: Sequence[Group], wanted: int, replicas: int, canary: Facts | None) -> tuple[Group, ...]:
        if canary is None or canary.workload.replicas <= wanted:
            return ()
        return tuple(group for group in new if group.ordinal >= wanted)

    def scale(self, asked: Scaling) -> CapacityResult:
        """Scales the inactive workload. The first groups of a workload without any start at the newest of its versions
        that its StatefulSet knows, so that this has to be the one that is released.
        """
        canary = asked.canary
        if canary is None:
            return CapacityResult(message="the other workload of the pair does not exist")
        workload, meta = canary.workload, canary.workload.metadata
        if workload.replicas == 0 and not asked.empty:
            left = ", ".join(each.metadata.name for each in canary.leaders[:3]) or "its controller has not acted on it"
            waits = f"waiting until {canary.called} has no groups of an earlier version: {left}"
            return CapacityResult(preparing=True, message=waits)
        if asked.hold is not None:
            why = "a version that is applied to it in the release starts nothing"
            patch = Patch(workload.resource, meta.namespace, meta.name, asked.hold, why, meta.resource_version)
            return CapacityResult(writes=(patch,), preparing=True, message=f"{canary.called} is being held")
        if workload.replicas == asked.wanted:
            return CapacityResult(done=True)
        patch = Patch(
            workload.resource,
            meta.namespace,
            meta.name,
            {"spec": {"replicas": asked.wanted}},
            f"{asked.wanted} groups of the new version instead of {workload.replicas}",
            # Of one without groups all that was judged has to hold.
            meta.resource_version if workload.replicas == 0 else None,
            uid=meta.uid,
            generation=meta.generation,
        )
        return CapacityResult(writes=(patch,))
