"""Capacity Swap: the second set of groups stays, and the first one goes.

The workload that a release makes serves from then on, and that of the user is parked, without groups. The next release
brings its version to the user's workload, and removes the other one. So each release makes its groups once.
"""

from __future__ import annotations

from rollout_lws.capacity.blue_green import BlueGreen
from rollout_lws.capacity.pair import ScaledPair


class Swap(BlueGreen):
    """A release to a workload of its own, which takes the place of the user's."""

    name = "Swap"
    title = "promotion Swap"
    flag = "swap"
    help = "A full second set of groups comes and stays; the first one goes, so that a release loads each group once."
    manifest = ("blueGreen:", "  promotion: Swap")

    swaps = True


class SwapBack(ScaledPair):
    """A release to the user's parked workload, from the one that serves in its place."""

    name = Swap.name
    title = Swap.title
    rolling_style = Swap.rolling_style

    paired = False
