"""Which replicas come from a manifest that is applied again."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import structs

from rollout_lws.objects.meta import ManagedField
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.observe.cache_types import TRIMMED
from rollout_lws.workload.applied import LAST_APPLIED, server_side_owner, stated_replicas
from tests.workload.build import lws, raw

REPLICAS = {"f:spec": {"f:replicas": {}}}
TEMPLATE = {"f:spec": {"f:leaderWorkerTemplate": {}}}


@pytest.mark.parametrize(
    ("manifest", "stated"),
    [
        ({"spec": {"replicas": 4}}, 4),
        ({"spec": {"replicas": 0}}, 0),
        ({"spec": {"leaderWorkerTemplate": {}}}, None),
        ({"spec": {"replicas": None}}, None),
        ({}, None),
        ({"spec": {"replicas": "four"}}, None),
        ("no manifest", None),
        (None, None),
    ],
)
def test_kubectls_copy_of_the_manifest_states_replicas_or_none(manifest: Any, stated: int | None) -> None:
    annotations = {} if manifest is None else {LAST_APPLIED: json.dumps(manifest)}
    assert stated_replicas(annotations) == stated
    workload = lws(4)
    cached = structs.replace(workload, metadata=structs.replace(workload.metadata, annotations=annotations))
    trimmed = TRIMMED.workloads[LEADER_WORKER_SETS](msgspec.json.encode(cached))
    # The caches drop the copy, but for the number.
    assert stated_replicas(trimmed.metadata.annotations) == stated
    assert len(trimmed.metadata.annotations.get(LAST_APPLIED, "")) < 30


@pytest.mark.parametrize(
    ("entries", "owner"),
    [
        ([("argocd", "Apply", REPLICAS)], "argocd"),
        ([("kubectl", "Update", REPLICAS), ("argocd", "Apply", TEMPLATE)], ""),
        ([("argocd", "Update", REPLICAS)], ""),
        ([("rollout-lws-replicas", "Apply", REPLICAS), ("argocd", "Apply", TEMPLATE)], ""),
        ([("rollout-lws-replicas", "Apply", REPLICAS), ("argocd", "Apply", REPLICAS)], "argocd"),
        ([], ""),
    ],
)
def test_replicas_belong_to_who_applies_them_server_side(entries: list[tuple[str, str, Any]], owner: str) -> None:
    fields = tuple(ManagedField(manager=name, operation=how, fields=raw(owned)) for name, how, owned in entries)
    workload = lws(4)
    workload = structs.replace(workload, metadata=structs.replace(workload.metadata, managed_fields=fields))
    assert server_side_owner(workload) == owner
    assert server_side_owner(TRIMMED.workloads[LEADER_WORKER_SETS](msgspec.json.encode(workload))) == owner
