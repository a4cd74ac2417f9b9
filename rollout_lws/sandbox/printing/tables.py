"""Response forms that clients can accept: objects, a Table (kubectl get), or metadata alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rollout_lws.sandbox import codec
from rollout_lws.sandbox.api_resources import Served
from rollout_lws.sandbox.printing.printers import cells_of, columns_of
from rollout_lws.sandbox.routes import Request

Object = dict[str, Any]

_META = "meta.k8s.io/v1"


def form_of(request: Request) -> str:
    """The first accepted form: Table, PartialObjectMetadata, PartialObjectMetadataList, or "" for the object itself."""
    for part in request.headers.get("accept", "").split(","):
        if "as=" not in part:
            if "json" in part or "*/*" in part:
                return ""
            continue
        words = dict(word.strip().partition("=")[::2] for word in part.split(";")[1:])
        if words.get("g") == "meta.k8s.io" and words.get("v") == "v1":
            return words["as"]
    return ""


def shown(served: Served, request: Request, obj: Object, now: float) -> Object:
    """One object in the accepted form; ``now`` is in epoch seconds."""
    form = form_of(request)
    if form == "Table":
        return table(served, request, [obj], now, version=obj["metadata"].get("resourceVersion", ""))
    if form.startswith("PartialObjectMetadata"):
        return _partial(obj)
    return obj


def listed(
    served: Served, request: Request, objects: Sequence[Object], version: int, metadata: Mapping[str, Any], now: float
) -> Object:
    """A list of objects in the accepted form."""
    form = form_of(request)
    if form == "Table":
        made = table(served, request, objects, now, version=str(version))
        return {**made, "metadata": {**made["metadata"], **metadata}}
    if form.startswith("PartialObjectMetadata"):
        partial = [_partial(obj) for obj in objects]
        return codec.listed("PartialObjectMetadataList", _META, partial, version, **metadata)
    resource = served.resource
    items = list(objects) if served.custom else [_unnamed(obj) for obj in objects]
    return codec.listed(f"{resource.kind}List", resource.api_version, items, version, **metadata)


def table(
    served: Served, request: Request, objects: Sequence[Object], now: float, *, version: str, headed: bool = True
) -> Object:
    """A Table with a row for each object; in a watch only the first Table is ``headed`` with column definitions."""
    definitions = [
        {
            "name": column.name,
            "type": column.type,
            "format": column.format,
            "description": column.description,
            "priority": column.priority,
        }
        for column in columns_of(served)
    ]
    include = request.params.get("includeObject", "Metadata")
    rows = []
    for obj in objects:
        row: Object = {"cells": cells_of(served, obj, now)}
        if include != "None":
            row["object"] = obj if include == "Object" else _partial(obj)
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": _META,
        "metadata": {"resourceVersion": version},
        "columnDefinitions": definitions if headed else None,
        "rows": rows,
    }


def _unnamed(obj: Object) -> Object:
    """An item of a list of built-in objects, without apiVersion and kind."""
    return {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}


def _partial(obj: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": obj["metadata"]}
