"""Services, pools, routes and Ingresses as an API server would answer them, made of plain values."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from hypothesis import settings

from rollout_lws.api.resources import keys
from rollout_lws.objects.resources import LWS_NAME, LWS_WORKER_INDEX
from rollout_lws.traffic.route.kinds import HTTP_RULES as RULES
from rollout_lws.traffic.split import Object

#: The same examples every time, however slow the machine is.
property_test = settings(max_examples=200, deadline=None, derandomize=True)

KEYS = keys()
#: What the rules of HTTPRoutes are made of.
routed, own, drifted, split_problem = RULES.routed, RULES.own, RULES.drifted, RULES.split_problem
accepting_parents, unaccepted = RULES.accepting, RULES.unaccepted
NOW = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)
A, B = "uid-a", "uid-b"
OWNER = {"apiVersion": "rollouts.kruise.io/v1beta1", "kind": "Rollout", "name": "llama", "uid": A}


def canonical(value: Any) -> str:
    """Two objects with the same text are the same to an API server: it keeps no empty labels or annotations."""
    kept = copy.deepcopy(value)
    for member in ("labels", "annotations"):
        if not kept.get("metadata", {}).get(member):
            kept.get("metadata", {}).pop(member, None)
    return json.dumps(kept, sort_keys=True)


def service(name: str = "llama-api", selector: Mapping[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    selected = {"app": "llama"} if selector is None else dict(selector)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "prod", "labels": {"team": "ml"}, "annotations": {"note": "x"}},
        "spec": {"ports": [{"port": 8000, "targetPort": 8000}], "selector": selected, "type": "ClusterIP", **spec},
    }


def leader(workload: str, **labels: str) -> dict[str, str]:
    return {LWS_NAME: workload, LWS_WORKER_INDEX: "0", "app": "llama", **labels}


def condition(kind: str, status: str = "True", generation: int = 1, **more: str) -> dict[str, Any]:
    return {"type": kind, "status": status, "observedGeneration": generation, **more}


def parent_status(reference: Mapping[str, Any], *conditions: Mapping[str, Any]) -> dict[str, Any]:
    return {"parentRef": dict(reference), "controllerName": "example.com/gateway", "conditions": list(conditions)}


def stable_ref(name: str = "llama-api", **more: Any) -> dict[str, Any]:
    return {"name": name, "port": 8000, **more}


def rule(*refs: Mapping[str, Any], path: str = "/v1", **more: Any) -> dict[str, Any]:
    return {"matches": [{"path": {"type": "PathPrefix", "value": path}}], "backendRefs": list(refs), **more}


GATEWAY = {"name": "inference", "namespace": "infra"}


def http_route(*rules: Mapping[str, Any], parents: Any = (GATEWAY,), generation: int = 1) -> dict[str, Any]:
    accepted = [condition("Accepted", generation=generation), condition("ResolvedRefs", generation=generation)]
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "llama", "namespace": "prod", "generation": generation},
        "spec": {"parentRefs": list(parents), "rules": [dict(each) for each in rules]},
        "status": {"parents": [parent_status(each, *accepted) for each in parents]},
    }


def defaulted(route: Object) -> dict[str, Any]:
    """The route as an API server answers it: with the defaults of the Gateway API's schema."""
    made = copy.deepcopy(dict(route))
    for each in made["spec"]["rules"]:
        each["matches"] = each.get("matches") or [{}]
        for match in each["matches"]:
            match["path"] = {"type": "PathPrefix", "value": "/"} | match.get("path", {})
            for condition_ in (*match.get("headers", ()), *match.get("queryParams", ())):
                condition_.setdefault("type", "Exact")
        for ref in each.get("backendRefs", ()):
            for member, value in (("group", ""), ("kind", "Service"), ("weight", 1)):
                ref.setdefault(member, value)
    return made
