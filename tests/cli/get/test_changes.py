"""What a new version changes, in a line."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from rollout_lws.cli.get.changes import author, changed
from rollout_lws.cli.releases import typed
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from tests.cli.get.objects import lws

Object = dict[str, Any]


def containers(version: Object, role: str) -> list[Object]:
    found: list[Object] = version["leaderWorkerTemplate"][f"{role}Template"]["spec"]["containers"]
    return found


def image(name: str) -> Callable[[Object], None]:
    def edit(version: Object) -> None:
        for role in ("leader", "worker"):
            containers(version, role)[0]["image"] = name

    return edit


def leader_image(version: Object) -> None:
    containers(version, "leader")[0]["image"] = "vllm/vllm-openai@sha256:0123456789abcdef0123"


def arguments(version: Object) -> None:
    containers(version, "worker")[0] |= {"args": ["--tp=8"], "env": [{"name": "A", "value": "b"}]}


def sidecar(version: Object) -> None:
    containers(version, "leader").append({"name": "proxy", "image": "envoy:1"})


def pod_fields(version: Object) -> None:
    version["leaderWorkerTemplate"]["workerTemplate"]["spec"]["terminationGracePeriodSeconds"] = 60
    version["leaderWorkerTemplate"]["workerTemplate"]["metadata"]["annotations"] = {"a": "b"}


def group(version: Object) -> None:
    version["leaderWorkerTemplate"] |= {"size": 4, "restartPolicy": "None"}
    version["networkConfig"] = {"subdomainPolicy": "UniquePerReplica"}


def everything(version: Object) -> None:
    for edit in (arguments, sidecar, pod_fields, group):
        edit(version)


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda _: None, ""),
        (image("vllm/vllm-openai:v0.19.0"), "vllm-openai v0.18.1 -> v0.19.0 (leader, worker)"),
        (image("vllm/vllm-openai"), "vllm-openai v0.18.1 -> latest (leader, worker)"),
        (
            image("mirror:5000/vllm-openai"),
            "vllm/vllm-openai:v0.18.1 -> mirror:5000/vllm-openai (leader, worker)",
        ),
        (leader_image, "vllm-openai v0.18.1 -> sha256:0123456789ab (leader)"),
        (arguments, "vllm-worker: args, env (worker)"),
        (sidecar, "container proxy added (leader)"),
        (pod_fields, "pod annotations (worker), pod terminationGracePeriodSeconds (worker)"),
        (group, "restartPolicy RecreateGroupOnPodRestart -> None, size 1 -> 4, networkConfig"),
        (
            everything,
            "container proxy added (leader), vllm-worker: args, env (worker), pod annotations (worker) and 4 more",
        ),
    ],
)
def test_what_differs_is_told_shortly(edit: Callable[[Object], None], told: str) -> None:
    before = lws()["spec"]
    after = copy.deepcopy(before)
    edit(after)
    assert changed(before, after) == told


NEWER = image("vllm/vllm-openai:v0.19.0")


def managed(manager: str, time: str, *fields: str, role: str = "worker") -> Object:
    """An entry that has these fields of the container of this role's template."""
    key = 'k:{"name":"vllm-' + role + '"}'
    container = {key: {".": {}, **{f"f:{field}": {} for field in fields}}}
    template = {f"f:{role}Template": {"f:spec": {"f:containers": container}}}
    return {"manager": manager, "time": time, "fieldsV1": {"f:spec": {"f:leaderWorkerTemplate": template}}}


def by(*entries: Object, edit: Callable[[Object], None] = NEWER) -> str:
    made = lws()
    before = copy.deepcopy(made["spec"])
    edit(made["spec"])
    made["metadata"]["managedFields"] = list(entries)
    manager, at = author(typed(made, LeaderWorkerSet), before, made["spec"])
    assert (at is None) == (manager == "")
    return manager


def test_the_author_is_who_has_what_differs_whoever_else_wrote_at_the_same_time() -> None:
    applied = managed("kubectl", "2026-01-01T11:00:00Z", "name", "resources")
    assert by(applied, managed("argocd", "2026-01-01T11:00:00Z", "image")) == "argocd"
    assert by(managed("argocd", "2026-01-01T11:00:00Z", "image"), applied) == "argocd"
    assert by(applied) == ""
    assert by() == ""


def test_of_several_authors_the_last_one_is_told() -> None:
    first = managed("kubectl", "2026-01-01T10:00:00Z", "image")
    assert by(first, managed("helm", "2026-01-01T11:00:00Z", "image", role="leader")) == "helm"


def test_who_has_a_whole_list_has_what_is_in_it() -> None:
    assert by(managed("kubectl", "2026-01-01T10:00:00Z", "args", "env"), edit=arguments) == "kubectl"
