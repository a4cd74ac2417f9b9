"""Groups: when one is ready, since when, and that it is judged as a whole."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rollout_lws.objects.resources import LWS_GROUP_INDEX
from rollout_lws.workload.groups import groups, moment_ready
from tests.workload.build import BEFORE, NEW, NOW, OLD, facts, lws, pod, worker_set

LATER = BEFORE + timedelta(seconds=45)


@pytest.mark.parametrize(
    ("changes", "ready"),
    [
        ({}, True),
        ({"available": 0}, False),
        ({"replicas": 2}, False),
        ({"replicas": 2, "available": 2}, False),
        ({"revision": NEW}, False),
        ({"observed_generation": 1}, False),
        ({"observed_generation": 3}, True),
        ({"update_revision": "b"}, False),
        ({"terminating": True}, False),
    ],
)
def test_a_group_is_ready_when_all_workers_of_its_leaders_revision_are(changes: dict[str, Any], ready: bool) -> None:
    leader = pod(0)
    (group,) = groups(facts(lws(), leader, worker_sets=(worker_set(leader, **changes),)))
    assert group.ready(NOW) is ready


def test_without_a_worker_set_a_group_is_not_ready_unless_it_has_no_workers() -> None:
    (group,) = groups(facts(lws(), pod(0), worker_sets=()))
    assert not group.ready(NOW)
    (alone,) = groups(facts(lws(), pod(0, size=1), worker_sets=()))
    assert alone.ready(NOW)


@pytest.mark.parametrize("leader", [pod(0, since=None), pod(0, terminating=True), pod(0, phase="Failed")])
def test_complete_workers_do_not_make_up_for_their_leader(leader: Any) -> None:
    (group,) = groups(facts(lws(), leader, worker_sets=(worker_set(leader),)))
    assert not group.ready(NOW)


def test_the_workers_of_the_leader_before_do_not_count_for_its_successor() -> None:
    gone, successor = pod(0, uid="first"), pod(0, uid="second")
    (group,) = groups(facts(lws(), successor, worker_sets=(worker_set(gone),)))
    assert group.workers is None
    assert not group.ready(NOW)


def test_a_group_is_ready_since_its_last_part_is() -> None:
    leader = pod(0, size=3)
    workers = worker_set(leader, replicas=2, available=2)
    pods = (leader, pod(0, 1, since=BEFORE), pod(0, 2, since=LATER), pod(1, 1, since=NOW))
    (group,) = groups(facts(lws(), leader, worker_sets=(workers,), pods=pods))
    assert group.ready_since == LATER


def test_where_worker_pods_are_not_watched_the_leader_tells_since_when() -> None:
    (group,) = groups(facts(lws(), pod(0)))
    assert group.ready_since == BEFORE


@pytest.mark.parametrize(
    ("minimum", "age", "ready", "counts_in"),
    [(0, 0, True, None), (30, 60, True, None), (60, 60, True, None), (61, 60, False, 1), (30, 0, False, 30)],
)
def test_a_warm_up_counts_from_the_moment_of_readiness(
    minimum: float, age: float, ready: bool, counts_in: float | None
) -> None:
    (group,) = groups(facts(lws(), pod(0, since=NOW - timedelta(seconds=age))))
    assert group.ready(NOW, minimum) is ready
    moment = moment_ready(group, minimum, NOW)
    assert moment == (None if counts_in is None else NOW + timedelta(seconds=counts_in))


def test_a_node_whose_clock_is_ahead_does_not_delay_readiness() -> None:
    (group,) = groups(facts(lws(), pod(0, since=NOW + timedelta(seconds=7))))
    assert group.ready(NOW)
    assert moment_ready(group, 0, NOW) is None


def test_a_group_that_is_not_ready_has_no_moment_at_which_it_will_count() -> None:
    (group,) = groups(facts(lws(), pod(0, since=None)))
    assert moment_ready(group, 30, NOW) is None


def test_groups_come_in_the_order_of_their_ordinals_with_surplus_ones() -> None:
    found = groups(facts(lws(2), *(pod(index) for index in (10, 2, 0, 1))))
    assert [group.ordinal for group in found] == [0, 1, 2, 10]


def test_a_group_carries_its_leaders_revision_and_uid() -> None:
    old, new = groups(facts(lws(2), pod(0), pod(1, revision=NEW, terminating=True)))
    assert (old.revision, old.terminating) == (OLD, False)
    assert (new.revision, new.terminating) == (NEW, True)
    assert old.uid == old.leader.metadata.uid


def test_an_index_that_is_no_number_has_no_ordinal() -> None:
    (group,) = groups(facts(lws(), pod("x7f3k")))
    assert (group.index, group.ordinal) == ("x7f3k", -1)


def test_groups_without_numbers_have_places_in_the_order_in_which_a_replica_set_keeps_them() -> None:
    workload = lws(2)
    workload = msgspec.structs.replace(workload, spec=msgspec.structs.replace(workload.spec, group_identity="Hash"))
    leaders = [pod("a1", terminating=True), pod("b2", since=None), pod("c3", since=LATER), pod("d4"), pod("e5")]
    found = groups(facts(workload, *leaders))
    assert [(group.index, group.ordinal) for group in found] == [("d4", 0), ("e5", 1), ("c3", 2), ("b2", 3), ("a1", 4)]


def test_a_leader_that_lws_has_not_labelled_yet_is_known_by_its_name() -> None:
    leader = pod(12)
    labels = {key: value for key, value in leader.metadata.labels.items() if key != LWS_GROUP_INDEX}
    bare = msgspec.structs.replace(leader, metadata=msgspec.structs.replace(leader.metadata, labels=labels))
    (group,) = groups(facts(lws(), bare))
    assert (group.index, group.ordinal) == ("12", 12)


@pytest.mark.parametrize("size", ["x", "9" * 5000, "\u00b2", "-2", "1.0"])
def test_a_group_whose_leader_carries_no_size_is_not_ready(size: str) -> None:
    leader = pod(0, size=size)
    (group,) = groups(facts(lws(), leader, worker_sets=(worker_set(leader),)))
    assert (group.size, group.ready(NOW)) == (None, False)
