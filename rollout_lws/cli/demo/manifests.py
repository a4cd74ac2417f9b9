"""The demo's manifests: a model server of four groups of two pods with accelerators behind a Gateway, and a canary in
three steps.

The images are never pulled, since the sandbox's kubelet runs nothing: a group only "loads" for some seconds.
"""

from __future__ import annotations

import copy
from typing import Any

from rollout_lws.cli.rollouts import style
from rollout_lws.objects.resources import HTTP_ROUTES, LEADER_WORKER_SETS
from rollout_lws.sandbox.api_resources import GATEWAYS

Object = dict[str, Any]

NAMESPACE = "default"
NAME = "llama"
GROUPS = 4
IMAGE = "vllm/vllm-openai"
OLD, NEW, BAD = f"{IMAGE}:v0.18.1", f"{IMAGE}:v0.19.0", f"{IMAGE}:bad-v0.19.0"
SERVICE, GATEWAY, ROUTE = f"{NAME}-api", "inference", NAME
#: Seconds of a pause without approval and of the drain; and of the routers' grace period.
SHORT_WAIT, SHORT_GRACE = 2, 1


def workload() -> Object:
    return {
        "apiVersion": LEADER_WORKER_SETS.api_version,
        "kind": LEADER_WORKER_SETS.kind,
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "replicas": GROUPS,
            "leaderWorkerTemplate": {
                "size": 2,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": _template("vllm-leader", {"role": "leader"}),
                "workerTemplate": _template("vllm-worker", {}),
            },
        },
    }


def _template(container: str, labels: dict[str, str]) -> Object:
    return {
        "metadata": {"labels": {"app": NAME, **labels}},
        "spec": {
            "containers": [
                {"name": container, "image": OLD, "resources": {"limits": {"nvidia.com/gpu": "4"}}},
            ]
        },
    }


def traffic() -> tuple[Object, ...]:
    """A Service for the leaders, and an HTTPRoute from a Gateway to it."""
    return (
        _object("v1", "Service", SERVICE, {"selector": {"app": NAME, "role": "leader"}, "ports": [{"port": 80}]}),
        _object(
            GATEWAYS.api_version,
            GATEWAYS.kind,
            GATEWAY,
            {"gatewayClassName": "sandbox", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
        ),
        _object(
            HTTP_ROUTES.api_version,
            HTTP_ROUTES.kind,
            ROUTE,
            {
                "parentRefs": [{"name": GATEWAY}],
                "rules": [
                    {
                        "matches": [{"path": {"type": "PathPrefix", "value": "/v1"}}],
                        "backendRefs": [{"name": SERVICE, "port": 80}],
                    }
                ],
            },
        ),
    )


def _object(api_version: str, kind: str, name: str, spec: Object) -> Object:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


#: One group with a short pause, two groups with an approval, then promotion.
_CANARY: list[Object] = [
    {"replicas": 1, "traffic": "20%", "pause": {"duration": SHORT_WAIT}},
    {"replicas": 2, "traffic": "40%", "pause": {}},
    {"replicas": "100%"},
]
#: Half of green without requests, then all of it with all requests and an approval.
_BLUE_GREEN: list[Object] = [
    {"replicas": "50%", "traffic": "0%", "pause": {"duration": SHORT_WAIT}},
    {"replicas": "100%", "traffic": "100%", "pause": {}},
]


def rollout(
    api_version: str, workload_metadata: Object, *, routed: bool = False, style: str = "canary", capacity: str = ""
) -> Object:
    """A Rollout with style ``canary`` or ``blueGreen``, and with ``capacity`` unless that is "". With ``routed``, each
    step has a traffic weight for the objects of ``traffic()``.
    """
    name = workload_metadata["name"]
    steps = copy.deepcopy(_CANARY if style == "canary" else _BLUE_GREEN)
    plan: Object = {"steps": steps} | ({"capacity": capacity} if capacity else {})
    if routed:
        waits = {"gracePeriodSeconds": SHORT_GRACE, "drainSeconds": SHORT_WAIT}
        plan["trafficRoutings"] = [{"service": SERVICE, "gateway": {"httpRouteName": ROUTE}, **waits}]
    else:
        for step in steps:
            step.pop("traffic", None)
    return {
        "apiVersion": api_version,
        "kind": "Rollout",
        "metadata": {"name": name, "namespace": workload_metadata.get("namespace", NAMESPACE)},
        "spec": {
            "workloadRef": {
                "apiVersion": LEADER_WORKER_SETS.api_version,
                "kind": LEADER_WORKER_SETS.kind,
                "name": name,
            },
            "strategy": {style: plan},
        },
    }


def with_short_waits(rollout: Object) -> Object:
    """The Rollout with pauses and drains cut to SHORT_WAIT seconds: a demo must not take ten minutes."""
    short = copy.deepcopy(rollout)
    plan = style(short)
    for routing in plan.get("trafficRoutings") or ():
        for member, standard, most in (("drainSeconds", 30, SHORT_WAIT), ("gracePeriodSeconds", 3, SHORT_GRACE)):
            if isinstance(routing, dict) and isinstance(routing.get(member, standard), int):
                routing[member] = min(routing.get(member, standard), most)
    for step in plan.get("steps") or ():
        pause = step.get("pause")
        if isinstance(pause, dict) and isinstance(pause.get("duration"), int):
            pause["duration"] = min(pause["duration"], SHORT_WAIT)
    return short


def with_image(lws: Object, image: str) -> Object:
    """The LWS's leaderWorkerTemplate with ``image`` in each template's first container."""
    template: Object = copy.deepcopy(lws["spec"]["leaderWorkerTemplate"])
    for role in ("leaderTemplate", "workerTemplate"):
        containers = ((template.get(role) or {}).get("spec") or {}).get("containers") or []
        if containers:
            containers[0]["image"] = image
    return template


def runs(lws: Object, image: str) -> bool:
    """Whether every template of the LWS has ``image``."""
    return bool(with_image(lws, image) == lws["spec"]["leaderWorkerTemplate"])


def with_annotation(lws: Object, value: str) -> Object:
    """The LWS's leaderWorkerTemplate with a harmless annotation, which makes a new version of any user's LWS."""
    template: Object = copy.deepcopy(lws["spec"]["leaderWorkerTemplate"])
    for role in ("leaderTemplate", "workerTemplate"):
        if template.get(role):
            metadata = template[role].setdefault("metadata", {})
            metadata["annotations"] = {**(metadata.get("annotations") or {}), "demo.rollout-lws/version": value}
    return template
