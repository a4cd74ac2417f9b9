"""Decodes the only supported protobuf message: a Namespace, because `kubectl create namespace` sends it.

The envelope is ``k8s\\0`` and a runtime.Unknown: field 1 the TypeMeta (1 apiVersion, 2 kind), field 2 the raw object,
whose ObjectMeta is field 1 (1 name, 11 labels and 12 annotations as maps).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_MAGIC = b"k8s\x00"


def namespace(body: bytes) -> dict[str, Any] | None:
    """The Namespace in ``body``; None when it is anything else."""
    if not body.startswith(_MAGIC):
        return None
    try:
        envelope = dict(_fields(body[len(_MAGIC) :]))
        types = dict(_fields(envelope.get(1, b"")))
        if (types.get(1), types.get(2)) != (b"v1", b"Namespace"):
            return None
        metadata: dict[str, Any] = {}
        for number, value in _fields(dict(_fields(envelope.get(2, b""))).get(1, b"")):
            if number == 1:
                metadata["name"] = value.decode()
            elif number in (11, 12):
                entry = dict(_fields(value))
                name = "labels" if number == 11 else "annotations"
                metadata.setdefault(name, {})[entry.get(1, b"").decode()] = entry.get(2, b"").decode()
    except (IndexError, ValueError):
        return None
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Length-delimited fields by number; fields of other wire types are skipped."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire = key & 7
        if wire == 0:
            _, at = _varint(data, at)
        elif wire == 2:
            size, at = _varint(data, at)
            if at + size > len(data):
                raise ValueError("a field runs past the end")
            yield key >> 3, data[at : at + size]
            at += size
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
        else:
            raise ValueError(f"unknown wire type {wire}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value, at
        shift += 7
