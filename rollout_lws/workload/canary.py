"""Canary copies of a user's objects: their names, labels and annotations, one definition for the workload, its Services
and its routes; and the manifest of the canary workload, which has the pending version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rollout_lws.objects.released import RESTART_COUNTS
from rollout_lws.targets.target import Target
from rollout_lws.targets.version import short_hash

if TYPE_CHECKING:
    from rollout_lws.api.resources import Keys

_SUFFIX = "-canary"

#: Other tools' labels and annotations that would make the tools treat the copy as theirs.
_NOT_COPIED = re.compile(
    r"^(kubectl\.kubernetes\.io/last-applied-configuration$"
    r"|argocd\.argoproj\.io/|(kustomize|helm)\.toolkit\.fluxcd\.io/|meta\.helm\.sh/|helm\.sh/"
    r"|app\.kubernetes\.io/(managed-by|instance)$|config\.(kubernetes|k8s)\.io/|rollouts\.kruise\.io/"
    r"|kueue\.x-k8s\.io/(?!queue-name$|priority-class$))"
)


def copy_name(name: str, budget: int) -> str:
    """``<name>-canary``, cut and hashed if longer than ``budget`` characters. Deterministic, so a retried create finds
    its own object.
    """
    if len(name) + len(_SUFFIX) <= budget:
        return name + _SUFFIX
    digest = short_hash(name)
    return f"{name[: budget - len(_SUFFIX) - len(digest) - 1].rstrip('-.')}-{digest}{_SUFFIX}"


def copied_marks(marks: Mapping[str, str], keys: Keys) -> dict[str, str]:
    """The labels or annotations of the copy: without ours, those of deployment tools, and counts of restarts."""
    return {key: value for key, value in marks.items() if not (keys.owns(key) or _is_left(key))}


def _is_left(key: str) -> bool:
    return key == RESTART_COUNTS or _NOT_COPIED.match(key) is not None


#: Longest LWS name whose worker pods can still be labelled with their StatefulSet's revision (63 characters less two
#: dots of punctuation, three digits of an ordinal and ten of a hash).
NAME_BUDGET = 48


def stable_of(labels: Mapping[str, str], keys: Keys) -> str:
    """Name of the workload that one with these labels is the canary of, or stands for; "" for any other one."""
    return labels.get(keys.canary_leader_worker_set) or labels.get(keys.stands_for) or ""


def canary_name(stable: Target) -> str:
    """``<stable>-canary``, shortened with a hash where that is too long."""
    return name_of_canary(stable.metadata.name)


def name_of_canary(workload: str) -> str:
    """The same from the stable workload's name."""
    return copy_name(workload, NAME_BUDGET)


def canary_body(
    stable: Target,
    keys: Keys,
    *,
    owner: Mapping[str, Any],
    replicas: int,
    metadata_patch: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, Any]:
    """The manifest. Its version is that of the stable workload's spec, so that both get the same revision.

    ``metadata_patch`` {labels, annotations} goes into the template of the pods that take requests.
    """
    metadata = {
        "name": canary_name(stable),
        "namespace": stable.metadata.namespace,
        "labels": copied_marks(stable.metadata.labels, keys) | {keys.canary_leader_worker_set: stable.metadata.name},
        "annotations": copied_marks(stable.metadata.annotations, keys),
        "ownerReferences": [dict(owner)],
        "finalizers": [keys.canary_finalizer],
    }
    return stable.copy(metadata, replicas, metadata_patch or {}, {keys.made: canary_name(stable)})
