"""Whether the new version's InferencePool can be used: no route refers to it before the first share, so that no gateway
has accepted it by then, and its endpoint picker may never have answered anything.
"""

from __future__ import annotations

from rollout_lws.objects.resources import INFERENCE_POOLS, SERVICES
from rollout_lws.traffic import acceptance, pools
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.routers import routers
from rollout_lws.traffic.split import Object


def picker_service(pool: Object | None) -> str:
    """The Service without which requests to the pool fail: that of its endpoint picker, with failureMode FailClose; ""
    when there is none.
    """
    asked = ((pool or {}).get("spec") or {}).get("endpointPickerRef") or {}
    is_service = (asked.get("group") or "", asked.get("kind") or SERVICES.kind) == (SERVICES.group, SERVICES.kind)
    closes = asked.get("failureMode", "FailClose") == "FailClose"
    return str(asked.get("name") or "") if is_service and closes else ""


def without_picker(facts: RoutingFacts) -> str:
    """Why requests to the pool would fail for want of its picker, as a sentence that says what to do; "" when they
    would not.
    """
    name = picker_service(_pool(facts))
    if not name or facts.endpoints.get(name):
        return ""
    what = f"InferencePool {facts.names.canary_pool} fails all requests (failureMode FailClose)"
    if facts.find(SERVICES, name) is None:
        return (
            f"{what}: the Service {name} of its endpoint picker does not exist; create it, or correct endpointPickerRef"
        )
    return f"{what}: the Service {name} of its endpoint picker has no ready endpoint; start the picker"


def denied(facts: RoutingFacts) -> str:
    """What the first Gateway says that cannot use the pool as it stands; "" when none says so."""
    live = _pool(facts)
    said = acceptance.denied(live) if live is not None else ""
    return f"InferencePool {facts.names.canary_pool}: {said}" if said else ""


def unaccepted(facts: RoutingFacts) -> str:
    """Why the pool is not in use by all gateways that use the stable version's; "" when it is, and while no request is
    sent to it.
    """
    live, first = _pool(facts), facts.find(INFERENCE_POOLS, facts.names.stable_pool)
    if live is None or first is None or not any(each.reaches_new for each in routers(facts)):
        return ""
    known = acceptance.reporting(first)
    using = (each for each in pools.parents(first, facts.by, facts.keys) if each in known)
    said = next(filter(None, (acceptance.complaint(live, each, pools.CONDITIONS) for each in using)), "")
    return denied(facts) or (f"InferencePool {facts.names.canary_pool}: {said}" if said else "")


def _pool(facts: RoutingFacts) -> Object | None:
    return facts.find(INFERENCE_POOLS, facts.names.canary_pool)
