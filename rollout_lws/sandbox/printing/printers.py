"""The columns and cells of `kubectl get`, of built-in kinds and of custom resources."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from rollout_lws.sandbox.api_resources import Column, Served
from rollout_lws.sandbox.printing.built_in import AGE, BUILT_IN, NAME, Object, Printed
from rollout_lws.sandbox.printing.jsonpath import joined


def columns_of(served: Served) -> tuple[Column, ...]:
    """All columns, including the name."""
    return tuple(each.column for each in _printed(served))


def cells_of(served: Served, obj: Object, now: float) -> list[Any]:
    """The cells of ``columns_of``; ``now`` is in epoch seconds."""
    values = ((each.aged, each.value(obj)) for each in _printed(served))
    return [age(value, now) if aged and value is not None else value for aged, value in values]


def _printed(served: Served) -> Sequence[Printed]:
    if not served.custom:
        return BUILT_IN.get(served.resource, (NAME, AGE))
    return (NAME, *(Printed(each, partial(_typed, each), each.type == "date") for each in served.columns))


def _typed(column: Column, obj: Object) -> Any:
    """The value of a custom resource's column; None if it is absent or of another type."""
    value = joined(obj, column.json_path)
    if value is None:
        return None
    if column.type in ("integer", "number"):
        return value if isinstance(value, (int, float)) else None
    if column.type == "boolean":
        return value if isinstance(value, bool) else None
    return value if isinstance(value, str) else str(value)


def age(moment: str, now: float) -> str:
    """The time since ``moment`` as kubectl shows it, in the largest units; "" is an unknown moment."""
    if not moment:
        return "<unknown>"
    try:
        seconds = max(0, int(now - datetime.fromisoformat(moment).timestamp()))
    except ValueError:
        return "<invalid>"
    if seconds < 120:
        return f"{seconds}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    return f"{days}d" if days < 730 else f"{days // 365}y"
