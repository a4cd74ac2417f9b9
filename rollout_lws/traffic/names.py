"""What a Rollout shares requests by, by name."""

from __future__ import annotations

from rollout_lws.api import TrafficRouting
from rollout_lws.objects.meta import Struct


class Names(Struct, frozen=True):
    """The objects of one namespace by which a release shares requests. They are kept in the note on the Service that it
    has pinned first, which nobody can write who may not write that Service.
    """

    service: str = ""
    http_route: str | None = None
    ingress: str | None = None
    stable_pool: str | None = None
    canary_pool: str | None = None

    @property
    def any_router(self) -> bool:
        """Whether anything is named in which shares can be written: where names are not all known, nothing is."""
        return bool(self.http_route or self.ingress)


def named(asked: TrafficRouting | None) -> Names | None:
    """What a Rollout's own words name; None when they leave traffic alone."""
    if asked is None:
        return None
    gateway = asked.gateway
    pools = gateway.inference_pool if gateway else None
    return Names(
        service=asked.service,
        http_route=gateway.http_route_name if gateway else None,
        ingress=asked.ingress.name if asked.ingress else None,
        stable_pool=pools.stable if pools else None,
        canary_pool=pools.canary if pools else None,
    )
