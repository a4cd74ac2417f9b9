"""Endpoint pickers of InferencePools: with failureMode FailClose, the default of the API, a pool whose picker does not
answer refuses every request, however many of its pods are ready.
"""

from __future__ import annotations

from rollout_lws.objects.resources import INFERENCE_POOLS, SERVICES
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.split import Object


def picker_service(pool: Object | None) -> str:
    """The Service without which requests to the pool fail: that of its endpoint picker, with failureMode FailClose; ""
    when there is none.
    """
    asked = ((pool or {}).get("spec") or {}).get("endpointPickerRef") or {}
    is_service = (asked.get("group") or "", asked.get("kind") or SERVICES.kind) == (SERVICES.group, SERVICES.kind)
    closes = (asked.get("failureMode") or "FailClose") == "FailClose"
    return str(asked.get("name") or "") if is_service and closes else ""


def unanswered(facts: RoutingFacts, pool: str | None) -> str:
    """Why requests to the pool of this name would fail for want of its picker, as a sentence that says what to do; ""
    when they would not, and without such a pool.
    """
    name = picker_service(facts.find(INFERENCE_POOLS, pool))
    if not name or name in facts.answering:
        return ""
    what, service = f"InferencePool {pool} fails all requests (failureMode FailClose)", facts.find(SERVICES, name)
    of_picker = f"the Service {name} of its endpoint picker"
    if service is None:
        return f"{what}: {of_picker} does not exist; create it, or correct endpointPickerRef"
    if (service.get("spec") or {}).get("type") == "ExternalName":
        return f"{what}: {of_picker} is of type ExternalName, which has no endpoint; make one that selects the picker"
    return f"{what}: {of_picker} has no ready endpoint; start the picker"
