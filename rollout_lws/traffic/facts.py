"""The objects that share requests between the two versions of one LWS, as they stand at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rollout_lws.api import TrafficRouting
from rollout_lws.api.resources import Keys
from rollout_lws.objects.resources import SERVICES, Resource
from rollout_lws.traffic import marks
from rollout_lws.traffic.names import Names
from rollout_lws.traffic.services import canary_service_name
from rollout_lws.traffic.split import Object


@dataclass(frozen=True, slots=True, eq=False)
class RoutingFacts:
    """What the names in ``trafficRoutings`` stand for, and what else sends requests to pods of the namespace.

    ``names`` are those that the release on hand has noted with its first pin, before that those in the Rollout's
    spec. ``asked`` are the spec's own words. ``by`` is the UID of the Rollout whose view this is, ``owner`` the owner
    reference to it that its own objects carry. ``objects`` are by kind and name: all Services, InferencePools and
    PodDisruptionBudgets of the namespace, and all objects of kinds that are named, as far as they are known.
    ``endpoints`` are the names of the pods that the EndpointSlices of a Service list as ready, by Service: those of
    both versions, and those of endpoint pickers without which requests fail; of these, ``answering`` have any endpoint
    that is ready, be it no pod.
    ``other_leaders`` are the labels of the leaders of all other LWSs, by LWS. ``absent`` are kinds that the cluster
    does not serve. ``synced`` is False while not all that is needed is known yet; ``trouble`` then says what stops it
    from being listed, "" when nothing does.
    """

    names: Names
    namespace: str
    by: str
    keys: Keys
    asked: TrafficRouting | None = None
    owner: Mapping[str, Any] = field(default_factory=dict)
    objects: Mapping[Resource, Mapping[str, Object]] = field(default_factory=dict)
    endpoints: Mapping[str, frozenset[str]] = field(default_factory=dict)
    answering: frozenset[str] = frozenset()
    other_leaders: Mapping[str, tuple[Mapping[str, str], ...]] = field(default_factory=dict)
    absent: frozenset[Resource] = frozenset()
    synced: bool = True
    trouble: str = ""

    @property
    def waits(self) -> str:
        """What has to be known first, "" when all is."""
        return "" if self.synced else self.trouble or "routes and endpoints are being listed"

    def find(self, resource: Resource, name: str | None) -> Object | None:
        """The object of this name, None when there is none."""
        return self.objects.get(resource, {}).get(name) if name else None

    @property
    def canary_service_name(self) -> str:
        return canary_service_name(self.names.service)

    @property
    def service(self) -> Object | None:
        return self.find(SERVICES, self.names.service)

    @property
    def canary_service(self) -> Object | None:
        return self.find(SERVICES, self.canary_service_name)

    def is_ours(self, live: Object) -> bool:
        """Whether this Rollout has made the object, which has the name of one that it makes."""
        return marks.controlled_by(live, self.by, self.keys)
