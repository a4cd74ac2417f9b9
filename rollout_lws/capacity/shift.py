"""Capacity Shift: groups of the new version come one by one as old ones go, and the workload that has them stays.

As in capacity Swap the workload that a release makes serves from then on, and the next release brings its version to
the user's workload. So a release makes its groups once, and there are hardly more than R together.
"""

from __future__ import annotations

from rollout_lws.capacity.extra_workload import ExtraWorkload
from rollout_lws.capacity.shifted_pair import ShiftedPair


class Shift(ExtraWorkload):
    """A release to a workload of its own, which grows as the user's shrinks, and takes its place."""

    name = "Shift"
    title = "capacity Shift"
    flag = "shift"
    help = "Groups of a second workload come as old ones go; it stays, so that a release loads each group once."
    manifest = ("canary:", "  capacity: Shift")

    swaps = True
    takes_places = True
    shifts = True

    def extra(self, new: int) -> int:
        return 0

    def sharing(self, new: int, replicas: int) -> int:
        return max(1, replicas)


class ShiftBack(ShiftedPair):
    """A release to the user's parked workload, which grows as the one that serves in its place shrinks."""

    name = Shift.name
    title = Shift.title
    rolling_style = Shift.rolling_style

    paired = False
