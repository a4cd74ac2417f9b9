"""Whether gateways can use the new version's InferencePool: no route refers to it before the first share, so that none
has accepted it by then.
"""

from __future__ import annotations

from rollout_lws.objects.resources import INFERENCE_POOLS
from rollout_lws.traffic import pools
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.route import status
from rollout_lws.traffic.routers import routers
from rollout_lws.traffic.split import Object


def denied(facts: RoutingFacts) -> str:
    """What the first Gateway says that cannot use the pool as it stands; "" when none says so."""
    live = _pool(facts)
    said = status.denied(live) if live is not None else ""
    return f"InferencePool {facts.names.canary_pool}: {said}" if said else ""


def unaccepted(facts: RoutingFacts) -> str:
    """Why the pool is not in use by all gateways that use the stable version's; "" when it is, and while no request is
    sent to it.
    """
    live, first = _pool(facts), facts.find(INFERENCE_POOLS, facts.names.stable_pool)
    if live is None or first is None or not any(each.state.reaches_canary for each in routers(facts)):
        return ""
    known = status.reporting(first)
    using = (each for each in pools.parents(first, facts.by, facts.keys) if each in known)
    said = next(filter(None, (status.complaint(live, each, pools.CONDITIONS) for each in using)), "")
    return denied(facts) or (f"InferencePool {facts.names.canary_pool}: {said}" if said else "")


def _pool(facts: RoutingFacts) -> Object | None:
    return facts.find(INFERENCE_POOLS, facts.names.canary_pool)
