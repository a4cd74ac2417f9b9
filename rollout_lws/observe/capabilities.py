"""What the cluster's LeaderWorkerSet can do, read from the schema of its CRD: version strings lie, schemas do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from rollout_lws.objects.meta import Meta, Struct
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.rollout.observation import Capabilities

#: Name of the CustomResourceDefinition.
CRD_NAME = str(LEADER_WORKER_SETS)


class _Schema(Struct, frozen=True):
    open_api_v3_schema: dict[str, Any] = msgspec.field(default_factory=dict, name="openAPIV3Schema")


class _Version(Struct, frozen=True):
    name: str = ""
    schema: _Schema = _Schema()


class _Spec(Struct, frozen=True):
    versions: tuple[_Version, ...] = ()


class _Definition(Struct, frozen=True):
    metadata: Meta
    spec: _Spec = _Spec()


class Definition(Struct, frozen=True):
    """What is kept of a CRD; ``capabilities`` is None for any other than LeaderWorkerSet's."""

    metadata: Meta
    capabilities: Capabilities | None = None


def definition(body: bytes) -> Definition:
    found = msgspec.json.decode(body, type=_Definition)
    if found.metadata.name != CRD_NAME:
        return Definition(metadata=found.metadata)
    version = next((each for each in found.spec.versions if each.name == LEADER_WORKER_SETS.version), _Version())
    return Definition(metadata=found.metadata, capabilities=of_schema(version.schema.open_api_v3_schema))


def of_schema(schema: dict[str, Any]) -> Capabilities:
    """Judged by the fields that exist; without a schema nothing is known, and nothing is assumed to exist."""
    return Capabilities(
        observed_generation="observedGeneration" in _properties(schema, "status"),
        group_identity="groupIdentity" in _properties(schema, "spec"),
    )


def of_objects(workloads: Iterable[Mapping[str, Any]]) -> Capabilities:
    """For whoever may not read the schema: by a field that LWS itself fills in, of a version that is managed at all."""
    return Capabilities(group_identity=any("groupIdentity" in (each.get("spec") or {}) for each in workloads))


def _properties(schema: dict[str, Any], member: str) -> dict[str, Any]:
    properties = (schema.get("properties") or {}).get(member) or {}
    found: dict[str, Any] = properties.get("properties") or {}
    return found
