"""What an API server fills into an object that leaves it out: the defaults of a CRD's schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]


def filled(value: Any, schema: Schema) -> Any:
    """``value`` with the defaults of ``schema`` (openAPIV3Schema, or a part of it) where it says nothing."""
    if isinstance(value, list):
        return [filled(item, schema.get("items") or {}) for item in value]
    if not isinstance(value, Mapping):
        return value
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    given = {name: item for name, item in value.items() if item is not None}
    given |= {name: each["default"] for name, each in properties.items() if "default" in each and name not in given}
    every = schema.get("additionalProperties")
    others: Schema = every if isinstance(every, Mapping) else {}
    return {name: filled(item, properties.get(name, others)) for name, item in given.items()}
