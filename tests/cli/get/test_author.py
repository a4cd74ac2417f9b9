"""Which client wrote what is new in a version."""

from __future__ import annotations

import copy
from typing import Any

from rollout_lws.cli.get.author import author
from rollout_lws.cli.releases import typed
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from tests.cli.get.objects import lws

Object = dict[str, Any]
ROLES = ("leader", "worker")
NEWER = {"image": "vllm/vllm-openai:v0.19.0"}


def managed(manager: str, time: str, *fields: str, role: str = "worker") -> Object:
    """An entry that has these fields of the container of this role's template."""
    key = 'k:{"name":"vllm-' + role + '"}'
    container = {key: {".": {}, **{f"f:{field}": {} for field in fields}}}
    template = {f"f:{role}Template": {"f:spec": {"f:containers": container}}}
    return {"manager": manager, "time": time, "fieldsV1": {"f:spec": {"f:leaderWorkerTemplate": template}}}


def by(*entries: Object, edit: Object = NEWER) -> str:
    made = lws()
    before = copy.deepcopy(made["spec"])
    for role in ROLES:
        made["spec"]["leaderWorkerTemplate"][f"{role}Template"]["spec"]["containers"][0] |= edit
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
    edit = {"args": ["--tp=8"], "env": [{"name": "A", "value": "b"}]}
    assert by(managed("kubectl", "2026-01-01T10:00:00Z", "args", "env"), edit=edit) == "kubectl"
