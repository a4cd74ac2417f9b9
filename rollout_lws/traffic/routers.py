"""All routers of a Rollout. It may share requests by an HTTPRoute, an Ingress, or both, and asks each for the same."""

from __future__ import annotations

from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.http_router import HttpRouter
from rollout_lws.traffic.ingress_router import IngressRouter
from rollout_lws.traffic.router import Router


def routers(facts: RoutingFacts) -> tuple[Router, ...]:
    """All that the Rollout names."""
    found: list[Router] = []
    if facts.names.http_route:
        found.append(HttpRouter(facts, facts.names.http_route))
    if facts.names.ingress:
        found.append(IngressRouter(facts, facts.names.ingress))
    return tuple(found)
