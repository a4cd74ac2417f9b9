"""The canary workload: its name, and its manifest as a copy of the stable workload at the pending version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rollout_lws.targets.target import Target
from rollout_lws.workload.copies import copied_marks, copy_name

if TYPE_CHECKING:
    from rollout_lws.api.resources import Keys

#: Longest LWS name whose worker pods can still be labelled with their StatefulSet's revision (63 characters less two
#: dots of punctuation, three digits of an ordinal and ten of a hash).
NAME_BUDGET = 48


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
    return stable.copy(metadata, replicas, metadata_patch or {})
