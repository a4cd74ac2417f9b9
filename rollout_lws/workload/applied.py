"""Replicas that a manifest states: each time that it is applied they are set again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rollout_lws.objects.meta import ManagedField, Struct
from rollout_lws.objects.owners import OURS
from rollout_lws.targets.target import Target

#: kubectl's copy of the manifest that it has applied last.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class _Spec(Struct, frozen=True):
    replicas: int | None = None


class _Manifest(Struct, frozen=True):
    spec: _Spec = _Spec()


_manifests = msgspec.json.Decoder(_Manifest)
_owned = msgspec.json.Decoder(dict[str, Any])


def stated_replicas(annotations: Mapping[str, str]) -> int | None:
    """The replicas in kubectl's copy of the manifest; None if it states none, or there is no copy."""
    try:
        return _manifests.decode(annotations.get(LAST_APPLIED, "{}")).spec.replicas
    except msgspec.DecodeError:
        return None


def server_side_owner(workload: Target) -> str:
    """The field manager that applies replicas by server-side apply; "" if none does. Other tools compare with what they
    have applied before: they write replicas only when the number in their files changes.
    """
    for entry in workload.metadata.managed_fields:
        if entry.operation == "Apply" and not entry.manager.startswith(OURS) and owns_replicas(entry):
            return entry.manager
    return ""


def owns_replicas(entry: ManagedField) -> bool:
    """Whether this field manager owns spec.replicas."""
    return "f:replicas" in (_owned.decode(entry.fields).get("f:spec") or {})
