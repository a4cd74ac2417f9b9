"""The canary LWS's life: made once, scaled by one number, and taken away only when nothing of it is left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rollout_lws.capacity.base import Scaling
from rollout_lws.capacity.extra_workload import ExtraWorkload, remove, still_ending
from rollout_lws.capacity.known import EXTRA_WORKLOAD
from rollout_lws.capacity.partition_update import PartitionUpdate
from rollout_lws.capacity.result import CapacityResult
from rollout_lws.objects.meta import OwnerReference
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.objects.writes import Create, Delete, Patch
from rollout_lws.workload.facts import Facts, NamedObject
from tests.workload.build import KEYS, NAMESPACE, NOW, facts, lws, pod

RECORD = "uid-record"
OWNER = {"apiVersion": "a/v1", "kind": "BatchRelease", "name": "llama", "uid": RECORD, "controller": True}
NAME = "llama-canary"


def canary(replicas: int = 2, *leaders: Any, **metadata: Any) -> Facts:
    owner = OwnerReference(kind="BatchRelease", uid=metadata.pop("owner", RECORD), controller=True)
    given = {"owner_references": (owner,), "finalizers": (KEYS.canary_finalizer,), "name": NAME, **metadata}
    return facts(lws(replicas, **given), *leaders)


def scaled(standing: Facts | None, wanted: int, remains: Any = (), **more: Any) -> CapacityResult:
    own = PartitionUpdate(facts(lws()), KEYS, "uid", NOW, 0, EXTRA_WORKLOAD)
    asked = Scaling(
        wanted=wanted,
        own=own,
        new=(),
        stable_revision="old",
        new_revision="new",
        may_open=True,
        waits="",
        canary=standing,
        remains=remains,
        owner=OWNER,
        metadata_patch=None,
    )
    return ExtraWorkload().scale(replace(asked, **more))


def test_the_first_groups_come_with_the_lws() -> None:
    result = scaled(None, 3, metadata_patch={"labels": {"track": "canary"}})
    (write,) = result.writes
    assert isinstance(write, Create)
    assert (write.resource, write.namespace, write.name) == (LEADER_WORKER_SETS, NAMESPACE, NAME)
    assert write.body["spec"]["replicas"] == 3
    assert write.body["metadata"]["ownerReferences"] == [OWNER]
    template = write.body["spec"]["leaderWorkerTemplate"]
    assert template["leaderTemplate"]["metadata"]["labels"] == {"track": "canary"}
    assert not result.done


def test_nothing_is_made_until_what_an_earlier_canary_left_is_gone() -> None:
    remains = [NamedObject("Pod", f"{NAME}-{index}") for index in range(5)]
    result = scaled(None, 3, remains)
    assert (result.writes, result.done) == ((), False)
    assert result.message == (
        f"waiting until what is left of an earlier {NAME} is gone: Pod {NAME}-0, Pod {NAME}-1, Pod {NAME}-2"
    )


@pytest.mark.parametrize("wanted", [1, 3, 10])
def test_another_number_of_groups_is_one_conditional_patch(wanted: int) -> None:
    (write,) = scaled(canary(2), wanted).writes
    assert isinstance(write, Patch)
    assert (write.name, write.body) == (NAME, {"spec": {"replicas": wanted}})
    assert (write.uid, write.generation) == (f"uid-{NAME}", 3)


def test_the_right_number_of_groups_needs_no_write() -> None:
    assert scaled(canary(2), 2) == CapacityResult(done=True)


@pytest.mark.parametrize(
    "standing",
    [canary(2, deletion_timestamp=NOW), canary(2, owner="uid-of-an-earlier-record"), canary(2, owner_references=())],
    ids=["deleted by hand", "of another record", "nobody's"],
)
def test_a_canary_that_is_not_this_releases_goes_before_one_is_made(standing: Facts) -> None:
    result = scaled(standing, 2)
    assert result.writes == remove(standing, KEYS).writes != ()
    assert not result.done
    assert result.message == f"LeaderWorkerSet {NAME} is going; it will be made again"


def test_what_is_gone_is_done() -> None:
    assert remove(None, KEYS) == CapacityResult(done=True)


def test_a_canary_goes_by_its_groups_first() -> None:
    result = remove(canary(2, pod(0), pod(1)), KEYS)
    (write,) = result.writes
    assert isinstance(write, Patch)
    assert (write.body, result.done) == ({"spec": {"replicas": 0}, "metadata": {"finalizers": None}}, False)
    assert write.resource_version is not None, "a finalizer that others add meanwhile would be lost"


def test_its_object_stays_until_no_group_stands() -> None:
    result = remove(canary(0, pod(0), pod(1, terminating=True)), KEYS)
    assert (result.writes, result.done) == ((), False)
    assert result.message == f"waiting for 1 groups of canary {NAME} to go"


@pytest.mark.parametrize("leaders", [(), (pod(0, terminating=True),)])
def test_one_at_zero_that_is_still_held_goes_and_is_let_go_of(leaders: Any) -> None:
    result = remove(canary(0, *leaders), KEYS)
    release, delete = result.writes
    assert isinstance(delete, Delete) and isinstance(release, Patch)
    assert (delete.name, delete.uid, delete.propagation) == (NAME, f"uid-{NAME}", "Background")
    assert release.body == {"metadata": {"finalizers": None}}
    assert release.resource_version is not None, "a finalizer that others add meanwhile would be lost"
    assert not result.done


def test_finalizers_of_others_stay() -> None:
    result = remove(canary(0, finalizers=("a/b", KEYS.canary_finalizer, "c/d")), KEYS)
    assert result.writes[0].body == {"metadata": {"finalizers": ["a/b", "c/d"]}}  # type: ignore[union-attr]


def test_a_canary_deleted_by_hand_is_let_go_of_without_a_second_deletion() -> None:
    (write,) = remove(canary(2, pod(0), deletion_timestamp=NOW), KEYS).writes
    assert isinstance(write, Patch)
    assert write.body == {"metadata": {"finalizers": None}}


def test_one_that_others_still_hold_is_waited_for() -> None:
    result = remove(canary(0, deletion_timestamp=NOW, finalizers=("a/b",)), KEYS)
    assert (result.writes, result.done, result.message) == ((), False, f"canary {NAME} is going")


@pytest.mark.parametrize(
    ("remains", "groups"),
    [
        ([("Pod", f"{NAME}-1"), ("Pod", f"{NAME}-1-2"), ("StatefulSet", f"{NAME}-0")], ("0", "1")),
        ([("StatefulSet", NAME), ("Service", NAME), ("ControllerRevision", f"{NAME}-1")], ()),
        ([("LeaderWorkerSet", NAME), ("Pod", f"{NAME}-1")], ()),
        ([], ()),
    ],
)
def test_groups_whose_pods_still_end_are_told_by_what_is_left_of_them(remains: Any, groups: Any) -> None:
    assert still_ending(lws(), [NamedObject(*each) for each in remains]) == groups
