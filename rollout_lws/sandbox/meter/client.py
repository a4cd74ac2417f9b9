"""A client of the traffic meter: all requests of one client are alike, so one share of requests describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rollout_lws.objects.resources import (
    GRPC_ROUTES,
    HTTP_ROUTES,
    INGRESSES,
    SERVICES,
    VIRTUAL_SERVICES,
    Resource,
)

#: The member of Client for each kind of object that requests enter through.
_ENTRIES: Mapping[Resource, str] = {
    HTTP_ROUTES: "route",
    GRPC_ROUTES: "grpc_route",
    VIRTUAL_SERVICES: "virtual_service",
    INGRESSES: "ingress",
    SERVICES: "service",
}


def entering(resource: Resource, name: str) -> dict[str, Any]:
    """What says to Client that requests enter through this object."""
    return {_ENTRIES[resource]: name}


@dataclass(frozen=True, slots=True)
class Client:
    """Requests that enter through exactly one of ``route`` (an HTTPRoute), ``grpc_route``, ``virtual_service``,
    ``ingress`` or ``service``; else ValueError.

    Each request chooses an endpoint; there are ``per_second`` of them, 1 by default. ``host`` matters only for an
    Ingress, and so does ``ingress_class``, the classType of what serves it: "" and "nginx" are ingress-nginx, "traefik"
    is Traefik's ingress-nginx provider, and to others no canary Ingress counts. Header names are case-insensitive. The
    ``path`` of a gRPC request is "/service/method".
    """

    name: str
    route: str = ""
    service: str = ""
    ingress: str = ""
    ingress_class: str = ""
    grpc_route: str = ""
    virtual_service: str = ""
    namespace: str = "default"
    host: str = ""
    path: str = "/"
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    cookies: Mapping[str, str] = field(default_factory=dict)
    per_second: float = 1.0

    def __post_init__(self) -> None:
        if len(self._entries) != 1:
            raise ValueError(f'client "{self.name}" needs exactly one of route, service, ingress and their like')

    @property
    def entry(self) -> tuple[Resource, str]:
        """Kind and name of the object that its requests enter through."""
        return next(iter(self._entries.items()))

    @property
    def _entries(self) -> dict[Resource, str]:
        every = ((resource, str(getattr(self, member))) for resource, member in _ENTRIES.items())
        return {resource: name for resource, name in every if name}

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers.items() if key.lower() == name.lower()), None)
