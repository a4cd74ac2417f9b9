"""The tree of a release: versions, the LWSs that run them, their groups and, on request, their pods. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from types import MappingProxyType

from rollout_lws.cli.durations import short
from rollout_lws.cli.releases import Release
from rollout_lws.cli.rollouts import condition, releasing
from rollout_lws.cli.sides import Sides, have_turned, kept_version, roles_of, scales_sides, serves_alone
from rollout_lws.cli.view import age
from rollout_lws.objects.workloads import Pod
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, groups
from rollout_lws.workload.pod_words import pod_trouble, pods_of

Row = tuple[str, ...]
#: Reasons why groups are not ready, as the controller reported them, by LWS and group.
Reasons = Mapping[tuple[str, str], str]
#: Since when groups have got no more requests that are about to go, by UID.
Drains = Mapping[str, datetime]
_NONE: Drains = MappingProxyType({})
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


@dataclass(frozen=True, slots=True)
class _Band:
    """One version in one LWS. ``asked`` is the number of groups of it that are wanted; ``own`` is the role of groups of
    this revision, and ``info`` what there is to know of the LWS. ``drains`` are groups that are about to go.
    """

    facts: Facts
    role: str
    revision: str
    groups: tuple[Group, ...]
    asked: int
    weight: str
    is_new: bool
    own: str
    info: str = ""
    drains: Drains = field(default_factory=dict)


def tree(shown: Release, now: datetime, *, pods: bool = False) -> list[Row]:
    """Rows below a heading; only the heading when there is no LWS."""
    rows: list[Row] = [("NAME", "ROLE", "REV", "READY", "TRAFFIC", "AGE", "INFO")]
    reasons, drains = _reasons(shown), _drains(shown)
    for band in _bands(shown):
        rows += _rows(replace(band, drains=drains), now, reasons, pods=pods)
    return rows


def runs(found: Iterable[Group], now: datetime, *, drains: Drains = _NONE, together: bool = False) -> list[Run]:
    """Groups in order; neighbours with the same revision and readiness of which both or neither terminate or drain
    share a run, and with ``together`` all such groups do.
    """

    def state(group: Group) -> tuple[str, bool, bool, bool]:
        return group.revision, group.ready(now), group.terminating, group.uid in drains

    listed = sorted(found, key=state) if together else list(found)
    alike = (tuple(members) for _, members in groupby(listed, state))
    result = [Run(members, sum(group.ready(now) for group in members)) for members in alike]
    return sorted(result, key=lambda run: run.groups[0].ordinal)


def _bands(shown: Release) -> Iterator[_Band]:
    sides = roles_of(shown.rollout)
    if sides is not None:
        yield from _of_sides(shown, sides)
        return
    new_weight, old_weight = _weights(shown)
    if shown.stable is not None:
        yield from _of_stable(shown, shown.stable, new_weight, old_weight)
    if shown.canary is not None:
        role = "green" if (shown.rollout["spec"].get("strategy") or {}).get("blueGreen") else "canary"
        gone, found = shown.is_replaced, groups(shown.canary)
        yield _Band(
            shown.canary,
            "old" if gone else role,
            _set_revision(shown.canary),
            found,
            shown.canary.workload.replicas,
            new_weight,
            not gone,
            "old" if gone else "new",
            "kept for undo" if gone and kept_version(shown.rollout) else "",
        )


def _of_sides(shown: Release, sides: Sides) -> Iterator[_Band]:
    """Workloads that change roles, those of the active side first. Outside a release neither has a version that is
    new.
    """
    is_on = releasing(shown.rollout) and not have_turned(shown.rollout)
    at_rest = ("0%", "100%") if serves_alone(shown.rollout, parked=shown.is_parked) else ("", "")
    new_weight, old_weight = _weights(shown) if is_on else at_rest
    kept = kept_version(shown.rollout)
    retirable = "may be retired" if condition(shown.rollout, "ReadyToRetire") is not None else ""
    unused = "parked" if shown.is_parked else "kept for undo" if kept else retirable
    for facts in (*shown.of_active, *shown.of_inactive):
        is_active = facts.name in sides.members(sides.active)
        leads, is_new = facts.name in (sides.active, sides.inactive), is_on and not is_active
        runs, waits = _held_back(shown, facts) if is_active else (_set_revision(facts), "")
        # Its template has the version of the one that serves by now.
        runs = next((group.revision for group in groups(facts)), runs) if kept and not is_active else runs
        leader = sides.active if is_active else sides.inactive
        found = (waits if is_active else unused, "" if leads else f"goes with {leader}")
        yield _Band(
            facts,
            sides.role(facts.name),
            runs,
            groups(facts),
            facts.workload.replicas,
            (old_weight if is_active else new_weight) if leads else "",
            is_new,
            ("new" if is_new else "old") if is_on else "",
            ", ".join(filter(None, found)),
        )


def _held_back(shown: Release, facts: Facts) -> tuple[str, str]:
    """The revision that a workload of a pair's active side runs, and, in words, the one that it holds back, "" when it
    holds none back.
    """
    asked = _set_revision(facts)
    running = {group.revision for group in groups(facts)}
    runs = _stable_revision(shown) if facts is shown.stable else running.pop() if len(running) == 1 else asked
    if scales_sides(shown.rollout) and asked and runs not in ("", asked):
        return runs, f"revision {asked} waits"
    return asked, ""


def _stable_revision(shown: Release) -> str:
    return str(((shown.rollout.get("status") or {}).get("stable") or {}).get("revision") or "")


def _of_stable(shown: Release, facts: Facts, new_weight: str, old_weight: str) -> Iterator[_Band]:
    """An LWS runs two versions while its groups are updated in place, or while it has surge groups."""
    found = groups(facts)
    known = _stable_revision(shown)
    new = tuple(group for group in found if known and group.revision != known)
    old = tuple(group for group in found if not known or group.revision == known)
    beside = shown.canary is not None
    if old or not new:
        asked = len(old) if new and len(old) < facts.workload.replicas else facts.workload.replicas
        yield _Band(facts, "stable", known or _set_revision(facts), old, asked, old_weight, False, "old")
    if new:
        weight = "" if beside and old else old_weight if beside else new_weight
        yield _Band(facts, "new", new[0].revision, new, len(new), weight, True, "new")


def _weights(shown: Release) -> tuple[str, str]:
    """Traffic of the new and the stable version as routers accepted it; ("", "") when traffic is not split."""
    applied = ((shown.rollout.get("status") or {}).get("traffic") or {}).get("applied")
    if not applied or not releasing(shown.rollout):
        return "", ""
    weight = int(applied.get("weight") or 0)
    return f"{weight}%", f"{100 - weight}%"


def _set_revision(facts: Facts) -> str:
    return facts.leader_set.revision if facts.leader_set is not None else ""


def _reasons(shown: Release) -> Reasons:
    told = (shown.rollout.get("status") or {}).get("notReadyGroups") or ()
    return {(str(each.get("workload")), str(each.get("group"))): str(each.get("reason") or "") for each in told}


def _drains(shown: Release) -> Drains:
    every = (*shown.of_active, *shown.of_inactive)
    known = ((group.uid, shown.drains_since(group.leader)) for facts in every for group in groups(facts))
    return {uid: since for uid, since in known if since is not None}


def _rows(band: _Band, now: datetime, reasons: Reasons, *, pods: bool) -> Iterator[Row]:
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
        yield _row(run, band, now, reasons)
        if pods:
            members = pods_of(band.facts, run.groups[0])
            yield from (_of_pod(pod, now) for pod in sorted(members, key=lambda pod: _natural(pod.metadata.name)))


def _row(run: Run, band: _Band, now: datetime, reasons: Reasons) -> Row:
    first = run.groups[0]
    counted = _pods_ready(first) if len(run.groups) == 1 else f"{run.ready}/{len(run.groups)}"
    said = {reasons.get((band.facts.name, group.index), "") for group in run.groups}
    why = ", ".join(sorted(filter(None, said))) or _trouble(first.leader)
    created = age(first.leader.metadata.creation_timestamp, now)
    role = band.own if _is_of(run, band) else ""
    return f"  {run.name}", role, first.revision, counted, "", created, _info(run, band, now, why)


def _is_of(run: Run, band: _Band) -> bool:
    """Whether the run has the version of its band; an LWS that was made for one has no other."""
    return run.groups[0].revision == band.revision or (band.is_new and band.role != "inactive")


def _info(run: Run, band: _Band, now: datetime, why: str) -> str:
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


def _trouble(pod: Pod) -> str:
    """The reason in one word, for problems only, not for normal startup."""
    found = pod_trouble(pod)
    return found.reason if found.severity > 1 else ""


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
