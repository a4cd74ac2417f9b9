"""What is looked at only to say why groups do not come: Events of StatefulSets that cannot make pods, and Kueue.

None of it is watched before a group is in that very trouble, and what may not be listed is done without.
"""

from __future__ import annotations

from collections.abc import Mapping

from rollout_lws.kube.client import Client
from rollout_lws.kube.informer import Informer
from rollout_lws.objects.resources import (
    CORE_EVENTS,
    KUEUE_CHECKS,
    KUEUE_WORKLOADS,
    KUEUE_WORKLOADS_BEFORE,
    Resource,
)
from rollout_lws.observe.cache_types import StoredObject
from rollout_lws.observe.explanations import DECODERS, FIELDS, LABELS

#: Kinds that explain, each with how long it has to be wanted, in seconds, before anybody asks for it: in every rolling
#: update pods are missing for a moment.
EXPLAINING: Mapping[Resource, float] = {
    CORE_EVENTS: 5.0,
    KUEUE_WORKLOADS: 0.0,
    KUEUE_WORKLOADS_BEFORE: 0.0,
    KUEUE_CHECKS: 0.0,
}


def explaining(client: Client, resource: Resource, namespace: str) -> Informer[StoredObject]:
    """What a namespace has of one such kind; of Kueue's checks, which have no namespace, all."""
    return Informer(
        client,
        resource,
        DECODERS[resource],
        namespace=namespace if resource.namespaced else "",
        label_selector=LABELS.get(resource, ""),
        field_selector=FIELDS.get(resource, ""),
    )
