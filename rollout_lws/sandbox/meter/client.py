"""Clients of the traffic meter: all requests of one client are alike, so one share of requests describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Seconds for which a connection through kube-proxy keeps its endpoint. A proxy chooses an endpoint for each request.
_KEEP_ALIVE = 60.0


@dataclass(frozen=True, slots=True)
class Client:
    """Requests that enter through exactly one of ``route`` (an HTTPRoute), ``ingress`` or ``service``; else ValueError.

    ``host`` matters only for an Ingress; header names are case-insensitive. ``keep_alive`` is how many seconds a
    connection keeps its endpoint: by default 60 for a Service, 0 behind a proxy, which chooses for each request.
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
    keep_alive: float | None = None

    def __post_init__(self) -> None:
        if sum(map(bool, (self.route, self.service, self.ingress))) != 1:
            raise ValueError(f'client "{self.name}" needs exactly one of route, service and ingress')

    @property
    def connection_seconds(self) -> float:
        """``keep_alive``, or its default."""
        if self.keep_alive is not None:
            return self.keep_alive
        return _KEEP_ALIVE if self.service else 0.0

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers.items() if key.lower() == name.lower()), None)
