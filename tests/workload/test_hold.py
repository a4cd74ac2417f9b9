"""The hold: which members it borrows, what windows write, and that the user's own values come back exactly."""

from __future__ import annotations

import itertools
import json
from typing import Any

import msgspec
import pytest
from msgspec import structs

from rollout_lws.api.resources import keys
from rollout_lws.objects.meta import ManagedField
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.observe.cache_types import TRIMMED
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from rollout_lws.workload.hold import (
    HOLD,
    foreign_members,
    give_back,
    hold,
    hold_record,
    is_held,
    resolved_surge,
    resolved_unavailable,
    users_strategy,
    window,
    writer_of_strategy,
)
from tests.workload.build import KEYS, MADE_UP, UID, lws, patched, raw

#: Every shape that a user's own strategy takes: (partition, maxUnavailable, maxSurge); LWS refuses 0 and 0.
USERS = [
    (partition, unavailable, surge)
    for partition, unavailable, surge in itertools.product((0, 2, 50), (0, 1, 3, "25%", "100%"), (0, 1, "0%", "30%"))
    if not (unavailable == 0 and surge in (0, "0%"))
]


def strategy(workload: LeaderWorkerSet) -> tuple[int, int | str, int | str]:
    live = workload.strategy
    return live.partition, live.max_unavailable, live.max_surge


def made(users: tuple[int, Any, Any], replicas: int = 4, **more: Any) -> LeaderWorkerSet:
    partition, unavailable, surge = users
    return lws(replicas, partition=partition, unavailable=unavailable, surge=surge, **more)


def held(users: tuple[int, Any, Any], replicas: int = 4) -> LeaderWorkerSet:
    before = made(users, replicas)
    return patched(before, hold(before, KEYS, UID))


def mark(original: dict[str, Any], written: dict[str, Any]) -> dict[str, str]:
    return {KEYS.original: json.dumps({"by": UID, "original": original, "written": written})}


@pytest.mark.parametrize("replicas", [0, 1, 2, 4, 100])
@pytest.mark.parametrize("users", USERS, ids=str)
def test_a_held_lws_starts_nothing_and_gives_back_exactly_what_it_borrowed(users: Any, replicas: int) -> None:
    before = made(users, replicas)
    after = patched(before, hold(before, KEYS, UID))
    assert is_held(after)
    assert strategy(after)[0] == HOLD
    assert resolved_surge(after.strategy, replicas) == 0
    assert hold(after, KEYS, UID) is None
    assert foreign_members(after, KEYS) == ()
    assert users_strategy(after, KEYS) == before.strategy
    partition, unavailable, surge = users
    rejected = replicas and not (
        resolved_unavailable(before.strategy, replicas) or resolved_surge(before.strategy, replicas)
    )
    # LWS rejects a percentage of groups that is none.
    given_back = made((partition, 1, surge), replicas) if rejected and unavailable else before
    assert patched(after, give_back(after, KEYS)) == given_back


@pytest.mark.parametrize("users", USERS, ids=str)
@pytest.mark.parametrize("partition", [0, 2, 3])
def test_a_window_between_hold_and_hold_changes_nothing_of_what_comes_back(users: Any, partition: int) -> None:
    before = made(users)
    opened = held(users)
    opened = patched(opened, window(opened, KEYS, UID, partition, 2))
    live = opened.strategy
    assert (live.partition, is_held(opened)) == (partition, False)
    assert resolved_unavailable(live, 4) >= 2
    assert resolved_surge(live, 4) == 0
    assert users_strategy(opened, KEYS) == before.strategy
    assert foreign_members(opened, KEYS) == ()
    assert window(opened, KEYS, UID, partition, 2) is None
    closed = patched(opened, hold(opened, KEYS, UID))
    assert closed == held(users)
    assert patched(opened, give_back(opened, KEYS)) == before


@pytest.mark.parametrize(
    ("users", "replicas", "changes"),
    [
        ((0, 1, 0), 4, {"partition": HOLD}),
        ((3, "25%", 0), 4, {"partition": HOLD}),
        ((0, 0, "0%"), 4, {"partition": HOLD}),
        ((0, 0, 1), 4, {"partition": HOLD, "maxSurge": 0, "maxUnavailable": 1}),
        ((0, 1, 1), 4, {"partition": HOLD, "maxSurge": 0}),
        ((0, "50%", "10%"), 4, {"partition": HOLD, "maxSurge": 0, "maxUnavailable": 2}),
        ((0, "10%", "10%"), 4, {"partition": HOLD, "maxSurge": 0, "maxUnavailable": 1}),
        ((0, "10%", "10%"), 0, {"partition": HOLD, "maxSurge": 0, "maxUnavailable": 1}),
        ((HOLD, 1, 0), 4, None),
        ((HOLD + 5, 1, 0), 4, {"partition": HOLD}),
    ],
)
def test_only_members_that_must_change_are_written(
    users: tuple[int, Any, Any], replicas: int, changes: dict[str, Any] | None
) -> None:
    body = hold(made(users, replicas), KEYS, UID)
    assert body is not None
    assert body.get("spec") == (
        None if changes is None else {"rolloutStrategy": {"rollingUpdateConfiguration": changes}}
    )
    assert list(body["metadata"]["annotations"]) == [KEYS.original]


def test_the_annotation_says_who_borrowed_what_and_what_it_was() -> None:
    after = held((2, 0, "30%"))
    found = hold_record(after, KEYS)
    assert found is not None
    assert found.by == UID
    assert found.original == {"partition": 2, "maxUnavailable": 0, "maxSurge": "30%"}
    assert found.written == {"partition": HOLD, "maxUnavailable": 1, "maxSurge": 0}


def stated(*members: str, exported: bool = False) -> tuple[ManagedField, ...]:
    """The records of an LWS of which somebody has applied these members of its strategy after us."""
    owned: dict[str, Any] = {".": {}} | {f"f:{each}": {} for each in members}
    fields: dict[str, Any] = {"f:spec": {"f:rolloutStrategy": {"f:rollingUpdateConfiguration": owned}}}
    if exported:
        fields["f:metadata"] = {"f:annotations": {f"f:{KEYS.original}": {}}}
    scaled = raw({"f:spec": {"f:replicas": {}, "f:rolloutStrategy": {"f:type": {}}}})
    return (
        ManagedField(manager="rollout-lws"),
        ManagedField(manager="kubectl", fields=scaled),
        ManagedField(manager="argocd", fields=raw(fields)),
    )


@pytest.mark.parametrize("trimmed", [False, True])
@pytest.mark.parametrize(
    ("records", "users"),
    [
        (stated(), (2, 0, "30%")),
        (stated("maxSurge"), (2, 0, 0)),
        (stated("maxSurge", "maxUnavailable"), (2, 1, 0)),
        (stated("partition", "maxUnavailable"), (2, 1, "30%")),
        (stated("maxSurge", "maxUnavailable", exported=True), (2, 0, "30%")),
    ],
)
def test_what_somebody_states_just_as_we_have_written_it_is_theirs(
    records: tuple[ManagedField, ...], users: tuple[Any, ...], trimmed: bool
) -> None:
    after = held((2, 0, "30%"))
    after = structs.replace(after, metadata=structs.replace(after.metadata, managed_fields=records))
    if trimmed:
        after = TRIMMED.workloads[LEADER_WORKER_SETS](msgspec.json.encode(after))
    assert strategy(patched(after, give_back(after, KEYS))) == users
    assert foreign_members(after, KEYS) == ()


@pytest.mark.parametrize("partition", [HOLD, HOLD + 1])
def test_a_hold_nobody_marked_counts_as_partition_zero(partition: int) -> None:
    before = lws(partition=partition)
    assert users_strategy(before, KEYS).partition == 0
    after = patched(before, hold(before, KEYS, UID))
    assert strategy(patched(after, give_back(after, KEYS)))[0] == 0


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '"x"', "null", "{}", '{"by": "u"}', '{"by":"u","original":[1]}'])
def test_a_mark_that_nobody_can_read_is_replaced_and_removed(text: str) -> None:
    before = lws(partition=HOLD, annotations={KEYS.original: text})
    assert hold_record(before, KEYS) is None
    assert foreign_members(before, KEYS) == ()
    after = patched(before, hold(before, KEYS, UID))
    assert hold_record(after, KEYS) is not None
    assert strategy(patched(before, give_back(before, KEYS)))[0] == 0
    assert KEYS.original not in patched(before, give_back(before, KEYS)).metadata.annotations


def test_nothing_is_given_back_where_nothing_is_borrowed() -> None:
    assert give_back(lws(partition=2), KEYS) is None


def test_the_mark_of_another_rollout_still_tells_what_the_user_wants() -> None:
    after = held((2, 1, 0))
    assert users_strategy(after, KEYS).partition == 2
    taken_over = patched(after, hold(after, KEYS, "another-uid"))
    found = hold_record(taken_over, KEYS)
    assert found is not None
    assert (found.by, found.original) == ("another-uid", {"partition": 2})


@pytest.mark.parametrize(
    ("users", "foreign", "members", "wanted"),
    [
        # Partition stated by a manifest: that is what the user wants from now on.
        ((0, 1, 0), {"partition": 0}, ("partition",), (0, 1, 0)),
        ((2, 1, 0), {"partition": 0}, ("partition",), (0, 1, 0)),
        ((0, 1, 0), {"partition": 3}, ("partition",), (3, 1, 0)),
        # A surge that was 0 was never borrowed, so a new one is simply the user's.
        ((0, 1, 0), {"maxSurge": 2}, (), (0, 1, 2)),
        ((2, 0, 1), {"maxSurge": 2}, ("maxSurge",), (2, 0, 2)),
        ((2, 0, 1), {"maxUnavailable": 2}, ("maxUnavailable",), (2, 2, 1)),
        ((0, 1, 0), {"maxUnavailable": "50%"}, (), (0, "50%", 0)),
        ((2, 0, 1), {"partition": 0, "maxSurge": 0, "maxUnavailable": 1}, ("partition",), (0, 0, 1)),
        # A whole strategy re-applied: every member that was borrowed is the user's again.
        ((2, 0, 1), {"partition": 2, "maxUnavailable": 0, "maxSurge": 1}, None, (2, 0, 1)),
    ],
)
def test_what_somebody_else_writes_over_the_hold_becomes_the_users_own(
    users: Any, foreign: dict[str, Any], members: tuple[str, ...] | None, wanted: Any
) -> None:
    reset = patched(held(users), {"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": foreign}}})
    assert sorted(foreign_members(reset, KEYS)) == sorted(foreign if members is None else members)
    live = users_strategy(reset, KEYS)
    assert (live.partition, live.max_unavailable, live.max_surge) == wanted
    again = patched(reset, hold(reset, KEYS, UID))
    assert is_held(again)
    assert strategy(patched(again, give_back(again, KEYS))) == wanted


@pytest.mark.parametrize(
    ("live", "is_it"),
    [
        ((HOLD, 1, 0), True),
        ((HOLD, 1, "0%"), True),
        ((HOLD - 1, 1, 0), False),
        ((0, 1, 0), False),
        ((HOLD, 1, 1), False),
        ((HOLD, 1, "1%"), False),
    ],
)
@pytest.mark.parametrize("replicas", [0, 1, 4])
def test_held_means_partition_out_of_reach_and_no_surge(live: Any, is_it: bool, replicas: int) -> None:
    assert is_held(made(live, replicas)) is is_it


@pytest.mark.parametrize(
    ("value", "replicas", "unavailable", "surge"),
    [
        (0, 4, 0, 0),
        (3, 4, 3, 3),
        (7, 4, 7, 4),
        ("25%", 4, 1, 1),
        ("25%", 5, 1, 2),
        ("25%", 3, 0, 1),
        ("100%", 3, 3, 3),
        ("0%", 3, 0, 0),
        ("50%", 0, 0, 0),
    ],
)
def test_percentages_are_resolved_as_lws_does(value: Any, replicas: int, unavailable: int, surge: int) -> None:
    live = lws(unavailable=value, surge=value).strategy
    assert resolved_unavailable(live, replicas) == unavailable
    assert resolved_surge(live, replicas) == surge


@pytest.mark.parametrize(
    ("unavailable", "asked", "written"),
    [(1, 1, None), (1, 2, 2), (3, 2, None), ("25%", 1, None), ("25%", 2, 2), ("10%", 1, 1), ("100%", 4, None)],
)
def test_a_window_touches_max_unavailable_only_when_it_allows_less(unavailable: Any, asked: int, written: Any) -> None:
    before = held((0, unavailable, 0))
    body = window(before, KEYS, UID, 2, asked)
    assert body is not None
    changes = body["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]
    assert changes == {"partition": 2} | ({} if written is None else {"maxUnavailable": written})


def test_a_window_at_the_users_own_partition_still_gives_that_back() -> None:
    opened = held((2, 1, 0))
    opened = patched(opened, window(opened, KEYS, UID, 2, 1))
    assert strategy(patched(opened, give_back(opened, KEYS))) == (2, 1, 0)


def entry(manager: str, second: int | None, fields: Any) -> ManagedField:
    time = None if second is None else f"2026-01-01T00:00:{second:02}Z"
    document = {"manager": manager, "fieldsV1": fields} | ({"time": time} if time else {})
    return msgspec.json.decode(msgspec.json.encode(document), type=ManagedField)


ROLLING = {"f:spec": {"f:rolloutStrategy": {"f:rollingUpdateConfiguration": {"f:partition": {}}}}}
OTHER = {"f:spec": {"f:replicas": {}}}


@pytest.mark.parametrize(
    ("entries", "manager"),
    [
        ([], "another client"),
        ([entry("hpa", 9, OTHER)], "another client"),
        ([entry("argocd", 3, ROLLING), entry("hpa", 9, OTHER)], "argocd"),
        ([entry("argocd", 3, ROLLING), entry("kubectl", 5, ROLLING)], "kubectl"),
        ([entry("kubectl", 5, ROLLING), entry("old", None, ROLLING)], "kubectl"),
        ([entry("", 5, ROLLING)], "another client"),
    ],
)
def test_the_last_writer_of_the_strategy_is_named(entries: list[ManagedField], manager: str) -> None:
    assert writer_of_strategy(lws(managed_fields=tuple(entries))) == manager


def test_another_group_has_another_mark() -> None:
    others = keys("rollouts.example.org")
    assert hold_record(held((2, 1, 0)), others) is None


@pytest.mark.parametrize("record", MADE_UP)
def test_a_record_that_somebody_has_made_up_is_none(record: str) -> None:
    before = lws(partition=HOLD, unavailable=2, annotations={KEYS.original: record})
    assert hold_record(before, KEYS) is None
    assert strategy(patched(before, hold(before, KEYS, UID))) == (HOLD, 2, 0)
    assert users_strategy(before, KEYS).partition == 0
    assert foreign_members(before, KEYS) == ()
    assert KEYS.original not in patched(before, give_back(before, KEYS)).metadata.annotations
