"""Marks: several Rollouts on one object, deterministic texts, and whatever people put into the annotation."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.traffic import marks
from tests.traffic.build import KEYS, A, B, canonical, property_test, service

MARK = {"written": {"b": "2", "a": "1"}, "original": {"a": None}}


def test_a_mark_is_read_back_and_goes_without_a_trace() -> None:
    before = service()
    marked = marks.put(before, A, KEYS, MARK)
    assert marks.read(marked, A, KEYS) == MARK
    assert canonical(marks.without(marked, A, KEYS)) == canonical(before)


def test_the_same_marks_give_the_same_text_in_any_order() -> None:
    one = marks.put(marks.put(service(), A, KEYS, MARK), B, KEYS, {"x": 1})
    other = marks.put(marks.put(service(), B, KEYS, {"x": 1}), A, KEYS, dict(reversed(MARK.items())))
    assert one["metadata"]["annotations"][KEYS.original] == other["metadata"]["annotations"][KEYS.original]


def test_the_mark_of_another_rollout_stays_and_is_named() -> None:
    both = marks.put(marks.put(service(), A, KEYS, MARK), B, KEYS, {"x": 1})
    assert marks.others(both, A, KEYS) == (B,)
    assert marks.others(marks.without(both, A, KEYS), A, KEYS) == (B,)
    assert marks.read(marks.without(both, A, KEYS), B, KEYS) == {"x": 1}


@pytest.mark.parametrize("annotations", [None, {}])
def test_a_map_of_annotations_that_was_made_for_the_mark_goes_with_it(annotations: dict[str, str] | None) -> None:
    before = {"metadata": {"name": "x"} | ({} if annotations is None else {"annotations": annotations})}
    assert marks.without(marks.put(before, A, KEYS, MARK), A, KEYS) == {"metadata": {"name": "x"}}


def test_an_object_without_marks_is_left_alone() -> None:
    before = service()
    assert marks.without(before, A, KEYS) is before


@property_test
@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner)).map(repr))
def test_an_annotation_that_nobody_can_read_is_no_mark_and_is_replaced(text: str) -> None:
    before = service()
    before["metadata"]["annotations"][KEYS.original] = text
    assert marks.read(before, A, KEYS) is None
    assert marks.others(before, A, KEYS) == ()
    assert marks.read(marks.put(before, A, KEYS, MARK), A, KEYS) == MARK
    assert KEYS.original not in marks.without(before, A, KEYS)["metadata"]["annotations"]


def test_nothing_given_is_changed() -> None:
    before = marks.put(service(), A, KEYS, MARK)
    kept = copy.deepcopy(before)
    marks.put(before, B, KEYS, MARK)
    marks.without(before, A, KEYS)
    assert before == kept
