"""What a release does that its user may not expect, in one sentence each: what, whom it affects, what to do.

``plan`` tells it of a release, ``lint`` of files. None: the caution does not apply.
"""

from __future__ import annotations

from rollout_lws.analysis.signals import beside
from rollout_lws.api import Analysis
from rollout_lws.api.gate_rules import criterion
from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.forecast.gates import Placed
from rollout_lws.targets.target import Target
from rollout_lws.targets.version import Version
from rollout_lws.workload.canary import canary_name
from rollout_lws.workload.claims import kept, policy_that_deletes
from rollout_lws.workload.queueing import TIMEOUT_SECONDS, queue_of


def leaders_first(workload: Target, version: Version) -> str | None:
    """For groups that get requests."""
    if not workload.leaders_first or version.size < 2:
        return None
    return (
        "startupPolicy is LeaderReady: each renewed leader is ready, and gets requests, before LWS makes its workers,"
        " and these requests fail until the workers have loaded: use LeaderCreated, and a readinessProbe of the leader"
        " that passes only when the whole group answers"
    )


def claims_that_stay(
    workload: Target, version: Version, capacity: CapacityStrategy, extra: int, *, deleted: bool = False
) -> str | None:
    """For the volumes of the ``extra`` groups that go at the end of a release, or in its course where it shifts: those
    that it has added, or where roles change those of the ``workload`` that has lost its requests, which run
    ``version``; it is scaled to 0, or ``deleted``.
    """
    by_scaling = (capacity.surges or capacity.swaps) and not deleted
    stay = kept(workload, version, by_scaling=by_scaling)
    if not extra or not stay:
        return None
    owner = workload.metadata.name if by_scaling or deleted else canary_name(workload)
    name = next(stay.of(owner, [workload.replicas if capacity.surges else 0]))
    when = "" if capacity.shifts else " at the end"
    return (
        f"{stay.count(extra)} PersistentVolumeClaims of groups that go{when} stay, such as {name}, and groups of a"
        f" later version would get what is in them: {policy_that_deletes(by_scaling=by_scaling)} in the"
        f" {workload.version.format.holder or 'spec'}, or delete them after the release"
    )


def kueue_ends_first(workload: Target, deadline: float) -> str | None:
    """For a step's ``deadline`` in seconds that comes after Kueue's own."""
    if deadline <= TIMEOUT_SECONDS or not queue_of(workload):
        return None
    return (
        f"Kueue ends a group that is not ready after {TIMEOUT_SECONDS // 60} min by default, before the deadline of a"
        f" step ({deadline:.0f} s): raise waitForPodsReady.timeout in Kueue's configuration where groups load"
        " for longer"
    )


def limit_between_edges(placed: Placed, analysis: Analysis) -> str | None:
    """For the limit of a latency, of an engine whose histograms have known edges."""
    gate, metric = placed.gate, placed.gate.metric
    if metric is None or metric.max is None:
        return None
    asked = criterion(metric, gate, analysis)
    edges = beside(metric.signal, asked.exporter, asked.limit or 0.0) if asked.exporter is not None else None
    if edges is None or edges[0] == edges[1]:
        return None
    (low, high), histogram = edges, f"{asked.exporter}'s histogram"
    if low is None:
        told = f"below the first edge of {histogram}, {high:g} s: no version passes"
    elif high is None:
        told = f"above the last edge of {histogram}, {low:g} s: no version fails"
    else:
        told = (
            f"between two edges of {histogram}, {low:g} s and {high:g} s: only requests that took longer than"
            f" {high:g} s fail the version, and it passes by those of at most {low:g} s"
        )
    return f"gate {gate.name} of step {placed.step}: {metric.max} is {told}; use an edge as its limit"
