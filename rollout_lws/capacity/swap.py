"""Capacity Swap: the second set of groups stays, and the first one goes.

The workload that a release makes serves from then on, and that of the user is parked, without groups. The next release
brings its version to the user's workload, and removes the other one. So each release makes its groups once.
"""

from __future__ import annotations

from rollout_lws.capacity.base import Scaling
from rollout_lws.capacity.blue_green import BlueGreen
from rollout_lws.capacity.pair import ScaledPair
from rollout_lws.capacity.result import CapacityResult
from rollout_lws.objects.writes import Patch


class Swap(BlueGreen):
    """A release to a workload of its own, which takes the place of the user's."""

    name = "Swap"
    title = "promotion Swap"
    flag = "swap"
    help = "A full second set of groups comes and stays; the first one goes, so that a release loads each group once."
    manifest = ("blueGreen:", "  promotion: Swap")

    swaps = True

    def scale(self, asked: Scaling) -> CapacityResult:
        """As of any canary. One without an owner that has this very version has served before, and kept its groups:
        it belongs to the release from now on. One with another version is removed, as any that is not its own.
        """
        canary, version = asked.canary, asked.own.facts.workload.version
        if canary is None or canary.workload.metadata.terminating or canary.workload.metadata.controller is not None:
            return super().scale(asked)
        workload, meta = canary.workload, canary.workload.metadata
        if workload.version.template_hash != version.template_hash:
            return super().scale(asked)
        body = {"metadata": {"ownerReferences": [dict(asked.owner)]}}
        why = "the groups that it has kept are released again"
        patch = Patch(workload.resource, meta.namespace, meta.name, body, why, meta.resource_version)
        return CapacityResult(writes=(patch,), preparing=True, message=f"{canary.called} is taken into the release")


class SwapBack(ScaledPair):
    """A release to the user's parked workload, from the one that serves in its place."""

    name = Swap.name
    title = Swap.title
    rolling_style = Swap.rolling_style

    paired = False
