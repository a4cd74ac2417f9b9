"""What scripts change, and that exactly this is undone, whatever others have changed beside it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.traffic.custom.changes import aligned, changes, mentions, stands, undone

S, C, X = {"host": "s"}, {"host": "c", "weight": 20}, {"host": "x"}
SHARED = [{"host": "s", "weight": 80}, C]


#: What was there, what the script made of it, what others made of that, and what has to be left.
EDITS: dict[str, tuple[Any, Any, Any, Any]] = {
    "nothing": ({"a": 1}, {"a": 2}, {"a": 2}, {"a": 1}),
    "another member": ({"a": 1}, {"a": 2}, {"a": 2, "b": 3}, {"a": 1, "b": 3}),
    "the member itself": ({"a": 1}, {"a": 2}, {"a": 3}, {"a": 3}),
    "the member as before": ({"a": 1}, {"a": 2}, {"a": 1}, {"a": 1}),
    "the member gone": ({"a": 1}, {"a": 2}, {}, {}),
    "a member that was added": ({}, {"a": 2}, {"a": 2}, {}),
    "a member that was added, otherwise": ({}, {"a": 2}, {"a": 3}, {"a": 3}),
    "a member that was taken out": ({"a": 1}, {}, {}, {"a": 1}),
    "a member that was taken out, back": ({"a": 1}, {}, {"a": 5}, {"a": 5}),
    "false and 0 are two values": ({"a": False}, {"a": 0}, {"a": 0}, {"a": False}),
    "inside a map": ({"m": {"a": 1}}, {"m": {"a": 2}}, {"m": {"a": 2, "b": 1}}, {"m": {"a": 1, "b": 1}}),
    "a map that was added, with the server's defaults": ({}, {"m": {"a": 1}}, {"m": {"a": 1, "d": 2}}, {}),
    "a map instead of a value": ({"m": 1}, {"m": {"a": 1}}, {"m": {"a": 1, "d": 2}}, {"m": 1}),
    "an item of theirs at the end": ([S], SHARED, [*SHARED, X], [S, X]),
    "an item of theirs at the start": ([S], SHARED, [X, *SHARED], [X, S]),
    "an item of theirs in the middle": ([S], SHARED, [SHARED[0], X, C], [S, X]),
    "other members of an item": ([S], SHARED, [SHARED[0] | {"t": 1}, C], [S | {"t": 1}]),
    "the added item": ([S], SHARED, [SHARED[0], C | {"weight": 30, "t": 1}], [S]),
    "the added item gone": ([S], SHARED, [SHARED[0]], [S]),
    "the changed item gone": ([S], SHARED, [C], []),
    "the order": ([S, X], [*SHARED, X], [X, C, SHARED[0]], [X, S]),
    "an item that was taken out": ([S, X], [S], [S], [S, X]),
    "an item that was taken out, beside theirs": ([S, X], [X], [X, {"host": "y"}], [S, X, {"host": "y"}]),
    "a list of texts": (["a", "b"], ["a", "c", "b"], ["a", "c", "b", "d"], ["a", "b", "d"]),
    "the same item twice": ([S, S], [S, S, C], [S, S, C], [S, S]),
    "a list that was added": (None, [C], [C], None),
    "a list that was added, with an item of theirs": (None, [C], [C, X], [X]),
    "lists in items": (
        [{"match": "m"}, {"route": [S]}],
        [{"route": [{"host": "c"}], "match": "new"}, {"match": "m"}, {"route": SHARED}],
        [{"route": [{"host": "c"}], "match": "new"}, {"match": "m"}, {"route": [*SHARED, X]}, {"match": "theirs"}],
        [{"match": "m"}, {"route": [S, X]}, {"match": "theirs"}],
    ),
}


def under(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {} if value is None else {"list": value}


@pytest.mark.parametrize(("before", "after", "live", "left"), EDITS.values(), ids=EDITS)
def test_only_what_the_script_has_changed_is_undone(before: Any, after: Any, live: Any, left: Any) -> None:
    assert undone(under(live), changes(under(before), under(after))) == under(left)


#: What was there, what the script made of it, what others made of that: all of it still stands.
STANDING: dict[str, tuple[Any, Any, Any]] = {
    "as written": ([S], SHARED, SHARED),
    "an item of theirs": ([S], SHARED, [X, *SHARED]),
    "a member of theirs in an item": ([S], SHARED, [SHARED[0] | {"t": 1}, C]),
    "the server's defaults in an added item": ([S], SHARED, [SHARED[0], C | {"kind": "Service"}]),
    "the server's defaults in an added map": ({}, {"m": {"a": 1}}, {"m": {"a": 1, "d": 2}}),
    "an item of theirs gone": ([S, X], [*SHARED, X], SHARED),
    "the order": ([S, X], [*SHARED, X], [X, C, SHARED[0]]),
}
CHANGED: dict[str, tuple[Any, Any, Any]] = {
    "another value": ({"a": 1}, {"a": 2}, {"a": 3}),
    "the original": ({"a": 1}, {"a": 2}, {"a": 1}),
    "gone": ({"a": 1}, {"a": 2}, {}),
    "an added member gone": ({}, {"a": 2}, {}),
    "a member back": ({"a": 1}, {}, {"a": 1}),
    "another weight": ([S], SHARED, [{"host": "s", "weight": 30}, C]),
    "another weight of the added item": ([S], SHARED, [SHARED[0], C | {"weight": 70}]),
    "the added item gone": ([S], SHARED, [SHARED[0]]),
    "an item back": ([S, X], [S], [S, X]),
    "a list as before": ([S], SHARED, [S]),
    "no list any more": ([S], SHARED, None),
}


@pytest.mark.parametrize(("before", "after", "live"), STANDING.values(), ids=STANDING)
def test_what_others_add_is_no_drift(before: Any, after: Any, live: Any) -> None:
    assert stands(under(live), changes(under(before), under(after)))


@pytest.mark.parametrize(("before", "after", "live"), CHANGED.values(), ids=CHANGED)
def test_what_others_change_of_it_is_drift_and_does_not_count_as_the_original(
    before: Any, after: Any, live: Any
) -> None:
    done = changes(under(before), under(after))
    assert not stands(under(live), done)
    if live is not None:
        assert undone(under(live), done, again=True) == under(before)


_scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["a", "b", "svc", "svc-canary"])
_json = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=12,
)
_objects = st.dictionaries(st.sampled_from(["spec", "labels", "x"]), _json, max_size=3)


@given(_objects, _objects)
def test_what_nobody_else_has_touched_comes_back_exactly(before: dict[str, Any], after: dict[str, Any]) -> None:
    done = changes(before, after)
    assert stands(after, done)
    assert undone(after, done) == undone(after, done, again=True) == before


@given(_objects, _objects, _objects)
def test_undoing_is_done_once(before: dict[str, Any], after: dict[str, Any], live: dict[str, Any]) -> None:
    """Nothing that others write makes it fail, and what is undone stays undone where it was a change."""
    done = changes(before, after)
    once = undone(live, done)
    assert isinstance(once, dict)
    if before == after:
        assert once == live


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("api-canary", True),
        ("api-canary.prod.svc.cluster.local", True),
        ("api-canary:8080", True),
        ("api-canary-2", False),
        ("my-api-canary", False),
        ({"a": [{"b": "api-canary"}]}, True),
        (7, False),
    ],
)
def test_a_service_is_named_by_its_name_or_a_host_that_begins_with_it(value: Any, named: bool) -> None:
    assert mentions(value, "api-canary") is named


@pytest.mark.parametrize(
    ("before", "returned", "meant"),
    [
        ({"a": []}, {"a": None}, {"a": []}),
        ({"a": {}}, {"a": None}, {"a": {}}),
        ({"a": [1]}, {"a": None}, {}),
        ({}, {"a": None}, {}),
        ({"a": None}, {}, {"a": None}),
        ({"n": 2**60 + 1}, {"n": float(2**60 + 1)}, {"n": 2**60 + 1}),
        ({"n": 1.5}, {"n": 2}, {"n": 2}),
        ({"n": True}, {"n": 1}, {"n": 1}),
        ({"l": [{"a": {}}, {"b": []}]}, {"l": [{"a": None}, {"b": None}]}, {"l": [{"a": {}}, {"b": []}]}),
    ],
)
def test_what_lua_cannot_tell_apart_is_as_it_was(before: Any, returned: Any, meant: Any) -> None:
    found = aligned(before, returned)
    assert found == meant
    assert [type(each) for each in found.values()] == [type(each) for each in meant.values()]
