"""The demo's manifests: a model server of four groups of two pods with accelerators behind a Gateway, and a canary in
three steps.

The images are never pulled, since the sandbox's kubelet runs nothing: a group only "loads" for some seconds.
"""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import yaml

from rollout_lws.cli.rollouts import style
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.sandbox.model_servers import PREFIX

Object = dict[str, Any]

NAMESPACE = "default"
NAME = "llama"
GROUPS = 4
IMAGE = "vllm/vllm-openai"
OLD, NEW, BAD = f"{IMAGE}:v0.18.1", f"{IMAGE}:v0.19.0", f"{IMAGE}:bad-v0.19.0"
SLOW = f"{IMAGE}:slow-v0.19.0"
#: Median seconds until the first token of a version that is well, and of SLOW; p95 of both is 2.3 times as long.
FIRST_TOKEN, SLOW_FIRST_TOKEN = 0.3, 0.9
SERVICE, ROUTE = f"{NAME}-api", NAME
#: Seconds of a pause without approval and of the drain; and of the routers' grace period.
SHORT_WAIT, SHORT_GRACE = 2, 1

_OURS = f"""
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {{name: {NAME}, namespace: {NAMESPACE}}}
spec:
  replicas: {GROUPS}
  leaderWorkerTemplate:
    size: 2
    restartPolicy: RecreateGroupOnPodRestart
    leaderTemplate:
      metadata: {{labels: {{app: {NAME}, role: leader}}}}
      spec:
        containers: [{{name: vllm-leader, image: "{OLD}", resources: {{limits: {{nvidia.com/gpu: "4"}}}}}}]
    workerTemplate:
      metadata: {{labels: {{app: {NAME}}}}}
      spec:
        containers: [{{name: vllm-worker, image: "{OLD}", resources: {{limits: {{nvidia.com/gpu: "4"}}}}}}]
---
apiVersion: v1
kind: Service
metadata: {{name: {SERVICE}, namespace: {NAMESPACE}}}
spec:
  selector: {{app: {NAME}, role: leader}}
  ports: [{{port: 80}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: inference, namespace: {NAMESPACE}}}
spec:
  gatewayClassName: sandbox
  listeners: [{{name: http, port: 80, protocol: HTTP}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: {ROUTE}, namespace: {NAMESPACE}}}
spec:
  parentRefs: [{{name: inference}}]
  rules:
  - matches: [{{path: {{type: PathPrefix, value: /v1}}}}]
    backendRefs: [{{name: {SERVICE}, port: 80}}]
"""
#: Share of the requests in the first step of a canary, in percent.
FIRST_SHARE = 10
#: As short as a window can be.
_GATE: Object = {
    "name": "first-token",
    "metric": {"signal": "TimeToFirstToken", "quantile": 95, "max": "1s"},
    "window": 30,
}
_STEPS: dict[str, list[Object]] = {
    # One group with a short pause, two groups with an approval, then promotion.
    "canary": [
        {"replicas": 1, "traffic": f"{FIRST_SHARE}%", "pause": {"duration": SHORT_WAIT}},
        {"replicas": 2, "traffic": "40%", "pause": {}},
        {"replicas": "100%"},
    ],
    # Half of green without requests, then all of it with all requests and an approval.
    "blueGreen": [
        {"replicas": "50%", "traffic": "0%", "pause": {"duration": SHORT_WAIT}},
        {"replicas": "100%", "traffic": "100%", "pause": {}},
    ],
}


def workload() -> Object:
    return copy.deepcopy(_ours()[0])


def traffic() -> tuple[Object, ...]:
    """A Service for the leaders, a Gateway, and an HTTPRoute from it to the Service."""
    return copy.deepcopy(_ours()[1:])


@cache
def _ours() -> tuple[Object, ...]:
    return tuple(yaml.safe_load_all(_OURS))


def rollout(
    api_version: str,
    workload_metadata: Object,
    *,
    routed: bool = False,
    gated: bool = False,
    style: str = "canary",
    capacity: str = "",
) -> Object:
    """A Rollout with style ``canary`` or ``blueGreen``, and with ``capacity`` unless that is "". With ``routed``, each
    step has a traffic weight for the objects of ``traffic()``. With ``gated``, the first step has a gate, which model
    servers of ``with_first_token`` can pass, and a release whose gate fails is aborted.
    """
    name = workload_metadata["name"]
    steps = copy.deepcopy(_STEPS[style])
    plan: Object = {"steps": steps} | ({"capacity": capacity} if capacity else {})
    if routed:
        waits = {"gracePeriodSeconds": SHORT_GRACE, "drainSeconds": SHORT_WAIT}
        plan["trafficRoutings"] = [{"service": SERVICE, "gateway": {"httpRouteName": ROUTE}, **waits}]
    else:
        for step in steps:
            step.pop("traffic", None)
    if gated:
        steps[0]["gates"] = [copy.deepcopy(_GATE)]
    reference = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind, "name": name}
    return {
        "apiVersion": api_version,
        "kind": "Rollout",
        "metadata": {"name": name, "namespace": workload_metadata.get("namespace", NAMESPACE)},
        "spec": {
            "workloadRef": reference,
            "strategy": {style: plan} | ({"onFailure": "Abort"} if gated else {}),
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
        # No model server of a demo says what runs on it.
        if isinstance(routing, dict):
            routing.pop("drain", None)
    for step in plan.get("steps") or ():
        pause = step.get("pause")
        if isinstance(pause, dict) and isinstance(pause.get("duration"), int):
            pause["duration"] = min(pause["duration"], SHORT_WAIT)
    return short


def without_gates(rollout: Object) -> Object:
    """The Rollout without gates: no model server of a user's manifests runs, and no Service answers."""
    plain = copy.deepcopy(rollout)
    plan = style(plain)
    for each in (plan, *(plan.get("steps") or ())):
        if isinstance(each, dict):
            each.pop("gates", None)
    return plain


def with_image(lws: Object, image: str) -> Object:
    """The LWS's leaderWorkerTemplate with ``image`` in each template's first container."""
    template: Object = copy.deepcopy(lws["spec"]["leaderWorkerTemplate"])
    for role in ("leaderTemplate", "workerTemplate"):
        containers = ((template.get(role) or {}).get("spec") or {}).get("containers") or []
        if containers:
            containers[0]["image"] = image
    return template


def with_first_token(template: Object, seconds: float) -> Object:
    """The leaderWorkerTemplate with a model server in each leader: ``seconds`` is the median time to first token."""
    made = copy.deepcopy(template)
    metadata = made["leaderTemplate"].setdefault("metadata", {})
    server = {f"{PREFIX}engine": "vLLM", f"{PREFIX}first-token-seconds": f"{seconds:g}"}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), **server}
    made["leaderTemplate"]["spec"]["containers"][0]["ports"] = [{"name": "http", "containerPort": 80}]
    return made


def with_annotation(lws: Object) -> Object:
    """The LWS's leaderWorkerTemplate with a harmless annotation, which makes a new version of any user's LWS."""
    template: Object = copy.deepcopy(lws["spec"]["leaderWorkerTemplate"])
    for role in ("leaderTemplate", "workerTemplate"):
        if template.get(role):
            metadata = template[role].setdefault("metadata", {})
            metadata["annotations"] = {**(metadata.get("annotations") or {}), "demo.rollout-lws/version": "2"}
    return template
