"""The tree of a release: versions, the LWSs that run them, their groups and, on request, their pods. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from rollout_lws.cli.durations import short
from rollout_lws.cli.get.bands import NO_DRAINS, Band, Drains, bands, trouble_of
from rollout_lws.cli.releases import Release
from rollout_lws.cli.view import age
from rollout_lws.objects.workloads import Pod
from rollout_lws.workload.groups import Group
from rollout_lws.workload.pod_words import pod_trouble, pods_of

Row = tuple[str, ...]
#: Above this many group lines for one version, all groups in the same state share a line, adjacent or not.
_LINES = 12
#: Groups without numbers have a key for a name; so much of it tells them apart, as it does elsewhere with a hash.
_KEY = 8


@dataclass(frozen=True, slots=True)
class Run:
    """Groups of one version in the same state, shown as one line."""

    groups: tuple[Group, ...]
    ready: int

    @property
    def name(self) -> str:
        """``group 3`` or ``groups 0-2,5``."""
        indices = _ranges([group.index for group in self.groups])
        return f"group{'s' if len(self.groups) > 1 else ''} {indices}"


def tree(shown: Release, now: datetime, *, pods: bool = False) -> list[Row]:
    """Rows below a heading; only the heading when there is no LWS."""
    rows: list[Row] = [("NAME", "ROLE", "REV", "READY", "TRAFFIC", "AGE", "INFO")]
    for band in bands(shown):
        rows += _rows(band, now, pods=pods)
    return rows


def runs(found: Iterable[Group], now: datetime, *, drains: Drains = NO_DRAINS, together: bool = False) -> list[Run]:
    """Groups in order; neighbours with the same revision and readiness of which both or neither terminate or drain
    share a run, and with ``together`` all such groups do.
    """

    def state(group: Group) -> tuple[str, bool, bool, bool]:
        return group.revision, group.ready(now), group.terminating, group.uid in drains

    listed = sorted(found, key=state) if together else list(found)
    alike = (tuple(members) for _, members in groupby(listed, state))
    result = [Run(members, sum(group.ready(now) for group in members)) for members in alike]
    return sorted(result, key=lambda run: run.groups[0].ordinal)


def _rows(band: Band, now: datetime, *, pods: bool) -> Iterator[Row]:
    lws = band.facts.workload
    ready = sum(group.ready(now) for group in band.groups if band.is_new or group.ordinal < lws.replicas)
    created = age(lws.metadata.creation_timestamp, now)
    info = "terminating" if lws.metadata.terminating else band.info
    yield lws.metadata.name, band.role, band.revision, f"{ready}/{band.asked}", band.weight, created, info
    found = runs(band.groups, now, drains=band.drains)
    if pods:
        found = [Run((group,), int(group.ready(now))) for group in band.groups]
    elif len(found) > _LINES:
        found = runs(band.groups, now, drains=band.drains, together=True)
    for run in found:
        yield _row(run, band, now)
        if pods:
            members = pods_of(band.facts, run.groups[0])
            yield from (_of_pod(pod, now) for pod in sorted(members, key=lambda pod: _natural(pod.metadata.name)))


def _row(run: Run, band: Band, now: datetime) -> Row:
    first = run.groups[0]
    counted = _pods_ready(first) if len(run.groups) == 1 else f"{run.ready}/{len(run.groups)}"
    said = {band.reasons.get((band.facts.name, group.index), "") for group in run.groups}
    why = ", ".join(sorted(filter(None, said))) or trouble_of(first.leader)
    created = age(first.leader.metadata.creation_timestamp, now)
    role = band.own if _is_of(run, band) else ""
    return f"  {run.name}", role, first.revision, counted, "", created, _info(run, band, now, why)


def _is_of(run: Run, band: Band) -> bool:
    """Whether the run has the version of its band; an LWS that was made for one has no other."""
    return run.groups[0].revision == band.revision or (band.is_new and band.role != "inactive")


def _info(run: Run, band: Band, now: datetime, why: str) -> str:
    group = run.groups[0]
    created = group.leader.metadata.creation_timestamp
    if group.terminating:
        return "terminating"
    if group.exhausted:
        return "restarts used up"
    drained = band.drains.get(group.uid)
    if drained is not None:
        return f"draining for {short((now - drained).total_seconds())}"
    if created is None:
        return ""
    if group.ready_since is None:
        since, word = (created, "loading") if band.is_new else (_unready_since(group) or created, "not ready")
        return f"{word} for {short((now - since).total_seconds())}" + (f": {why}" if why else "")
    if not band.is_new:
        return f"{group.size or '?'} pod{'' if group.size == 1 else 's'}" + (" each" if len(run.groups) > 1 else "")
    longest = max(_load(each) for each in run.groups)
    return f"loaded in {short(longest)}" + (" at most" if len(run.groups) > 1 else "")


def _unready_since(group: Group) -> datetime | None:
    """When the leader's readiness last changed; a group that was ready once is no longer starting up."""
    ready = (each for each in group.leader.status.conditions if each.type == "Ready")
    return next((each.last_transition_time for each in ready), None)


def _load(group: Group) -> float:
    created = group.leader.metadata.creation_timestamp
    return (group.ready_since - created).total_seconds() if group.ready_since and created else 0.0


def _pods_ready(group: Group) -> str:
    workers = group.workers.status.available_replicas if group.workers is not None else 0
    return f"{int(group.leader.ready_since is not None) + workers}/{group.size or '?'}"


def _of_pod(pod: Pod, now: datetime) -> Row:
    containers = pod.status.container_statuses
    ready = f"{sum(each.ready for each in containers)}/{len(containers)}"
    found = pod_trouble(pod)
    role = "leader" if pod.is_leader else "worker"
    info = found.detail if found.severity > 1 else "terminating" if pod.metadata.terminating else pod.status.phase
    return f"    {pod.metadata.name}", role, "", ready, "", age(pod.metadata.creation_timestamp, now), info


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """Sort key that puts worker 10 after worker 9."""
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in name.split("-")]


def _ranges(indices: list[str]) -> str:
    """``0-2,5`` for 0, 1, 2 and 5, and the beginning of a key."""
    parts: list[list[str]] = []
    for index in (index if index.isdigit() else index[:_KEY] for index in indices):
        if parts and index.isdigit() and parts[-1][-1].isdigit() and int(index) == int(parts[-1][-1]) + 1:
            parts[-1].append(index)
        else:
            parts.append([index])
    return ",".join(part[0] if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)
