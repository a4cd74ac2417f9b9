"""Groups that Kueue gives up because they are not ready in time: which of it is the fault of the version on its way."""

from __future__ import annotations

from collections.abc import Iterable

from rollout_lws.api import EvictionRecord
from rollout_lws.objects.kueue import PODS_READY_TIMEOUT
from rollout_lws.rollout.draft import Draft
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, groups
from rollout_lws.workload.queueing import GIVEN_UP, workload_of
from rollout_lws.workload.trouble import troubles


def evicted_before(d: Draft) -> dict[str, int]:
    """How often Kueue had given a group up before this release renewed it, by the UID of its Workload."""
    return {each.workload: each.count for each in d.status.evictions}


def note_renewed(d: Draft, ordinals: Iterable[int]) -> None:
    """File how often Kueue has given up those groups of the stable LWS that are renewed now."""
    renewed = set(ordinals)
    _note(d, d.stable, (group for group in groups(d.stable) if group.ordinal in renewed))


def forgive(d: Draft) -> None:
    """Have what Kueue has given up until now count no more."""
    for facts in (d.o.stable, d.o.canary):
        if facts is not None:
            _note(d, facts, groups(facts))


def _note(d: Draft, facts: Facts, members: Iterable[Group]) -> None:
    known = {each.workload: each for each in d.status.evictions}
    for workload in (workload_of(facts, each) for each in members):
        count = workload.evictions(PODS_READY_TIMEOUT) if workload is not None else 0
        if workload is not None and count:
            known[workload.metadata.uid] = EvictionRecord(workload=workload.metadata.uid, count=count)
    if tuple(known.values()) != d.status.evictions:
        d.set(evictions=tuple(known.values()))


def given_up(d: Draft, facts: Facts | None, revision: str) -> dict[str, str]:
    """Groups of ``revision`` that are not ready and that Kueue has given up, by index, each with a sentence."""
    found = troubles(facts, revision, d.now, d.minimum, evicted_before(d)) if facts is not None else ()
    return {each.group: each.message for each in found if each.reason == GIVEN_UP}
