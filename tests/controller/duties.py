"""Stories that need the rights of a controller's role: each a part, all of them together everything."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, TypeAlias

from rollout_lws.api.resources import rollouts
from rollout_lws.errors import ApiError
from rollout_lws.objects.kueue import JOB_UID
from rollout_lws.objects.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DESTINATION_RULES,
    GRPC_ROUTES,
    HORIZONTAL_POD_AUTOSCALERS,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INGRESSES,
    KUEUE_CHECKS,
    KUEUE_WORKLOADS,
    LEADER_WORKER_SETS,
    LWS_NAME,
    LWS_WORKER_INDEX,
    SERVICES,
    STATEFUL_SETS,
    VIRTUAL_SERVICES,
    Resource,
)
from rollout_lws.sandbox.api_resources import GATEWAYS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.faults import PREFIX
from tests.controller.guarded import Right
from tests.controller.test_controller import create
from tests.scenarios.kueue import definition


def set_image(server: ApiServer, tag: str) -> None:
    lws = copy.deepcopy(server.get(LEADER_WORKER_SETS, "default", "llama"))
    template = lws["spec"]["leaderWorkerTemplate"]
    for part in ("leaderTemplate", "workerTemplate"):
        for container in template.get(part, {}).get("spec", {}).get("containers", ()):
            container["image"] = f"vllm/vllm-openai:{tag}"
    server.replace(LEADER_WORKER_SETS, lws)


def publish(server: ApiServer, status: dict[str, Any]) -> None:
    server.patch(rollouts(), "default", "llama", {"status": status}, subresource="status")


def routing(namespace: str) -> Iterator[tuple[Resource, dict[str, Any]]]:
    """A Service for the leaders, a Gateway, and one object of each kind that shares its requests."""

    def made(resource: Resource, name: str, spec: dict[str, Any]) -> tuple[Resource, dict[str, Any]]:
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        return resource, {**kind, "metadata": {"namespace": namespace, "name": name}, "spec": spec}

    yield made(SERVICES, "api", {"selector": {LWS_NAME: "llama"}, "ports": [{"port": 80}]})
    listeners = [{"name": "http", "port": 80, "protocol": "HTTP"}]
    yield made(GATEWAYS, "gw", {"gatewayClassName": "any", "listeners": listeners})
    rules = [{"backendRefs": [{"name": "api", "port": 80}]}]
    for kind in (HTTP_ROUTES, GRPC_ROUTES):
        yield made(kind, "llama", {"parentRefs": [{"name": "gw"}], "rules": rules})
    destination = {"host": "api", "subset": "llama", "port": {"number": 80}}
    yield made(VIRTUAL_SERVICES, "llama", {"hosts": ["api"], "http": [{"route": [{"destination": destination}]}]})
    subsets = [{"name": "llama", "labels": {LWS_WORKER_INDEX: "0"}}]
    yield made(DESTINATION_RULES, "llama", {"host": "api", "subsets": subsets})
    backend = {"service": {"name": "api", "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    yield made(INGRESSES, "llama", {"rules": [{"http": {"paths": paths}}]})


#: How a Rollout shares the requests of ``routing``.
BY_ROUTES = {
    "gateway": {"httpRouteName": "llama", "grpcRouteName": "llama"},
    "istio": {"virtualServiceName": "llama", "destinationRuleName": "llama"},
    "ingress": {"name": "llama"},
}


def route(server: ApiServer) -> None:
    """``routing``, and a Rollout that shares its requests."""
    for resource, body in routing("default"):
        server.create(resource, body)
    share(server, BY_ROUTES)


def autoscaler(namespace: str) -> dict[str, Any]:
    """One for the LWS."""
    lws, scaler = LEADER_WORKER_SETS, HORIZONTAL_POD_AUTOSCALERS
    target = {"apiVersion": lws.api_version, "kind": lws.kind, "name": "llama"}
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9}
    kind = {"apiVersion": scaler.api_version, "kind": scaler.kind}
    return {**kind, "metadata": {"namespace": namespace, "name": "llama"}, "spec": spec}


def scale(server: ApiServer) -> None:
    server.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler("default"))


def route_to_pools(server: ApiServer) -> None:
    """The same requests through a pool a version."""
    namespace, group = {"namespace": "default"}, INFERENCE_POOLS.group
    for pool in ("stable", "new"):
        picker = {"name": f"{pool}-epp", "port": {"number": 9002}, "failureMode": "FailOpen"}
        service = {"selector": {"app": picker["name"]}, "ports": [{"port": 9002}]}
        server.create(SERVICES, {"metadata": {**namespace, "name": picker["name"]}, "spec": service})
        selector = {"matchLabels": {LWS_NAME: "llama"}}
        spec = {"selector": selector, "targetPorts": [{"number": 80}], "endpointPickerRef": picker}
        server.create(INFERENCE_POOLS, {"metadata": {**namespace, "name": pool}, "spec": spec})
    rules = [{"backendRefs": [{"group": group, "kind": INFERENCE_POOLS.kind, "name": "stable"}]}]
    server.patch(HTTP_ROUTES, "default", "llama", {"spec": {"rules": rules}})
    pools = {"stable": "stable", "canary": "new"}
    gateway = {"httpRouteName": "llama", "grpcRouteName": None, "inferencePool": pools}
    share(server, {"gateway": gateway, "istio": None, "ingress": None})


def share(server: ApiServer, by: dict[str, Any]) -> None:
    steps = [{"replicas": 1, "traffic": "20%"}, {"replicas": "100%"}]
    strategy = {"canary": {"steps": steps, "trafficRoutings": [{"service": "api", **by}]}}
    server.patch(rollouts(), "default", "llama", {"spec": {"strategy": strategy}})


def approve(server: ApiServer) -> None:
    publish(server, {"canaryStatus": {"currentStepState": "StepReady"}})


def message(server: ApiServer) -> str:
    """What the Rollout says of itself."""
    try:
        return str((server.get(rollouts(), "default", "llama").get("status") or {}).get("message") or "")
    except ApiError:
        return ""


async def until(server: ApiServer, holds: Callable[[Any], bool]) -> None:
    """Virtual time goes on until the Rollout's status is so."""
    for _ in range(600):
        if holds(server.get(rollouts(), "default", "llama").get("status") or {}):
            return
        await asyncio.sleep(1)
    raise AssertionError(server.get(rollouts(), "default", "llama").get("status"))


def state(word: str) -> Callable[[Any], bool]:
    return lambda status: (status.get("summary") or {}).get("state") == word


def kueue(server: ApiServer, name: str) -> None:
    """Kueue's Workload of the first group of an LWS, and the kinds that it needs."""
    for resource in (KUEUE_WORKLOADS, KUEUE_CHECKS):
        server.create(CUSTOM_RESOURCE_DEFINITIONS, definition(resource))
    lws = server.get(LEADER_WORKER_SETS, "default", name)
    owner = {"apiVersion": "v1", "kind": "LeaderWorkerSet", "name": name, "uid": lws["metadata"]["uid"]}
    meta = {"namespace": "default", "name": name, "labels": {JOB_UID: owner["uid"]}, "ownerReferences": [owner]}
    status = {"admissionChecks": [{"name": "capacity", "state": "Pending"}]}
    server.create(KUEUE_WORKLOADS, {"metadata": meta, "spec": {}})
    server.patch(KUEUE_WORKLOADS, "default", name, {"status": status}, subresource="status")


def retell(server: ApiServer, template: dict[str, Any]) -> None:
    """Change the workers' template."""
    body = {"spec": {"leaderWorkerTemplate": {"workerTemplate": template}}}
    server.patch(LEADER_WORKER_SETS, "default", "llama", body)


async def what_explains(server: ApiServer) -> None:
    """A version that a quota refuses, and one that Kueue holds."""
    retell(server, {"metadata": {"annotations": {f"{PREFIX}fail": "FailedCreate"}}})
    await until(server, state("WaitingForQuota"))
    spec = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
    retell(server, {"metadata": {"annotations": {f"{PREFIX}fail": None}}, "spec": spec})
    await until(server, lambda status: "held by scheduling gate" in status["message"])
    kueue(server, "llama-canary")
    await asyncio.sleep(60)


async def released(server: ApiServer) -> None:
    """A release from its first group to its end."""
    create(server, "default")
    await until(server, state("Healthy"))
    set_image(server, "v1")
    await until(server, state("AwaitingApproval"))
    approve(server)
    await until(server, state("Healthy"))


async def routed(server: ApiServer) -> None:
    """One that shares requests by routers of every kind, with an autoscaler that is held."""
    create(server, "default")
    route(server)
    scale(server)
    await until(server, state("Healthy"))
    set_image(server, "v1")
    await until(server, state("AwaitingApproval"))
    approve(server)
    await until(server, state("Healthy"))


async def followed(server: ApiServer) -> None:
    """One in which the user changes what a copy is made of."""
    create(server, "default")
    route(server)
    await until(server, state("Healthy"))
    set_image(server, "v1")
    await until(server, state("AwaitingApproval"))
    policy = {"trafficPolicy": {"loadBalancer": {"simple": "LEAST_REQUEST"}}}
    server.patch(DESTINATION_RULES, "default", "llama", {"spec": policy})
    await asyncio.sleep(1)
    approve(server)
    await until(server, state("Healthy"))


async def pooled(server: ApiServer) -> None:
    """One that shares requests by the pool of each version."""
    create(server, "default")
    route(server)
    route_to_pools(server)
    await until(server, state("Healthy"))
    set_image(server, "v2")
    await until(server, state("AwaitingApproval"))
    approve(server)
    await until(server, state("Healthy"))


async def of_a_stateful_set(server: ApiServer) -> None:
    """One of a StatefulSet."""

    def template(tag: str) -> dict[str, Any]:
        container = {"name": "vllm", "image": f"vllm/vllm-openai:{tag}"}
        return {"metadata": {"labels": {"app": "llama"}}, "spec": {"containers": [container]}}

    selector = {"matchLabels": {"app": "llama"}}
    spec = {"replicas": 2, "serviceName": "llama", "selector": selector, "template": template("v0")}
    server.create(STATEFUL_SETS, STATEFUL_SETS.manifest("llama", "default", spec=spec))
    ref = {"apiVersion": STATEFUL_SETS.api_version, "kind": STATEFUL_SETS.kind, "name": "llama"}
    plan = {"workloadRef": ref, "strategy": {"canary": {"steps": [{"replicas": 1, "pause": {}}]}}}
    server.create(rollouts(), rollouts().manifest("llama", "default", spec=plan))
    await until(server, state("Healthy"))
    server.patch(STATEFUL_SETS, "default", "llama", {"spec": {"template": template("v1")}})
    await until(server, state("AwaitingApproval"))
    approve(server)
    await until(server, state("Healthy"))


async def taken_back(server: ApiServer) -> None:
    """One that goes back in mid-promotion."""
    create(server, "default")
    await until(server, state("Healthy"))
    set_image(server, "v1")
    await until(server, state("AwaitingApproval"))
    approve(server)
    await until(server, lambda status: status["summary"]["state"] == "Promoting" and status["summary"]["new"] > "2/2")
    publish(server, {"requestedAction": {"type": "Abort", "id": "1"}})
    await until(server, state("Aborted"))


async def hindered(server: ApiServer) -> None:
    """One that a quota refuses, and one that Kueue holds."""
    create(server, "default")
    await until(server, state("Healthy"))
    await what_explains(server)


async def forgotten(server: ApiServer) -> None:
    """More versions than the history keeps, one of them again, and a Rollout that is deleted."""
    create(server, "default")
    await until(server, state("Healthy"))
    server.patch(LEADER_WORKER_SETS, "default", "llama", {"spec": {"replicas": 0}})
    await asyncio.sleep(30)
    for number in [*range(12), 9]:
        set_image(server, f"w{number}")
        await asyncio.sleep(10)
    await asyncio.sleep(300)
    server.delete(rollouts(), "default", "llama")
    await asyncio.sleep(60)


Story: TypeAlias = Callable[[ApiServer], Awaitable[None]]

#: The rights that the simplest release does without, each with the story that needs it; one without a verb stands for
#: all rights on the resource.
_NEEDED: Mapping[str, Story] = {
    "create statefulsets.apps": of_a_stateful_set,
    "patch statefulsets.apps": of_a_stateful_set,
    "delete statefulsets.apps": of_a_stateful_set,
    "delete pods": taken_back,
    "create services": routed,
    "patch services": routed,
    "delete services": routed,
    "endpointslices.discovery.k8s.io": routed,
    "httproutes.gateway.networking.k8s.io": routed,
    "grpcroutes.gateway.networking.k8s.io": routed,
    "virtualservices.networking.istio.io": routed,
    "destinationrules.networking.istio.io": routed,
    "patch destinationrules.networking.istio.io": followed,
    "ingresses.networking.k8s.io": routed,
    "inferencepools.inference.networking.k8s.io": pooled,
    "patch horizontalpodautoscalers.autoscaling": routed,
    "poddisruptionbudgets.policy": routed,
    "events": hindered,
    "workloads.kueue.x-k8s.io": hindered,
    "admissionchecks.kueue.x-k8s.io": hindered,
    "patch events.events.k8s.io": forgotten,
    "patch controllerrevisions.apps": forgotten,
    "delete controllerrevisions.apps": forgotten,
}
STORIES: tuple[Story, ...] = (released, routed, followed, pooled, of_a_stateful_set, taken_back, hindered, forgotten)


def story(right: Right) -> Story:
    """One that cannot be told without this right."""
    return _NEEDED.get(str(right)) or _NEEDED.get(right.kind) or released
