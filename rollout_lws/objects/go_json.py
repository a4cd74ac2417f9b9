"""Encodes JSON exactly as Go does, byte for byte.

Kubernetes compares some JSON bytewise: the data of a ControllerRevision is immutable, and each patch of one, even of a
label only, re-encodes the object in Go before the comparison. An object stored in any other encoding can never be
patched again.
"""

from __future__ import annotations

from typing import Any

import msgspec

#: Characters that Go escapes in strings, for JSON in HTML and JavaScript. They occur in no other part of JSON.
_ESCAPED = (
    (b"&", b"\\u0026"),
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)


def encoded(value: Any) -> bytes:
    """Compact JSON with the members of every object sorted by name."""
    return escaped(msgspec.json.encode(value, order="sorted"))


def escaped(document: bytes) -> bytes:
    """The same JSON with every character escaped that Go escapes."""
    for character, escape in _ESCAPED:
        if character in document:
            document = document.replace(character, escape)
    return document
