"""How objects go: grace, finalizers, propagation, namespaces."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, LEADER_WORKER_SETS, NAMESPACES, PODS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.store import Event
from tests.sandbox.conftest import config_map, lws, pod, refused


def test_most_kinds_go_at_once(server: ApiServer) -> None:
    server.create(CONFIG_MAPS, config_map())
    seen: list[Event] = []
    server.store.subscribe(seen.append)
    server.delete(CONFIG_MAPS, "default", "settings")
    assert [event.type for event in seen] == ["DELETED"]
    assert int(seen[0].object["metadata"]["resourceVersion"]) == server.store.version
    assert server.list(CONFIG_MAPS) == []


def test_a_pod_on_a_node_stays_for_its_grace(server: ApiServer) -> None:
    server.create(PODS, pod(node="n1"))
    left = server.delete(PODS, "default", "web-0")
    assert left["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:30Z"
    assert left["metadata"]["deletionGracePeriodSeconds"] == 30
    assert left["metadata"]["generation"] == 2
    assert server.delete(PODS, "default", "web-0") is left
    server.patch(PODS, "default", "web-0", {"status": {"phase": "Failed"}}, subresource="status")
    assert server.get(PODS, "default", "web-0")["status"]["phase"] == "Failed"
    server.delete(PODS, "default", "web-0", grace_seconds=0)
    assert server.list(PODS) == []


def test_a_pod_without_a_node_goes_at_once(server: ApiServer) -> None:
    server.create(PODS, pod())
    server.delete(PODS, "default", "web-0")
    assert server.list(PODS) == []


def test_finalizers_keep_an_object_until_the_last_is_off(server: ApiServer) -> None:
    body = config_map()
    body["metadata"]["finalizers"] = ["a/b", "c/d"]
    server.create(CONFIG_MAPS, body)
    left = server.delete(CONFIG_MAPS, "default", "settings")
    assert left["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    with refused(422, "Invalid", "no new finalizers can be added"):
        server.patch(CONFIG_MAPS, "default", "settings", {"metadata": {"finalizers": ["a/b", "c/d", "e/f"]}})
    server.patch(CONFIG_MAPS, "default", "settings", {"metadata": {"finalizers": ["c/d"]}})
    assert server.list(CONFIG_MAPS) != []
    server.patch(CONFIG_MAPS, "default", "settings", {"metadata": {"finalizers": None}})
    assert server.list(CONFIG_MAPS) == []


@pytest.mark.parametrize(("propagation", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")])
def test_propagation_leaves_its_finalizer_to_the_garbage_collector(
    server: ApiServer, propagation: str, finalizer: str
) -> None:
    server.create(CONFIG_MAPS, config_map())
    left = server.delete(CONFIG_MAPS, "default", "settings", propagation=propagation)
    assert left["metadata"]["finalizers"] == [finalizer]
    with refused(422, "Invalid", 'propagationPolicy: Unsupported value: "Sideways"'):
        server.delete(CONFIG_MAPS, "default", "settings", propagation="Sideways")


def test_a_namespace_takes_its_content_with_it(server: ApiServer) -> None:
    server.create(NAMESPACES, {"metadata": {"name": "team"}})
    server.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "team"}})
    body = {"metadata": {"name": "b", "namespace": "team", "finalizers": ["keep/it"]}}
    server.create(CONFIG_MAPS, body)
    left = server.delete(NAMESPACES, "", "team")
    assert left["status"]["phase"] == "Terminating"
    assert [obj["metadata"]["name"] for obj in server.list(CONFIG_MAPS, "team")] == ["b"]
    with refused(403, "Forbidden", "because it is being terminated"):
        server.create(CONFIG_MAPS, {"metadata": {"name": "c", "namespace": "team"}})
    server.patch(CONFIG_MAPS, "team", "b", {"metadata": {"finalizers": []}})
    with refused(404, "NotFound"):
        server.get(NAMESPACES, "", "team")


def test_a_definition_takes_its_objects_with_it(lws_server: ApiServer) -> None:
    lws_server.create(LEADER_WORKER_SETS, lws())
    name = "leaderworkersets.leaderworkerset.x-k8s.io"
    lws_server.delete(CUSTOM_RESOURCE_DEFINITIONS, "", name)
    with refused(404, "NotFound", "could not find the requested resource"):
        lws_server.list(LEADER_WORKER_SETS)
    assert list(lws_server.store.list(LEADER_WORKER_SETS)) == []


def test_a_definition_waits_for_finalizers_of_its_objects(lws_server: ApiServer) -> None:
    body = lws()
    body["metadata"]["finalizers"] = ["keep/it"]
    lws_server.create(LEADER_WORKER_SETS, body)
    name = "leaderworkersets.leaderworkerset.x-k8s.io"
    assert "deletionTimestamp" in lws_server.delete(CUSTOM_RESOURCE_DEFINITIONS, "", name)["metadata"]
    lws_server.patch(LEADER_WORKER_SETS, "default", "demo", {"metadata": {"finalizers": None}})
    with refused(404, "NotFound"):
        lws_server.get(CUSTOM_RESOURCE_DEFINITIONS, "", name)


def test_delete_collection_obeys_the_selector(server: ApiServer) -> None:
    for name, labels in (("a", {"x": "1"}), ("b", {"x": "2"}), ("c", {"x": "1"})):
        server.create(PODS, pod(name, labels=labels))
    server.delete_collection(PODS, "default", "x=1")
    assert [obj["metadata"]["name"] for obj in server.list(PODS)] == ["b"]


def test_dependants_are_found_by_owner(server: ApiServer) -> None:
    owner = server.create(CONFIG_MAPS, config_map())["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["name"], "uid": owner["uid"]}
    server.create(PODS, pod(ownerReferences=[reference]))
    assert [obj["metadata"]["name"] for _, obj in server.store.index.dependants(owner["uid"])] == ["web-0"]
    server.patch(PODS, "default", "web-0", {"metadata": {"ownerReferences": None}})
    assert server.store.index.dependants(owner["uid"]) == []
