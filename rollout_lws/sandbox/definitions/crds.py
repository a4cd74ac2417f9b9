"""CustomResourceDefinitions: the resources that they add to the API, and their own status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from rollout_lws.sandbox.api_resources import Column, Scale, Served

Object = dict[str, Any]

RESOURCE = CUSTOM_RESOURCE_DEFINITIONS
_AGE = Column("Age", "date", ".metadata.creationTimestamp")


def resource_of(definition: Mapping[str, Any], version: str) -> Resource:
    spec = definition["spec"]
    names = spec["names"]
    return Resource(spec["group"], version, names["kind"], names["plural"], spec["scope"] == "Namespaced")


def storage_of(definition: Mapping[str, Any]) -> Resource:
    """The resource in the storage version, under which the store keeps the objects."""
    version = next(entry["name"] for entry in definition["spec"]["versions"] if entry.get("storage"))
    return resource_of(definition, version)


def served_by(definition: Mapping[str, Any]) -> list[Served]:
    """The resources that a definition adds, one for each served version; the newest is last."""
    spec = definition["spec"]
    names = spec["names"]
    storage = storage_of(definition)
    return [
        _served(resource_of(definition, version["name"]), storage, names, version)
        for version in spec["versions"]
        if version.get("served")
    ]


def _served(resource: Resource, storage: Resource, names: Mapping[str, Any], version: Mapping[str, Any]) -> Served:
    from rollout_lws.sandbox.schemas.schema import compiled

    subresources = version.get("subresources") or {}
    scale = subresources.get("scale")
    columns = tuple(
        Column(
            entry["name"],
            entry["type"],
            entry["jsonPath"],
            entry.get("description", ""),
            entry.get("format", ""),
            entry.get("priority", 0),
        )
        for entry in version.get("additionalPrinterColumns") or ()
    )
    same = resource == storage

    def converted_to(target: Resource) -> Any:
        return None if same else lambda obj: {**obj, "apiVersion": target.api_version}

    return Served(
        resource,
        storage,
        names.get("singular") or names["kind"].lower(),
        tuple(names.get("shortNames") or ()),
        tuple(names.get("categories") or ()),
        status="status" in subresources,
        generation=True,
        scale=None
        if scale is None
        else Scale(
            scale["specReplicasPath"].removeprefix("."),
            scale["statusReplicasPath"].removeprefix("."),
            scale.get("labelSelectorPath", "").removeprefix("."),
        ),
        custom=True,
        schema=compiled(msgspec.json.encode((version.get("schema") or {}).get("openAPIV3Schema") or {})),
        columns=columns or (_AGE,),
        to_storage=converted_to(storage),
        from_storage=converted_to(resource),
    )


def prepared(definition: Object, now: str) -> Object:
    """A definition with defaults and its NamesAccepted and Established conditions, which the sandbox sets at once."""
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    if not names.get("kind"):
        return definition
    names = {"singular": names["kind"].lower(), "listKind": f"{names['kind']}List", **names}
    conditions = (definition.get("status") or {}).get("conditions") or [
        _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
        _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
    ]
    status = {
        "acceptedNames": names,
        "conditions": conditions,
        "storedVersions": [version["name"] for version in spec.get("versions") or () if version.get("storage")],
    }
    made = {"conversion": {"strategy": "None"}, **spec, "names": names}
    return {**definition, "spec": spec if made == spec else made, "status": status}


def _condition(kind: str, reason: str, message: str, now: str) -> Object:
    return {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now}


def violations(definition: Mapping[str, Any]) -> list[str]:
    """Violations that keep a definition from being served, the most common first."""
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    found = [f"spec.{field}: Required value" for field in ("group", "scope", "versions") if not spec.get(field)]
    found += [f"spec.names.{field}: Required value" for field in ("kind", "plural") if not names.get(field)]
    if found:
        return found
    expected = f"{names['plural']}.{spec['group']}"
    if definition["metadata"]["name"] != expected:
        name = definition["metadata"]["name"]
        found.append(f'metadata.name: Invalid value: "{name}": must be spec.names.plural+"."+spec.group')
    if spec["scope"] not in ("Namespaced", "Cluster"):
        found.append(f'spec.scope: Unsupported value: "{spec["scope"]}": supported values: "Cluster", "Namespaced"')
    if sum(bool(version.get("storage")) for version in spec["versions"]) != 1:
        found.append("spec.versions: Invalid value: must have exactly one version marked as storage version")
    for at, version in enumerate(spec["versions"]):
        path = f"spec.versions[{at}].schema.openAPIV3Schema"
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if not schema:
            found.append(f"{path}: Required value: schemas are required")
        elif not _leaves_metadata_alone((schema.get("properties") or {}).get("metadata") or {}):
            found.append(
                f"{path}.properties[metadata]: Forbidden: must not specify anything other than name and generateName,"
                " but metadata is implicitly specified"
            )
    return found


def _leaves_metadata_alone(schema: Mapping[str, Any]) -> bool:
    """Whether a root schema only declares metadata as an object and restricts its name and generateName."""
    named = set(schema.get("properties") or {}) <= {"name", "generateName"}
    return named and set(schema) <= {"type", "properties"} and schema.get("type", "object") == "object"
