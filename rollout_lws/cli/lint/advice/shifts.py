"""Rollouts whose releases take groups of the workload that serves as another one gets some: what that asks of the
others.
"""

from __future__ import annotations

from collections.abc import Iterator

from rollout_lws.api.words import DrainUntil
from rollout_lws.capacity.shifted_pair import Margin
from rollout_lws.cli.lint.advice.releases import Release, releases
from rollout_lws.cli.lint.file_snapshot import FileSnapshot
from rollout_lws.cli.lint.findings import Finding
from rollout_lws.cli.lint.paths import Path, value_at

#: Load of the groups that serve, as a multiple of what they have at rest, from which it is told.
_MUCH = 1.5
#: Seconds that groups of a release may drain one after the other without being told.
_LONG = 3600


def advice(files: FileSnapshot) -> Iterator[Finding]:
    for release in releases(files):
        asked = release.plan.shifting
        # A number that no file says may be an autoscaler's.
        if asked is None or not release.rollout.spec.scales_sides or not release.replicas:
            continue
        margin = Margin.of(asked.max_extra_groups, asked.max_unavailable_groups, release.replicas)
        yield from _few(release, margin)
        yield from _drains(release, margin)


def _few(release: Release, margin: Margin) -> Iterator[Finding]:
    replicas, staying = release.replicas, release.replicas - margin.unavailable
    if margin.unavailable and staying and replicas / staying >= _MUCH:
        way_out = "set maxUnavailableGroups to 0 and maxExtraGroups to 1 where there is room for one group more"
        if margin.unavailable > 1:
            way_out = "lower maxUnavailableGroups"
        yield release.manifest.found(
            "LWS329",
            _member(release, (*release.style, "shift"), "maxUnavailableGroups"),
            f"while groups load, {staying} of {replicas} serve, each with {replicas / staying:.3g} times what it has at"
            f" rest: {way_out}",
        )


def _drains(release: Release, margin: Margin) -> Iterator[Finding]:
    routing = release.routing
    if routing is None or routing.draining.until is not DrainUntil.TIME:
        return
    together = max(1, min(margin.extra + margin.unavailable, release.replicas))
    rounds, each = -(-release.replicas // together), routing.grace_period_seconds + routing.drain_seconds
    if rounds > 1 and rounds * each > _LONG:
        yield release.manifest.found(
            "LWS330",
            _member(release, (*release.style, "trafficRoutings", 0), "drainSeconds"),
            f"groups that go drain {together} at a time, and each time takes {each} s: {rounds * each:,} s for the"
            f" {release.replicas} groups of a release, beside the time that groups load. Lower drainSeconds to that of"
            " your longest answers, give drain.until Idle, or raise shift.maxExtraGroups",
        )


def _member(release: Release, within: Path, name: str) -> Path:
    """The field where it is stated, else what it is a member of."""
    path = (*within, name)
    return path if value_at(release.manifest.body, path) is not None else within
