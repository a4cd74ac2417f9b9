"""Features of the cluster's LeaderWorkerSet, read from its CRD's schema: unlike version strings, schemas do not lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from rollout_lws.objects.meta import Meta, Struct
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.rollout.observation import Capabilities

#: Name of the CustomResourceDefinition.
CRD_NAME = str(LEADER_WORKER_SETS)


class Definition(Struct, frozen=True):
    """The cached part of a CRD; ``capabilities`` is None for any CRD other than LeaderWorkerSet's."""

    metadata: Meta
    capabilities: Capabilities | None = None


def definition(body: bytes) -> Definition:
    """A CRD from its JSON."""
    found = msgspec.json.decode(body, type=Definition)
    if found.metadata.name != CRD_NAME:
        return Definition(found.metadata)
    return Definition(found.metadata, of_schema(schema_of(msgspec.json.decode(body))))


def schema_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """The openAPIV3Schema of the used version of LeaderWorkerSets, from their CRD; {} if there is none."""
    versions = (found.get("spec") or {}).get("versions") or ()
    ours = (each for each in versions if each["name"] == LEADER_WORKER_SETS.version)
    return next(((each.get("schema") or {}).get("openAPIV3Schema") or {} for each in ours), {})


def of_schema(schema: dict[str, Any]) -> Capabilities:
    """From the fields that exist; without a schema no field is assumed to exist."""
    return Capabilities(
        observed_generation="observedGeneration" in _properties(schema, "status"),
        group_identity="groupIdentity" in _properties(schema, "spec"),
    )


def of_objects(workloads: Iterable[Mapping[str, Any]]) -> Capabilities:
    """If the schema may not be read: from a field that every supported version of LWS fills in itself."""
    return Capabilities(group_identity=any("groupIdentity" in (each.get("spec") or {}) for each in workloads))


def _properties(schema: dict[str, Any], member: str) -> dict[str, Any]:
    properties = (schema.get("properties") or {}).get(member) or {}
    found: dict[str, Any] = properties.get("properties") or {}
    return found
