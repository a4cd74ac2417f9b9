"""Revisions: what LWS has acted on, what a recreated group would carry, and the versions that are remembered."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace as change

from rollout_lws.targets.table import stored_version
from rollout_lws.workload.revisions import (
    HISTORY_LIMIT,
    RECORDS_AT_ONCE,
    SPARE_RECORDS,
    current_revision,
    history_body,
    history_name,
    is_empty,
    leaders_revisions,
    lws_revision,
    needless_records,
    observed,
    recorded_version,
    set_is_settled,
    surplus_history,
    target_revision,
)
from tests.workload.build import KEYS, NEW, OLD, WORKER, facts, leader_set, lws, pod, revision_record, worker_set

OWNER = {"apiVersion": "a/v1", "kind": "Rollout", "name": "llama", "uid": "u", "controller": True}
MEMBERS = {
    "leaderWorkerTemplate": {"size": 2, "workerTemplate": WORKER},
    "networkConfig": {"subdomainPolicy": "Shared"},
}


@pytest.mark.parametrize(
    ("workload", "leaders", "seen"),
    [
        (lws(), leader_set(), True),
        (lws(observed=2), leader_set(), False),
        (lws(observed=4), leader_set(), True),
        (lws(observed=None), leader_set(), False),
        (lws(), leader_set(observed=4), False),
        (lws(), leader_set(observed=6), True),
        (lws(), None, False),
    ],
)
def test_a_change_is_observed_once_both_controllers_have_acted_on_it(workload: Any, leaders: Any, seen: bool) -> None:
    assert observed(facts(workload, leader_set=leaders)) is seen


@pytest.mark.parametrize(
    ("leaders", "parts", "current"),
    [
        # The StatefulSet's own record of the name says which of LWS's revisions it stands for.
        ((), {"leader_set": leader_set(NEW, current="set-old", update="set-new")}, OLD),
        ((), {"leader_set": leader_set(NEW, current="set-new", update="set-new")}, NEW),
        # Without that record a leader made from it does,
        (
            (pod(0, labels={"controller-revision-hash": "set-old"}), pod(1, revision=NEW)),
            {"leader_set": leader_set(NEW, current="set-old", update="set-new"), "set_revisions": ()},
            OLD,
        ),
        # and without either a set that holds one version only.
        ((), {"leader_set": leader_set(NEW, current="set-new", update="set-new"), "set_revisions": ()}, NEW),
        ((), {"leader_set": leader_set(NEW, current="set-old", update="set-new"), "set_revisions": ()}, ""),
        ((), {"leader_set": leader_set(NEW, current="", update=""), "set_revisions": ()}, ""),
        ((), {"leader_set": None}, ""),
    ],
)
def test_what_a_recreated_group_comes_back_with(leaders: Any, parts: dict[str, Any], current: str) -> None:
    assert current_revision(facts(lws(), *leaders, **parts)) == current


@pytest.mark.parametrize(
    ("current", "update", "settled"), [("a", "a", True), ("a", "b", False), ("", "", False), ("", "a", False)]
)
def test_a_set_is_settled_when_it_holds_one_version(current: str, update: str, settled: bool) -> None:
    assert set_is_settled(facts(lws(), leader_set=leader_set(current=current, update=update))) is settled


@pytest.mark.parametrize(
    ("workload", "parts", "empty"),
    [
        (lws(), {"leader_set": leader_set(current="b", update="b")}, True),
        (lws(), {"leader_set": leader_set(current="a", update="b")}, False),
        (lws(), {"leader_set": leader_set(current="b", update="b"), "leaders": (pod(0, terminating=True),)}, False),
        (lws(observed=2), {"leader_set": leader_set(current="b", update="b")}, False),
        (lws(), {"leader_set": leader_set(current="b", update="b", observed=4)}, False),
        (lws(), {"leader_set": None}, False),
    ],
)
def test_an_lws_is_empty_when_the_next_group_can_only_be_of_its_template(
    workload: Any, parts: dict[str, Any], empty: bool
) -> None:
    leaders = parts.get("leaders", ())
    assert is_empty(facts(workload, *leaders, leader_set=parts["leader_set"])) is empty


def test_without_a_leader_set_nothing_is_settled_or_aimed_at() -> None:
    nothing = facts(lws(), leader_set=None)
    assert not set_is_settled(nothing)
    assert target_revision(nothing) == ""


def test_the_target_is_the_revision_that_lws_gave_the_leader_set() -> None:
    assert target_revision(facts(lws(), pod(0, revision=OLD), leader_set=leader_set(NEW))) == NEW


def test_groups_on_their_way_out_still_count_as_a_version_that_exists() -> None:
    assert leaders_revisions(facts(lws(), pod(0), pod(1, revision=NEW, terminating=True))) == {OLD, NEW}


def test_of_several_records_of_a_revision_the_last_one_that_stays_is_taken() -> None:
    first, last = revision_record("a", OLD, 1), revision_record("b", OLD, 5)
    going, other = revision_record("c", OLD, 7, terminating=True), revision_record("d", NEW, 9)
    known = facts(lws(), revisions=(first, last, going, other))
    assert lws_revision(known, OLD) is last
    assert lws_revision(known, "unheard-of") is None
    assert lws_revision(facts(lws(), revisions=(going,)), OLD) is None


def test_the_record_of_lws_holds_the_version_without_its_patch_markers() -> None:
    data = {"spec": {name: {"$patch": "replace", **member} for name, member in MEMBERS.items()}}
    assert recorded_version(revision_record("a", OLD, data=data)) == stored_version(MEMBERS)


@pytest.mark.parametrize("data", [{}, [], "x", 7, {"spec": None}, {"spec": []}, {"spec": {"templates": {}}}])
def test_a_record_of_another_shape_holds_no_version(data: Any) -> None:
    assert recorded_version(revision_record("a", OLD, data=data)) is None


def test_a_remembered_version_is_read_back_as_it_was() -> None:
    version = stored_version(MEMBERS)
    made = history_body(version, KEYS, rollout="llama", namespace="prod", owner=OWNER, number=4, revision=OLD)
    assert made["metadata"] == {
        "name": f"llama-{version.template_hash}",
        "namespace": "prod",
        "labels": {"rollouts.kruise.io/history": "llama"},
        "annotations": {
            "rollouts.kruise.io/template-hash": version.template_hash,
            "rollouts.kruise.io/revision": OLD,
        },
        "ownerReferences": [OWNER],
    }
    assert (made["apiVersion"], made["kind"], made["revision"]) == ("apps/v1", "ControllerRevision", 4)
    assert recorded_version(revision_record("a", OLD, data=made["data"])) == version


def test_each_version_of_a_rollout_has_its_own_name() -> None:
    assert history_name("llama", "0123456789") == "llama-0123456789"


def remembered(*numbers: int) -> tuple[Any, ...]:
    return tuple(
        revision_record(f"r{number}", "", number, **{KEYS.template_hash: f"hash{number}"}) for number in numbers
    )


@pytest.mark.parametrize(
    ("numbers", "stable", "surplus"),
    [
        (range(1, 1), 1, []),
        (range(1, HISTORY_LIMIT + 1), 1, []),
        (range(1, HISTORY_LIMIT + 2), 11, ["r1"]),
        (range(1, HISTORY_LIMIT + 2), 1, []),
        (range(1, HISTORY_LIMIT + 4), 2, ["r1", "r3"]),
        (range(HISTORY_LIMIT + 3, 0, -1), 0, ["r1", "r2", "r3"]),
    ],
)
def test_ten_versions_are_kept_and_the_stable_one_always(numbers: Any, stable: int, surplus: list[str]) -> None:
    history = remembered(*numbers)
    found = surplus_history(history, next((each for each in history if each.revision == stable), None))
    assert sorted(each.metadata.name for each in found) == surplus


def records(*revisions: str) -> tuple[Any, ...]:
    """LWS's records, the oldest first: the n-th is called ``#n``."""
    return tuple(revision_record(f"#{number}", each, number) for number, each in enumerate(revisions, start=1))


def spare(count: int = SPARE_RECORDS) -> tuple[str, ...]:
    return tuple(f"spare-{number}" for number in range(count))


PENDING = leader_set(NEW, current="set-old", update="set-new")
ROLLED = leader_set(NEW, current="set-new", update="set-new")


@pytest.mark.parametrize(
    ("stored", "leaders", "parts", "gone"),
    [
        # As many as there is room for stay, whatever they are.
        ((*spare(), OLD), (pod(0),), {}, []),
        (("a", "b", *spare(), OLD), (pod(0),), {}, ["#1", "#2"]),
        # What stable is stays at any age, and what the LWS asks for,
        ((OLD, "a", *spare()), (pod(0),), {}, ["#2"]),
        ((OLD, "a", *spare(), NEW), (pod(0, revision=NEW),), {"leader_set": ROLLED}, ["#2"]),
        ((NEW, "a", *spare(), OLD), (pod(0),), {"leader_set": PENDING}, ["#2"]),
        # what a group carries, one that is going too, or its workers do,
        (("third", "a", *spare(), OLD), (pod(0), pod(1, revision="third")), {}, ["#2"]),
        (("third", "a", *spare(), OLD), (pod(0), pod(1, revision="third", terminating=True)), {}, ["#2"]),
        (
            ("third", "a", *spare(), OLD),
            (pod(0),),
            {"worker_sets": (worker_set(pod(0), revision="third"),)},
            ["#2"],
        ),
        # and what a leader would come back with.
        (
            ("third", "a", *spare(), OLD),
            (pod(0),),
            {"leader_set": leader_set(OLD, current="set-x"), "set_revisions": (revision_record("set-x", "third"),)},
            ["#2"],
        ),
        # Of several records of one revision LWS reads the newest.
        ((OLD, "a", OLD), (pod(0),), {}, ["#1"]),
        (("a", OLD, *spare(), OLD), (pod(0),), {}, ["#2", "#1"]),
        ((*spare(), OLD), (), {}, []),
        (("a", *spare(), OLD), (), {}, ["#1"]),
        # Nothing goes while it cannot be told what is needed.
        (("a", *spare(), OLD), (pod(0),), {"leader_set": leader_set(observed=4)}, []),
        (("a", *spare(), OLD), (pod(0),), {"leader_set": None}, []),
        (("a", *spare(), OLD), (), {"leader_set": leader_set(current="x", update="y"), "set_revisions": ()}, []),
        ((*spare(40), OLD), (pod(0),), {}, [f"#{number}" for number in range(1, RECORDS_AT_ONCE + 1)]),
    ],
)
def test_records_that_no_group_can_need_are_needless_beyond_a_few(
    stored: tuple[str, ...], leaders: Any, parts: dict[str, Any], gone: list[str]
) -> None:
    found = needless_records(facts(lws(), *leaders, revisions=records(*stored), **parts), OLD)
    assert [each.metadata.name for each in found] == gone


class Counting(dict[str, str]):
    """Labels that count how often they are asked."""

    asked = 0

    def get(self, key: str, default: Any = None) -> Any:
        Counting.asked += 1
        return super().get(key, default)


def test_as_many_groups_as_records_are_no_work_to_look_through() -> None:
    """Whoever may create ControllerRevisions and pods may give each a revision of its own."""
    names = [f"r{number}" for number in range(500)]
    leaders = (pod(index, revision=name) for index, name in enumerate(names))
    stored = [
        change(each, metadata=change(each.metadata, labels=Counting(each.metadata.labels)))
        for each in records(*names, OLD, *spare())
    ]
    seen = facts(lws(500), *leaders, revisions=tuple(stored))
    Counting.asked = 0
    assert needless_records(seen, OLD) == []
    assert 0 < Counting.asked <= 10 * len(stored)


def test_no_record_is_needless_before_lws_has_acted_on_its_spec() -> None:
    assert needless_records(facts(lws(observed=2), pod(0), revisions=records("a", *spare(), OLD)), OLD) == []


def test_a_record_that_is_going_already_is_left_to_it() -> None:
    going = revision_record("going", "a", 0, terminating=True)
    found = needless_records(facts(lws(), pod(0), revisions=(going, *records("b", *spare(), OLD))), OLD)
    assert [each.metadata.name for each in found] == ["#1"]
