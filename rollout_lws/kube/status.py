"""What a refused request said: Kubernetes' Status objects, and the answers of proxies that know nothing of them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from rollout_lws.errors import ApiError
from rollout_lws.objects.meta import Struct


class _Details(Struct, frozen=True):
    retry_after_seconds: int = 0


class _Status(Struct, frozen=True):
    kind: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details = _Details()


_decoder = msgspec.json.Decoder(_Status)


def refused(code: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """The error of an answer with status ``code``."""
    try:
        status = _decoder.decode(body)
    except msgspec.DecodeError:
        status = _Status()
    told = status.message if status.kind == "Status" else ""
    text = told or body[:200].decode("utf-8", "replace").strip() or f"HTTP {code}"
    header = headers.get("retry-after", "")
    seconds = float(header) if header.replace(".", "", 1).isdigit() else float(status.details.retry_after_seconds)
    return ApiError(code, status.reason if status.kind == "Status" else "", text, seconds or None)


def of_error_event(body: bytes) -> ApiError:
    """The error of a watch's ERROR event."""
    status = _decoder.decode(body)
    return ApiError(status.code or 500, status.reason, status.message or "the watch failed")
