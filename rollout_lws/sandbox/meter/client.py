"""Clients of the traffic meter: all requests of one client are alike, so one share of requests describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Client:
    """Requests that enter through exactly one of ``route`` (an HTTPRoute), ``ingress`` or ``service``; else ValueError.

    Each request chooses an endpoint; there are ``per_second`` of them, 1 by default. ``host`` matters only for an
    Ingress; header names are case-insensitive.
    """

    name: str
    route: str = ""
    service: str = ""
    ingress: str = ""
    namespace: str = "default"
    host: str = ""
    path: str = "/"
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    cookies: Mapping[str, str] = field(default_factory=dict)
    per_second: float = 1.0

    def __post_init__(self) -> None:
        if sum(map(bool, (self.route, self.service, self.ingress))) != 1:
            raise ValueError(f'client "{self.name}" needs exactly one of route, service and ingress')

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers.items() if key.lower() == name.lower()), None)
