"""Companions of a pair: what they have to have for groups of the new version, and when their version is complete.

Each side of the pair is one set of workloads, of which that of workloadRef, or its counterpart, has the number of
groups that plans speak of. Its companions have as many as go with those, rounded up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import datetime

from rollout_lws.api import ArrivingVersion, CompleteVersion
from rollout_lws.capacity.batches import Batch, batch
from rollout_lws.capacity.replica_math import in_proportion
from rollout_lws.rollout.backoff import Wait
from rollout_lws.rollout.draft import Draft, newest_groups
from rollout_lws.rollout.observation import Companion
from rollout_lws.targets.version import hashes_of
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import groups
from rollout_lws.workload.revisions import is_empty

#: A version without rollout-ids counts as complete when no workload has changed for so long: manifests that are applied
#: together arrive within seconds.
SETTLED_SECONDS = 10


def active_workloads(d: Draft) -> tuple[Facts, ...]:
    """The workloads of the side that requests go to at rest, as far as they exist."""
    return tuple(each for each in (d.o.stable, *(one.stable for one in d.o.companions)) if each is not None)


def inactive_workloads(d: Draft) -> tuple[Facts, ...]:
    """Those of the other side."""
    return tuple(each for each in (d.o.canary, *(one.canary for one in d.o.companions)) if each is not None)


def missing_from_active(d: Draft) -> tuple[str, ...]:
    """Names of companions that the active side lacks, or is about to lack."""
    gone = (each for each in d.o.companions if each.stable is None or each.stable.workload.metadata.terminating)
    return tuple(each.name for each in gone)


def missing_from_inactive(d: Draft) -> tuple[str, ...]:
    """Names of the workloads that the other side lacks."""
    own = (d.other_name,) if d.o.canary is None else ()
    return (*own, *(each.other_name for each in d.o.companions if each.canary is None))


def wanted_of(d: Draft, companion: Companion, wanted: int) -> int:
    """Groups of a companion that go with ``wanted`` groups of the new version."""
    return in_proportion(wanted, d.replicas, d.companion_replicas(companion))


def serve(d: Draft) -> bool:
    """True if each companion of the inactive side that has groups has a ready one: without it the side answers no
    request, or slowly.
    """
    return all(not d.companion_replicas(each) or _has_ready(d, each.canary) for each in d.o.companions)


def absent_from_active(d: Draft) -> tuple[str, ...]:
    """Names of companions of the active side that have no ready group and should have some."""
    return tuple(each.name for each in d.o.companions if d.companion_replicas(each) and not _has_ready(d, each.stable))


def _has_ready(d: Draft, facts: Facts | None) -> bool:
    return facts is not None and any(group.ready(d.now) for group in groups(facts))


def serve_since(d: Draft) -> Iterator[datetime]:
    """Since when each companion of the new version has a ready group, of those that have one."""
    for each in d.o.companions:
        moments = [group.ready_since for group in newest_groups(each.canary) if group.ready_since is not None]
        if moments:
            yield min(moments)


def with_companions(d: Draft, judged: Batch, worn: Collection[tuple[str, str]] = ()) -> Batch:
    """The batch, which is ready when those of the companions are. ``worn`` groups, by workload and index, do not
    count.
    """
    for each in d.o.companions:
        wanted = wanted_of(d, each, judged.wanted)
        if not wanted:
            continue
        name = each.other_name
        whole = [group for group in newest_groups(each.canary) if (name, group.index) not in worn]
        own = batch(whole, wanted, d.strategy.failure_threshold, d.now, d.minimum)
        moments = filter(None, (judged.next_ready_at, own.next_ready_at))
        judged = replace(judged, enough=judged.enough and own.enough, next_ready_at=min(moments, default=None))
    return judged


def tolerated_of_companions(d: Draft, wanted: int) -> Iterator[tuple[Facts, int]]:
    """The companions of the new version that exist, and how many groups of each may fail."""
    for facts, number in places(d, wanted):
        if number:
            yield facts, batch((), number, d.strategy.failure_threshold, d.now).tolerated


def lacking(d: Draft, wanted: int) -> str:
    """Which companions lack ready groups for ``wanted`` groups of the new version; "" if none does."""
    found = []
    for each in d.o.companions:
        needed, ready = wanted_of(d, each, wanted), d.ready_among(newest_groups(each.canary))
        if ready < needed:
            found.append(f"{ready} of {needed} of {each.other_name}")
    return ", ".join(found)


def places(d: Draft, wanted: int) -> Iterator[tuple[Facts, int]]:
    """The companions of the new version that exist, and how many groups of each go with ``wanted`` of its own."""
    return ((each.canary, wanted_of(d, each, wanted)) for each in d.o.companions if each.canary is not None)


def none_left(d: Draft) -> bool:
    """True if no group is left of the active side, all of which is scaled to 0."""
    return all(each.workload.replicas == 0 and is_empty(each) for each in active_workloads(d))


def edited_names(d: Draft) -> tuple[str, str]:
    """The first workload of the active side whose template has another version than it is on record with, and its
    counterpart.
    """
    record, now = d.status.stable, hashes_of(d.own_version.template_hash)
    before = hashes_of(record.template_hash) if record is not None else ()
    names = ((d.name, d.other_name), *((each.name, each.other_name) for each in d.o.companions))
    found = (each for each, one, other in zip(names, before, now, strict=False) if one != other)
    return next(found, names[0])


# When a version is complete


def release_id_of_all(d: Draft) -> str | None:
    """The release ID that all workloads of the inactive side carry; None unless it is one and the same."""
    given = {d.given_id(each) for each in inactive_workloads(d)} - {""}
    return given.pop() if len(given) == 1 and all(map(d.given_id, inactive_workloads(d))) else None


def record_complete(d: Draft, template_hash: str = "") -> Draft:
    """Records what all workloads of the inactive side have, by default what they have now, as a whole version."""
    if not d.o.companions or missing_from_inactive(d):
        return d
    found = CompleteVersion(template_hash=template_hash or d.version.template_hash, release_id=release_id_of_all(d))
    return d.set(complete=found)


def left_behind(d: Draft, served: str) -> str:
    """The version of the side that has served ``served`` and is the inactive one by now, which no release has to bring
    there: what was applied to all of its workloads meanwhile, was held and told. What has come to some of them only is
    awaited.
    """
    now = d.version.template_hash
    same = [one == other for one, other in zip(hashes_of(served), hashes_of(now), strict=False)]
    return served if any(same) else now


def request_start(d: Draft) -> Draft:
    """Has what the inactive side has now released, whether or not all of its workloads have changed."""
    d = d.set(start_requested=True)
    return d.set(arriving=ArrivingVersion(template_hash=d.version.template_hash, since=d.now)) if d.o.companions else d


def await_complete(d: Draft) -> tuple[Draft, Wait | None]:
    """Why the inactive side's version is not released yet: not all of its workloads have it, which lasts until a person
    acts, or they have had it for a moment only. None once they have it: they carry the same new release ID; without
    any, or with one from before, all have changed and stay for a while; or a person asked for it.
    """
    if not d.o.companions:
        return d, None
    known, current = d.status.arriving, d.version.template_hash
    same = known is not None and known.template_hash == current
    if d.status.start_requested and (known is None or same):
        return d, None
    # A start may have been asked for another version.
    d = d.set(start_requested=None)
    arriving = known if known is not None and known.since is not None and same else None
    arriving = arriving or ArrivingVersion(template_hash=current, since=d.now)
    d = d.set(arriving=arriving)
    before, waits_for = d.status.complete or CompleteVersion(template_hash=""), _awaited_ids(d)
    common, ask = release_id_of_all(d), f"to release what there is: {d.command('start')}"
    if common is not None and common != before.release_id:
        return d, None
    if waits_for:
        return d, Wait(f"{waits_for}; {ask}")
    unchanged = _unchanged(d, before)
    if unchanged:
        return d, Wait(
            f"the release begins when {' and '.join(unchanged)} has another version as well, or when all workloads of"
            f" its side carry the same new rollout-id; {ask}"
        )
    until = d.yet_to_come(arriving.since or d.now, SETTLED_SECONDS)
    if until is None:
        return d, None
    told = f"the release begins at {until:%H:%M:%S} UTC, if no workload of {d.edited.name}'s side changes until then"
    return d.wake(until), Wait(told, until)


def _awaited_ids(d: Draft) -> str:
    """What the workloads' release IDs wait for, if they differ."""
    given = {each.name: d.given_id(each) for each in inactive_workloads(d)}
    if len({*given.values()}) == 1:
        return ""
    told = ", ".join(f"{name} has {value or 'none'}" for name, value in given.items())
    return f"the release begins when all workloads of {d.edited.name}'s side carry the same new rollout-id ({told})"


def _unchanged(d: Draft, before: CompleteVersion) -> tuple[str, ...]:
    """Names of the inactive side's workloads that still have what they had in its last whole version; none if all have,
    so that it is that version again.
    """
    then, now = hashes_of(before.template_hash), hashes_of(d.version.template_hash)
    if len(then) != len(now) or then == now:
        return ()
    names = (d.edited.name, *(each.other_name for each in d.o.companions))
    return tuple(name for name, one, other in zip(names, then, now, strict=True) if one == other)
