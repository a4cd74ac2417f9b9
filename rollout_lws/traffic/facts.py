"""The objects that route requests between the two versions of one LWS, as observed at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rollout_lws.api import TrafficRouting
from rollout_lws.api.resources import Keys
from rollout_lws.objects.resources import SERVICES, Resource
from rollout_lws.traffic import marks
from rollout_lws.traffic.custom.scripts import NO_SCRIPTS, Scripts
from rollout_lws.traffic.names import Names
from rollout_lws.traffic.services import new_service_name
from rollout_lws.traffic.split import Object, Split


@dataclass(frozen=True, slots=True, eq=False)
class RoutingFacts:
    """The objects that ``trafficRoutings`` names, and all else that sends requests to pods of the namespace.

    ``names`` are those that the current release stored with its first pin, before that those in the Rollout's spec.
    ``asked`` is the spec's ``trafficRoutings``. ``by`` is the UID of this Rollout, ``owner`` the owner reference to it
    that its own objects carry. ``objects`` are by kind and name: all Services, InferencePools and PodDisruptionBudgets
    of the namespace, and all known objects of kinds that are named. ``endpoints`` are the names of the pods that the
    EndpointSlices of a Service list as ready, by Service: the Services of both versions, and those of endpoint pickers.
    ``answering`` are the latter with any ready endpoint, pod or not; ``pickers`` are the ready pods of a pool's, with
    their addresses, by pool: of pools for whose figures a gate asks, once they are known. ``appending`` are the splits
    of the plan that append rules to routes. ``other_leaders`` are the labels of the leaders of all other workloads, by
    workload. ``discovery`` are the headless Services of the user by which pods of a version find each other.
    ``absent`` are kinds that the cluster does not serve. ``custom`` are the kinds of named objects that scripts change,
    by apiVersion and kind, None for one that the cluster does not serve; ``scripts`` is what is known of the scripts.
    ``synced`` is False while required objects are not listed yet; ``trouble`` then says what prevents listing them, ""
    when nothing does.
    """

    names: Names
    namespace: str
    by: str
    keys: Keys
    asked: TrafficRouting | None = None
    appending: tuple[Split, ...] = ()
    owner: Mapping[str, Any] = field(default_factory=dict)
    objects: Mapping[Resource, Mapping[str, Object]] = field(default_factory=dict)
    endpoints: Mapping[str, frozenset[str]] = field(default_factory=dict)
    answering: frozenset[str] = frozenset()
    pickers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    other_leaders: Mapping[str, tuple[Mapping[str, str], ...]] = field(default_factory=dict)
    discovery: frozenset[str] = frozenset()
    absent: frozenset[Resource] = frozenset()
    custom: Mapping[tuple[str, str], Resource | None] = field(default_factory=dict)
    scripts: Scripts = NO_SCRIPTS
    synced: bool = True
    trouble: str = ""

    @property
    def waits(self) -> str:
        """Why the decision has to wait for a list; "" when all objects are known."""
        return "" if self.synced else self.trouble or "routes and endpoints are being listed"

    def find(self, resource: Resource, name: str | None) -> Object | None:
        """The object of this name, None when there is none."""
        return self.objects.get(resource, {}).get(name) if name else None

    @property
    def canary_service_name(self) -> str:
        return new_service_name(self.names)

    @property
    def service(self) -> Object | None:
        return self.find(SERVICES, self.names.service)

    @property
    def canary_service(self) -> Object | None:
        return self.find(SERVICES, self.canary_service_name)

    def is_ours(self, live: Object) -> bool:
        """Whether this Rollout created the object, given that it has the name of one that the Rollout creates."""
        return marks.controlled_by(live, self.by, self.keys)
