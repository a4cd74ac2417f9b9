"""All routers of a Rollout. A Rollout may route through several objects; each gets the same split.

A further kind of router needs four entries: its ``Resource`` in ``objects.resources``; its field in ``TrafficRouting``
(``api.rollout_spec``), with a line in ``any_router`` there; its ``RouterSpec`` in ``registry.SPECS``, which watches,
rights and commands go by; and here its class in ``ROUTERS``, a ``WeightedRouter`` if its rules have weights (and a
``PairRouter`` in ``PAIR_ROUTERS`` if a user may name the backends of two workloads in them). Objects of all other kinds
are ``CustomRouter``'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TypeVar

from rollout_lws.api import TrafficRouting
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.names import Names
from rollout_lws.traffic.registry import named_in
from rollout_lws.traffic.router import Router
from rollout_lws.traffic.routers.custom import CustomRouter
from rollout_lws.traffic.routers.ingress import IngressRouter
from rollout_lws.traffic.routers.pair import PairGrpcRouter, PairHttpRouter, PairRouter, PairVirtualServiceRouter
from rollout_lws.traffic.routers.virtual_service import VirtualServiceRouter
from rollout_lws.traffic.routers.weighted import GrpcRouter, HttpRouter

_Router = TypeVar("_Router", bound=Router)
#: The implementation of each of ``registry.SPECS``.
ROUTERS: tuple[type[Router], ...] = (HttpRouter, GrpcRouter, VirtualServiceRouter, IngressRouter)
#: The same for a pair. Only these kinds can name the backends of both of its workloads.
PAIR_ROUTERS: tuple[type[PairRouter], ...] = (PairHttpRouter, PairGrpcRouter, PairVirtualServiceRouter)


@lru_cache(maxsize=4)
def routers(facts: RoutingFacts) -> tuple[Router, ...]:
    """The routers that the Rollout names. Cached, so that all rules of one decision share their computed ``state``."""
    if facts.names.is_pair:
        return pair_routers(facts)
    return (*_of(ROUTERS, facts), *(CustomRouter(facts, ref) for ref in facts.names.custom))


@lru_cache(maxsize=4)
def pair_routers(facts: RoutingFacts) -> tuple[PairRouter, ...]:
    """The routers that a Rollout of a pair names; () for other Rollouts."""
    return _of(PAIR_ROUTERS, facts) if facts.names.is_pair else ()


def _of(kinds: Iterable[type[_Router]], facts: RoutingFacts) -> tuple[_Router, ...]:
    return tuple(
        kind(facts, ref.name)
        for kind in kinds
        for ref in facts.names.refs
        if ref.kind == kind.spec.resource.kind and not ref.api_version
    )


def named(asked: TrafficRouting | None) -> Names | None:
    """The objects that the Rollout's spec names; None when it has no ``trafficRoutings``."""
    return named_in(asked.to_json_dict()) if asked is not None else None
