"""Columns of `kubectl get`: the printer columns of custom resources, and those of built-in kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollout_lws.sandbox.api_resources import Column, Served
from rollout_lws.sandbox.printing import printers
from rollout_lws.sandbox.printing.cells import age
from rollout_lws.sandbox.printing.jsonpath import find
from rollout_lws.sandbox.printing.printers import NAME

Object = Mapping[str, Any]


def columns_of(served: Served) -> tuple[Column, ...]:
    """All columns, including the name."""
    return (NAME, *served.columns) if served.custom else printers.columns_of(served.resource)


def cells_of(served: Served, obj: Object, now: float) -> list[Any]:
    """The cells of ``columns_of``; ``now`` is in epoch seconds."""
    if not served.custom:
        return printers.cells_of(served.resource, obj, now)
    return [obj["metadata"]["name"], *(_cell(column, obj, now) for column in served.columns)]


def _cell(column: Column, obj: Object, now: float) -> Any:
    found = find(obj, column.json_path)
    if not found or found[0] is None:
        return None
    value = found[0] if len(found) == 1 else ",".join(str(entry) for entry in found)
    if column.type == "date":
        return age(str(value), now)
    if column.type in ("integer", "number"):
        return value if isinstance(value, (int, float)) else None
    if column.type == "boolean":
        return value if isinstance(value, bool) else None
    return value if isinstance(value, str) else str(value)
