"""Names of the objects that a release makes beside the user's. Cheap to import, for commands that only name them."""

from __future__ import annotations

from rollout_lws.traffic.registry import RouterSpec
from rollout_lws.workload.canary import copy_name

#: Longest name of a Service, and of an object of any kind that a router copies.
_SERVICE_BUDGET, _BUDGET = 63, 253


def canary_service_name(service: str) -> str:
    """``<service>-canary``, shortened with a hash where that is too long for a Service."""
    return copy_name(service, _SERVICE_BUDGET)


def written_name(spec: RouterSpec, name: str) -> str:
    """Name of the object that a release writes for the user's object ``name``."""
    return copy_name(name, _BUDGET) if spec.copies else name
