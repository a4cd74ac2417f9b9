"""The canary LeaderWorkerSet: its name, and its manifest as a copy of the stable LWS at the pending version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.objects.workloads import LeaderWorkerSet
from rollout_lws.workload.copies import copied_marks, copy_name
from rollout_lws.workload.template import version_of

if TYPE_CHECKING:
    from rollout_lws.api.resources import Keys

#: Longest LWS name whose worker pods can still be labelled with their StatefulSet's revision (63 characters less two
#: dots of punctuation, three digits of an ordinal and ten of a hash).
NAME_BUDGET = 48


def canary_name(stable: LeaderWorkerSet) -> str:
    """``<stable>-canary``, shortened with a hash where that is too long."""
    return name_of_canary(stable.metadata.name)


def name_of_canary(workload: str) -> str:
    """The same from the stable LWS's name."""
    return copy_name(workload, NAME_BUDGET)


def canary_body(
    stable: LeaderWorkerSet,
    keys: Keys,
    *,
    owner: Mapping[str, Any],
    replicas: int,
    metadata_patch: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, Any]:
    """The manifest. Templates and network are those of the stable LWS's spec, so that LWS gives them the same revision.

    ``metadata_patch`` {labels, annotations} goes into the leader template alone; if the LWS has none, the worker
    template is copied as LWS itself would use it for leaders.
    """
    members = version_of(stable.spec).members
    template = members["leaderWorkerTemplate"]
    if metadata_patch and any(metadata_patch.values()):
        leader = dict(template.get("leaderTemplate") or template["workerTemplate"])
        metadata = dict(leader.get("metadata") or {})
        for kind, values in metadata_patch.items():
            metadata[kind] = {**(metadata.get(kind) or {}), **values}
        template = {**template, "leaderTemplate": {**leader, "metadata": metadata}}
    spec: dict[str, Any] = {
        "replicas": replicas,
        "leaderWorkerTemplate": template,
        "startupPolicy": stable.spec.startup_policy,
        "rolloutStrategy": {
            "type": "RollingUpdate",
            "rollingUpdateConfiguration": {"partition": 0, "maxUnavailable": 1, "maxSurge": 0},
        },
    }
    if "networkConfig" in members:
        spec["networkConfig"] = members["networkConfig"]
    return {
        "apiVersion": LEADER_WORKER_SETS.api_version,
        "kind": LEADER_WORKER_SETS.kind,
        "metadata": {
            "name": canary_name(stable),
            "namespace": stable.metadata.namespace,
            "labels": copied_marks(stable.metadata.labels, keys)
            | {keys.canary_leader_worker_set: stable.metadata.name},
            "annotations": copied_marks(stable.metadata.annotations, keys),
            "ownerReferences": [dict(owner)],
            "finalizers": [keys.canary_finalizer],
        },
        "spec": spec,
    }
