"""What explains why groups do not come, read from what is watched for it: Events of StatefulSets, and Kueue."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec

from rollout_lws.controller.stored import StoredObject
from rollout_lws.objects.core_events import CoreEvent
from rollout_lws.objects.kueue import MULTIKUEUE, AdmissionCheck, Workload
from rollout_lws.objects.resources import CORE_EVENTS, KUEUE_CHECKS, KUEUE_WORKLOADS, KUEUE_WORKLOADS_BEFORE, Resource
from rollout_lws.rollout.observation import Queues
from rollout_lws.workload.facts import Listing


class World(Protocol):
    def every(self, resource: Resource) -> Iterable[StoredObject]: ...
    def unserved(self, resource: Resource) -> bool: ...
    def unknown(self, resource: Resource) -> str | None: ...


_events = msgspec.json.Decoder(CoreEvent)
_workloads = msgspec.json.Decoder(Workload)
_checks = msgspec.json.Decoder(AdmissionCheck)


def refusals(world: World) -> tuple[CoreEvent, ...]:
    """Events of StatefulSets that could not make a pod."""
    return tuple(_events.decode(each.body) for each in world.every(CORE_EVENTS))


def queues(world: World) -> Queues:
    """What Kueue has of the namespace, as far as it is there and may be listed."""
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
    return Listing.DONE if unknown is None and not world.unserved(served) else Listing.UNAVAILABLE
