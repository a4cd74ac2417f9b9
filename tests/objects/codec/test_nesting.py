"""What is nested too deep costs the object that it is in its depths, and no other object anything."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.objects.codec.nesting import MOST_NESTED, pruned, read

#: As deep as an API server reads JSON, and far deeper.
DEEP = (10_000, 200_000)


def nested(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("{}", "{}"),
        ('{"a": 1, "b": [2]}', '{"a": 1, "b": [2]}'),
        ('{"a": {"b": {"c": 1}}, "d": 2}', '{"a": {"b": null}, "d": 2}'),
        ("[[[1], [2]], 3, [[4]]]", "[[null, null], 3, [null]]"),
        ('{"a": [{}, "x"]}', '{"a": [null, "x"]}'),
        (r'{"a": ["[[[", "\"]{", "\\"]}', r'{"a": ["[[[", "\"]{", "\\"]}'),
        ('{"[": ["{"]}', '{"[": ["{"]}'),
        ('"["', '"["'),
        ("1", "1"),
    ],
)
def test_what_is_below_two_levels_is_null(text: str, kept: str) -> None:
    assert pruned(text.encode(), 2).decode() == kept


def without_depths(value: Any, levels: int) -> Any:
    if not isinstance(value, dict | list):
        return value
    if levels == 0:
        return None
    if isinstance(value, list):
        return [without_depths(each, levels - 1) for each in value]
    return {key: without_depths(each, levels - 1) for key, each in value.items()}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES, st.integers(0, 5), st.booleans())
def test_pruning_is_what_it_would_be_to_the_value(value: Any, levels: int, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert json.loads(pruned(text, levels)) == without_depths(value, levels)


def test_what_can_be_read_is_read_as_a_whole() -> None:
    text = nested(MOST_NESTED + 50)
    assert read(msgspec.json.decode, text) == json.loads(text)


@pytest.mark.parametrize("levels", DEEP)
def test_what_cannot_is_read_without_its_depths(levels: int) -> None:
    text = b'{"metadata":{"name":"a"},"data":' + nested(levels) + b',"revision":3}'
    with pytest.raises(RecursionError):
        msgspec.json.decode(text)
    found = read(msgspec.json.decode, text)
    assert (found["metadata"], found["revision"]) == ({"name": "a"}, 3)
    assert found["data"] == without_depths(json.loads(nested(MOST_NESTED)), MOST_NESTED - 1)


def test_what_is_no_json_stays_none() -> None:
    for text in (b'{"a":' * 20_000, b"]" * 20_000, b'"' + b"[" * 20_000):
        with pytest.raises(msgspec.DecodeError):
            read(msgspec.json.decode, text)
