"""The parts of an object with a door of their own: what it has become, and how many of it there are to be."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import CONFIG_MAPS, LEADER_WORKER_SETS, PODS, STATEFUL_SETS, Resource
from tests.conformance.asking import JSON_PATCH, STRATEGIC, Asking, Object
from tests.conformance.objects import ROLLOUTS, config_map, lws, pod, rollout, stateful_set

_SELECTOR = "leaderworkerset.sigs.k8s.io/name=llama,leaderworkerset.sigs.k8s.io/worker-index=0"
_NOWHERE = (404, "NotFound", "the server could not find the requested resource")


async def test_a_status_is_not_created(server: Asking) -> None:
    made = (await server.create(ROLLOUTS, {**rollout(), "status": {"phase": "Healthy"}})).ok()
    assert "status" not in made
    assert (await server.create(PODS, {**pod(), "status": {"phase": "Running"}})).ok()["status"]["phase"] == "Pending"


async def test_a_status_is_written_by_its_own_door_only(server: Asking) -> None:
    (await server.create(ROLLOUTS, rollout())).ok()
    body: Object = {"spec": {"disabled": True}, "status": {"phase": "Healthy", "message": "told"}}
    told = (await server.patch(ROLLOUTS, "llama", body, subresource="status")).ok()
    assert (told["status"]["phase"], told["status"]["message"]) == ("Healthy", "told")
    assert "disabled" not in told["spec"]
    assert told["metadata"]["generation"] == 1
    body["status"]["phase"] = "Progressing"
    changed = (await server.patch(ROLLOUTS, "llama", body)).ok()
    assert changed["spec"]["disabled"] is True
    assert changed["status"] == told["status"]
    assert (await server.get(ROLLOUTS, "llama", "status")).ok() == changed


async def test_a_status_is_replaced_and_its_fields_removed(server: Asking) -> None:
    made = (await server.create(ROLLOUTS, rollout())).ok()
    told = (await server.put(ROLLOUTS, {**made, "status": {"phase": "Healthy", "message": "told"}}, "status")).ok()
    again = (await server.put(ROLLOUTS, {**told, "status": {"phase": "Healthy"}}, "status")).ok()
    assert again["status"]["phase"] == "Healthy"
    assert "message" not in again["status"]
    stale = await server.put(ROLLOUTS, {**told, "status": {}}, "status")
    assert stale.refusal[:2] == (409, "Conflict")


async def test_a_status_write_leaves_the_labels_of_a_custom_resource_alone(server: Asking) -> None:
    (await server.create(ROLLOUTS, rollout())).ok()
    body = {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}, "status": {"phase": "Healthy"}}
    told = (await server.patch(ROLLOUTS, "llama", body, subresource="status")).ok()["metadata"]
    assert "labels" not in told
    assert "annotations" not in told


async def test_a_status_is_validated(server: Asking) -> None:
    (await server.create(LEADER_WORKER_SETS, lws())).ok()
    body = {"status": {"replicas": "many"}}
    refused = await server.patch(LEADER_WORKER_SETS, "llama", body, subresource="status")
    assert refused.refusal[:2] == (422, "Invalid")
    assert refused.causes[0][:2] == ("FieldValueTypeInvalid", "status.replicas")


async def test_conditions_of_a_built_in_status_are_merged_by_type(server: Asking) -> None:
    (await server.create(PODS, pod())).ok()
    for kind in ("Ready", "PodScheduled", "Ready"):
        condition = {"type": kind, "status": "False", "reason": "Told"}
        body = {"status": {"conditions": [condition]}}
        told = (await server.patch(PODS, "web", body, STRATEGIC, "status")).ok()
    assert sorted(each["type"] for each in told["status"]["conditions"]) == ["PodScheduled", "Ready"]


async def test_what_has_no_status_of_its_own_has_no_door_for_it(server: Asking) -> None:
    (await server.create(CONFIG_MAPS, config_map())).ok()
    assert (await server.get(CONFIG_MAPS, "settings", "status")).refusal == _NOWHERE
    assert (await server.get(CONFIG_MAPS, "settings", "scale")).refusal == _NOWHERE
    assert (await server.patch(CONFIG_MAPS, "settings", {}, subresource="status")).refusal == _NOWHERE


async def test_a_scale_shows_what_is_wanted_and_what_there_is(server: Asking) -> None:
    made = (await server.create(LEADER_WORKER_SETS, lws(replicas=3))).ok()
    body = {"status": {"replicas": 2, "hpaPodSelector": _SELECTOR}}
    told = (await server.patch(LEADER_WORKER_SETS, "llama", body, subresource="status")).ok()
    scale = (await server.get(LEADER_WORKER_SETS, "llama", "scale")).ok()
    assert scale == {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {
            "name": "llama",
            "namespace": server.namespace,
            "uid": made["metadata"]["uid"],
            "resourceVersion": told["metadata"]["resourceVersion"],
            "creationTimestamp": made["metadata"]["creationTimestamp"],
        },
        "spec": {"replicas": 3},
        "status": {"replicas": 2, "selector": _SELECTOR},
    }


async def test_a_scale_is_written(server: Asking) -> None:
    (await server.create(LEADER_WORKER_SETS, lws(replicas=3))).ok()
    scale = (await server.get(LEADER_WORKER_SETS, "llama", "scale")).ok()
    scale["spec"]["replicas"] = 4
    assert (await server.put(LEADER_WORKER_SETS, scale, "scale")).ok()["spec"] == {"replicas": 4}
    patched = await server.patch(LEADER_WORKER_SETS, "llama", {"spec": {"replicas": 5}}, subresource="scale")
    assert patched.ok()["spec"] == {"replicas": 5}
    found = (await server.get(LEADER_WORKER_SETS, "llama")).ok()
    assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (5, 3)
    refused = await server.put(LEADER_WORKER_SETS, scale, "scale")
    assert refused.refusal[:2] == (409, "Conflict")


async def test_a_custom_resource_without_a_number_has_no_scale_until_it_is_given_one(server: Asking) -> None:
    (await server.create(ROLLOUTS, rollout())).ok()
    refused = await server.get(ROLLOUTS, "llama", "scale")
    error = 'Internal error occurred: the spec replicas field ".spec.replicas" does not exist'
    assert refused.refusal == (500, "InternalError", error)
    patched = await server.patch(ROLLOUTS, "llama", {"spec": {"replicas": 5}}, subresource="scale")
    assert patched.ok()["spec"] == {"replicas": 5}
    assert (await server.get(ROLLOUTS, "llama", "scale")).ok()["spec"] == {"replicas": 5}


@pytest.mark.parametrize("subresource", ["", "scale"])
async def test_less_than_none_cannot_be_wanted(server: Asking, subresource: str) -> None:
    (await server.create(LEADER_WORKER_SETS, lws(replicas=3))).ok()
    refused = await server.patch(LEADER_WORKER_SETS, "llama", {"spec": {"replicas": -1}}, subresource=subresource)
    assert refused.refusal[:2] == (422, "Invalid")
    assert (await server.get(LEADER_WORKER_SETS, "llama")).ok()["spec"]["replicas"] == 3


async def test_a_stateful_set_is_scaled_and_tells_its_selector(server: Asking) -> None:
    (await server.create(STATEFUL_SETS, stateful_set())).ok()
    operations = [{"op": "replace", "path": "/spec/replicas", "value": 0}]
    scale = (await server.patch(STATEFUL_SETS, "web", operations, JSON_PATCH, "scale")).ok()
    assert scale["spec"].get("replicas", 0) == 0
    assert scale["status"]["selector"] == "app=web"


@pytest.mark.parametrize("resource", [LEADER_WORKER_SETS, PODS], ids=str)
async def test_the_scale_of_what_is_not_there_is_not_found(server: Asking, resource: Resource) -> None:
    refused = await server.get(resource, "none", "scale")
    expected = (404, "NotFound", f'{resource} "none" not found') if resource == LEADER_WORKER_SETS else _NOWHERE
    assert refused.refusal == expected
