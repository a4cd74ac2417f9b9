"""Foreign objects as partial structs: what is read from an API server's JSON, and what is said when it is not there."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from rollout_lws.objects.meta import Meta, OwnerReference
from rollout_lws.objects.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    LEADER_WORKER_SETS,
    LWS_GROUP_INDEX,
    LWS_NAME,
    LWS_REVISION,
    LWS_WORKER_INDEX,
    NODES,
    PODS,
    STATEFUL_SETS,
    Resource,
)
from rollout_lws.objects.workloads import ControllerRevision, Pod, StatefulSet
from rollout_lws.objects.writes import Create, Replace
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from rollout_lws.targets.target import RollingUpdate

T1, T2 = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 5, tzinfo=UTC)


def decoded(kind: type, document: dict[str, Any]) -> Any:
    return msgspec.json.decode(msgspec.json.encode(document), type=kind)


def owner(uid: str, *, controller: bool) -> OwnerReference:
    return OwnerReference(kind="LeaderWorkerSet", name="llama", uid=uid, controller=controller)


@pytest.mark.parametrize(
    ("owners", "uid", "controlled"),
    [
        ((), "a", False),
        ((owner("a", controller=False),), "a", False),
        ((owner("a", controller=True),), "a", True),
        ((owner("a", controller=True),), "b", False),
        ((owner("a", controller=False), owner("b", controller=True)), "b", True),
        ((owner("a", controller=False), owner("b", controller=True)), "a", False),
    ],
)
def test_only_the_controlling_owner_counts(owners: tuple[OwnerReference, ...], uid: str, controlled: bool) -> None:
    assert Meta(owner_references=owners).controlled_by(uid) is controlled


def test_an_object_terminates_from_its_deletion_timestamp_on() -> None:
    assert not Meta().terminating
    assert Meta(deletion_timestamp=T1).terminating


def test_a_leader_worker_set_of_nothing_but_a_name_has_the_defaults_of_lws() -> None:
    lws = decoded(LeaderWorkerSet, {"apiVersion": "x", "kind": "y", "metadata": {"name": "llama"}, "spec": {}})
    assert lws.replicas == 1
    assert lws.spec.startup_policy == "LeaderCreated"
    assert lws.spec.group_identity == "Ordinal"
    assert lws.strategy == RollingUpdate()
    assert (RollingUpdate().partition, RollingUpdate().max_unavailable, RollingUpdate().max_surge) == (0, 1, 0)
    assert lws.status.observed_generation is None


def test_allowances_of_a_strategy_are_numbers_or_percentages() -> None:
    strategy = {"rollingUpdateConfiguration": {"partition": 3, "maxUnavailable": "25%", "maxSurge": 2}}
    lws = decoded(LeaderWorkerSet, {"metadata": {}, "spec": {"rolloutStrategy": strategy, "replicas": 4}})
    live = lws.strategy
    assert (live.partition, live.max_unavailable, live.max_surge) == (3, "25%", 2)


def test_templates_stay_bytes() -> None:
    template = {"size": 2, "workerTemplate": {"spec": {"containers": []}}}
    lws = decoded(LeaderWorkerSet, {"metadata": {}, "spec": {"leaderWorkerTemplate": template}})
    assert msgspec.json.decode(lws.spec.leader_worker_template) == template
    assert bytes(lws.spec.network_config) == b"null"


def test_who_wrote_which_field_is_kept_as_bytes() -> None:
    fields = {"f:spec": {"f:replicas": {}}}
    entry = {"manager": "kubectl", "operation": "Apply", "time": "2026-01-01T00:00:00Z", "fieldsV1": fields}
    lws = decoded(LeaderWorkerSet, {"metadata": {"managedFields": [entry]}, "spec": {}})
    (kept,) = lws.metadata.managed_fields
    assert (kept.manager, kept.time, msgspec.json.decode(kept.fields)) == ("kubectl", T1, fields)


def pod(**changes: Any) -> Pod:
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:05:00Z", "lastProbeTime": None}
    document = {
        "metadata": {"name": "llama-0", "creationTimestamp": "2026-01-01T00:00:00Z", **changes.pop("metadata", {})},
        "status": {"phase": "Running", "conditions": [condition], **changes},
    }
    return decoded(Pod, document)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("changes", "since"),
    [
        ({}, T2),
        ({"phase": "Pending"}, None),
        ({"phase": "Succeeded"}, None),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:06:00Z"}}, None),
        ({"conditions": []}, None),
        ({"conditions": [{"type": "Ready", "status": "False"}]}, None),
        ({"conditions": [{"type": "Ready", "status": "Unknown"}]}, None),
        ({"conditions": [{"type": "ContainersReady", "status": "True"}]}, None),
        ({"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": None}]}, T1),
    ],
)
def test_a_pod_is_ready_while_it_runs_and_says_so(changes: dict[str, Any], since: datetime | None) -> None:
    assert pod(**changes).ready_since == since


def test_a_pod_tells_its_place_by_the_labels_of_lws() -> None:
    labels = {LWS_NAME: "llama", LWS_GROUP_INDEX: "3", LWS_WORKER_INDEX: "0", LWS_REVISION: "abc"}
    leader = pod(metadata={"labels": labels})
    assert (leader.workload, leader.group_index, leader.is_leader, leader.revision) == ("llama", "3", True, "abc")
    worker = pod(metadata={"labels": {**labels, LWS_WORKER_INDEX: "1"}})
    assert not worker.is_leader
    stranger = pod()
    assert (stranger.workload, stranger.group_index, stranger.is_leader, stranger.revision) == ("", "", False, "")


def test_a_stateful_set_tells_the_revision_it_was_applied_with() -> None:
    assert decoded(StatefulSet, {"metadata": {"labels": {LWS_NAME: "llama", LWS_REVISION: "abc"}}}).revision == "abc"
    assert decoded(StatefulSet, {"metadata": {}}).revision == ""


def test_the_data_of_a_controller_revision_stays_bytes() -> None:
    record = decoded(ControllerRevision, {"metadata": {"name": "r"}, "revision": 7, "data": {"spec": {"a": 1}}})
    assert record.revision == 7
    assert msgspec.json.decode(record.data) == {"spec": {"a": 1}}


@pytest.mark.parametrize(
    ("resource", "arguments", "path"),
    [
        (PODS, (), "/api/v1/pods"),
        (PODS, ("prod",), "/api/v1/namespaces/prod/pods"),
        (PODS, ("prod", "llama-0"), "/api/v1/namespaces/prod/pods/llama-0"),
        (STATEFUL_SETS, ("prod", "llama"), "/apis/apps/v1/namespaces/prod/statefulsets/llama"),
        (
            LEADER_WORKER_SETS,
            ("prod", "llama", "scale"),
            "/apis/leaderworkerset.x-k8s.io/v1/namespaces/prod/leaderworkersets/llama/scale",
        ),
        (NODES, ("prod", "n1"), "/api/v1/nodes/n1"),
        (
            CUSTOM_RESOURCE_DEFINITIONS,
            ("", "rollouts.rollouts.kruise.io"),
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rollouts.rollouts.kruise.io",
        ),
    ],
)
def test_paths_are_those_of_the_api_server(resource: Resource, arguments: tuple[str, ...], path: str) -> None:
    assert resource.path(*arguments) == path


def test_a_resource_is_called_as_kubectl_calls_it() -> None:
    assert (str(PODS), PODS.api_version) == ("pods", "v1")
    assert (str(STATEFUL_SETS), STATEFUL_SETS.api_version) == ("statefulsets.apps", "apps/v1")


@pytest.mark.parametrize("kind", [Create, Replace])
def test_a_write_with_a_body_is_named_by_it(kind: type[Create] | type[Replace]) -> None:
    write = kind(PODS, {"metadata": {"name": "llama-0", "namespace": "prod"}}, "why")
    assert (write.namespace, write.name) == ("prod", "llama-0")
    assert kind(NODES, {"metadata": {"name": "n1"}}, "why").namespace == ""
