"""Creating, reading, replacing and deleting single objects, and what the server itself writes into their metadata."""

from __future__ import annotations

import re

from rollout_lws.objects.resources import CONFIG_MAPS, LEADER_WORKER_SETS, PODS
from tests.conformance.asking import Asking, Object
from tests.conformance.objects import config_map, lws, pod

_GONE = "the object has been modified; please apply your changes to the latest version and try again"


async def test_what_is_created_is_found_again_with_what_the_server_adds(server: Asking) -> None:
    made = await server.create(CONFIG_MAPS, config_map(labels={"app": "chat"}))
    assert made.code == 201
    meta = made.body["metadata"]
    assert (made.body["apiVersion"], made.body["kind"]) == ("v1", "ConfigMap")
    assert (meta["name"], meta["namespace"], meta["labels"]) == ("settings", server.namespace, {"app": "chat"})
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", meta["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta["creationTimestamp"])
    assert meta["resourceVersion"].isdigit()
    assert "generation" not in meta
    found = await server.get(CONFIG_MAPS, "settings")
    assert (found.code, found.body) == (200, made.body)


async def test_what_only_the_server_may_set_is_set_by_it(server: Asking) -> None:
    forged: Object = {"uid": "forged", "generation": 7, "creationTimestamp": "2001-01-01T00:00:00Z"}
    made = (await server.create(PODS, pod(**forged))).ok()["metadata"]
    assert made["uid"] != "forged"
    assert made["generation"] == 1
    assert made["creationTimestamp"] > "2020"


async def test_a_resource_version_cannot_be_brought_along(server: Asking) -> None:
    refused = await server.create(CONFIG_MAPS, config_map(resourceVersion="1"))
    assert refused.refusal == (500, "", "resourceVersion should not be set on objects to be created")


async def test_a_name_is_made_from_a_prefix(server: Asking) -> None:
    names = set()
    for _ in range(3):
        made = (await server.create(CONFIG_MAPS, {"metadata": {"generateName": "chat-"}})).ok()
        assert made["metadata"]["generateName"] == "chat-"
        names.add(made["metadata"]["name"])
    assert len(names) == 3
    assert all(re.fullmatch("chat-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)


async def test_a_name_wins_over_a_prefix(server: Asking) -> None:
    made = (await server.create(CONFIG_MAPS, config_map("mine", generateName="chat-"))).ok()
    assert made["metadata"]["name"] == "mine"


async def test_an_object_without_any_name_is_invalid(server: Asking) -> None:
    refused = await server.create(CONFIG_MAPS, {"metadata": {}})
    text = "name or generateName is required"
    assert refused.refusal == (
        422,
        "Invalid",
        f'ConfigMap "" is invalid: metadata.name: Required value: {text}',
    )
    assert refused.causes == [("FieldValueRequired", "metadata.name", f"Required value: {text}")]


async def test_a_second_object_of_a_name_is_refused(server: Asking) -> None:
    (await server.create(CONFIG_MAPS, config_map())).ok()
    refused = await server.create(CONFIG_MAPS, config_map(data={"other": "value"}))
    assert refused.refusal == (409, "AlreadyExists", 'configmaps "settings" already exists')
    assert refused.body["details"] == {"name": "settings", "kind": "configmaps"}


async def test_what_is_not_there_is_not_found(server: Asking) -> None:
    refused = await server.get(CONFIG_MAPS, "none")
    assert refused.refusal == (404, "NotFound", 'configmaps "none" not found')
    assert refused.body["details"] == {"name": "none", "kind": "configmaps"}
    refused = await server.get(LEADER_WORKER_SETS, "none")
    text = 'leaderworkersets.leaderworkerset.x-k8s.io "none" not found'
    assert refused.refusal == (404, "NotFound", text)
    details = {"name": "none", "group": "leaderworkerset.x-k8s.io", "kind": "leaderworkersets"}
    assert refused.body["details"] == details


async def test_a_replacement_from_an_old_version_is_a_conflict(server: Asking) -> None:
    made = (await server.create(LEADER_WORKER_SETS, lws())).ok()
    (await server.patch(LEADER_WORKER_SETS, "llama", {"spec": {"replicas": 3}})).ok()
    refused = await server.put(LEADER_WORKER_SETS, made)
    what = 'Operation cannot be fulfilled on leaderworkersets.leaderworkerset.x-k8s.io "llama"'
    assert refused.refusal == (409, "Conflict", f"{what}: {_GONE}")


async def test_what_is_deleted_is_gone(server: Asking) -> None:
    made = (await server.create(CONFIG_MAPS, config_map())).ok()
    deleted = await server.delete(CONFIG_MAPS, "settings")
    details = {"name": "settings", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert (deleted.code, deleted.body["status"], deleted.body["details"]) == (200, "Success", details)
    assert (await server.get(CONFIG_MAPS, "settings")).code == 404
    refused = await server.delete(CONFIG_MAPS, "settings")
    assert refused.refusal == (404, "NotFound", 'configmaps "settings" not found')
