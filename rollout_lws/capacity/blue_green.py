"""Capacity BlueGreen: a full second set of groups before the promotion."""

from __future__ import annotations

from rollout_lws.capacity.extra_workload import ExtraWorkload


class BlueGreen(ExtraWorkload):
    """Like ExtraWorkload, but the promotion first scales the canary LeaderWorkerSet to R groups."""

    name = "BlueGreen"
    title = "blue-green"
    flag = "blue-green"
    help = "A full second set of groups comes first, so the accelerators double while a release is on."
    manifest: tuple[str, ...] = ("blueGreen:",)
    rolling_style = "BlueGreen"

    full_set = True
