"""Patches of three kinds: a list of operations, an object merged in, and an object merged in as the kind has it."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import CONFIG_MAPS, LEADER_WORKER_SETS, PODS, SERVICES
from tests.conformance.asking import JSON, JSON_PATCH, MERGE, STRATEGIC, Asking, Object
from tests.conformance.objects import config_map, lws, pod, service

_REJECTED = "the server rejected our request due to an error in our request"


async def test_operations_are_carried_out_in_their_order(server: Asking) -> None:
    (await server.create(CONFIG_MAPS, config_map(data={"a": "1", "b": "2", "c": "3"}))).ok()
    operations = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "replace", "path": "/data/a", "value": "10"},
        {"op": "move", "from": "/data/b", "path": "/data/e"},
        {"op": "copy", "from": "/data/a", "path": "/data/f"},
        {"op": "remove", "path": "/data/c"},
        {"op": "replace", "path": "/data/g", "value": "made"},
        {"op": "add", "path": "/metadata/labels", "value": {"app": "chat"}},
        {"op": "add", "path": "/metadata/labels/example.com~1tier", "value": "web"},
        {"op": "add", "path": "/metadata/finalizers", "value": []},
        {"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/b"},
        {"op": "add", "path": "/metadata/finalizers/0", "value": "example.com/a"},
    ]
    patched = (await server.patch(CONFIG_MAPS, "settings", operations, JSON_PATCH)).ok()
    assert patched["data"] == {"a": "10", "e": "2", "f": "10", "g": "made"}
    assert patched["metadata"]["labels"] == {"app": "chat", "example.com/tier": "web"}
    assert patched["metadata"]["finalizers"] == ["example.com/a", "example.com/b"]


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/data/key", "value": "other"},
        {"op": "test", "path": "/data/none", "value": "other"},
        {"op": "remove", "path": "/data/none"},
        {"op": "replace", "path": "/none/deep", "value": "x"},
        {"op": "add", "path": "/none/deep", "value": "x"},
        {"op": "copy", "from": "/none/deep", "path": "/data/x"},
    ],
    ids=lambda each: f"{each['op']} {each['path']}",
)
async def test_an_operation_that_does_not_apply_changes_nothing(server: Asking, operation: Object) -> None:
    made = (await server.create(CONFIG_MAPS, config_map())).ok()
    operations = [{"op": "add", "path": "/data/other", "value": "x"}, operation]
    refused = await server.patch(CONFIG_MAPS, "settings", operations, JSON_PATCH)
    assert refused.refusal == (422, "Invalid", _REJECTED)
    assert (await server.get(CONFIG_MAPS, "settings")).ok() == made


async def test_a_version_may_be_tested_for(server: Asking) -> None:
    made = (await server.create(LEADER_WORKER_SETS, lws(replicas=1))).ok()
    operations = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": made["metadata"]["resourceVersion"]},
        {"op": "replace", "path": "/spec/replicas", "value": 2},
    ]
    (await server.patch(LEADER_WORKER_SETS, "llama", operations, JSON_PATCH)).ok()
    refused = await server.patch(LEADER_WORKER_SETS, "llama", operations, JSON_PATCH)
    assert refused.refusal == (422, "Invalid", _REJECTED)


async def test_operations_that_are_none_are_refused(server: Asking) -> None:
    (await server.create(CONFIG_MAPS, config_map())).ok()
    refused = await server.patch(CONFIG_MAPS, "settings", {"op": "remove"}, JSON_PATCH)
    assert refused.refusal[:2] == (400, "BadRequest")
    refused = await server.patch(CONFIG_MAPS, "settings", [{"op": "sing", "path": "/data/key"}], JSON_PATCH)
    assert refused.refusal == (422, "Invalid", _REJECTED)


async def test_an_object_is_merged_in_and_null_removes(server: Asking) -> None:
    (await server.create(CONFIG_MAPS, config_map(data={"a": "1", "b": "2"}, labels={"app": "chat"}))).ok()
    body = {"data": {"a": None, "c": "3", "none": None}, "metadata": {"labels": None}}
    patched = (await server.patch(CONFIG_MAPS, "settings", body)).ok()
    assert patched["data"] == {"b": "2", "c": "3"}
    assert "labels" not in patched["metadata"]


async def test_a_merged_list_replaces_the_old_one(server: Asking) -> None:
    (await server.create(SERVICES, service())).ok()
    ports = [{"name": "grpc", "port": 81}, {"name": "admin", "port": 82}]
    patched = (await server.patch(SERVICES, "web", {"spec": {"ports": ports}})).ok()
    assert [port["name"] for port in patched["spec"]["ports"]] == ["grpc", "admin"]


async def test_a_merge_of_what_is_no_object_is_refused(server: Asking) -> None:
    (await server.create(CONFIG_MAPS, config_map())).ok()
    bodies: list[Any] = [[], "text", 7]
    for body in bodies:
        refused = await server.patch(CONFIG_MAPS, "settings", body)
        assert refused.refusal[:2] == (400, "BadRequest")


async def test_lists_of_built_in_kinds_are_merged_by_their_keys(server: Asking) -> None:
    (await server.create(PODS, pod(finalizers=["example.com/a"]))).ok()
    body: Object = {
        "metadata": {"finalizers": ["example.com/b"]},
        "spec": {"containers": [{"name": "main", "image": "registry.example/web:2"}]},
    }
    patched = (await server.patch(PODS, "web", body, STRATEGIC)).ok()
    assert set(patched["metadata"]["finalizers"]) == {"example.com/a", "example.com/b"}
    (container,) = patched["spec"]["containers"]
    assert container["image"] == "registry.example/web:2"
    assert container["terminationMessagePolicy"] == "File"


async def test_directives_replace_delete_and_order(server: Asking) -> None:
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}, {"name": "c", "port": 82}]
    (await server.create(SERVICES, service(ports=ports, selector={"app": "chat", "tier": "web"}))).ok()

    async def ports_after(spec: Object) -> list[str]:
        patched = (await server.patch(SERVICES, "web", {"spec": spec}, STRATEGIC)).ok()
        return [port["name"] for port in patched["spec"]["ports"]]

    assert await ports_after({"ports": [{"port": 81, "$patch": "delete"}]}) == ["a", "c"]
    order = [{"port": 82}, {"port": 80}]
    assert await ports_after({"$setElementOrder/ports": order, "ports": []}) == ["c", "a"]
    assert await ports_after({"ports": [{"name": "d", "port": 83}, {"$patch": "replace"}]}) == ["d"]
    body: Object = {"spec": {"selector": {"$patch": "replace", "app": "other"}}}
    patched = (await server.patch(SERVICES, "web", body, STRATEGIC)).ok()
    assert patched["spec"]["selector"] == {"app": "other"}


async def test_members_of_a_set_are_taken_out_by_a_directive(server: Asking) -> None:
    (await server.create(CONFIG_MAPS, config_map(finalizers=["example.com/a", "example.com/b"]))).ok()
    body = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}
    patched = (await server.patch(CONFIG_MAPS, "settings", body, STRATEGIC)).ok()
    assert patched["metadata"]["finalizers"] == ["example.com/b"]


async def test_custom_resources_know_no_strategy(server: Asking) -> None:
    (await server.create(LEADER_WORKER_SETS, lws())).ok()
    refused = await server.patch(LEADER_WORKER_SETS, "llama", {"spec": {"replicas": 2}}, STRATEGIC)
    accepted = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    assert refused.refusal == (415, "UnsupportedMediaType", message)


async def test_a_patch_must_say_of_what_kind_it_is(server: Asking) -> None:
    (await server.create(CONFIG_MAPS, config_map())).ok()
    refused = await server.patch(CONFIG_MAPS, "settings", {"data": {}}, JSON)
    assert refused.refusal[:2] == (415, "UnsupportedMediaType")


@pytest.mark.parametrize(("kind", "body"), [(JSON_PATCH, []), (MERGE, {}), (STRATEGIC, {})])
async def test_what_is_not_there_cannot_be_patched(server: Asking, kind: str, body: Object) -> None:
    refused = await server.patch(CONFIG_MAPS, "none", body, kind)
    assert refused.refusal == (404, "NotFound", 'configmaps "none" not found')


async def test_a_patch_that_would_make_an_invalid_object_is_refused(server: Asking) -> None:
    made = (await server.create(LEADER_WORKER_SETS, lws())).ok()
    refused = await server.patch(LEADER_WORKER_SETS, "llama", {"spec": {"startupPolicy": "Never"}})
    text = 'Unsupported value: "Never": supported values: "LeaderCreated", "LeaderReady"'
    message = f'LeaderWorkerSet.leaderworkerset.x-k8s.io "llama" is invalid: spec.startupPolicy: {text}'
    assert refused.refusal == (422, "Invalid", message)
    assert refused.causes == [("FieldValueNotSupported", "spec.startupPolicy", text)]
    assert (await server.get(LEADER_WORKER_SETS, "llama")).ok() == made
