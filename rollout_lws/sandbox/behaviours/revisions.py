"""ControllerRevisions and their short, stable hashes, shared by the LeaderWorkerSet and the StatefulSet controller.

A hash depends on content alone: two workloads with equal templates get equal hashes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from rollout_lws.objects.resources import CONTROLLER_REVISIONS, Resource
from rollout_lws.sandbox.behaviours.base import Object, owner_reference

#: Kubernetes' alphabet for generated names: no vowels, so no words.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"

_encoder = msgspec.json.Encoder(order="deterministic")


def short_hash(value: Any) -> str:
    """A hash of at most ten characters of the JSON value, independent of the order of its keys."""
    number = int.from_bytes(hashlib.sha256(_encoder.encode(value)).digest()[:4], "big")
    return "".join(_ALPHABET[int(digit)] for digit in str(number))


def newest(revisions: Iterable[Object]) -> Object | None:
    return max(revisions, key=lambda revision: int(revision["revision"]), default=None)


def next_number(revisions: Iterable[Object]) -> int:
    return max((int(revision["revision"]) for revision in revisions), default=0) + 1


def controller_revision(
    owner: Object, resource: Resource, name: str, labels: Mapping[str, str], data: Mapping[str, Any], number: int
) -> dict[str, Any]:
    """A ControllerRevision of ``owner``, which is a ``resource``."""
    return {
        "apiVersion": CONTROLLER_REVISIONS.api_version,
        "kind": CONTROLLER_REVISIONS.kind,
        "metadata": {
            "name": name,
            "namespace": owner["metadata"]["namespace"],
            "labels": dict(labels),
            "ownerReferences": [owner_reference(resource, owner)],
        },
        "revision": number,
        "data": data,
    }
