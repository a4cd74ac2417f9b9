"""Merge patches: what a patch made here does to an object is what RFC 7386 says, and nothing else."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.objects.json_patch import merge_patch

_CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "equal objects need none": ({"a": {"b": [1]}}, {"a": {"b": [1]}}, {}),
    "an added member": ({}, {"a": 1}, {"a": 1}),
    "an added empty object stays": ({}, {"a": {}}, {"a": {}}),
    "an added empty list stays": ({}, {"a": []}, {"a": []}),
    "a removed member is null": ({"a": 1, "b": 2}, {"b": 2}, {"a": None}),
    "a changed member": ({"a": 1}, {"a": 2}, {"a": 2}),
    "only the changed members of an object": (
        {"spec": {"x": 1, "y": {"z": 1, "w": 2}}},
        {"spec": {"x": 1, "y": {"z": 1, "w": 3}}},
        {"spec": {"y": {"w": 3}}},
    ),
    "an emptied object loses its members, not itself": ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": None}}),
    "lists are replaced whole": ({"a": [1, 2]}, {"a": [1, 3]}, {"a": [1, 3]}),
    "an item of a list that is an object too": ({"a": [{"b": 1, "c": 2}]}, {"a": [{"b": 1}]}, {"a": [{"b": 1}]}),
    "an emptied list": ({"a": [1]}, {"a": []}, {"a": []}),
    "an object instead of a value": ({"a": "x"}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    "an object instead of a list": ({"a": [1]}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    "a value instead of an object": ({"a": {"b": 1}}, {"a": "x"}, {"a": "x"}),
    "falsehood, zero and emptiness are values": (
        {"a": True, "b": 1, "c": "x"},
        {"a": False, "b": 0, "c": ""},
        {"a": False, "b": 0, "c": ""},
    ),
}


@pytest.mark.parametrize(("before", "after", "patch"), _CASES.values(), ids=_CASES)
def test_the_smallest_patch(before: dict[str, Any], after: dict[str, Any], patch: dict[str, Any]) -> None:
    kept = copy.deepcopy((before, after))
    assert merge_patch(before, after) == patch
    assert (before, after) == kept


def applied(target: Any, patch: Any) -> Any:
    """RFC 7386, section 2, as it is written there."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = applied(result.get(name), value)
    return result


# No nulls: to an API server they are absence. No booleans or floats, which Python finds equal to integers.
_VALUES = st.recursive(
    st.integers(0, 3) | st.sampled_from(["", "a", "b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(st.sampled_from("abc"), _VALUES, max_size=3)


@given(_OBJECTS, _OBJECTS)
def test_applying_the_patch_gives_the_other_object(before: dict[str, Any], after: dict[str, Any]) -> None:
    patch = merge_patch(before, after)
    assert applied(before, patch) == after
    assert (patch == {}) == (before == after)
