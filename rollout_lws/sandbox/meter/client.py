"""Who sends requests, and of what kind: all requests of one client are alike, so that one share describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: How long connections through kube-proxy live: they stay on the endpoint they got. A proxy chooses for each request.
_KEEP_ALIVE = 60.0


@dataclass(frozen=True, slots=True)
class Client:
    """Requests that enter by one of ``route`` (an HTTPRoute), ``ingress`` or ``service``; ValueError unless by one.

    ``host`` counts for an Ingress alone; header names are compared without case. ``keep_alive`` is how many seconds a
    connection stays on the endpoint it got: 60 by default for a Service, 0 behind a proxy, which chooses for each
    request.
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
