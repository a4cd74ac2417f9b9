"""The BatchRelease: what Kruise's tools read of a release, written once for each change and not at all without one."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from rollout_lws.api import BatchRelease, BatchReleasePhase, Rollout, batch_releases
from rollout_lws.capacity.batch_release import (
    Wanted,
    create,
    dismiss,
    owner_reference,
    plan,
    update_spec,
    update_status,
)
from rollout_lws.capacity.batches import Batch
from rollout_lws.objects.writes import Create, Delete, Patch, Write
from tests.workload.build import KEYS, NEW, NOW, OLD

REF = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "llama"}
STEPS = [{"replicas": 1}, {"replicas": "50%", "pause": {"duration": 60}}, {"replicas": "100%"}]
LATER = NOW + timedelta(minutes=5)


def rollout(**canary: Any) -> Rollout:
    spec = {"workloadRef": REF, "strategy": {"canary": {"steps": STEPS, **canary}}}
    return Rollout.model_validate({"metadata": {"name": "llama", "namespace": "prod", "uid": "u"}, "spec": spec})


def wanted(partition: int | None = 0, **changes: Any) -> Wanted:
    given = {"rollout_id": "7", "stable_revision": OLD, "update_revision": NEW, "replicas": 4, **changes}
    return Wanted(partition=partition, phase=given.pop("phase", BatchReleasePhase.PROGRESSING), **given)


def stored(body: dict[str, Any], status: dict[str, Any] | None = None, **metadata: Any) -> BatchRelease:
    """The record as an API server gives it back."""
    meta = {**body["metadata"], "uid": "uid-record", "resourceVersion": "5", "generation": 2, **metadata}
    return BatchRelease.model_validate({**body, "metadata": meta} | ({"status": status} if status else {}))


def made(source: Rollout, *, partition: int | None = 0, **metadata: Any) -> BatchRelease:
    return stored(dict(create(source, wanted(partition), KEYS, {"uid": "u"}).body), **metadata)


def test_it_is_made_like_its_rollout_and_never_blocks_its_deletion() -> None:
    source = rollout()
    owner = owner_reference(source, "Rollout", "rollouts.kruise.io/v1beta1")
    write = create(source, wanted(), KEYS, owner)
    assert isinstance(write, Create)
    assert (write.resource, write.namespace, write.name) == (batch_releases(), "prod", "llama")
    assert write.body["metadata"]["finalizers"] == ["rollouts.kruise.io/batch-release-finalizer"]
    assert write.body["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "rollouts.kruise.io/v1beta1",
            "kind": "Rollout",
            "name": "llama",
            "uid": "u",
            "controller": True,
            "blockOwnerDeletion": False,
        }
    ]
    assert write.body["spec"] == {
        "workloadRef": REF,
        "releasePlan": {
            "batches": [{"canaryReplicas": 1}, {"canaryReplicas": "50%"}, {"canaryReplicas": "100%"}],
            "batchPartition": 0,
            "rolloutID": "7",
            "rollingStyle": "Canary",
            "enableExtraWorkloadForCanary": True,
            "finalizingPolicy": "WaitResume",
        },
    }


@pytest.mark.parametrize(
    "canary",
    [
        {},
        {"failureThreshold": 0},
        {"failureThreshold": "25%"},
        {"patchPodTemplateMetadata": {"labels": {"a": "b"}}},
        {"patchPodTemplateMetadata": {"labels": {}, "annotations": {"a": "b"}}},
        {"patchPodTemplateMetadata": {"labels": {}, "annotations": {}}},
        {"patchPodTemplateMetadata": {"labels": {}}},
    ],
)
@pytest.mark.parametrize("partition", [0, 2, None])
def test_a_record_that_says_what_is_wanted_is_not_written_again(canary: dict[str, Any], partition: int | None) -> None:
    source = rollout(**canary)
    record = made(source, partition=partition)
    assert update_spec(record, source, wanted(partition), KEYS) == ()


def changes(record: BatchRelease, source: Rollout, asked: Wanted) -> dict[str, Any]:
    (write,) = update_spec(record, source, asked, KEYS)
    assert isinstance(write, Patch)
    assert (write.name, write.subresource, list(write.body), list(write.body["spec"])) == (
        "llama",
        "",
        ["spec"],
        ["releasePlan"],
    )
    found: dict[str, Any] = write.body["spec"]["releasePlan"]
    return found


@pytest.mark.parametrize(("before", "after", "written"), [(0, 1, 1), (2, 0, 0), (0, None, None), (None, 0, 0)], ids=str)
def test_only_the_batch_is_written_when_only_it_moves(before: Any, after: Any, written: Any) -> None:
    source = rollout()
    assert changes(made(source, partition=before), source, wanted(after)) == {"batchPartition": written}


def test_an_edited_plan_is_written_and_what_it_lost_removed() -> None:
    record = made(rollout(failureThreshold=1, patchPodTemplateMetadata={"labels": {"a": "b"}}))
    assert changes(record, rollout(steps=[{"replicas": 2}]), wanted()) == {
        "batches": [{"canaryReplicas": 2}],
        "failureThreshold": None,
        "patchPodTemplateMetadata": None,
    }


def test_another_release_id_is_followed() -> None:
    source = rollout()
    assert changes(made(source), source, wanted(rollout_id="8")) == {"rolloutID": "8"}


def judged(ready: int, made: int, asked: int = 2) -> Batch:
    return Batch(wanted=asked, made=made, ready=ready, enough=ready >= asked, next_ready_at=None)


def status_after(
    record: BatchRelease, asked: Wanted, batch: Batch | None, now: datetime = NOW, source: Rollout | None = None
) -> dict[str, Any] | None:
    """The status after the write, None when there is none."""
    writes: tuple[Write, ...] = update_status(record, source or rollout(), asked, batch, KEYS, now)
    if not writes:
        return None
    (write,) = writes
    assert isinstance(write, Patch)
    assert (write.subresource, write.name) == ("status", "llama")
    before = record.status.to_json_dict() if record.status else {}
    after = dict(before)
    for key, value in write.body["status"].items():
        if isinstance(value, dict):
            merged = {**before.get(key, {}), **value}
            after[key] = {name: each for name, each in merged.items() if each is not None}
        else:
            after[key] = value
    return {key: value for key, value in after.items() if value is not None}


def after(record: BatchRelease, status: dict[str, Any]) -> BatchRelease:
    return BatchRelease.model_validate({**record.to_json_dict(), "status": status})


def test_the_first_status_says_all_that_is_known() -> None:
    status = status_after(made(rollout()), wanted(), judged(0, 1))
    assert status is not None
    digest = status.pop("observedReleasePlanHash")
    assert len(digest) == 64
    assert status == {
        "phase": "Progressing",
        "stableRevision": OLD,
        "updateRevision": NEW,
        "observedGeneration": 2,
        "observedRolloutID": "7",
        "observedWorkloadReplicas": 4,
        "canaryStatus": {
            "batchState": "Upgrading",
            "currentBatch": 0,
            "updatedReplicas": 1,
            "updatedReadyReplicas": 0,
        },
    }


@pytest.mark.parametrize(
    ("ready", "made_groups", "state"), [(0, 0, "Upgrading"), (1, 1, "Upgrading"), (1, 2, "Verifying"), (2, 2, "Ready")]
)
def test_the_batch_goes_from_upgrading_by_verifying_to_ready(ready: int, made_groups: int, state: str) -> None:
    status = status_after(made(rollout()), wanted(), judged(ready, made_groups))
    assert status is not None
    assert status["canaryStatus"]["batchState"] == state
    assert ("batchReadyTime" in status["canaryStatus"]) is (state == "Ready")


def test_a_batch_that_stays_ready_keeps_the_moment_at_which_it_became_so() -> None:
    record = made(rollout())
    first = status_after(record, wanted(), judged(2, 2))
    assert first is not None and first["canaryStatus"]["batchReadyTime"] == "2026-03-01T12:00:00Z"
    record = after(record, first)
    assert status_after(record, wanted(), judged(2, 2), LATER) is None
    more = status_after(record, wanted(), judged(3, 3), LATER)
    assert more is not None and more["canaryStatus"]["batchReadyTime"] == "2026-03-01T12:00:00Z"
    following = status_after(record, wanted(1), judged(3, 3), LATER)
    assert following is not None
    assert following["canaryStatus"]["batchReadyTime"] == "2026-03-01T12:05:00Z"
    lost = status_after(record, wanted(), judged(1, 2), LATER)
    assert lost is not None and "batchReadyTime" not in lost["canaryStatus"]


def test_groups_that_only_load_are_no_reason_to_write() -> None:
    record = made(rollout())
    first = status_after(record, wanted(), judged(0, 1))
    assert first is not None
    record = after(record, first)
    assert status_after(record, wanted(), judged(0, 2), LATER) is None
    assert status_after(record, wanted(), judged(1, 2), LATER) is not None
    assert status_after(record, wanted(phase=BatchReleasePhase.FINALIZING), judged(0, 1), LATER) is not None
    assert status_after(record, wanted(replicas=5), judged(0, 1), LATER) is not None


def test_a_batch_that_has_only_begun_is_told_no_sooner_than_when_it_is_ready() -> None:
    record = made(rollout())
    first = status_after(record, wanted(), judged(2, 2))
    assert first is not None
    # The next batch is an edit of the plan, and so another generation.
    begun = stored(record.to_json_dict(), first, generation=3)
    assert status_after(begun, wanted(1), judged(2, 2, asked=4), LATER) is None
    assert status_after(begun, wanted(1), judged(3, 4, asked=4), LATER) is None
    ready = status_after(begun, wanted(1), judged(4, 4, asked=4), LATER)
    assert ready is not None and (ready["observedGeneration"], ready["canaryStatus"]["currentBatch"]) == (3, 1)
    ending = status_after(begun, wanted(1, phase=BatchReleasePhase.FINALIZING), judged(2, 2, asked=4), LATER)
    assert ending is not None and ending["observedGeneration"] == 3


def test_the_hash_is_of_the_plan_and_not_of_how_far_it_is() -> None:
    def digest(asked: Wanted, **canary: Any) -> Any:
        source = rollout(**canary)
        status = status_after(made(source), asked, judged(0, 1), source=source)
        assert status is not None
        return status["observedReleasePlanHash"]

    assert digest(wanted(0)) == digest(wanted(2)) == digest(wanted(None))
    assert digest(wanted(0)) != digest(wanted(0), failureThreshold=1)


def test_in_the_promotion_the_record_stays_at_its_last_batch() -> None:
    record = made(rollout())
    first = status_after(record, wanted(2), judged(2, 2))
    assert first is not None
    promoted = status_after(after(record, first), wanted(None), judged(2, 2))
    assert promoted is None
    begun = status_after(made(rollout()), wanted(None), None)
    assert begun is not None and begun["canaryStatus"] == {"batchState": "Upgrading", "currentBatch": 0}


def test_without_a_strategy_there_is_no_plan() -> None:
    assert plan(Rollout.model_validate({"spec": {"workloadRef": REF, "strategy": {}}}), wanted()) == {}


def test_blue_green_is_a_style_of_its_own() -> None:
    spec = {"workloadRef": REF, "strategy": {"blueGreen": {"steps": STEPS}}}
    told = plan(Rollout.model_validate({"spec": spec}), wanted())
    assert told["rollingStyle"] == "BlueGreen"
    assert "enableExtraWorkloadForCanary" not in told


def test_a_record_is_dismissed_by_deleting_it_and_letting_go() -> None:
    release, delete = dismiss(made(rollout()), KEYS)
    assert isinstance(delete, Delete) and isinstance(release, Patch)
    assert (delete.name, delete.uid) == ("llama", "uid-record")
    assert release.body == {"metadata": {"finalizers": None}}
    assert release.resource_version is not None, "a finalizer that others add meanwhile would be lost"


@pytest.mark.parametrize(
    ("finalizers", "kept"),
    [([KEYS.batch_release_finalizer], None), (["a/b", KEYS.batch_release_finalizer], ["a/b"])],
)
def test_one_that_is_deleted_already_is_only_let_go_of(finalizers: list[str], kept: list[str] | None) -> None:
    record = made(rollout(), deletionTimestamp="2026-03-01T12:00:00Z", finalizers=finalizers)
    (write,) = dismiss(record, KEYS)
    assert write.body == {"metadata": {"finalizers": kept}}  # type: ignore[union-attr]
    gone = made(rollout(), deletionTimestamp="2026-03-01T12:00:00Z", finalizers=["a/b"])
    assert dismiss(gone, KEYS) == ()
