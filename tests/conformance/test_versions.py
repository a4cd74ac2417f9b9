"""What counts as a change: resourceVersion moves with each, generation with those of what is wanted."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import CONFIG_MAPS, LEADER_WORKER_SETS, PODS, SERVICES
from tests.conformance.asking import Asking, Object
from tests.conformance.objects import ROLLOUTS, config_map, lws, pod, rollout, service

_LWS = "leaderworkersets.leaderworkerset.x-k8s.io"
_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def counted(obj: Object) -> tuple[int, int]:
    """Resource version and generation."""
    return int(obj["metadata"]["resourceVersion"]), obj["metadata"]["generation"]


async def test_writes_that_change_nothing_leave_the_object_as_it_is(server: Asking) -> None:
    made = (await server.create(LEADER_WORKER_SETS, lws(replicas=2))).ok()
    assert (await server.put(LEADER_WORKER_SETS, made)).ok() == made
    assert (await server.patch(LEADER_WORKER_SETS, "llama", {})).ok() == made
    assert (await server.patch(LEADER_WORKER_SETS, "llama", {"spec": {"replicas": 2}})).ok() == made
    assert (await server.patch(LEADER_WORKER_SETS, "llama", {}, subresource="status")).ok() == made
    assert (await server.get(LEADER_WORKER_SETS, "llama")).ok() == made


async def test_resource_versions_grow_over_all_kinds(server: Asking) -> None:
    seen = [
        (await server.create(CONFIG_MAPS, config_map())).ok(),
        (await server.create(LEADER_WORKER_SETS, lws())).ok(),
        (await server.patch(CONFIG_MAPS, "settings", {"data": {"key": "other"}})).ok(),
        (await server.patch(LEADER_WORKER_SETS, "llama", {"metadata": {"labels": {"a": "b"}}})).ok(),
    ]
    versions = [int(obj["metadata"]["resourceVersion"]) for obj in seen]
    assert versions == sorted(set(versions))


async def test_generation_counts_changes_of_the_spec_only(server: Asking) -> None:
    made = counted((await server.create(LEADER_WORKER_SETS, lws())).ok())
    assert made[1] == 1
    labelled = counted((await server.patch(LEADER_WORKER_SETS, "llama", {"metadata": {"labels": {"a": "b"}}})).ok())
    assert labelled[1] == 1
    assert labelled[0] > made[0]
    scaled = counted((await server.patch(LEADER_WORKER_SETS, "llama", {"spec": {"replicas": 5}})).ok())
    assert scaled[1] == 2
    told = (await server.patch(LEADER_WORKER_SETS, "llama", {"status": {"replicas": 1}}, subresource="status")).ok()
    assert counted(told)[1] == 2
    assert counted(told)[0] > scaled[0]


async def test_pods_are_counted_too_and_services_are_not(server: Asking) -> None:
    (await server.create(PODS, pod())).ok()
    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "registry.example/web:2"}]
    changed = (await server.patch(PODS, "web", image, "application/json-patch+json")).ok()
    assert changed["metadata"]["generation"] == 2
    assert "generation" not in (await server.create(SERVICES, service())).ok()["metadata"]


async def test_a_generation_cannot_be_chosen(server: Asking) -> None:
    (await server.create(ROLLOUTS, rollout())).ok()
    changed = (await server.patch(ROLLOUTS, "llama", {"metadata": {"generation": 9}, "spec": {"disabled": True}})).ok()
    assert changed["metadata"]["generation"] == 2


async def test_a_built_in_object_is_replaced_whatever_its_version(server: Asking) -> None:
    made = (await server.create(CONFIG_MAPS, config_map())).ok()
    replaced = (await server.put(CONFIG_MAPS, config_map(data={"other": "value"}))).ok()
    assert replaced["data"] == {"other": "value"}
    assert replaced["metadata"]["uid"] == made["metadata"]["uid"]
    assert replaced["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]


async def test_a_custom_resource_is_replaced_only_by_who_has_seen_it(server: Asking) -> None:
    (await server.create(LEADER_WORKER_SETS, lws())).ok()
    refused = await server.put(LEADER_WORKER_SETS, lws())
    text = "Invalid value: 0: must be specified for an update"
    message = f'{_LWS} "llama" is invalid: metadata.resourceVersion: {text}'
    assert refused.refusal == (422, "Invalid", message)
    assert refused.causes == [("FieldValueInvalid", "metadata.resourceVersion", text)]


async def test_what_does_not_exist_cannot_be_replaced(server: Asking) -> None:
    refused = await server.put(CONFIG_MAPS, config_map("none"))
    assert refused.refusal == (404, "NotFound", 'configmaps "none" not found')


@pytest.mark.parametrize("subresource", ["", "status"])
async def test_a_patch_may_be_bound_to_a_version(server: Asking, subresource: str) -> None:
    made = (await server.create(LEADER_WORKER_SETS, lws())).ok()
    version = made["metadata"]["resourceVersion"]
    body: Object = {"metadata": {"resourceVersion": version}, "spec": {"replicas": 2}, "status": {"replicas": 2}}
    (await server.patch(LEADER_WORKER_SETS, "llama", body, subresource=subresource)).ok()
    body["spec"]["replicas"] = body["status"]["replicas"] = 3
    refused = await server.patch(LEADER_WORKER_SETS, "llama", body, subresource=subresource)
    message = f'Operation cannot be fulfilled on {_LWS} "llama": {_MODIFIED}'
    assert refused.refusal == (409, "Conflict", message)
    assert refused.body["details"] == {
        "name": "llama",
        "group": LEADER_WORKER_SETS.group,
        "kind": LEADER_WORKER_SETS.plural,
    }


async def test_an_object_of_another_uid_is_not_replaced(server: Asking) -> None:
    uid = (await server.create(CONFIG_MAPS, config_map())).ok()["metadata"]["uid"]
    refused = await server.put(CONFIG_MAPS, config_map(uid="other"))
    why = f"Precondition failed: UID in precondition: other, UID in object meta: {uid}"
    assert refused.refusal[:2] == (409, "Conflict")
    assert refused.refusal[2].startswith('Operation cannot be fulfilled on configmaps "settings": ')
    assert refused.refusal[2].endswith(why)


async def test_a_patch_does_not_make_another_thing_of_an_object(server: Asking) -> None:
    (await server.create(LEADER_WORKER_SETS, lws())).ok()
    refused = await server.patch(LEADER_WORKER_SETS, "llama", {"kind": "Other"})
    text = 'kind: Invalid value: "Other": must be LeaderWorkerSet'
    assert refused.refusal == (422, "Invalid", f'Other.leaderworkerset.x-k8s.io "llama" is invalid: {text}')
    refused = await server.patch(LEADER_WORKER_SETS, "llama", {"apiVersion": "x/v1"})
    text = 'apiVersion: Invalid value: "x/v1": must be leaderworkerset.x-k8s.io/v1'
    assert refused.refusal == (422, "Invalid", f'LeaderWorkerSet.x "llama" is invalid: {text}')
    refused = await server.patch(LEADER_WORKER_SETS, "llama", {"metadata": {"namespace": "other"}})
    text = "the namespace of the provided object does not match the namespace sent on the request"
    assert refused.refusal == (400, "BadRequest", text)
    kept = (
        await server.patch(LEADER_WORKER_SETS, "llama", {"metadata": {"uid": None, "creationTimestamp": None}})
    ).ok()
    assert kept == (await server.get(LEADER_WORKER_SETS, "llama")).ok()
    assert kept["metadata"]["uid"]


async def test_a_body_for_another_name_or_namespace_is_refused(server: Asking) -> None:
    (await server.create(CONFIG_MAPS, config_map())).ok()
    path = CONFIG_MAPS.path(server.namespace, "settings")
    refused = await server.ask("PUT", path, config_map("other"))
    assert refused.refusal == (
        400,
        "BadRequest",
        "the name of the object (other) does not match the name on the URL (settings)",
    )
    refused = await server.create(CONFIG_MAPS, config_map("other", namespace="elsewhere"))
    assert refused.refusal == (
        400,
        "BadRequest",
        "the namespace of the provided object does not match the namespace sent on the request",
    )
    refused = await server.patch(CONFIG_MAPS, "settings", {"metadata": {"name": "other"}})
    assert refused.refusal == (
        400,
        "BadRequest",
        "the name of the object (other) does not match the name on the URL (settings)",
    )
