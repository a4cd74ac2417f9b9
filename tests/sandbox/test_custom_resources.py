"""CustomResourceDefinitions: what they serve, and how their objects are pruned, defaulted and validated."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, LEADER_WORKER_SETS, Resource
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.definitions import lws_crd
from tests.sandbox.conftest import lws, refused

WIDGETS = Resource("example.org", "v1", "Widget", "widgets")


def definition(spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    root = {"type": "object", "properties": {"spec": {"type": "object", **spec}, "status": {"type": "object"}}, **more}
    return {
        "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}}],
        },
    }


def widget(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "w", "namespace": "default"}, "spec": spec}


def test_a_definition_is_served_at_once_and_says_so(server: ApiServer) -> None:
    with refused(404, "NotFound", "could not find the requested resource"):
        server.list(LEADER_WORKER_SETS)
    made = server.create(CUSTOM_RESOURCE_DEFINITIONS, lws_crd.manifest())
    conditions = {entry["type"]: entry["status"] for entry in made["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert server.list(LEADER_WORKER_SETS) == []


def told(of_metadata: dict[str, Any]) -> dict[str, Any]:
    """A version whose schema says so of metadata."""
    schema = {"type": "object", "properties": {"metadata": {"type": "object", **of_metadata}}}
    return {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"group": ""}, "spec.group: Required value"),
        ({"scope": "Galaxy"}, 'Unsupported value: "Galaxy"'),
        ({"group": "other.org"}, 'must be spec.names.plural+"."+spec.group'),
        ({"versions": [{"name": "v1", "served": True}]}, "exactly one version marked as storage version"),
        ({"versions": [told({"description": "Standard."})]}, "anything other than name and generateName"),
        ({"versions": [told({"properties": {"labels": {}}})]}, "anything other than name and generateName"),
    ],
)
def test_a_definition_that_cannot_be_served_is_invalid(server: ApiServer, change: dict[str, Any], text: str) -> None:
    body = definition({})
    with refused(422, "Invalid", text):
        server.create(CUSTOM_RESOURCE_DEFINITIONS, {**body, "spec": {**body["spec"], **change}})


def test_a_manifest_gets_the_schema_defaults_of_its_kind(lws_server: ApiServer) -> None:
    spec = lws_server.create(LEADER_WORKER_SETS, lws())["spec"]
    assert (spec["replicas"], spec["startupPolicy"]) == (1, "LeaderCreated")
    group = spec["leaderWorkerTemplate"]
    assert group["restartPolicy"] == "RecreateGroupOnPodRestart"
    assert group["workerTemplate"]["spec"]["containers"][0]["ports"] == [{"containerPort": 8080, "protocol": "TCP"}]
    assert "rolloutStrategy" not in spec


def test_unknown_fields_are_pruned_but_not_in_a_pod_spec(lws_server: ApiServer) -> None:
    template = {
        "metadata": {"creationTimestamp": None, "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "main", "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}}]},
    }
    body = lws(group={"workerTemplate": template, "colour": "red"}, shape="round")
    made = lws_server.create(LEADER_WORKER_SETS, body)
    assert "shape" not in made["spec"]
    assert "colour" not in made["spec"]["leaderWorkerTemplate"]
    kept = made["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    assert kept["metadata"] == {"labels": {"a": "b"}}
    assert kept["spec"] == template["spec"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"replicas": -1}, "spec.replicas in body should be greater than or equal to 0"),
        ({"replicas": 1_000_001}, "spec.replicas in body should be less than or equal to 1000000"),
        ({"replicas": "2"}, 'spec.replicas in body must be of type integer: "string"'),
        ({"replicas": True}, 'must be of type integer: "boolean"'),
        ({"startupPolicy": "Never"}, 'Unsupported value: "Never": supported values: "LeaderCreated", "LeaderReady"'),
        ({"rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": 1.5}}}, "must be of type integer,string"),
        ({"networkConfig": {}}, "spec.networkConfig.subdomainPolicy: Required value"),
        ({"group": {"workerTemplate": {"spec": {}}}}, "workerTemplate.spec.containers: Required value"),
        (
            {"group": {"workerTemplate": {"spec": {"containers": [{"name": "a"}, {"name": "a"}]}}}},
            'containers[1]: Duplicate value: {"name":"a"}',
        ),
    ],
)
def test_a_violation_is_named_with_its_path(lws_server: ApiServer, body: dict[str, Any], text: str) -> None:
    with refused(422, "Invalid", text):
        lws_server.create(LEADER_WORKER_SETS, lws(**body))


def test_every_violation_is_listed(lws_server: ApiServer) -> None:
    with refused(422, "Invalid", 'LeaderWorkerSet.leaderworkerset.x-k8s.io "demo" is invalid: [spec.replicas: ') as _:
        lws_server.create(LEADER_WORKER_SETS, lws(replicas=-1, startupPolicy="Never"))


@pytest.mark.parametrize(("version", "stored"), [("0.8", None), ("0.10", 3), ("1.0", 3)])
def test_status_has_the_fields_of_its_lws_version(server: ApiServer, version: str, stored: int | None) -> None:
    server.create(CUSTOM_RESOURCE_DEFINITIONS, lws_crd.manifest(version))
    server.create(LEADER_WORKER_SETS, lws())
    patch = {"status": {"observedGeneration": 3, "replicas": 1}}
    made = server.patch(LEADER_WORKER_SETS, "default", "demo", patch, subresource="status")
    assert made["status"].get("observedGeneration") == stored
    assert ("groupIdentity" in made["spec"]) == (version == "1.0")


def test_group_identity_never_changes(server: ApiServer) -> None:
    server.create(CUSTOM_RESOURCE_DEFINITIONS, lws_crd.manifest("1.0"))
    server.create(LEADER_WORKER_SETS, lws())
    with refused(422, "Invalid", "groupIdentity is immutable"):
        server.patch(LEADER_WORKER_SETS, "default", "demo", {"spec": {"groupIdentity": "Hash"}})


def test_a_custom_resource_is_replaced_only_by_who_knows_its_version(lws_server: ApiServer) -> None:
    made = lws_server.create(LEADER_WORKER_SETS, lws())
    with refused(422, "Invalid", "metadata.resourceVersion: Invalid value: 0: must be specified for an update"):
        lws_server.replace(LEADER_WORKER_SETS, lws())
    assert lws_server.replace(LEADER_WORKER_SETS, made) is made


def test_a_strategic_patch_of_a_custom_resource_is_not_supported(lws_server: ApiServer) -> None:
    lws_server.create(LEADER_WORKER_SETS, lws())
    with refused(415, "UnsupportedMediaType", "application/merge-patch+json"):
        lws_server.patch(LEADER_WORKER_SETS, "default", "demo", {}, "application/strategic-merge-patch+json")


RULES = {
    "properties": {
        "min": {"type": "integer"},
        "max": {"type": "integer"},
        "name": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is fixed"}]},
        "steps": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"weight": {"type": "integer"}},
                "x-kubernetes-validations": [{"rule": "self.weight <= 100", "message": "at most 100"}],
            },
        },
    },
    "x-kubernetes-validations": [
        {"rule": "!has(self.min) || !has(self.max) || self.min <= self.max", "message": "min is above max"}
    ],
}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"min": 2, "max": 1}, 'spec: Invalid value: "object": min is above max'),
        ({"steps": [{"weight": 5}, {"weight": 101}]}, 'spec.steps[1]: Invalid value: "object": at most 100'),
        ({"steps": [{}]}, "cannot be evaluated"),
    ],
)
def test_cel_rules_refuse(server: ApiServer, spec: dict[str, Any], text: str) -> None:
    server.create(CUSTOM_RESOURCE_DEFINITIONS, definition(RULES))
    with refused(422, "Invalid", text):
        server.create(WIDGETS, widget(**spec))


def test_transition_rules_are_asked_on_updates_alone(server: ApiServer) -> None:
    server.create(CUSTOM_RESOURCE_DEFINITIONS, definition(RULES))
    server.create(WIDGETS, widget(min=1, max=2, name="a", steps=[{"weight": 100}]))
    server.patch(WIDGETS, "default", "w", {"spec": {"max": 3}})
    with refused(422, "Invalid", 'spec.name: Invalid value: "b": is fixed'):
        server.patch(WIDGETS, "default", "w", {"spec": {"name": "b"}})


SHAPES = {
    "properties": {
        "choice": {
            "type": "object",
            "properties": {"a": {}, "b": {}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "maxItems": 2},
        "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 3},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "at": {"type": "string", "format": "date-time"},
        "maybe": {"type": "string", "nullable": True},
        "never": {"type": "string"},
    }
}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"choice": {"a": 1, "b": 2}}, "must validate one and only one schema (oneOf)"),
        ({"choice": {}}, "Found none valid"),
        ({"tags": ["a", "a"]}, 'spec.tags[1]: Duplicate value: "a"'),
        ({"tags": ["a", "b", "c"]}, "Too many: 3: must have at most 2 items"),
        ({"code": "A"}, "spec.code in body should match '^[a-z]+$'"),
        ({"code": "abcd"}, "Too long: may not be more than 3 bytes"),
        ({"map": {"k": 1}}, "spec.map.k in body must be of type string"),
        ({"at": "noon"}, "must be of type date-time"),
    ],
)
def test_each_keyword_refuses(server: ApiServer, spec: dict[str, Any], text: str) -> None:
    server.create(CUSTOM_RESOURCE_DEFINITIONS, definition(SHAPES))
    with refused(422, "Invalid", text):
        server.create(WIDGETS, widget(**spec))


def test_null_stays_only_where_it_is_allowed(server: ApiServer) -> None:
    server.create(CUSTOM_RESOURCE_DEFINITIONS, definition(SHAPES))
    assert server.create(WIDGETS, widget(maybe=None, never=None))["spec"] == {"maybe": None}


SERVING = """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata:
  name: big-model
  namespace: default
  annotations: {leaderworkerset.sigs.k8s.io/exclusive-topology: cloud.google.com/gke-nodepool}
spec:
  replicas: 2
  startupPolicy: LeaderReady
  rolloutStrategy:
    type: RollingUpdate
    rollingUpdateConfiguration: {partition: 1, maxUnavailable: 30%, maxSurge: 1}
  networkConfig: {subdomainPolicy: UniquePerReplica}
  leaderWorkerTemplate:
    size: 4
    restartPolicy: RecreateGroupAfterStart
    subGroupPolicy: {subGroupPolicyType: LeaderWorker, subGroupSize: 2}
    persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Retain}
    volumeClaimTemplates:
      - metadata: {name: weights}
        spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 500Gi}}}
    leaderTemplate:
      metadata: {labels: {role: leader}}
      spec:
        containers:
          - name: server
            image: registry.example/server:1
            command: [sh, -c, serve --nodes $(LWS_GROUP_SIZE)]
            env:
              - {name: TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}
              - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
            ports: [{containerPort: 8080, name: http, protocol: TCP}]
            resources: {limits: {nvidia.com/gpu: "8", memory: 1124Gi, rdma/ib: 8}, requests: {cpu: 125m}}
            readinessProbe: {tcpSocket: {port: 8080}, initialDelaySeconds: 15, periodSeconds: 10}
            livenessProbe: {httpGet: {path: /health, port: http}, failureThreshold: 3}
            securityContext: {privileged: true, capabilities: {add: [IPC_LOCK]}}
            volumeMounts: [{mountPath: /dev/shm, name: dshm}, {mountPath: /weights, name: weights}]
        volumes:
          - {name: dshm, emptyDir: {medium: Memory, sizeLimit: 15Gi}}
    workerTemplate:
      spec:
        hostNetwork: true
        dnsPolicy: ClusterFirstWithHostNet
        affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}
        tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
        containers:
          - {name: worker, image: "registry.example/server:1", args: ["--join", $(LWS_LEADER_ADDRESS)]}
"""


def test_a_manifest_with_all_its_fields_is_stored_unchanged(lws_server: ApiServer) -> None:
    manifest = yaml.safe_load(SERVING)
    unknown: list[str] = []
    schema = lws_server.lookup(LEADER_WORKER_SETS).schema
    assert schema is not None
    schema.prepared(manifest, None, unknown.append)
    assert unknown == []
    assert lws_server.create(LEADER_WORKER_SETS, manifest)["spec"] == manifest["spec"]
