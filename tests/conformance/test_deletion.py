"""How an object goes: conditions, finalizers and a pod's grace."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import CONFIG_MAPS, LEADER_WORKER_SETS, PODS
from tests.conformance.asking import Asking, Object
from tests.conformance.objects import ROLLOUTS, config_map, lws, pod, rollout

HELD = "example.com/held"


async def test_a_deletion_may_be_meant_for_one_object_only(server: Asking) -> None:
    uid = (await server.create(CONFIG_MAPS, config_map())).ok()["metadata"]["uid"]
    refused = await server.delete(CONFIG_MAPS, "settings", {"preconditions": {"uid": "other"}})
    why = f"the UID in the precondition (other) does not match the UID in record ({uid}). "
    text = "The object might have been deleted and then recreated"
    assert refused.refusal == (
        409,
        "Conflict",
        f'Operation cannot be fulfilled on ConfigMap "settings": {why}{text}',
    )
    (await server.delete(CONFIG_MAPS, "settings", {"preconditions": {"uid": uid}})).ok()
    assert (await server.get(CONFIG_MAPS, "settings")).code == 404


async def test_a_deletion_may_be_meant_for_one_version_only(server: Asking) -> None:
    old = (await server.create(LEADER_WORKER_SETS, lws())).ok()["metadata"]
    new = (await server.patch(LEADER_WORKER_SETS, "llama", {"spec": {"replicas": 4}})).ok()["metadata"]
    conditions = {"uid": old["uid"], "resourceVersion": old["resourceVersion"]}
    refused = await server.delete(LEADER_WORKER_SETS, "llama", {"preconditions": conditions})
    why = (
        f"the ResourceVersion in the precondition ({old['resourceVersion']}) does not match the ResourceVersion in "
        f"record ({new['resourceVersion']}). The object might have been modified"
    )
    what = 'Operation cannot be fulfilled on LeaderWorkerSet.leaderworkerset.x-k8s.io "llama"'
    assert refused.refusal == (409, "Conflict", f"{what}: {why}")
    conditions["resourceVersion"] = new["resourceVersion"]
    (await server.delete(LEADER_WORKER_SETS, "llama", {"preconditions": conditions})).ok()
    assert (await server.get(LEADER_WORKER_SETS, "llama")).code == 404


async def test_a_finalizer_keeps_an_object_that_is_marked(server: Asking) -> None:
    made = (await server.create(ROLLOUTS, {**rollout(), "metadata": {"name": "llama", "finalizers": [HELD]}})).ok()
    deleted = (await server.delete(ROLLOUTS, "llama")).ok()
    assert deleted["kind"] == "Rollout"
    meta = deleted["metadata"]
    assert meta["deletionTimestamp"]
    assert meta["deletionGracePeriodSeconds"] == 0
    assert meta["generation"] == made["metadata"]["generation"] + 1
    assert (await server.get(ROLLOUTS, "llama")).ok() == deleted
    assert (await server.delete(ROLLOUTS, "llama")).ok() == deleted
    last = (await server.patch(ROLLOUTS, "llama", {"metadata": {"finalizers": None}})).ok()
    assert last["metadata"]["deletionTimestamp"] == meta["deletionTimestamp"]
    assert "finalizers" not in last["metadata"]
    assert (await server.get(ROLLOUTS, "llama")).code == 404


async def test_what_is_being_deleted_can_still_be_changed(server: Asking) -> None:
    (await server.create(CONFIG_MAPS, config_map(finalizers=[HELD]))).ok()
    (await server.delete(CONFIG_MAPS, "settings")).ok()
    changed = (await server.patch(CONFIG_MAPS, "settings", {"data": {"key": "other"}})).ok()
    assert changed["data"] == {"key": "other"}
    kept = (await server.patch(CONFIG_MAPS, "settings", {"metadata": {"deletionTimestamp": None}})).ok()
    assert kept["metadata"]["deletionTimestamp"]


async def test_what_is_being_deleted_gets_no_new_finalizers(server: Asking) -> None:
    (await server.create(CONFIG_MAPS, config_map(finalizers=[HELD]))).ok()
    (await server.delete(CONFIG_MAPS, "settings")).ok()
    refused = await server.patch(CONFIG_MAPS, "settings", {"metadata": {"finalizers": [HELD, "example.com/new"]}})
    text = (
        "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
        '[]string{"example.com/new"}'
    )
    assert refused.refusal == (
        422,
        "Invalid",
        f'ConfigMap "settings" is invalid: metadata.finalizers: {text}',
    )
    assert set(refused.causes) == {("FieldValueForbidden", "metadata.finalizers", text)}


async def test_a_finalizer_needs_a_qualified_name(server: Asking) -> None:
    refused = await server.create(CONFIG_MAPS, config_map(finalizers=["with space"]))
    assert refused.refusal[:2] == (422, "Invalid")
    assert [cause[:2] for cause in refused.causes] == [
        ("FieldValueInvalid", "metadata.finalizers"),
        ("FieldValueInvalid", "metadata.finalizers[0]"),
    ]


def placed(**spec: object) -> Object:
    """A pod on a node, as a kubelet would have it to wind down."""
    body = pod()
    body["spec"] |= {"nodeName": "nowhere", "terminationGracePeriodSeconds": 30, **spec}
    return body


async def test_a_pod_on_a_node_is_given_its_grace(server: Asking) -> None:
    (await server.create(PODS, placed())).ok()
    marked = (await server.delete(PODS, "web")).ok()["metadata"]
    assert marked["deletionGracePeriodSeconds"] == 30
    assert marked["deletionTimestamp"] > marked["creationTimestamp"]
    found = (await server.get(PODS, "web")).ok()["metadata"]
    assert found["deletionTimestamp"] == marked["deletionTimestamp"]


async def test_a_grace_can_be_shortened_but_not_made_longer(server: Asking) -> None:
    (await server.create(PODS, placed())).ok()
    (await server.delete(PODS, "web", {"gracePeriodSeconds": 20})).ok()
    longer = (await server.delete(PODS, "web", {"gracePeriodSeconds": 40})).ok()
    assert longer["metadata"]["deletionGracePeriodSeconds"] == 20
    shorter = (await server.delete(PODS, "web", {"gracePeriodSeconds": 10})).ok()
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 10
    last = (await server.delete(PODS, "web", {"gracePeriodSeconds": 0})).ok()
    assert last["metadata"]["deletionGracePeriodSeconds"] == 0
    assert (await server.get(PODS, "web")).code == 404


async def test_a_pod_without_a_node_goes_at_once(server: Asking) -> None:
    body = placed()
    del body["spec"]["nodeName"]
    (await server.create(PODS, body)).ok()
    gone = (await server.delete(PODS, "web")).ok()
    assert gone["kind"] == "Pod"
    assert (await server.get(PODS, "web")).code == 404


async def test_the_grace_of_a_pod_with_a_finalizer_ends_before_it_goes(server: Asking) -> None:
    body = placed()
    body["metadata"]["finalizers"] = [HELD]
    (await server.create(PODS, body)).ok()
    (await server.delete(PODS, "web")).ok()
    (await server.patch(PODS, "web", {"metadata": {"finalizers": None}})).ok()
    assert (await server.get(PODS, "web")).code == 200
    (await server.delete(PODS, "web", {"gracePeriodSeconds": 0})).ok()
    assert (await server.get(PODS, "web")).code == 404


async def test_a_mode_takes_back_what_another_has_set(server: Asking) -> None:
    (await server.create(PODS, placed())).ok()
    waiting = (await server.delete(PODS, "web", {"propagationPolicy": "Foreground"})).ok()
    assert waiting["metadata"]["finalizers"] == ["foregroundDeletion"]
    (await server.delete(PODS, "web", {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})).ok()
    assert (await server.get(PODS, "web")).code == 404


async def test_options_may_stand_in_the_query(server: Asking) -> None:
    (await server.create(PODS, placed())).ok()
    (await server.delete(PODS, "web", gracePeriodSeconds="0")).ok()
    assert (await server.get(PODS, "web")).code == 404


async def test_a_grace_that_is_no_number_is_refused(server: Asking) -> None:
    (await server.create(PODS, placed())).ok()
    refused = await server.delete(PODS, "web", {"gracePeriodSeconds": "soon"})
    assert refused.refusal[:2] == (400, "BadRequest")
    assert "DeleteOptions.gracePeriodSeconds" in refused.refusal[2]


async def test_an_unknown_propagation_is_refused(server: Asking) -> None:
    (await server.create(CONFIG_MAPS, config_map())).ok()
    refused = await server.delete(CONFIG_MAPS, "settings", {"propagationPolicy": "Sideways"})
    text = 'Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil"'
    message = f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: {text}'
    assert refused.refusal == (422, "Invalid", message)
    assert (await server.get(CONFIG_MAPS, "settings")).code == 200


@pytest.mark.parametrize(
    ("selector", "doomed"),
    [({"labelSelector": "app=chat"}, ["a", "b"]), ({"fieldSelector": "metadata.name=b"}, ["b"])],
    ids=["labels", "fields"],
)
async def test_a_collection_is_deleted_by_a_selector(
    server: Asking, selector: dict[str, str], doomed: list[str]
) -> None:
    apps = {"a": "chat", "b": "chat", "c": "other"}
    for name, app in apps.items():
        (await server.create(CONFIG_MAPS, config_map(name, labels={"app": app}))).ok()
    answer = (await server.delete_all(CONFIG_MAPS, **selector)).ok()
    assert answer["kind"] == "ConfigMapList"
    assert [item["metadata"]["name"] for item in answer["items"]] == doomed
    left = (await server.list(CONFIG_MAPS, labelSelector="app")).ok()["items"]
    assert [item["metadata"]["name"] for item in left] == [name for name in apps if name not in doomed]
