"""JSON that Kubernetes keeps, and compares, in the bytes in which it was sent: the data of a ControllerRevision.

The object around it is decoded and encoded again with each request, in Go. So every patch writes ``data`` anew as Go
spells it, and is refused as a change of it where it was created in another spelling.
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
    """A JSON object and the bytes that it was sent in. Equal is what has the same bytes."""

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
    """The bytes of a JSON object: those that it was sent in, else those that Go makes of it."""
    return value.raw if isinstance(value, Verbatim) else go_json.encoded(value)


def sent(body: Object, document: bytes) -> Object:
    """``body``, whose JSON is ``document``, with its data as it was sent."""
    data = body.get(_MEMBER)
    if not isinstance(data, dict):
        return body
    return {**body, _MEMBER: Verbatim(data, bytes(msgspec.json.decode(document, type=_Sent).data))}


def patchable(obj: Object, content_type: str) -> Object:
    """A stored object as the server encodes it for a patch: the two simple kinds leave what they do not name in its
    place and order, the others sort all of it.
    """
    data = obj.get(_MEMBER)
    if not isinstance(data, Verbatim):
        return obj
    if content_type not in (JSON_PATCH, MERGE_PATCH):
        return {**obj, _MEMBER: dict(data)}
    return {**obj, _MEMBER: Verbatim(data, go_json.escaped(msgspec.json.encode(data)))}
