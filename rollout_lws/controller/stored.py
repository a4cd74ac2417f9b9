"""What the caches keep of each object: as little as decides, our own kinds as bytes until a key is decided.

Thousands of Rollouts lie at rest for each one in a release, and a pydantic model takes ten times the room of its JSON.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from rollout_lws.objects.meta import Meta, Struct
from rollout_lws.objects.resources import STATEFUL_SETS
from rollout_lws.objects.workloads import ControllerRevision


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of which only the metadata is looked at before it is needed as a whole."""

    metadata: Meta
    body: bytes


@dataclass(frozen=True, slots=True)
class StoredRollout:
    """A Rollout's JSON with what wakes its key: ``workload`` is the name of the LWS that it refers to, ``routes`` says
    whether it names a Service.
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


class _Rollout(Struct, frozen=True):
    metadata: Meta
    spec: _RolloutSpec = _RolloutSpec()


class _Object(Struct, frozen=True):
    metadata: Meta


def stored_revision(body: bytes) -> ControllerRevision:
    """A ControllerRevision of which the data is kept where it can hold a version: that of a StatefulSet never does.

    What is kept gets bytes of its own, since a Raw member would keep the object's whole JSON alive.
    """
    found = _revisions.decode(body)
    owner = found.metadata.controller
    if owner is not None and owner.kind == STATEFUL_SETS.kind:
        return msgspec.structs.replace(found, data=_NOTHING)
    return msgspec.structs.replace(found, data=found.data.copy())


_NOTHING = msgspec.Raw(b"")
_revisions = msgspec.json.Decoder(ControllerRevision)
_rollouts = msgspec.json.Decoder(_Rollout)
_objects = msgspec.json.Decoder(_Object)


def stored_rollout(body: bytes) -> StoredRollout:
    head = _rollouts.decode(body)
    styles = head.spec.strategy.canary, head.spec.strategy.blue_green
    routes = any(style is not None and style.traffic_routings for style in styles)
    return StoredRollout(head.metadata, head.spec.workload_ref.name, bytes(body), routes)


def stored_object(body: bytes) -> StoredObject:
    return StoredObject(_objects.decode(body).metadata, bytes(body))
