"""JSON that Kubernetes stores and compares as raw bytes: the data of a ControllerRevision.

With each request Go decodes and encodes the object around it. A patch therefore rewrites ``data`` in Go's encoding, and
the server refuses it as a change of an immutable field if the object was created in another encoding.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rollout_lws.objects import go_json
from rollout_lws.sandbox.patching.patches import JSON_PATCH, MERGE_PATCH

Object = dict[str, Any]

_MEMBER = "data"


class Verbatim(dict[str, Any]):
    """A JSON object with the bytes in which the client sent it; equality compares the bytes."""

    __slots__ = ("raw",)
    __hash__ = None

    def __init__(self, value: Mapping[str, Any], raw: bytes) -> None:
        super().__init__(value)
        self.raw = raw

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict) and self.raw == spelled(other)

    def __ne__(self, other: object) -> bool:
        return not self == other


class _Sent(msgspec.Struct):
    data: msgspec.Raw = msgspec.Raw(b"{}")


def spelled(value: Mapping[str, Any]) -> bytes:
    """The bytes of a JSON object: those that the client sent, else Go's encoding."""
    return value.raw if isinstance(value, Verbatim) else go_json.encoded(value)


def sent(body: Object, document: bytes) -> Object:
    """``body``, decoded from ``document``, with its data as raw bytes."""
    data = body.get(_MEMBER)
    if not isinstance(data, dict):
        return body
    return {**body, _MEMBER: Verbatim(data, bytes(msgspec.json.decode(document, type=_Sent).data))}


def patchable(obj: Object, content_type: str) -> Object:
    """A stored object as the server encodes it for a patch: JSON and merge patch keep the order of members, the other
    patch types sort all of them.
    """
    data = obj.get(_MEMBER)
    if not isinstance(data, Verbatim):
        return obj
    if content_type not in (JSON_PATCH, MERGE_PATCH):
        return {**obj, _MEMBER: dict(data)}
    return {**obj, _MEMBER: Verbatim(data, go_json.escaped(msgspec.json.encode(data)))}
