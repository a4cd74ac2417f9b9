"""Evictions by Kueue of groups that are not ready in time: which of them count against the new version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rollout_lws.api import EvictionRecord
from rollout_lws.api.base import tallied
from rollout_lws.api.structural import ITEMS_LIMIT
from rollout_lws.objects.kueue import PODS_READY_TIMEOUT, Workload
from rollout_lws.rollout.draft import Draft
from rollout_lws.workload.facts import Facts, Listing
from rollout_lws.workload.groups import groups
from rollout_lws.workload.queueing import GIVEN_UP, workload_of
from rollout_lws.workload.trouble import troubles


def evicted_before(d: Draft) -> dict[str, int]:
    """Kueue's evictions of each group before this release updated it, by the UID of its Workload."""
    known = {each.workload: each.count for each in d.status.evictions}
    if len(known) < ITEMS_LIMIT:
        return known
    # The records of further groups were dropped, and unrecorded evictions must not count against the new version.
    others = (each for each in _queued(d) if each.metadata.uid not in known)
    return {each.metadata.uid: each.evictions(PODS_READY_TIMEOUT) for each in others} | known


def record_updated(d: Draft, ordinals: Iterable[int]) -> Draft:
    """Records Kueue's evictions so far of the groups of the stable LWS that are updated now."""
    renewed = set(ordinals)
    return _record(d, (workload_of(d.stable, group) for group in groups(d.stable) if group.ordinal in renewed))


def forgive(d: Draft) -> Draft:
    """Ignores all evictions so far."""
    return _record(d, _queued(d))


def _record(d: Draft, workloads: Iterable[Workload | None]) -> Draft:
    """Records these, newest last, in place of records of deleted groups: the status has limited room."""
    standing = {each.metadata.uid for each in _queued(d)}
    listed = all(facts.listing is Listing.DONE for facts in d.o.workloads)
    known = {uid: count for uid, count in evicted_before(d).items() if uid in standing or not listed}
    for workload in workloads:
        if workload is not None:
            known.pop(workload.metadata.uid, None)
            known[workload.metadata.uid] = workload.evictions(PODS_READY_TIMEOUT)
    found = (EvictionRecord(workload=uid, count=tallied(count)) for uid, count in known.items() if count)
    records = tuple(found)[-ITEMS_LIMIT:]
    if records != d.status.evictions:
        d = d.set(evictions=records)
    return d


def _queued(d: Draft) -> Iterator[Workload]:
    return (each for facts in d.o.workloads for each in facts.queued)


def given_up(d: Draft, facts: Facts | None, revision: str) -> dict[str, str]:
    """Groups of ``revision`` that are not ready and that Kueue has evicted, by index, each with a message."""
    found = troubles(facts, revision, d.now, d.minimum, evicted_before(d)) if facts is not None else ()
    return {each.group: each.message for each in found if each.reason == GIVEN_UP}
