"""From a pydantic model to a Kubernetes structural schema.

JSON schema says some things in ways that an API server refuses ($ref, null branches, unions of models, ``const``); each
is turned into what it accepts, and what cannot be said is an error here, not in a user's cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

#: Members of a JSON schema that a structural schema has too.
_KEPT = ("description", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern", "enum")
#: Longest text without a limit of its own; CEL and storage want every string bounded.
TEXT_LIMIT = 4096
#: Most entries of a list or map without a limit of its own.
ITEMS_LIMIT = 64


def structural(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of ``model``'s JSON form, without metadata."""
    document = _document(model)
    return _convert(document, document.get("$defs", {}), (model.__name__,))


@cache
def _document(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of ``model``, which takes pydantic far longer than what is made of it; callers only read it."""
    return model.model_json_schema(by_alias=True)


def _convert(schema: Mapping[str, Any], definitions: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        if name in path:
            raise ValueError(f"{'.'.join(path)}: {name} contains itself, which a structural schema cannot say")
        inner = _convert(definitions[name], definitions, (*path, name))
        return {**inner, **{key: schema[key] for key in ("description",) if key in schema}, **_default(schema)}
    if "anyOf" in schema:
        return _union(schema, definitions, path)
    converted: dict[str, Any] = {key: schema[key] for key in _KEPT if key in schema}
    if "enum" in schema:
        # A list of its own each time, or YAML would write it once with an anchor and refer to it.
        converted["enum"] = list(schema["enum"])
    if "const" in schema:
        converted["enum"] = [schema["const"]]
    kind = schema.get("type")
    if not isinstance(kind, str):
        raise ValueError(f"{'.'.join(path)}: no single type in {dict(schema)}")
    converted["type"] = kind
    if kind == "object":
        converted.update(_object(schema, definitions, path))
    elif kind == "array":
        converted.setdefault("maxItems", ITEMS_LIMIT)
        converted["items"] = _convert(schema["items"], definitions, (*path, "[]"))
    elif kind == "string":
        if schema.get("format") == "date-time":
            converted["format"] = "date-time"
        elif "enum" not in converted:
            converted.setdefault("maxLength", TEXT_LIMIT)
    elif kind == "integer":
        converted["format"] = "int64"
    return {**converted, **_default(schema)}


def _object(schema: Mapping[str, Any], definitions: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    if "properties" in schema:
        properties = {
            name: _convert(value, definitions, (*path, name))
            for name, value in schema["properties"].items()
            if name != "metadata" or len(path) > 1
        }
        required = [name for name in schema.get("required", ()) if name in properties]
        return {"properties": properties} | ({"required": required} if required else {})
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping):
        limit = schema.get("maxProperties", ITEMS_LIMIT)
        return {"additionalProperties": _convert(values, definitions, (*path, "{}")), "maxProperties": limit}
    return {"x-kubernetes-preserve-unknown-fields": True}


def _union(schema: Mapping[str, Any], definitions: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    branches = [branch for branch in schema["anyOf"] if branch.get("type") != "null"]
    if len(branches) == 1:
        inner = _convert(branches[0], definitions, path)
        # Absent is how "none" is said; a default of null would have to be nullable.
        return {**inner, **{key: schema[key] for key in ("description",) if key in schema}}
    kinds = {branch.get("type") for branch in branches}
    if kinds == {"integer", "string"}:
        converted: dict[str, Any] = {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
        }
        for branch in branches:
            converted.update(
                {key: branch[key] for key in ("minimum", "maximum", "maxLength", "pattern") if key in branch}
            )
        return {**converted, **{key: schema[key] for key in ("description",) if key in schema}}
    raise ValueError(f"{'.'.join(path)}: a union of {kinds} cannot be said in a structural schema")


def _default(schema: Mapping[str, Any]) -> dict[str, Any]:
    default = schema.get("default")
    # Empty defaults are how absence reads in Python; on the wire absence stays absence.
    return {} if default in (None, "", [], {}) or isinstance(default, Mapping) else {"default": default}
