"""Kubernetes' rules for creating, changing and reading objects."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    CORE_EVENTS,
    EVENTS,
    LWS_NAME,
    NAMESPACES,
    NODES,
    PODS,
    SERVICES,
    STATEFUL_SETS,
)
from rollout_lws.sandbox.apiserver import ApiServer, Operation
from rollout_lws.sandbox.patching.patches import JSON_PATCH, STRATEGIC_PATCH
from rollout_lws.sandbox.store import Event
from tests.sandbox.conftest import Clock, config_map, pod, refused


def stateful_set(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {"serviceName": "db", "template": {"spec": {"containers": []}}, **spec},
    }


def test_a_new_object_gets_identity_version_and_time(server: ApiServer) -> None:
    made = server.create(STATEFUL_SETS, stateful_set())["metadata"]
    assert made["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert made["generation"] == 1
    assert len(made["uid"]) == 36
    assert int(made["resourceVersion"]) == server.store.version


def test_the_same_seed_gives_the_same_uids(clock: Clock) -> None:
    first, second = (ApiServer(clock, seed=3).create(CONFIG_MAPS, config_map()) for _ in range(2))
    assert first == second


def test_generate_name_makes_distinct_names(server: ApiServer) -> None:
    body = {"metadata": {"generateName": "job-", "namespace": "default"}}
    names = {server.create(CONFIG_MAPS, body)["metadata"]["name"] for _ in range(20)}
    assert len(names) == 20
    assert all(name.startswith("job-") and len(name) == 9 for name in names)


def test_what_is_not_there_is_not_found(server: ApiServer) -> None:
    with refused(404, "NotFound", 'pods "x" not found'):
        server.get(PODS, "default", "x")
    with refused(404, "NotFound", 'statefulsets.apps "x" not found'):
        server.patch(STATEFUL_SETS, "default", "x", {})
    with refused(404, "NotFound", 'namespaces "nowhere" not found'):
        server.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "nowhere"}})
    with refused(404, "NotFound", "could not find the requested resource"):
        server.list(changed(PODS, plural="podlets"))


def test_a_name_can_be_taken_only_once(server: ApiServer) -> None:
    server.create(CONFIG_MAPS, config_map())
    with refused(409, "AlreadyExists", 'configmaps "settings" already exists'):
        server.create(CONFIG_MAPS, config_map())


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"name": "Upper"}, "a lowercase RFC 1123 subdomain"),
        ({"name": ""}, "name or generateName is required"),
        ({"name": "a" * 254}, "no more than 253 characters"),
        ({"name": "a", "labels": {"k": "not valid"}}, "a valid label must be an empty string"),
        ({"name": "a", "labels": {"k": "x" * 64}}, "no more than 63 bytes"),
    ],
)
def test_bad_metadata_is_invalid(server: ApiServer, body: dict[str, Any], text: str) -> None:
    with refused(422, "Invalid", text):
        server.create(CONFIG_MAPS, {"metadata": {"namespace": "default", **body}})


def test_a_label_that_is_no_string_is_refused(server: ApiServer) -> None:
    with refused(400, "BadRequest", "put it in quotes"):
        server.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "default", "labels": {"on": True}}})


def test_a_service_name_must_start_with_a_letter(server: ApiServer) -> None:
    with refused(422, "Invalid", "DNS-1035"):
        server.create(SERVICES, {"metadata": {"name": "1st", "namespace": "default"}})


def test_a_stale_write_conflicts(server: ApiServer) -> None:
    old = server.create(CONFIG_MAPS, config_map(a="1"))
    server.patch(CONFIG_MAPS, "default", "settings", {"data": {"a": "2"}})
    text = 'Operation cannot be fulfilled on configmaps "settings": the object has been modified; please apply your'
    with refused(409, "Conflict", text):
        server.replace(CONFIG_MAPS, {**old, "data": {"a": "3"}})
    with refused(409, "Conflict", text):
        version = old["metadata"]["resourceVersion"]
        server.patch(CONFIG_MAPS, "default", "settings", {"metadata": {"resourceVersion": version}, "data": {}})
    assert server.get(CONFIG_MAPS, "default", "settings")["data"] == {"a": "2"}


def test_a_write_to_another_uid_conflicts(server: ApiServer) -> None:
    server.create(CONFIG_MAPS, config_map())
    with refused(409, "Conflict", "Precondition failed: UID in precondition: other"):
        server.patch(CONFIG_MAPS, "default", "settings", {"metadata": {"uid": "other"}})
    with refused(409, "Conflict", "the UID in the precondition (other) does not match the UID in record"):
        server.delete(CONFIG_MAPS, "default", "settings", uid="other")


def test_a_write_that_changes_nothing_is_no_change(server: ApiServer) -> None:
    old = server.create(CONFIG_MAPS, config_map(a="1"))
    seen: list[Event] = []
    server.store.subscribe(seen.append)
    assert server.patch(CONFIG_MAPS, "default", "settings", {"data": {"a": "1"}}) is old
    assert server.replace(CONFIG_MAPS, old) is old
    assert seen == []


def test_generation_counts_changes_of_the_spec_alone(server: ApiServer) -> None:
    server.create(STATEFUL_SETS, stateful_set())
    server.patch(STATEFUL_SETS, "default", "db", {"metadata": {"labels": {"a": "b"}}})
    server.patch(STATEFUL_SETS, "default", "db", {"status": {"replicas": 3}}, subresource="status")
    assert server.get(STATEFUL_SETS, "default", "db")["metadata"]["generation"] == 1
    server.patch(STATEFUL_SETS, "default", "db", {"spec": {"replicas": 3}})
    assert server.get(STATEFUL_SETS, "default", "db")["metadata"]["generation"] == 2


def test_spec_and_status_are_written_apart(server: ApiServer) -> None:
    server.create(STATEFUL_SETS, stateful_set() | {"status": {"replicas": 9}})
    both = {"spec": {"replicas": 5}, "status": {"replicas": 5}}
    made = server.patch(STATEFUL_SETS, "default", "db", both, subresource="status")
    assert (made["spec"]["replicas"], made["status"]["replicas"]) == (1, 5)
    made = server.patch(STATEFUL_SETS, "default", "db", {"spec": {"replicas": 2}, "status": {"replicas": 7}})
    assert (made["spec"]["replicas"], made["status"]["replicas"]) == (2, 5)


def test_scale_changes_replicas_and_nothing_else(server: ApiServer) -> None:
    server.create(STATEFUL_SETS, stateful_set())
    server.patch(STATEFUL_SETS, "default", "db", {"spec": {"replicas": 4, "serviceName": "x"}}, subresource="scale")
    assert server.get(STATEFUL_SETS, "default", "db")["spec"]["replicas"] == 4
    assert server.get(STATEFUL_SETS, "default", "db")["spec"]["serviceName"] == "db"
    with refused(422, "Invalid", "must be greater than or equal to 0"):
        server.patch(STATEFUL_SETS, "default", "db", {"spec": {"replicas": -1}}, subresource="scale")
    server.create(PODS, pod())
    with refused(404, "NotFound"):
        server.patch(PODS, "default", "web-0", {"spec": {"replicas": 4}}, subresource="scale")


def test_stateful_sets_get_their_defaults_and_keep_their_claims(server: ApiServer) -> None:
    spec = server.create(STATEFUL_SETS, stateful_set())["spec"]
    assert spec["podManagementPolicy"] == "OrderedReady"
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    with refused(422, "Invalid", "updates to statefulset spec for fields other than"):
        server.patch(STATEFUL_SETS, "default", "db", {"spec": {"volumeClaimTemplates": [{"metadata": {"name": "d"}}]}})


def test_a_pod_keeps_its_spec_but_may_be_bound_once(server: ApiServer) -> None:
    assert server.create(PODS, pod())["status"]["phase"] == "Pending"
    server.patch(PODS, "default", "web-0", {"spec": {"nodeName": "n1"}})
    with refused(422, "Invalid", "pod updates may not change fields"):
        server.patch(PODS, "default", "web-0", {"spec": {"nodeName": "n2"}})
    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "model:2"}]
    made = server.patch(PODS, "default", "web-0", image, JSON_PATCH)
    assert made["spec"]["containers"][0]["image"] == "model:2"


def test_a_pod_goes_on_saying_that_it_is_gated_when_its_gates_are_gone(server: ApiServer) -> None:
    gated = pod()
    gated["spec"]["schedulingGates"] = [{"name": "example.com/budget"}]
    server.create(PODS, gated)
    let_go = server.patch(PODS, "default", "web-0", {"spec": {"schedulingGates": None}})
    assert "schedulingGates" not in let_go["spec"]
    (said,) = let_go["status"]["conditions"]
    assert (said["type"], said["status"], said["reason"]) == ("PodScheduled", "False", "SchedulingGated")


def test_a_controller_revision_never_changes(server: ApiServer) -> None:
    body = {"metadata": {"name": "r1", "namespace": "default"}, "data": {"a": 1}, "revision": 1}
    server.create(CONTROLLER_REVISIONS, body)
    server.patch(CONTROLLER_REVISIONS, "default", "r1", {"revision": 2})
    with refused(422, "Invalid", "immutable"):
        server.patch(CONTROLLER_REVISIONS, "default", "r1", {"data": {"a": 2}})


def test_a_service_keeps_its_address(server: ApiServer) -> None:
    body = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"ports": [{"port": 80}]}}
    made = server.create(SERVICES, body)
    assert made["spec"]["clusterIP"].startswith("10.96.")
    assert made["spec"]["ports"] == [{"protocol": "TCP", "targetPort": 80, "port": 80}]
    again = server.replace(SERVICES, {**body, "spec": {"ports": [{"port": 81}]}})
    assert again["spec"]["clusterIP"] == made["spec"]["clusterIP"]


def test_a_dry_run_leaves_no_trace(server: ApiServer) -> None:
    before = server.store.version
    server.create(CONFIG_MAPS, config_map(), dry_run=True)
    assert server.list(CONFIG_MAPS) == []
    made = server.create(CONFIG_MAPS, config_map())
    assert server.patch(CONFIG_MAPS, "default", "settings", {"data": {"a": "1"}}, dry_run=True)["data"] == {"a": "1"}
    server.delete(CONFIG_MAPS, "default", "settings", dry_run=True)
    assert server.get(CONFIG_MAPS, "default", "settings") is made
    assert server.store.version == before + 1


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("app=a", ["one", "two"]),
        ("app!=a", ["three"]),
        ("app in (a, b),tier", ["two"]),
        ("app notin (a)", ["three"]),
        ("!tier", ["one", "three"]),
        ("app=a,tier==x", ["two"]),
        ("app=a,app=b", []),
        (f"{LWS_NAME}=m", ["two"]),
    ],
)
def test_label_selectors_choose(server: ApiServer, selector: str, names: list[str]) -> None:
    for name, labels in (("one", {"app": "a"}), ("two", {"app": "a", "tier": "x", LWS_NAME: "m"}), ("three", {})):
        server.create(PODS, pod(name, labels=labels))
    assert sorted(obj["metadata"]["name"] for obj in server.list(PODS, "default", selector)) == sorted(names)


def test_field_selectors_choose_and_refuse_unknown_fields(server: ApiServer) -> None:
    server.create(PODS, pod("a", node="n1"))
    server.create(PODS, pod("b"))
    assert [obj["metadata"]["name"] for obj in server.list(PODS, field_selector="spec.nodeName=n1")] == ["a"]
    assert [obj["metadata"]["name"] for obj in server.list(PODS, field_selector="metadata.name!=a")] == ["b"]
    with refused(400, "BadRequest", "field label not supported: spec.colour"):
        server.list(PODS, field_selector="spec.colour=red")
    with refused(400, "BadRequest", "unable to parse requirement"):
        server.list(PODS, label_selector="a in (b")


def test_both_event_apis_show_the_same_events(server: ApiServer) -> None:
    about = {"kind": "Pod", "name": "web-0"}
    told = {"note": "it broke", "reason": "Broken", "action": "Breaking", "type": "Warning"}
    told |= {"eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "me", "reportingInstance": "one"}
    server.create(EVENTS, {"metadata": {"name": "e", "namespace": "default"}, "regarding": about, **told})
    seen = server.list(CORE_EVENTS, field_selector="involvedObject.name=web-0")[0]
    assert (seen["message"], seen["apiVersion"]) == ("it broke", "v1")
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}
    patched = server.patch(EVENTS, "default", "e", {"series": series})
    assert (patched["series"], patched["apiVersion"]) == (series, "events.k8s.io/v1")
    assert server.get(CORE_EVENTS, "default", "e")["series"] == series


def test_admission_may_change_or_refuse(server: ApiServer) -> None:
    def hook(operation: Operation) -> dict[str, Any]:
        if operation.resource != PODS:
            return operation.object
        if operation.verb == "update":
            raise ApiError(403, "Forbidden", "no updates")
        meta = {**operation.object["metadata"], "labels": {"seen": "yes"}}
        return {**operation.object, "metadata": meta}

    server.admission.append(hook)
    assert server.create(PODS, pod())["metadata"]["labels"] == {"seen": "yes"}
    with refused(403, "Forbidden", "no updates"):
        server.patch(PODS, "default", "web-0", {"metadata": {"labels": {"a": "b"}}})


def test_a_strategic_patch_merges_by_key(server: ApiServer) -> None:
    server.create(STATEFUL_SETS, stateful_set(template={"spec": {"containers": [{"name": "a", "image": "x"}]}}))
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "b", "image": "y"}, {"name": "a", "image": "z"}]}}}}
    made = server.patch(STATEFUL_SETS, "default", "db", patch, STRATEGIC_PATCH)
    images = {entry["name"]: entry["image"] for entry in made["spec"]["template"]["spec"]["containers"]}
    assert images == {"a": "z", "b": "y"}
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}}}
    made = server.patch(STATEFUL_SETS, "default", "db", patch, STRATEGIC_PATCH)
    assert [entry["name"] for entry in made["spec"]["template"]["spec"]["containers"]] == ["b"]


@pytest.mark.parametrize(
    ("operation", "data"),
    [
        ({"op": "add", "path": "/data/b", "value": "2"}, {"a": "1", "b": "2"}),
        ({"op": "remove", "path": "/data/a"}, None),
        ({"op": "copy", "from": "/data/a", "path": "/data/c~1d"}, {"a": "1", "c/d": "1"}),
        ({"op": "move", "from": "/data/a", "path": "/data/c"}, {"c": "1"}),
        ({"op": "test", "path": "/data/a", "value": "1"}, {"a": "1"}),
    ],
)
def test_json_patches_apply(server: ApiServer, operation: dict[str, Any], data: dict[str, str] | None) -> None:
    server.create(CONFIG_MAPS, config_map(a="1"))
    assert (server.patch(CONFIG_MAPS, "default", "settings", [operation], JSON_PATCH)["data"] or None) == data


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/data/a", "value": "2"},
        {"op": "remove", "path": "/data/z"},
        {"op": "replace", "path": "/none/z", "value": "2"},
        {"op": "fly", "path": "/data/a", "from": "/data/a"},
    ],
)
def test_a_json_patch_that_does_not_fit_is_refused_whole(server: ApiServer, operation: dict[str, Any]) -> None:
    old = server.create(CONFIG_MAPS, config_map(a="1"))
    first = {"op": "add", "path": "/data/b", "value": "2"}
    with refused(422, "Invalid", "the server rejected our request due to an error in our request"):
        server.patch(CONFIG_MAPS, "default", "settings", [first, operation], JSON_PATCH)
    assert server.get(CONFIG_MAPS, "default", "settings") is old


def test_cluster_scoped_objects_have_no_namespace(server: ApiServer) -> None:
    made = server.create(NODES, {"metadata": {"name": "n1"}})
    assert "namespace" not in made["metadata"]
    assert made["spec"] == {}
    assert [obj["metadata"]["name"] for obj in server.list(NAMESPACES)] == ["default", "kube-system"]
