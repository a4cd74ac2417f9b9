"""Events as controllers record them, in events.k8s.io/v1."""

from __future__ import annotations

from rollout_lws.objects.resources import EVENTS, Resource
from rollout_lws.objects.writes import Create
from rollout_lws.sandbox.behaviours.base import Object, micro_time


def event(
    resource: Resource,
    regarding: Object,
    now: float,
    reason: str,
    note: str,
    *,
    reporter: str,
    action: str = "",
    warning: bool = False,
) -> Create:
    """One Event about ``regarding``; ``action`` defaults to the reason. Each Event has its own name and is never
    aggregated into a series.
    """
    metadata = regarding["metadata"]
    body = {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {"generateName": f"{metadata['name']}-", "namespace": metadata["namespace"]},
        "eventTime": micro_time(now),
        "reportingController": reporter,
        "reportingInstance": f"{reporter}-sandbox",
        "action": action or reason,
        "reason": reason,
        "type": "Warning" if warning else "Normal",
        "note": note,
        "regarding": {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        },
    }
    return Create(EVENTS, body, f"{reason}: {note}")
