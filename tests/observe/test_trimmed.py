"""What is kept of the objects of a fleet decides as the whole objects do, and is no more than that."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rollout_lws.objects.owners import is_claimed
from rollout_lws.objects.released import RECOVER, RESTARTS_EXHAUSTED
from rollout_lws.objects.resources import LEADER_WORKER_SETS, LWS_NAME, LWS_REVISION, LWS_WORKER_INDEX
from rollout_lws.objects.workloads import ControllerRevision, Pod, StatefulSet
from rollout_lws.observe.cache_types import (
    TRIMMED,
    trimmed_history,
    trimmed_leader,
    trimmed_revision,
    trimmed_set,
)
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from rollout_lws.workload.groups import SIZE_ANNOTATION
from rollout_lws.workload.hold import writer_of_strategy
from rollout_lws.workload.pod_words import pod_trouble
from rollout_lws.workload.revisions import recorded_version

trimmed_workload = TRIMMED.workloads[LEADER_WORKER_SETS]
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
TEMPLATE = {"workerTemplate": {"spec": {"containers": [{"name": "vllm", "image": "vllm:v1"}]}}}


def encoded(metadata: dict[str, Any], **members: Any) -> bytes:
    meta = {"name": "llama", "namespace": "team", "uid": "1", "resourceVersion": "7", "generation": 2}
    return msgspec.json.encode({"metadata": meta | metadata, **members})


def owned_by(kind: str) -> dict[str, Any]:
    return {"ownerReferences": [{"apiVersion": "v1", "kind": kind, "name": "llama", "uid": "2", "controller": True}]}


def revision(owner: str, **metadata: Any) -> bytes:
    data = {"spec": {"leaderWorkerTemplate": TEMPLATE}}
    labels = {LWS_NAME: "llama", LWS_REVISION: "abc", "team": "inference"}
    return encoded({"labels": labels, **owned_by(owner), **metadata}, revision=3, data=data)


def test_the_version_inside_an_lws_revision_is_kept_compressed() -> None:
    body = revision("LeaderWorkerSet")
    kept = trimmed_revision(body)
    whole = msgspec.json.decode(body, type=ControllerRevision)
    assert recorded_version(kept) == recorded_version(whole) is not None
    assert bytes(kept.data)[:1] == b"x"
    assert kept.revision == 3
    assert kept.metadata.labels == {LWS_NAME: "llama", LWS_REVISION: "abc"}
    assert kept.metadata.controlled_by("2")


def test_of_a_stateful_sets_revision_no_data_is_kept() -> None:
    kept = trimmed_revision(revision("StatefulSet"))
    assert bytes(kept.data) == b""
    assert recorded_version(kept) is None
    assert (kept.metadata.name, kept.revision) == ("llama", 3)


def test_a_version_that_a_rollout_remembers_keeps_all_its_marks() -> None:
    body = revision("Rollout", annotations={"rollouts.kruise.io/template-hash": "93d8b250ca", LAST_APPLIED: "{}"})
    kept = trimmed_history(body)
    assert kept.metadata.annotations == {"rollouts.kruise.io/template-hash": "93d8b250ca"}
    assert kept.metadata.labels["team"] == "inference"
    assert recorded_version(kept) == recorded_version(msgspec.json.decode(body, type=ControllerRevision)) is not None


def managed(manager: str, moment: str, **spec: Any) -> dict[str, Any]:
    fields = {"f:metadata": {"f:labels": {"f:team": {}}}, "f:spec": spec}
    return {"manager": manager, "operation": "Update", "time": moment, "fieldsType": "FieldsV1", "fieldsV1": fields}


def workload() -> bytes:
    template = {"f:workerTemplate": {"f:spec": {f"f:{number}": {} for number in range(200)}}}
    strategy = {"f:rollingUpdateConfiguration": {"f:partition": {}}, "f:type": {}}
    entries = [
        managed("kubectl", "2026-01-01T00:00:00Z", **{"f:replicas": {}, "f:leaderWorkerTemplate": template}),
        managed("argocd", "2026-01-02T00:00:00Z", **{"f:rolloutStrategy": strategy}),
        {"manager": "lws", "operation": "Update", "subresource": "status"},
    ]
    annotations = {LAST_APPLIED: "{}" * 500, "team": "inference"}
    condition = {"type": "Available", "status": "True", "message": "All replicas are ready"}
    return encoded(
        {"managedFields": entries, "annotations": annotations, "labels": {"app": "llama"}},
        spec={"replicas": 4, "leaderWorkerTemplate": TEMPLATE, "networkConfig": {"subdomainPolicy": "Shared"}},
        status={"observedGeneration": 2, "conditions": [condition] * 9},
    )


def test_a_workload_keeps_its_version_its_marks_and_who_wrote_what_of_it() -> None:
    body = workload()
    kept, whole = trimmed_workload(body), msgspec.json.decode(body, type=LeaderWorkerSet)
    assert kept.version == whole.version
    assert (kept.spec.replicas, kept.status.observed_generation) == (4, 2)
    assert (kept.metadata.labels, kept.metadata.annotations) == ({"app": "llama"}, {"team": "inference"})
    assert writer_of_strategy(kept) == writer_of_strategy(whole) == "argocd"
    told = [(each.manager, each.time) for each in kept.metadata.managed_fields]
    assert told == [(each.manager, each.time) for each in whole.metadata.managed_fields]
    assert [b"f:leaderWorkerTemplate" in bytes(each.fields) for each in kept.metadata.managed_fields] == [
        True,
        False,
        False,
    ]
    assert [b"f:replicas" in bytes(each.fields) for each in kept.metadata.managed_fields] == [True, False, False]


@pytest.mark.parametrize(
    ("rolling", "claimed"),
    [
        ({"f:partition": {}}, True),
        ({}, True),
        ({"f:maxSurge": {}, "f:laterField": {}}, False),
        ({"f:laterField": {}}, False),
        ({".": {}, "f:laterField": {}}, False),
    ],
)
def test_what_a_manager_owns_of_a_rolling_update_is_no_more_than_before(rolling: dict[str, Any], claimed: bool) -> None:
    entry = managed(
        "argocd", "2026-01-01T00:00:00Z", **{"f:rolloutStrategy": {"f:rollingUpdateConfiguration": rolling}}
    )
    body = encoded({"managedFields": [entry]}, spec={"replicas": 4, "leaderWorkerTemplate": TEMPLATE})
    path = ("spec", "rolloutStrategy", "rollingUpdateConfiguration", "partition")
    (kept,) = trimmed_workload(body).metadata.managed_fields
    assert is_claimed([(kept.manager, msgspec.json.decode(kept.fields))], path, "example.org/original") is claimed
    assert is_claimed([("argocd", entry["fieldsV1"])], path, "example.org/original") is claimed


def test_a_workload_lets_go_of_its_json() -> None:
    kept = trimmed_workload(workload())
    raws = [kept.spec.leader_worker_template, kept.spec.network_config]
    raws += [each.fields for each in kept.metadata.managed_fields]
    assert all(each.copy() is each for each in raws), "a member points into the whole object's JSON"
    assert sum(len(bytes(each)) for each in raws) < 300
    assert kept.status.conditions == ()


def leader(**status: Any) -> bytes:
    conditions = [{"type": name, "status": "True"} for name in ("PodScheduled", "Initialized", "ContainersReady")]
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    labels = {LWS_NAME: "llama", LWS_WORKER_INDEX: "0", "team": "inference"}
    return encoded(
        {"labels": labels, "annotations": {SIZE_ANNOTATION: "4", "note": "n" * 1000}, **owned_by("StatefulSet")},
        status={"phase": "Running", "conditions": [*conditions, ready], **status},
    )


def test_a_leader_keeps_all_labels_its_size_and_since_when_it_is_ready() -> None:
    body = leader()
    kept, whole = trimmed_leader(body), msgspec.json.decode(body, type=Pod)
    assert kept.metadata.labels == whole.metadata.labels
    assert kept.metadata.annotations == {SIZE_ANNOTATION: "4"}
    assert kept.ready_since == whole.ready_since is not None
    assert [each.type for each in kept.status.conditions] == ["Ready"]


def test_a_leader_keeps_that_its_group_may_not_restart() -> None:
    marks = {RESTARTS_EXHAUSTED: "true"}
    body = encoded({"labels": {LWS_NAME: "llama", LWS_WORKER_INDEX: "0"}, "annotations": marks})
    assert trimmed_leader(body).is_kept
    asked = encoded({"labels": {LWS_NAME: "llama", LWS_WORKER_INDEX: "0"}, "annotations": marks | {RECOVER: "true"}})
    assert not trimmed_leader(asked).is_kept


def test_a_leader_in_trouble_tells_it_as_before() -> None:
    troubles: list[dict[str, Any]] = [
        {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}]},
        {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]},
        {"conditions": [{"type": "ContainersReady", "status": "False"}, {"type": "Ready", "status": "False"}]},
        {"containerStatuses": [{"name": "vllm", "state": {"waiting": {"reason": "ErrImagePull"}}}]},
        {"phase": "Failed", "reason": "Evicted", "message": "node is low on memory"},
    ]
    for status in troubles:
        kept, whole = trimmed_leader(leader(**status)), msgspec.json.decode(leader(**status), type=Pod)
        assert pod_trouble(kept) == pod_trouble(whole)
        assert [each.status for each in kept.status.conditions if each.type in ("Ready", "DisruptionTarget")] == [
            each.status for each in whole.status.conditions if each.type in ("Ready", "DisruptionTarget")
        ]


def test_a_stateful_set_keeps_what_tells_its_version_and_its_lws() -> None:
    labels = {LWS_NAME: "llama", LWS_REVISION: "abc", "team": "inference"}
    body = encoded(
        {"labels": labels, "annotations": {"note": "n" * 1000}, **owned_by("LeaderWorkerSet")},
        spec={"replicas": 4},
        status={"readyReplicas": 4, "currentRevision": "llama-1"},
    )
    kept, whole = trimmed_set(body), msgspec.json.decode(body, type=StatefulSet)
    assert kept.metadata.labels == {LWS_NAME: "llama", LWS_REVISION: "abc"}
    assert (kept.revision, kept.spec, kept.status) == (whole.revision, whole.spec, whole.status)
    assert kept.metadata.controller == whole.metadata.controller


def test_objects_of_one_namespace_share_their_words() -> None:
    one, other = trimmed_leader(leader()), trimmed_leader(leader())
    assert one.metadata.namespace is other.metadata.namespace
    for mine, theirs in zip(one.metadata.labels.items(), other.metadata.labels.items(), strict=True):
        assert mine[0] is theirs[0]
        assert mine[1] is theirs[1]
