"""Evictions by Kueue from before a release renewed a group: on record for as many groups as status has room for."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rollout_lws.api import EvictionRecord
from rollout_lws.api.structural import ITEMS_LIMIT
from rollout_lws.objects.kueue import (
    GROUP_INDEX,
    PODS_READY_TIMEOUT,
    Evictions,
    SchedulingStats,
    Workload,
    WorkloadStatus,
)
from rollout_lws.objects.meta import Meta
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.field_limits import within_limits
from rollout_lws.rollout.groups.evictions import forgive, given_up, record_updated
from rollout_lws.workload.facts import Listing
from tests.rollout.build import draft, in_step, rollout
from tests.workload.build import NEW, OLD, facts, leader_set, lws, pod

MANY = ITEMS_LIMIT + 6


def queued(group: int, evictions: int) -> Workload:
    meta = Meta(name=f"llama-{group}", uid=f"workload-{group}", annotations={GROUP_INDEX: str(group)})
    stats = SchedulingStats((Evictions(PODS_READY_TIMEOUT, evictions),) if evictions else ())
    return Workload(metadata=meta, status=WorkloadStatus(scheduling_stats=stats))


def evicted(counts: Mapping[int, int], records: tuple[EvictionRecord, ...] = ()) -> Draft:
    """A release whose groups are not ready at the new version, and were given up so many times."""
    leaders = (pod(group, revision=NEW, since=None) for group in counts)
    workloads = tuple(queued(group, count) for group, count in counts.items())
    stable = facts(lws(len(counts)), *leaders, queued=workloads, listing=Listing.DONE)
    return draft(rollout(status=in_step(evictions=records)), stable=stable)


def filed(d: Draft) -> tuple[EvictionRecord, ...]:
    """The records as the API server keeps them."""
    return within_limits(d.status).evictions


def blamed(counts: Mapping[int, int], records: tuple[EvictionRecord, ...]) -> set[str]:
    d = evicted(counts, records)
    return set(given_up(d, d.stable, NEW))


def test_no_eviction_from_before_is_blamed_where_kueue_had_given_up_more_groups_than_are_recorded() -> None:
    once = dict.fromkeys(range(MANY), 1)
    renewed, forgiven = evicted(once), evicted(once)
    for group in range(MANY):
        renewed = record_updated(renewed, (group,))
    for d in (renewed, forgive(forgiven)):
        assert blamed(once, filed(d)) == set()
        # The latest are on record, and are blamed for what comes after.
        assert blamed({**once, 0: 2, MANY - 1: 2}, filed(d)) == {str(MANY - 1)}


def test_a_group_that_is_given_up_and_has_no_leader_has_failed_where_it_comes_back_at_that_revision() -> None:
    def gone(partition: int, records: tuple[EvictionRecord, ...] = ()) -> Draft:
        stable = facts(
            lws(2),
            pod(0, revision=OLD),
            leader_set=leader_set(NEW, partition=partition, update="set-new"),
            queued=(queued(0, 0), queued(1, 1)),
            listing=Listing.DONE,
        )
        return draft(rollout(status=in_step(evictions=records)), stable=stable)

    for partition, revision in ((0, NEW), (1, NEW), (2, OLD)):
        d = gone(partition)
        blames = {each: set(given_up(d, d.stable, each)) for each in (OLD, NEW, "")}
        assert blames == {OLD: set(), NEW: set(), "": set(), revision: {"1"}}
        # That a person forgives it holds for groups without a leader, too.
        d = forgive(d)
        again = gone(partition, filed(d))
        assert given_up(again, again.stable, revision) == {}


@pytest.mark.parametrize("index", ["", "\u00b2", "9" * 5000, "-1", "2", "None"])
def test_an_index_that_no_group_has_is_no_group(index: str) -> None:
    strange = queued(1, 1)
    strange.metadata.annotations[GROUP_INDEX] = index
    stable = facts(lws(2), pod(0), queued=(strange,), listing=Listing.DONE)
    assert given_up(draft(rollout(status=in_step()), stable=stable), stable, OLD) == {}


def test_room_that_scaled_down_groups_leave_is_taken_by_groups_that_had_none() -> None:
    d = evicted(dict.fromkeys(range(MANY), 1))
    d = forgive(d)
    fewer = dict.fromkeys(range(MANY // 2), 1)
    d = evicted(fewer, filed(d))
    d = record_updated(d, (MANY // 4,))
    assert len(filed(d)) == len(fewer)
    assert blamed(fewer, filed(d)) == set()
    assert blamed({**fewer, 0: 2}, filed(d)) == {"0"}


def test_records_of_groups_that_are_gone_make_room() -> None:
    gone = tuple(EvictionRecord(workload=f"gone-{n}", count=1) for n in range(ITEMS_LIMIT))
    d = evicted({0: 0, 1: 3}, gone)
    d = record_updated(d, (0, 1))
    assert filed(d) == (EvictionRecord(workload="workload-1", count=3),)
    assert blamed({0: 0, 1: 3}, filed(d)) == set()
    assert blamed({0: 1, 1: 3}, filed(d)) == {"0"}
    assert blamed({0: 0, 1: 4}, filed(d)) == {"1"}
