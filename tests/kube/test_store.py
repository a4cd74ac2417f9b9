"""The cache's bookkeeping: which of two versions counts, what a deletion means, what a list says."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.kube.store import Change, Store
from rollout_lws.objects.workloads import Pod
from tests.kube.fakes import pod

_decode = msgspec.json.Decoder(Pod).decode


def made(*args: Any, **kwargs: Any) -> Pod:
    return _decode(json.dumps(pod(*args, **kwargs)))


def told(change: Change[Pod] | None) -> tuple[str | None, str | None] | None:
    """The two versions of a change."""
    if change is None:
        return None
    before, after = (None if each is None else each.metadata.resource_version for each in change)
    return before, after


@pytest.fixture
def store() -> Store[Pod]:
    return Store({"app": lambda each: [each.metadata.labels["app"]] if "app" in each.metadata.labels else []})


def version_of(store: Store[Pod], name: str) -> str | None:
    known = store.get("ns", name)
    return None if known is None else known.metadata.resource_version


def test_a_newer_version_replaces_an_older_one_and_never_the_other_way_round(store: Store[Pod]) -> None:
    assert told(store.put(made("a", 9))) == (None, "9")
    assert told(store.put(made("a", 10))) == ("9", "10")
    assert store.put(made("a", 9)) is None
    assert store.put(made("a", 10)) is None
    assert version_of(store, "a") == "10"


def test_versions_that_are_no_numbers_are_taken_as_they_come(store: Store[Pod]) -> None:
    store.put(made("a", "zz"))
    assert told(store.put(made("a", "aa"))) == ("zz", "aa")


def test_a_late_answer_to_a_write_before_the_deletion_brings_nothing_back(store: Store[Pod]) -> None:
    store.put(made("a", 5))
    assert told(store.remove(made("a", 8))) == ("5", None)
    assert store.put(made("a", 7)) is None
    assert version_of(store, "a") is None


def test_a_deletion_of_what_was_never_known_is_remembered_too(store: Store[Pod]) -> None:
    assert store.remove(made("a", 8)) is None
    assert store.put(made("a", 7)) is None


def test_an_object_that_left_the_selector_may_come_back_as_itself(store: Store[Pod]) -> None:
    store.put(made("a", 5))
    store.remove(made("a", 8))
    assert told(store.put(made("a", 9))) == (None, "9")


def test_an_object_that_is_gone_for_good_never_comes_back_whatever_its_version(store: Store[Pod]) -> None:
    store.put(made("a", 5))
    assert told(store.remove_uid("uid-a")) == ("5", None)
    assert store.put(made("a", 7)) is None
    assert store.remove(made("a", 8)) is None
    assert store.put(made("a", 9)) is None
    assert told(store.put(made("a", 10, uid="another"))) == (None, "10")


def test_a_uid_that_nobody_knows_removes_nothing(store: Store[Pod]) -> None:
    store.put(made("a", 5))
    assert store.remove_uid("uid-b") is None
    assert version_of(store, "a") == "5"


def test_the_late_deletion_of_a_predecessor_leaves_its_successor(store: Store[Pod]) -> None:
    store.put(made("a", 5, uid="first"))
    store.put(made("a", 9, uid="second"))
    assert store.remove(made("a", 8, uid="first")) is None
    assert version_of(store, "a") == "9"


def test_a_late_leave_of_the_selector_does_not_remove_a_newer_version(store: Store[Pod]) -> None:
    store.put(made("a", 12))
    assert store.remove(made("a", 10)) is None
    assert told(store.put(made("a", 13))) == ("12", "13")


def test_a_deletion_with_the_last_known_version_removes_it(store: Store[Pod]) -> None:
    store.put(made("a", 5))
    assert told(store.remove(made("a", 5))) == ("5", None)


def test_a_list_tells_only_what_differs(store: Store[Pod]) -> None:
    for name, version in (("same", 1), ("old", 2), ("gone", 3)):
        store.put(made(name, version))
    changes = store.replace([made("same", 1), made("old", 6), made("new", 7)], "10")
    assert [told(change) for change in changes] == [("2", "6"), (None, "7"), ("3", None)]
    assert {each.metadata.name for each in store.all()} == {"same", "old", "new"}


def test_what_is_newer_than_the_list_stays_though_the_list_does_not_have_it(store: Store[Pod]) -> None:
    store.put(made("a", 12))
    assert store.replace([], "10") == []
    assert version_of(store, "a") == "12"


def test_after_a_list_without_it_no_version_up_to_the_list_returns(store: Store[Pod]) -> None:
    store.put(made("a", 3))
    store.replace([], "10")
    assert store.put(made("a", 9)) is None
    assert told(store.put(made("a", 11))) == (None, "11")


def test_an_object_made_anew_between_two_lists_is_told_as_gone_and_made(store: Store[Pod]) -> None:
    store.put(made("a", 3, uid="first"))
    changes = store.replace([made("a", 8, uid="second")], "10")
    assert [told(change) for change in changes] == [("3", None), (None, "8")]


def test_indexes_follow_labels_and_deletions(store: Store[Pod]) -> None:
    store.put(made("a", 1, labels={"app": "x"}))
    store.put(made("b", 2, labels={"app": "x"}))
    store.put(made("a", 3, labels={"app": "y"}))
    assert [each.metadata.name for each in store.by_index("app", "x")] == ["b"]
    assert [each.metadata.name for each in store.by_index("app", "y")] == ["a"]
    store.remove(made("b", 4))
    assert store.by_index("app", "x") == []


_events = st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), min_size=1, max_size=12)


@given(_events, st.randoms(use_true_random=False))
def test_late_and_repeated_answers_never_change_what_the_watch_ends_at(
    history: list[tuple[str, bool]], chance: Any
) -> None:
    """The watch tells a true history in order; answers to writes of it come at any moment after they happened."""
    store: Store[Pod] = Store({})
    truth: dict[str, int] = {}
    for version, (name, lives) in enumerate(history, start=1):
        if lives:
            truth[name] = version
        else:
            truth.pop(name, None)
    answers: list[Pod] = []
    for version, (name, lives) in enumerate(history, start=1):
        event = made(name, version, uid="same")
        if lives:
            answers.append(event)
        for _ in range(chance.randint(0, 2)):
            if answers:
                store.put(chance.choice(answers))
        if lives:
            store.put(event)
        else:
            store.remove(event)
    for late in answers:
        store.put(late)
    assert {each.metadata.name: int(each.metadata.resource_version) for each in store.all()} == truth
