"""What a new version changes, in a line."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from rollout_lws.cli.changes import changed
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
