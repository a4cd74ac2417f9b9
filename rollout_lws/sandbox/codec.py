"""HTTP bodies: decodes requests, encodes Status objects and lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import yaml

from rollout_lws.errors import ApiError
from rollout_lws.objects import go_json
from rollout_lws.objects.resources import CONTROLLER_REVISIONS, Resource
from rollout_lws.sandbox.patching import verbatim
from rollout_lws.sandbox.patching.patches import APPLY_PATCH
from rollout_lws.sandbox.routes import Request, Response
from rollout_lws.sandbox.wire import protobuf
from rollout_lws.sandbox.wire.api_errors import NoSuchPath, Refusal, bad_request

PROTOBUF = "application/vnd.kubernetes.protobuf"


def encoded(document: Any) -> bytes:
    """``document`` with the string escapes of Go's JSON encoder."""
    return go_json.escaped(msgspec.json.encode(document))


def answer(document: Any, status: int = 200, content_type: str = "application/json", **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, encoded(document), {"content-type": content_type, **named})


def status_of(error: ApiError) -> dict[str, Any]:
    """``error`` as a Status object."""
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": error.message,
        "code": error.code,
    }
    if error.reason:
        status["reason"] = error.reason
    if isinstance(error, Refusal):
        status["details"] = error.details
    elif error.retry_after is not None:
        status["details"] = {"retryAfterSeconds": int(error.retry_after)}
    return status


def refused(error: ApiError) -> Response:
    if isinstance(error, NoSuchPath):
        return Response(error.code, f"{error.message}\n".encode(), {"content-type": "text/plain; charset=utf-8"})
    headers = {"content-type": "application/json"}
    if error.retry_after is not None:
        headers["retry-after"] = f"{error.retry_after:g}"
    return Response(error.code, encoded(status_of(error)), headers)


def success(resource: str, group: str, obj: Mapping[str, Any]) -> dict[str, Any]:
    """The Status of a completed delete."""
    details = {"name": obj["metadata"]["name"], "kind": resource, "uid": obj["metadata"]["uid"]}
    if group:
        details["group"] = group
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def content_type(request: Request) -> str:
    return request.headers.get("content-type", "application/json").partition(";")[0].strip()


def body_of(request: Request) -> Any:
    """The decoded body; ApiError 400 when it cannot be decoded, 415 for protobuf other than a Namespace."""
    kind = content_type(request)
    if kind == PROTOBUF:
        decoded = protobuf.namespace(request.body)
        if decoded is None:
            raise ApiError(
                415,
                "UnsupportedMediaType",
                "this API server reads JSON and YAML, not protobuf: write a manifest and use `kubectl apply -f`",
            )
        return decoded
    try:
        if kind in (APPLY_PATCH, "application/yaml"):
            return yaml.load(request.body, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        return msgspec.json.decode(request.body)
    except (msgspec.DecodeError, yaml.YAMLError, UnicodeDecodeError) as failure:
        raise bad_request(f"the body of the request cannot be read: {failure}") from failure


def object_of(request: Request) -> dict[str, Any]:
    body = body_of(request)
    if not isinstance(body, dict):
        raise bad_request("the body of the request is not an object")
    if not isinstance(body.get("metadata", {}), dict):
        raise bad_request("metadata is not an object")
    return body


def resource_of(request: Request, resource: Resource) -> dict[str, Any]:
    """The body of a request that creates or replaces a ``resource``."""
    body = object_of(request)
    is_json = content_type(request) == "application/json"
    return verbatim.sent(body, request.body) if is_json and resource == CONTROLLER_REVISIONS else body


def options_of(request: Request) -> dict[str, Any]:
    """DeleteOptions; values in the body take precedence over query parameters."""
    body = object_of(request) if request.body else {}
    options = dict(body)
    for name in ("propagationPolicy", "gracePeriodSeconds"):
        if name in request.params and name not in options:
            options[name] = request.params[name]
    return options


def listed(kind: str, api_version: str, items: Sequence[Any], version: int, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"resourceVersion": str(version), **metadata},
        "items": items,
    }
