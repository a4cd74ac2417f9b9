"""Stored versions and edits of templates: which one undo means, and what is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rollout_lws.cli import gitops, versions
from rollout_lws.cli.demo import manifests
from rollout_lws.cli.releases import version_hash
from rollout_lws.cli.versions import Stored
from rollout_lws.errors import UsageError
from rollout_lws.sandbox.patching.patches import json_patch

HISTORY = [Stored(3, "c", "rc", "", {}), Stored(2, "b", "rb", "", {}), Stored(1, "a", "ra", "", {})]


@pytest.mark.parametrize(
    ("live", "stable", "number", "found"),
    [
        ("c", "c", None, 2),
        ("c", "b", None, 2),
        ("x", "a", None, 1),
        ("c", "c", 1, 1),
        ("a", "a", None, 3),
        ("c", "b", 1, 1),
    ],
    ids=["at rest", "in a release", "in a release of a version unknown", "by number", "after an undo", "number wins"],
)
def test_which_version_undo_means(live: str, stable: str, number: int | None, found: int) -> None:
    assert versions.to_undo(HISTORY, live, stable, number).number == found


def test_of_two_records_of_one_version_the_later_one_counts() -> None:
    """A controller stores one anew before it deletes the former one."""

    def record(number: int, template_hash: str, created: str, **marks: str) -> dict[str, Any]:
        annotations = {f"g/{name}": value for name, value in (marks | {"template-hash": template_hash}).items()}
        meta = {"annotations": annotations, "creationTimestamp": f"2026-01-01T00:00:0{created}Z"}
        return {"revision": number, "metadata": meta}

    records = [record(2, "b", "1"), record(1, "a", "0"), record(2, "b", "2", **{"rollback-reason": "Aborted"})]
    for given in (records, records[::-1]):
        found = versions.stored(given, "g")
        assert [(each.number, each.template_hash, each.rollback_reason) for each in found] == [
            (2, "b", "Aborted"),
            (1, "a", ""),
        ]


def test_a_version_whose_release_went_back_is_meant_by_its_number_only() -> None:
    history = [HISTORY[0], replace(HISTORY[1], rollback_reason="Aborted"), HISTORY[2]]
    assert versions.to_undo(history, "c", "c", None).number == 1
    assert versions.to_undo(history, "c", "c", 2).number == 2
    with pytest.raises(UsageError, match="no other version of the history was ever stable"):
        versions.to_undo(history[:2], "c", "c", None)


@pytest.mark.parametrize(
    ("history", "live", "stable", "number", "told"),
    [
        (HISTORY, "c", "c", 7, r"no revision 7 in the history \(known: 3, 2, 1\)"),
        ([], "c", "c", 7, r"known: none"),
        (HISTORY, "c", "c", 3, "is the version that the workload asks for already"),
        (HISTORY[:1], "c", "c", None, "no other version of the history was ever stable"),
        (HISTORY[:1], "c", "b", None, "the stable version is not in the history"),
    ],
)
def test_what_cannot_be_gone_back_to_is_told(
    history: list[Stored], live: str, stable: str, number: int | None, told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        versions.to_undo(history, live, stable, number)


def lws(**spec: Any) -> dict[str, Any]:
    made = manifests.workload()
    made["metadata"] |= {"uid": "u1", "generation": 4, "resourceVersion": "9"}
    made["spec"] |= spec
    return made


def with_leader() -> dict[str, Any]:
    """A leader with a container of its own, and a worker with an init container."""
    leader = {"spec": {"containers": [{"name": "api", "image": "api:1"}, {"name": "vllm", "image": "vllm:1"}]}}
    worker = {
        "metadata": {"labels": {"app": "x"}, "annotations": {"kept": "yes"}},
        "spec": {
            "containers": [{"name": "vllm", "image": "vllm:1"}],
            "initContainers": [{"name": "fetch", "image": "fetch:1"}],
        },
    }
    return lws(leaderWorkerTemplate={"size": 2, "leaderTemplate": leader, "workerTemplate": worker})


def images(obj: dict[str, Any]) -> list[str]:
    return [each["image"] for _, each in versions.containers(obj["spec"])]


@pytest.mark.parametrize(
    ("wanted", "role", "after"),
    [
        ({"vllm": "vllm:2"}, "all", ["api:1", "vllm:2", "vllm:2", "fetch:1"]),
        ({"vllm": "vllm:2"}, "leader", ["api:1", "vllm:2", "vllm:1", "fetch:1"]),
        ({"vllm": "vllm:2", "fetch": "fetch:2"}, "worker", ["api:1", "vllm:1", "vllm:2", "fetch:2"]),
        ({"*": "all:2"}, "all", ["all:2", "all:2", "all:2", "fetch:1"]),
        ({"*": "all:2", "api": "api:2"}, "all", ["api:2", "all:2", "all:2", "fetch:1"]),
    ],
)
def test_images_are_set_where_they_were_meant(wanted: dict[str, str], role: str, after: list[str]) -> None:
    operations, told = versions.setting_images(with_leader(), wanted, role)
    assert images(json_patch(with_leader(), operations)) == after
    assert len(told) == sum(a != b for a, b in zip(images(with_leader()), after, strict=True))


def test_a_stateful_set_has_containers_of_no_role() -> None:
    made = with_leader()
    made["spec"] = {"template": made["spec"]["leaderWorkerTemplate"]["workerTemplate"]}
    assert versions.setting_images(made, {"vllm": "vllm:2"}, "all")[1] == ["container vllm: vllm:1 -> vllm:2"]


def test_images_that_are_set_already_are_no_edit() -> None:
    operations, told = versions.setting_images(with_leader(), {"vllm": "vllm:1"}, "all")
    assert told == [] and json_patch(with_leader(), operations) == with_leader()


@pytest.mark.parametrize(
    ("wanted", "role", "told"),
    [
        ({"tgi": "x"}, "all", r"no container 'tgi' \(known: api, fetch, vllm\)"),
        ({"api": "x"}, "worker", r"no container 'api' of the worker \(known: fetch, vllm\)"),
    ],
)
def test_a_container_that_is_not_there_is_told_with_those_that_are(
    wanted: dict[str, str], role: str, told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        versions.setting_images(with_leader(), wanted, role)


def test_a_restart_is_another_version_with_all_else_kept() -> None:
    before = with_leader()
    after = json_patch(before, versions.restarting(before, "2026-11-22T09:00:00Z"))
    template = after["spec"]["leaderWorkerTemplate"]
    mark = {"kubectl.kubernetes.io/restartedAt": "2026-11-22T09:00:00Z"}
    assert template["leaderTemplate"]["metadata"] == {"annotations": mark}
    assert template["workerTemplate"]["metadata"] == {"labels": {"app": "x"}, "annotations": {"kept": "yes", **mark}}
    assert version_hash(after) != version_hash(before)


def test_a_version_is_put_back_whole() -> None:
    then = {
        "leaderWorkerTemplate": {"size": 3, "workerTemplate": {}, "$patch": "replace"},
        "networkConfig": {"$patch": "replace"},
    }
    now = lws(networkConfig={"subdomainPolicy": "UniquePerReplica"})
    after = json_patch(now, versions.putting_back(now, then))
    assert after["spec"]["leaderWorkerTemplate"] == {"size": 3, "workerTemplate": {}}
    assert "networkConfig" not in after["spec"]
    assert after["spec"]["replicas"] == now["spec"]["replicas"]


@pytest.mark.parametrize(("stored", "live"), [(None, 3), (1, 3), (1, None)])
def test_the_limit_of_restarts_is_no_part_of_a_version_that_is_put_back(stored: int | None, live: int | None) -> None:
    def limit(number: int | None) -> dict[str, int]:
        return {} if number is None else {"maxGroupRestarts": number}

    now = lws()
    now["spec"]["leaderWorkerTemplate"] |= limit(live)
    then = {"leaderWorkerTemplate": {"size": 3, "workerTemplate": {}, **limit(stored)}}
    after = json_patch(now, versions.putting_back(now, then))
    assert after["spec"]["leaderWorkerTemplate"] == {"size": 3, "workerTemplate": {}, **limit(live)}


@pytest.mark.parametrize(
    ("metadata", "keeper"),
    [
        ({}, ""),
        ({"labels": {"app.kubernetes.io/instance": "chat", "app.kubernetes.io/managed-by": "Helm"}}, ""),
        (
            {
                "annotations": {
                    "argocd.argoproj.io/tracking-id": "chat:leaderworkerset.x-k8s.io/LeaderWorkerSet:prod/llama"
                }
            },
            "Argo CD Application chat",
        ),
        ({"labels": {"argocd.argoproj.io/instance": "chat"}}, "Argo CD Application chat"),
        (
            {
                "labels": {
                    "kustomize.toolkit.fluxcd.io/name": "apps",
                    "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
                }
            },
            "Flux Kustomization flux-system/apps",
        ),
        ({"labels": {"helm.toolkit.fluxcd.io/name": "llm"}}, "Flux HelmRelease prod/llm"),
        (
            {"managedFields": [{"manager": "argocd-controller", "fieldsV1": {"f:spec": {}}}]},
            "an Argo CD Application",
        ),
        ({"managedFields": [{"manager": "argocd-controller", "fieldsV1": {"f:metadata": {}}}]}, ""),
    ],
)
def test_who_keeps_an_object(metadata: dict[str, Any], keeper: str) -> None:
    assert gitops.owner({"metadata": {"name": "llama", "namespace": "prod", **metadata}}) == keeper
