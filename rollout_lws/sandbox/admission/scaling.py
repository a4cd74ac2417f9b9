"""The scale subresource: converts an object to an autoscaling/v1 Scale, and writes a Scale back to the object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollout_lws.errors import ApiError
from rollout_lws.sandbox.api_resources import Served, value_at, with_value
from rollout_lws.sandbox.wire.api_errors import bad_request, invalid, no_such_resource
from rollout_lws.sandbox.wire.selectors import format_labels

Object = dict[str, Any]

#: How the API server says that an object has no number of replicas.
NO_REPLICAS = 'the spec replicas field ".spec.replicas" does not exist'
_IDENTITY = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(served: Served, obj: Mapping[str, Any]) -> Object:
    """The Scale of an object; ApiError 404 when its kind has none."""
    paths = served.scale
    if paths is None:
        raise no_such_resource()
    status: Object = {"replicas": value_at(obj, paths.status_replicas) or 0}
    selector = value_at(obj, paths.selector) if paths.selector else None
    if selector:
        status["selector"] = selector if isinstance(selector, str) else format_labels(selector)
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {key: obj["metadata"][key] for key in _IDENTITY if key in obj["metadata"]},
        "spec": {"replicas": value_at(obj, paths.spec_replicas) or 0},
        "status": status,
    }


def read(served: Served, obj: Mapping[str, Any]) -> Object:
    """The Scale of an object, for a GET: the API server has none of a custom resource without a number of replicas, and
    patches that same Scale all the same. ApiError 500 then, and 404 when the kind has none.
    """
    if served.custom and served.scale is not None and value_at(obj, served.scale.spec_replicas) is None:
        raise ApiError(500, "InternalError", f"Internal error occurred: {NO_REPLICAS}")
    return scale_of(served, obj)


def violations(served: Served, obj: Mapping[str, Any]) -> list[str]:
    """Violations that make a custom resource invalid as a Scale."""
    paths = () if served.scale is None else (served.scale.spec_replicas, served.scale.status_replicas)
    numbers = [(path, value_at(obj, path)) for path in paths]
    return [
        f".{path}: Invalid value: {number}: should be a non-negative integer"
        for path, number in numbers
        if isinstance(number, int) and number < 0
    ]


def scaled(served: Served, obj: Object, scale: Mapping[str, Any]) -> Object:
    """``obj`` with the replicas of ``scale``; a resourceVersion in ``scale`` stays a precondition."""
    if served.scale is None:
        raise no_such_resource()
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise bad_request(f"spec.replicas of a Scale is a whole number, not {replicas!r}")
    name = obj["metadata"]["name"]
    if replicas < 0:
        why = f"spec.replicas: Invalid value: {replicas}: must be greater than or equal to 0"
        raise invalid(served.resource, name, [why])
    version = (scale.get("metadata") or {}).get("resourceVersion") or obj["metadata"]["resourceVersion"]
    changed = with_value(obj, served.scale.spec_replicas, replicas)
    return {**changed, "metadata": {**obj["metadata"], "resourceVersion": version}}
