"""What the caches keep of each object: as little as decides, our own kinds as bytes until a key is decided.

Thousands of Rollouts lie at rest for each one in a release, and a pydantic model takes ten times the room of its JSON.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from rollout_lws.api import Phase
from rollout_lws.controller.shared import LAST_APPLIED, share
from rollout_lws.objects.meta import Meta, Struct


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of which only the metadata is looked at before it is needed as a whole."""

    metadata: Meta
    body: bytes


@dataclass(frozen=True, slots=True)
class StoredRollout:
    """A Rollout's JSON with what wakes its key: ``workload`` is the name of the LWS that it refers to, ``routes`` says
    whether Services concern it, since it names one or is in a release.
    """

    metadata: Meta
    workload: str
    body: bytes
    routes: bool = False


class _WorkloadRef(Struct, frozen=True):
    name: str = ""


class _Style(Struct, frozen=True):
    traffic_routings: tuple[msgspec.Raw, ...] | None = ()


class _Strategy(Struct, frozen=True):
    canary: _Style | None = None
    blue_green: _Style | None = None


class _RolloutSpec(Struct, frozen=True):
    workload_ref: _WorkloadRef = _WorkloadRef()
    strategy: _Strategy = _Strategy()


class _RolloutStatus(Struct, frozen=True):
    phase: str | None = None


class _Rollout(Struct, frozen=True):
    metadata: Meta
    spec: _RolloutSpec = _RolloutSpec()
    status: _RolloutStatus | None = None


class _Object(Struct, frozen=True):
    metadata: Meta


_rollouts = msgspec.json.Decoder(_Rollout)
_objects = msgspec.json.Decoder(_Object)
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


def stored_rollout(body: bytes) -> StoredRollout:
    """Without what the API server and kubectl note about its writers: that is as long as all the rest."""
    head = _rollouts.decode(body)
    styles = head.spec.strategy.canary, head.spec.strategy.blue_green
    routes = any(style is not None and style.traffic_routings for style in styles)
    releases = head.status is not None and head.status.phase == Phase.PROGRESSING
    share(head.metadata, annotations=())
    return StoredRollout(head.metadata, head.spec.workload_ref.name, _without_writers(body), routes or releases)


def stored_object(body: bytes) -> StoredObject:
    """Its body as it is: of foreign objects that are written to it is asked who else writes to them."""
    head = _objects.decode(body)
    share(head.metadata)
    return StoredObject(head.metadata, bytes(body))


def _without_writers(body: bytes) -> bytes:
    whole = _members.decode(body)
    metadata = _members.decode(whole["metadata"])
    metadata.pop("managedFields", None)
    if "annotations" in metadata:
        annotations = _members.decode(metadata["annotations"])
        annotations.pop(LAST_APPLIED, None)
        metadata["annotations"] = msgspec.Raw(msgspec.json.encode(annotations))
    whole["metadata"] = msgspec.Raw(msgspec.json.encode(metadata))
    # What an encoder gives has room for more, up to twice of what is in it.
    return bytes(memoryview(msgspec.json.encode(whole)))
