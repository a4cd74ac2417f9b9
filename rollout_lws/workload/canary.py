"""The canary LeaderWorkerSet: its name, and its body as a copy of the stable one at the pending version."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rollout_lws.api.resources import Keys
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.objects.workloads import LeaderWorkerSet
from rollout_lws.workload.template import short_hash, version_of

#: Longest LWS name whose worker pods can still be labelled with their StatefulSet's revision (63 characters less two
#: dots of punctuation, three digits of an ordinal and ten of a hash).
NAME_BUDGET = 48
_SUFFIX = "-canary"

#: Marks of other tools on the stable LWS that would make them treat the canary as theirs.
_NOT_COPIED = re.compile(
    r"^(kubectl\.kubernetes\.io/last-applied-configuration$"
    r"|argocd\.argoproj\.io/|(kustomize|helm)\.toolkit\.fluxcd\.io/|meta\.helm\.sh/|helm\.sh/"
    r"|app\.kubernetes\.io/(managed-by|instance)$|config\.(kubernetes|k8s)\.io/|rollouts\.kruise\.io/"
    r"|kueue\.x-k8s\.io/(?!queue-name$|priority-class$))"
)


def canary_name(stable: LeaderWorkerSet) -> str:
    """Deterministic, so that a retried create finds its own object; cut and hashed when it would be too long."""
    name = stable.metadata.name
    if len(name) + len(_SUFFIX) <= NAME_BUDGET:
        return name + _SUFFIX
    digest = short_hash(name)
    return f"{name[: NAME_BUDGET - len(_SUFFIX) - len(digest) - 1].rstrip('-')}-{digest}{_SUFFIX}"


def canary_body(
    stable: LeaderWorkerSet,
    keys: Keys,
    *,
    owner: Mapping[str, Any],
    replicas: int,
    metadata_patch: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, Any]:
    """The manifest. Templates and network are those of the stable LWS's spec, so that LWS gives them the same revision.

    ``metadata_patch`` {labels, annotations} goes into the leader template alone; where the LWS has none, one is made
    from the worker template, as LWS itself would use it for leaders.
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
            "labels": _copied(stable.metadata.labels, keys) | {keys.canary_leader_worker_set: stable.metadata.name},
            "annotations": _copied(stable.metadata.annotations, keys),
            "ownerReferences": [dict(owner)],
            "finalizers": [keys.canary_finalizer],
        },
        "spec": spec,
    }


def _copied(marks: Mapping[str, str], keys: Keys) -> dict[str, str]:
    return {key: value for key, value in marks.items() if not (keys.owns(key) or _NOT_COPIED.match(key))}
