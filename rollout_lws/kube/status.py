"""Errors of rejected requests: decodes Kubernetes' Status objects, and the answers of proxies."""

from __future__ import annotations

import http
from collections.abc import Mapping

import msgspec

from rollout_lws.errors import ApiError
from rollout_lws.objects.meta import Struct


class _Details(Struct, frozen=True):
    retry_after_seconds: int = 0
    uid: str = ""


class _Status(Struct, frozen=True):
    kind: str = ""
    status: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details = _Details()


_CODES = frozenset(http.HTTPStatus)
_decoder = msgspec.json.Decoder(_Status)


def _decoded(body: bytes) -> _Status:
    """An empty one for an answer that is no Status."""
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Status()


def refused(code: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """The error of an answer with status ``code``."""
    status = _decoded(body)
    told = status.message if status.kind == "Status" else ""
    text = told or _of_a_proxy(code, headers, body)
    header = headers.get("retry-after", "")
    seconds = float(header) if header.replace(".", "", 1).isdigit() else float(status.details.retry_after_seconds)
    return ApiError(code, status.reason if status.kind == "Status" else "", text, seconds or None)


def is_status(body: bytes) -> bool:
    """Whether an answer is a Status that tells of a failure, as the API server's own are."""
    status = _decoded(body)
    return status.kind == "Status" and status.status != "Success"


def deleted_uid(body: bytes) -> str:
    """The uid of the object that an answer to a deletion says is gone; "" for any other answer.

    An object that is still terminating (finalizers, a pod's grace period) is answered as an object, not as a Status.
    """
    status = _decoded(body)
    return status.details.uid if (status.kind, status.status) == ("Status", "Success") else ""


def _of_a_proxy(code: int, headers: Mapping[str, str], body: bytes) -> str:
    text = " ".join(body[:200].decode("utf-8", "replace").split())
    if not text or "html" in headers.get("content-type", "") or text.startswith("<"):
        name = http.HTTPStatus(code).phrase if code in _CODES else "unknown status"
        return f"HTTP {code} {name}, not from the API server itself: look at the proxy or load balancer before it"
    return text


def of_error_event(body: bytes) -> ApiError:
    """The error of a watch's ERROR event."""
    status = _decoder.decode(body)
    return ApiError(status.code or 500, status.reason, status.message or "the watch failed")
