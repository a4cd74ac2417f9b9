"""Istio's DestinationRule: the copy that says of the new version's Service what the user's says of the stable one's.

Proxies know a host's subsets and policies by a DestinationRule of that host alone. With a copy the new version's
Service has the same ones, and the user's object, which may be shared, stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollout_lws.api.resources import Keys
from rollout_lws.objects.resources import DESTINATION_RULES
from rollout_lws.traffic.copies import copied
from rollout_lws.traffic.route.istio import place, with_service
from rollout_lws.traffic.split import Object


def canary_rule(main: Object, keys: Keys, *, name: str, canary_service: str, owner: Mapping[str, Any]) -> Object:
    """The manifest of the DestinationRule for the new version's Service."""
    return {
        "apiVersion": DESTINATION_RULES.api_version,
        "kind": DESTINATION_RULES.kind,
        "metadata": copied.metadata(main, keys, name=name, owner=owner),
        "spec": {**main["spec"], "host": with_service(main["spec"]["host"], canary_service)},
    }


def annotated(made: Object, by: str, keys: Keys) -> Object:
    """The manifest with our annotation."""
    return copied.annotated(made, by, keys, made["spec"])


def updated(live: Object, made: Object) -> Object:
    """The live copy with the content of ``made``; other metadata stays."""
    return {**live, "metadata": copied.updated(live, made), "spec": made["spec"]}


def drifted(live: Object, by: str, keys: Keys) -> bool:
    """Whether another writer has changed the copy."""
    return copied.drifted(live, by, keys, live["spec"])


def rule_problem(main: Object, service: str) -> str:
    """Why this is no DestinationRule of the Service, as a sentence that says what to do; "" when it is."""
    name, namespace = place(main["spec"].get("host", ""))
    home = main["metadata"].get("namespace", "")
    if (name, namespace or home) == (service, home):
        return ""
    return (
        f"DestinationRule {main['metadata']['name']} is of host {main['spec'].get('host')}, not of Service {service}:"
        " name the one that is"
    )


def subsets(main: Object) -> frozenset[str]:
    """Names of its subsets."""
    return frozenset(str(each.get("name", "")) for each in main["spec"].get("subsets") or ())
