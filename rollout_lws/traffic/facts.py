"""The objects that share requests between the two versions of one LWS, as they stand at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rollout_lws.traffic.split import Object


@dataclass(frozen=True, slots=True, eq=False)
class RoutingFacts:
    """What the names in ``trafficRoutings`` stand for; an object that does not exist is None.

    ``endpoints`` are the names of the pods that the EndpointSlices of a Service list as ready, by Service.
    ``services`` are all Services of the namespace, those two among them; ``other_leaders`` the labels of the leaders of
    all other LWSs, by LWS. ``synced`` is False while the routing objects
    of the namespace are not known yet; ``trouble`` then says what stops them from being listed, "" when nothing does.
    """

    service_name: str
    canary_service_name: str
    route_name: str = ""
    service: Object | None = None
    canary_service: Object | None = None
    route: Object | None = None
    endpoints: Mapping[str, frozenset[str]] = field(default_factory=dict)
    services: tuple[Object, ...] = ()
    other_leaders: Mapping[str, tuple[Mapping[str, str], ...]] = field(default_factory=dict)
    synced: bool = True
    trouble: str = ""
