"""JSON as Go writes it, byte for byte.

Kubernetes compares some JSON by its bytes: the data of a ControllerRevision may never change, and each patch of such an
object, even of a label alone, encodes the object anew in Go before the two are compared. One that was stored in any
other spelling can never be patched again.
"""

from __future__ import annotations

from typing import Any

import msgspec

#: What Go escapes in strings so that JSON can stand in HTML and JavaScript. No other part of JSON has any of these.
_ESCAPED = (
    (b"&", b"\\u0026"),
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)


def encoded(value: Any) -> bytes:
    """Compact JSON with the members of every object in the order of their names."""
    return escaped(msgspec.json.encode(value, order="sorted"))


def escaped(document: bytes) -> bytes:
    """The same JSON with every character escaped that Go escapes."""
    for character, escape in _ESCAPED:
        if character in document:
            document = document.replace(character, escape)
    return document
