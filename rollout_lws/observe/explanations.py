"""Reads the objects that explain why pods are missing: Events of their controllers, and Kueue's objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

import msgspec

from rollout_lws.objects.jobs import Job
from rollout_lws.objects.kueue import JOB_UID, MULTIKUEUE, AdmissionCheck, Workload
from rollout_lws.objects.meta import Meta
from rollout_lws.objects.resources import (
    CORE_EVENTS,
    JOBS,
    KUEUE_CHECKS,
    KUEUE_WORKLOADS,
    KUEUE_WORKLOADS_BEFORE,
    Resource,
)
from rollout_lws.objects.workloads import FAILED_CREATE, CoreEvent
from rollout_lws.observe.cache_types import StoredObject
from rollout_lws.observe.world import World
from rollout_lws.rollout.observation import Queues
from rollout_lws.workload.facts import Listing

#: Field and label selectors of each kind.
FIELDS: Mapping[Resource, str] = {CORE_EVENTS: f"reason={FAILED_CREATE}"}
LABELS: Mapping[Resource, str] = {KUEUE_WORKLOADS: JOB_UID, KUEUE_WORKLOADS_BEFORE: JOB_UID}


class _Partial(Protocol):
    @property
    def metadata(self) -> Meta: ...


_P = TypeVar("_P", bound=_Partial)


def _trimmed(kind: type[_P]) -> Callable[[bytes], StoredObject]:
    """Keeps only the members of the partial struct: a Workload contains the full templates of its pods."""
    decoder = msgspec.json.Decoder(kind)

    def decode(body: bytes) -> StoredObject:
        found = decoder.decode(body)
        return StoredObject(found.metadata, msgspec.json.encode(found))

    return decode


DECODERS: Mapping[Resource, Callable[[bytes], StoredObject]] = {
    CORE_EVENTS: _trimmed(CoreEvent),
    JOBS: _trimmed(Job),
    KUEUE_WORKLOADS: _trimmed(Workload),
    KUEUE_WORKLOADS_BEFORE: _trimmed(Workload),
    KUEUE_CHECKS: _trimmed(AdmissionCheck),
}


_events = msgspec.json.Decoder(CoreEvent)
_workloads = msgspec.json.Decoder(Workload)
_checks = msgspec.json.Decoder(AdmissionCheck)


def refusals(world: World) -> tuple[CoreEvent, ...]:
    """Events of StatefulSets and Jobs that could not create a pod."""
    return tuple(_events.decode(each.body) for each in world.every(CORE_EVENTS))


def queues(world: World) -> Queues:
    """Kueue's objects in the namespace, if Kueue is installed and they may be listed."""
    served = KUEUE_WORKLOADS_BEFORE if world.unserved(KUEUE_WORKLOADS) else KUEUE_WORKLOADS
    workloads = tuple(_workloads.decode(each.body) for each in world.every(served))
    checks = (_checks.decode(each.body) for each in world.every(KUEUE_CHECKS))
    return Queues(
        workloads=workloads,
        served=served,
        listing=_listing(world, served),
        checks_pending=world.unknown(KUEUE_CHECKS) == "",
        dispatching=frozenset(each.metadata.name for each in checks if each.spec.controller_name == MULTIKUEUE),
    )


def _listing(world: World, served: Resource) -> Listing:
    unknown = world.unknown(served)
    if unknown == "":
        return Listing.PENDING
    if world.unserved(served):
        return Listing.UNAVAILABLE
    return Listing.DONE if unknown is None else Listing.REFUSED
