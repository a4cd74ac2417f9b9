"""StatefulSets as targets: their version, their hold whatever the strategy, their copies, and what a cache keeps."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rollout_lws.objects.resources import STATEFUL_SETS
from rollout_lws.objects.workloads import ControllerRevision
from rollout_lws.observe.cache_types import TRIMMED
from rollout_lws.sandbox.patching.patches import merge_patch
from rollout_lws.targets.stateful_set import FORMAT, StatefulSetTarget
from rollout_lws.targets.table import stored_version
from rollout_lws.workload.canary import canary_body, canary_name
from rollout_lws.workload.claims import kept
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import groups
from rollout_lws.workload.hold import (
    HOLD,
    advice,
    foreign_members,
    give_back,
    hold,
    is_held,
    users_strategy,
    window,
    writer_of_strategy,
)
from rollout_lws.workload.revisions import current_revision, needless_records, recorded_version, target_revision
from tests.workload.build import KEYS, UID

TEMPLATE = {
    "metadata": {"labels": {"app": "llama"}},
    "spec": {"containers": [{"name": "vllm", "image": "vllm:v1"}]},
}
CLAIM = {"metadata": {"name": "cache"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
ON_DELETE = {"type": "OnDelete"}


def manifest(strategy: dict[str, Any] | None = None, replicas: int = 3, **spec: Any) -> dict[str, Any]:
    """As the API server stores it."""
    return {
        "metadata": {"name": "llama", "namespace": "prod", "uid": "1", "generation": 1, "labels": {"team": "ml"}},
        "spec": {
            "replicas": replicas,
            "serviceName": "llama",
            "selector": {"matchLabels": {"app": "llama"}},
            "template": TEMPLATE,
            "podManagementPolicy": "Parallel",
            "updateStrategy": strategy or {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            **spec,
        },
        "status": {
            "observedGeneration": 1,
            "replicas": replicas,
            "currentRevision": "llama-old",
            "updateRevision": "llama-new",
        },
    }


def typed(body: dict[str, Any]) -> StatefulSetTarget:
    return msgspec.json.decode(msgspec.json.encode(body), type=StatefulSetTarget)


def patched(body: dict[str, Any], patch: dict[str, Any] | None) -> dict[str, Any]:
    after = merge_patch(body, patch or {})
    if after["spec"]["updateStrategy"]["type"] == "OnDelete":
        # The API server refuses parameters with it.
        assert "rollingUpdate" not in after["spec"]["updateStrategy"]
    return after


def rolling(**parameters: Any) -> dict[str, Any]:
    return {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, **parameters}}


@pytest.mark.parametrize(
    "strategy",
    [rolling(), rolling(partition=2), rolling(maxUnavailable=2), rolling(maxUnavailable="10%"), ON_DELETE],
    ids=str,
)
def test_a_hold_starts_nothing_and_restores_exactly_what_was_there(strategy: dict[str, Any]) -> None:
    before = manifest(strategy)
    held = patched(before, hold(typed(before), KEYS, UID))
    assert is_held(typed(held))
    assert held["spec"]["updateStrategy"]["type"] == "RollingUpdate"
    assert hold(typed(held), KEYS, UID) is None, "it is held"
    assert users_strategy(typed(held), KEYS) == typed(before).strategy
    after = patched(held, give_back(typed(held), KEYS))
    assert after["spec"] == before["spec"]
    assert KEYS.original not in after["metadata"].get("annotations", {})


def test_a_strategy_on_delete_is_no_hold_however_high_its_partition_was() -> None:
    """A pod that is evicted would come back at the newest version."""
    before = manifest(ON_DELETE)
    held = patched(before, hold(typed(before), KEYS, UID))
    reset = merge_patch(held, {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}})
    assert not is_held(typed(reset))
    assert set(foreign_members(typed(reset), KEYS)) == {"type", "partition"}
    again = patched(reset, hold(typed(reset), KEYS, UID))
    assert is_held(typed(again))
    assert users_strategy(typed(again), KEYS).type == "OnDelete"


@pytest.mark.parametrize(
    ("strategy", "parameters"),
    [
        (rolling(), {"partition": 1}),
        (rolling(maxUnavailable=1), {"partition": 1, "maxUnavailable": 2}),
        (rolling(maxUnavailable=3), {"partition": 1, "maxUnavailable": 3}),
    ],
    ids=str,
)
def test_a_window_writes_max_unavailable_only_where_the_server_stores_it(
    strategy: dict[str, Any], parameters: dict[str, Any]
) -> None:
    before = manifest(strategy)
    held = patched(before, hold(typed(before), KEYS, UID))
    opened = patched(held, window(typed(held), KEYS, UID, 1, 2))
    assert opened["spec"]["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": parameters}
    assert window(typed(opened), KEYS, UID, 1, 2) is None, "it is open"
    closed = patched(opened, hold(typed(opened), KEYS, UID))
    assert patched(closed, give_back(typed(closed), KEYS))["spec"] == before["spec"]


@pytest.mark.parametrize(
    ("strategy", "told"),
    [
        (rolling(), "remove rollingUpdate.partition from its manifest"),
        (ON_DELETE, "remove updateStrategy.type from its manifest"),
    ],
    ids=str,
)
def test_the_owner_of_a_manifest_is_told_what_to_leave_out(strategy: dict[str, Any], told: str) -> None:
    before = manifest(strategy)
    assert advice(typed(patched(before, hold(typed(before), KEYS, UID))), KEYS) == told


def test_its_version_is_the_template_alone() -> None:
    version = typed(manifest()).version
    assert typed(manifest(ON_DELETE, replicas=9, volumeClaimTemplates=[CLAIM])).version == version
    other = {**TEMPLATE, "spec": {"containers": [{"name": "vllm", "image": "vllm:v2"}]}}
    assert typed(manifest(template=other)).version.template_hash != version.template_hash
    record = {
        "metadata": {
            "name": "llama-old",
            "labels": {"app": "llama", "controller.kubernetes.io/hash": "old"},
            "ownerReferences": [{"kind": "StatefulSet", "name": "llama", "uid": "1", "controller": True}],
        },
        "data": {"spec": {"template": {**TEMPLATE, "$patch": "replace"}}},
        "revision": 1,
    }
    found = TRIMMED.revision(msgspec.json.encode(record))
    assert recorded_version(found) == version
    assert (found.revision_hash, found.workload) == ("llama-old", "llama")
    whole = msgspec.json.decode(msgspec.json.encode(record), type=ControllerRevision)
    assert recorded_version(whole) == version


def test_its_copy_differs_by_its_name_and_one_label() -> None:
    more = {"ordinals": {"start": 2}, "minReadySeconds": 5, "volumeClaimTemplates": [CLAIM]}
    retained = {"whenDeleted": "Retain", "whenScaled": "Delete"}
    stable = typed(manifest(ON_DELETE, **more, persistentVolumeClaimRetentionPolicy=retained))
    patch = {"labels": {"lane": "new"}}
    made = canary_body(stable, KEYS, owner={"uid": "9", "controller": True}, replicas=2, metadata_patch=patch)
    assert made["metadata"]["name"] == canary_name(stable) == "llama-canary"
    assert made["spec"] == {
        "replicas": 2,
        "serviceName": "llama",
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": {"app": "llama", KEYS.made: "llama-canary"}},
        "template": {
            **TEMPLATE,
            "metadata": {"labels": {"app": "llama", "lane": "new", KEYS.made: "llama-canary"}},
        },
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "persistentVolumeClaimRetentionPolicy": retained,
        **more,
    }


def test_expressions_of_its_selector_are_copied() -> None:
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["llama"]}]}
    made = canary_body(typed(manifest(selector=selector)), KEYS, owner={"uid": "9"}, replicas=1)
    assert made["spec"]["selector"] == {**selector, "matchLabels": {KEYS.made: "llama-canary"}}


def pod(index: int, revision: str) -> dict[str, Any]:
    labels = {
        "app": "llama",
        "statefulset.kubernetes.io/pod-name": f"llama-{index}",
        "apps.kubernetes.io/pod-index": str(index),
        "controller-revision-hash": revision,
    }
    return {"metadata": {"name": f"llama-{index}", "namespace": "prod", "uid": str(index), "labels": labels}}


def test_its_groups_are_its_pods_and_their_places_begin_at_the_first_ordinal() -> None:
    workload = typed(manifest(ordinals={"start": 5}))
    pods = tuple(TRIMMED.leader(msgspec.json.encode(pod(index, "llama-old"))) for index in (7, 5))
    facts = Facts(workload, workload.leader_set, pods)
    assert [(each.index, each.ordinal, each.size) for each in groups(facts)] == [("5", 0, 1), ("7", 2, 1)]
    assert {each.workload for each in pods} == {"llama"}
    assert (target_revision(facts), current_revision(facts)) == ("llama-new", "llama-old")
    assert needless_records(facts, "llama-old") == [], "its controller keeps as many as the user wants"


def test_claims_that_stay_have_the_names_of_its_pods() -> None:
    workload = typed(manifest(ordinals={"start": 5}, volumeClaimTemplates=[CLAIM]))
    stay = kept(workload, workload.version, by_scaling=False)
    assert [*stay.of("llama-canary", range(2))] == ["cache-llama-canary-5", "cache-llama-canary-6"]
    assert stay.patterns("llama", range(1, 3)) == ["cache-llama-{6..7}"]
    deletes = {"whenDeleted": "Delete", "whenScaled": "Retain"}
    gone = typed(manifest(volumeClaimTemplates=[CLAIM], persistentVolumeClaimRetentionPolicy=deletes))
    assert not kept(gone, gone.version, by_scaling=False)
    assert kept(gone, gone.version, by_scaling=True)


def test_a_cache_keeps_who_wrote_the_strategy_and_decides_as_the_whole_object() -> None:
    def entry(manager: str, moment: str, **spec: Any) -> dict[str, Any]:
        return {"manager": manager, "operation": "Apply", "time": moment, "fieldsV1": {"f:spec": spec}}

    fields = [
        entry("helm", "2026-01-01T00:00:00Z", **{"f:template": {"f:spec": {}}, "f:replicas": {}}),
        entry("argocd", "2026-01-02T00:00:00Z", **{"f:updateStrategy": {"f:type": {}}, "f:serviceName": {}}),
    ]
    body = manifest(rolling(maxUnavailable=2), volumeClaimTemplates=[CLAIM])
    body["metadata"]["managedFields"] = fields
    document = msgspec.json.encode(body)
    kept_object, whole = TRIMMED.workloads[STATEFUL_SETS](document), typed(body)
    assert isinstance(kept_object, StatefulSetTarget)
    assert (kept_object.version, kept_object.spec, kept_object.status) == (whole.version, whole.spec, whole.status)
    assert writer_of_strategy(kept_object) == writer_of_strategy(whole) == "argocd"
    owned = [bytes(each.fields) for each in kept_object.metadata.managed_fields]
    assert owned == [
        b'{"f:spec":{"f:template":{},"f:replicas":{}}}',
        b'{"f:spec":{"f:updateStrategy":{"f:type":{}}}}',
    ]


def test_a_type_that_another_manager_applies_afterwards_is_the_users() -> None:
    before = manifest(ON_DELETE)
    held = patched(before, hold(typed(before), KEYS, UID))
    claim = {"f:spec": {"f:updateStrategy": {"f:type": {}}}}
    held["metadata"]["managedFields"] = [{"manager": "helm", "operation": "Apply", "fieldsV1": claim}]
    assert users_strategy(typed(held), KEYS).type == "RollingUpdate"
    assert typed(held).strategy.partition == HOLD


def test_the_label_of_a_copy_is_no_part_of_its_version() -> None:
    """Where roles change both have one version, and it is the user's that is stored and put back."""
    stable = typed(manifest())
    made = canary_body(stable, KEYS, owner={"uid": "9", "controller": True}, replicas=2)
    copied = typed({**made, "spec": {**made["spec"]}})
    assert copied.version == stable.version
    assert KEYS.made in copied.selector
    template = {**made["spec"]["template"], "$patch": "replace"}
    assert stored_version({"template": template}) == stable.version
    assert KEYS.made.endswith(FORMAT.apart)
