"""What is looked at only to say why groups do not come: Events of StatefulSets that cannot make pods, and Kueue.

None of it is watched before a group is in that very trouble, and what may not be listed is done without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

import msgspec

from rollout_lws.controller.stored import StoredObject
from rollout_lws.kube.client import Client
from rollout_lws.kube.informer import Informer
from rollout_lws.objects.core_events import FAILED_CREATE, CoreEvent
from rollout_lws.objects.kueue import JOB_UID, AdmissionCheck, Workload
from rollout_lws.objects.meta import Meta
from rollout_lws.objects.resources import (
    CORE_EVENTS,
    KUEUE_CHECKS,
    KUEUE_WORKLOADS,
    KUEUE_WORKLOADS_BEFORE,
    STATEFUL_SETS,
    Resource,
)

#: Kinds that explain, each with how long it has to be wanted, in seconds, before anybody asks for it: in every rolling
#: update pods are missing for a moment.
EXPLAINING: Mapping[Resource, float] = {
    CORE_EVENTS: 5.0,
    KUEUE_WORKLOADS: 0.0,
    KUEUE_WORKLOADS_BEFORE: 0.0,
    KUEUE_CHECKS: 0.0,
}
#: Which of a kind are looked at.
FIELDS: Mapping[Resource, str] = {CORE_EVENTS: f"involvedObject.kind={STATEFUL_SETS.kind},reason={FAILED_CREATE}"}
_LABELS = {KUEUE_WORKLOADS: JOB_UID, KUEUE_WORKLOADS_BEFORE: JOB_UID}


class _Partial(Protocol):
    @property
    def metadata(self) -> Meta: ...


_P = TypeVar("_P", bound=_Partial)


def _trimmed(kind: type[_P]) -> Callable[[bytes], StoredObject]:
    """Keeps of an object what its partial struct has: a Workload carries the whole templates of its pods."""
    decoder = msgspec.json.Decoder(kind)

    def decode(body: bytes) -> StoredObject:
        found = decoder.decode(body)
        return StoredObject(found.metadata, msgspec.json.encode(found))

    return decode


DECODERS: Mapping[Resource, Callable[[bytes], StoredObject]] = {
    CORE_EVENTS: _trimmed(CoreEvent),
    KUEUE_WORKLOADS: _trimmed(Workload),
    KUEUE_WORKLOADS_BEFORE: _trimmed(Workload),
    KUEUE_CHECKS: _trimmed(AdmissionCheck),
}


def explaining(client: Client, resource: Resource, namespace: str) -> Informer[StoredObject]:
    """What a namespace has of one such kind; of Kueue's checks, which have no namespace, all."""
    return Informer(
        client,
        resource,
        DECODERS[resource],
        namespace=namespace if resource.namespaced else "",
        label_selector=_LABELS.get(resource, ""),
        field_selector=FIELDS.get(resource, ""),
    )
