"""Field ownership: who may change what by apply, and what becomes of fields that an applier drops."""

from __future__ import annotations

from typing import Any

from rollout_lws.objects.resources import CONFIG_MAPS, LEADER_WORKER_SETS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.patching.patches import APPLY_PATCH
from rollout_lws.sandbox.store import Object
from tests.sandbox.conftest import config_map, refused


def apply(server: ApiServer, manager: str, *, force: bool = False, **data: str) -> Object:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "data": data}
    return server.patch(CONFIG_MAPS, "default", "settings", body, APPLY_PATCH, field_manager=manager, force=force)


def test_apply_creates_and_repeats_without_a_change(server: ApiServer) -> None:
    made = apply(server, "me", a="1")
    assert made["data"] == {"a": "1"}
    assert made["metadata"]["managedFields"][0]["fieldsV1"] == {"f:data": {"f:a": {}}}
    assert apply(server, "me", a="1") is made


def test_another_applier_conflicts_and_may_force(server: ApiServer) -> None:
    apply(server, "me", a="1", b="1")
    with refused(409, "Conflict", 'Apply failed with 1 conflict: conflict with "me": .data.a'):
        apply(server, "you", a="2")
    assert apply(server, "you", force=True, a="2")["data"] == {"a": "2", "b": "1"}
    with refused(409, "Conflict", 'conflict with "you"'):
        apply(server, "me", a="1", b="1")


def test_fields_with_the_same_value_are_shared_and_stay_until_both_drop_them(server: ApiServer) -> None:
    apply(server, "me", a="1")
    apply(server, "you", a="1", b="1")
    assert apply(server, "me")["data"] == {"a": "1", "b": "1"}
    assert apply(server, "you", b="1")["data"] == {"b": "1"}


def test_an_update_takes_the_fields_it_changes(server: ApiServer) -> None:
    apply(server, "me", a="1")
    server.patch(CONFIG_MAPS, "default", "settings", {"data": {"a": "2"}}, field_manager="editor")
    with refused(409, "Conflict", 'conflict with "editor" using v1: .data.a'):
        apply(server, "me", a="1")


def test_the_first_apply_respects_what_nobody_recorded(server: ApiServer) -> None:
    server.create(CONFIG_MAPS, config_map(a="1"))
    with refused(409, "Conflict", 'conflict with "before-first-apply"'):
        apply(server, "me", a="2")
    assert apply(server, "me", b="2")["data"] == {"a": "1", "b": "2"}


def test_a_status_is_applied_apart(lws_server: ApiServer) -> None:
    spec = {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}}}

    def put(manager: str, subresource: str = "", **body: Any) -> Object:
        kind = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
        return lws_server.patch(
            LEADER_WORKER_SETS,
            "default",
            "demo",
            {**kind, **body},
            APPLY_PATCH,
            field_manager=manager,
            subresource=subresource,
        )

    put("me", spec=spec)
    made = put("them", "status", status={"replicas": 1})
    assert made["status"] == {"replicas": 1}
    assert {entry.get("subresource", "") for entry in made["metadata"]["managedFields"]} == {"", "status"}
    fewer = {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": [{"name": "b"}]}}}}
    made = put("me", spec=fewer)
    containers = made["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"]
    assert [entry["name"] for entry in containers] == ["b"]
    assert made["status"] == {"replicas": 1}


def test_a_replacement_that_forgets_the_owners_does_not_lose_them(server: ApiServer) -> None:
    made = apply(server, "me", a="1")
    bare = {key: value for key, value in made["metadata"].items() if key != "managedFields"}
    assert server.replace(CONFIG_MAPS, {**made, "metadata": bare}) is made


def test_a_manager_must_name_itself(server: ApiServer) -> None:
    with refused(422, "Invalid", "fieldManager: Required value"):
        apply(server, "")
