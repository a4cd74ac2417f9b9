"""Writes that are only tried: answered as if they were done, refused as they would be, and never done."""

from __future__ import annotations

from rollout_lws.objects.resources import CONFIG_MAPS, LEADER_WORKER_SETS
from tests.conformance.asking import Asking
from tests.conformance.objects import config_map, lws

_OPTIONS = ("CreateOptions", "UpdateOptions", "PatchOptions", "DeleteOptions")


async def test_what_is_created_for_trial_is_answered_and_not_kept(server: Asking) -> None:
    tried = await server.create(LEADER_WORKER_SETS, lws(), dryRun="All")
    assert tried.code == 201
    assert tried.body["metadata"]["uid"]
    assert tried.body["spec"]["replicas"] == 1
    assert (await server.get(LEADER_WORKER_SETS, "llama")).code == 404


async def test_what_is_changed_for_trial_is_answered_and_not_kept(server: Asking) -> None:
    made = (await server.create(LEADER_WORKER_SETS, lws())).ok()
    tried = (await server.patch(LEADER_WORKER_SETS, "llama", {"spec": {"replicas": 7}}, dryRun="All")).ok()
    assert (tried["spec"]["replicas"], tried["metadata"]["generation"]) == (7, 2)
    assert tried["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    changed = {**made, "spec": {**made["spec"], "replicas": 8}}
    assert (await server.put(LEADER_WORKER_SETS, changed, dryRun="All")).ok()["spec"]["replicas"] == 8
    applied = await server.apply(
        LEADER_WORKER_SETS, "llama", {"spec": {"startupPolicy": "LeaderCreated"}}, "one", dryRun="All"
    )
    assert applied.ok()["metadata"]["uid"] == made["metadata"]["uid"]
    assert (await server.get(LEADER_WORKER_SETS, "llama")).ok() == made


async def test_an_apply_for_trial_makes_nothing(server: Asking) -> None:
    tried = await server.apply(CONFIG_MAPS, "settings", {"data": {"a": "1"}}, "one", dryRun="All")
    assert (tried.code, tried.body["data"]) == (201, {"a": "1"})
    assert (await server.get(CONFIG_MAPS, "settings")).code == 404


async def test_what_is_deleted_for_trial_stays(server: Asking) -> None:
    made = (await server.create(CONFIG_MAPS, config_map())).ok()
    (await server.delete(CONFIG_MAPS, "settings", dryRun="All")).ok()
    (await server.delete(CONFIG_MAPS, "settings", {"dryRun": ["All"]})).ok()
    (await server.delete_all(CONFIG_MAPS, dryRun="All", labelSelector="!none")).ok()
    assert (await server.get(CONFIG_MAPS, "settings")).ok() == made


async def test_a_trial_is_refused_as_the_write_would_be(server: Asking) -> None:
    made = (await server.create(LEADER_WORKER_SETS, lws())).ok()
    assert (await server.create(LEADER_WORKER_SETS, lws(), dryRun="All")).refusal[:2] == (409, "AlreadyExists")
    bad = {"spec": {"startupPolicy": "Never"}}
    assert (await server.patch(LEADER_WORKER_SETS, "llama", bad, dryRun="All")).refusal[:2] == (422, "Invalid")
    stale = {**made, "metadata": {**made["metadata"], "resourceVersion": "1"}}
    assert (await server.put(LEADER_WORKER_SETS, stale, dryRun="All")).refusal[:2] == (409, "Conflict")
    assert (await server.delete(LEADER_WORKER_SETS, "none", dryRun="All")).refusal[:2] == (404, "NotFound")


async def test_a_trial_is_of_all_stages_or_none(server: Asking) -> None:
    made = (await server.create(CONFIG_MAPS, config_map())).ok()
    refused = [
        await server.create(CONFIG_MAPS, config_map("other"), dryRun="Some"),
        await server.put(CONFIG_MAPS, made, dryRun="Some"),
        await server.patch(CONFIG_MAPS, "settings", {}, dryRun="Some"),
        await server.delete(CONFIG_MAPS, "settings", dryRun="Some"),
    ]
    text = 'is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"'
    messages = [f'{kind}.meta.k8s.io "" {text}' for kind in _OPTIONS]
    assert [each.refusal for each in refused] == [(422, "Invalid", message) for message in messages]
