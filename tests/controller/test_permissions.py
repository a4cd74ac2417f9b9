"""The ClusterRole that is installed is what a controller needs: it lives with it, and no rule of it is idle."""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import pytest

from rollout_lws.api.resources import rollouts
from rollout_lws.cli.install import rights as installed
from rollout_lws.controller.clock import LoopClock
from rollout_lws.controller.controller import Controller
from rollout_lws.errors import ApiError
from rollout_lws.kube.client import Client
from rollout_lws.metrics import Metrics
from rollout_lws.objects.kueue import JOB_UID
from rollout_lws.objects.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    HORIZONTAL_POD_AUTOSCALERS,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INGRESSES,
    KUEUE_CHECKS,
    KUEUE_WORKLOADS,
    LEADER_WORKER_SETS,
    LWS_NAME,
    SERVICES,
)
from rollout_lws.sandbox import wire
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.faults import PREFIX
from rollout_lws.sandbox.catalogue import GATEWAYS
from rollout_lws.sandbox.patches import JSON_PATCH
from rollout_lws.sandbox.transport import Answer, DirectTransport
from rollout_lws.settings import Settings
from tests.controller.test_controller import ORIGIN, cluster, create
from tests.scenarios.kueue import definition

pytestmark = pytest.mark.looptime

#: API group, resource with its subresource, verb.
Right: TypeAlias = tuple[str, str, str]

_PATH = re.compile(r"^/apis?/(?:(?P<group>[^/]+)/)?v[^/]+(?:/namespaces/[^/]+)?/(?P<resource>[^/]+)(?P<rest>/.*)?$")
_VERBS = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}


def granted() -> set[Right]:
    return {
        (group, resource, verb)
        for rule in installed.controller_role()["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def right_of(method: str, path: str, watch: bool = False) -> Right:
    """What an API server would ask its authorizer."""
    match = _PATH.match(path)
    assert match is not None, path
    _, name, *sub = (match["rest"] or "").split("/") if match["rest"] else ("", "")
    verb = _VERBS.get(method) or ("watch" if watch else "get" if name else "list")
    return match["group"] or "", "/".join([match["resource"], *sub]), verb


class Guarded(DirectTransport):
    """A transport under a role; ``used`` are the rights that were needed, ``missed`` those that were not there.

    A person edits the strategy just before the first window is opened, which is refused then.
    """

    def __init__(self, server: ApiServer, rights: set[Right]) -> None:
        super().__init__(server)
        self._rights, self._of = rights, server
        self.used: set[Right] = set()
        self.missed: set[Right] = set()
        self._edited = False

    def _allowed(self, right: Right) -> bool:
        (self.used if right in self._rights else self.missed).add(right)
        return right in self._rights

    async def request(self, method: str, path: str, **options: Any) -> Answer:
        right = right_of(method, path)
        if options.get("content_type") == JSON_PATCH and path.endswith("/llama") and not self._edited:
            self._edited = True
            strategy = {"rolloutStrategy": {"rollingUpdateConfiguration": {"maxUnavailable": 2}}}
            self._of.patch(LEADER_WORKER_SETS, "default", "llama", {"spec": strategy})
        if self._allowed(right):
            return await super().request(method, path, **options)
        refused = wire.refused(ApiError(403, "Forbidden", f"cannot {right[2]} {right[1]}"))
        return Answer(refused.status, refused.headers, refused.body)

    def stream(
        self, path: str, *, params: Mapping[str, str], timeout: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        assert self._allowed(right_of("GET", path, watch=True)), path
        return super().stream(path, params=params, timeout=timeout)


@asynccontextmanager
async def guarded(server: ApiServer, rights: set[Right]) -> AsyncIterator[Guarded]:
    transport = Guarded(server, rights)
    controller = Controller(Client(transport), Settings(), LoopClock(ORIGIN), Metrics())
    async with controller.running():
        yield transport


def set_image(server: ApiServer, tag: str) -> None:
    lws = copy.deepcopy(server.get(LEADER_WORKER_SETS, "default", "llama"))
    template = lws["spec"]["leaderWorkerTemplate"]
    for part in ("leaderTemplate", "workerTemplate"):
        for container in template.get(part, {}).get("spec", {}).get("containers", ()):
            container["image"] = f"vllm/vllm-openai:{tag}"
    server.replace(LEADER_WORKER_SETS, lws)


def tell(server: ApiServer, status: dict[str, Any]) -> None:
    server.patch(rollouts(), "default", "llama", {"status": status}, subresource="status")


def route(server: ApiServer) -> None:
    """A Service for the leaders, an HTTPRoute to it, and a Rollout that shares its requests."""
    namespace = {"namespace": "default"}
    service = {"selector": {LWS_NAME: "llama"}, "ports": [{"port": 80}]}
    server.create(SERVICES, {"metadata": {**namespace, "name": "api"}, "spec": service})
    gateway = {"gatewayClassName": "any", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]}
    server.create(GATEWAYS, {"metadata": {**namespace, "name": "gw"}, "spec": gateway})
    rules = [{"backendRefs": [{"name": "api", "port": 80}]}]
    spec = {"parentRefs": [{"name": "gw"}], "rules": rules}
    server.create(HTTP_ROUTES, {"metadata": {**namespace, "name": "llama"}, "spec": spec})
    backend = {"service": {"name": "api", "port": {"number": 80}}}
    rules = [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]
    server.create(INGRESSES, {"metadata": {**namespace, "name": "llama"}, "spec": {"rules": rules}})
    share(server, {"gateway": {"httpRouteName": "llama"}, "ingress": {"name": "llama"}})


def scale(server: ApiServer) -> None:
    """An autoscaler for the LWS."""
    lws = LEADER_WORKER_SETS
    target = {"apiVersion": lws.api_version, "kind": lws.kind, "name": "llama"}
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9}
    server.create(HORIZONTAL_POD_AUTOSCALERS, {"metadata": {"namespace": "default", "name": "llama"}, "spec": spec})


def route_to_pools(server: ApiServer) -> None:
    """The same requests through a pool a version."""
    namespace, group = {"namespace": "default"}, INFERENCE_POOLS.group
    for pool in ("stable", "new"):
        picker = {"name": f"{pool}-epp", "port": {"number": 9002}}
        service = {"selector": {"app": picker["name"]}, "ports": [{"port": 9002}]}
        server.create(SERVICES, {"metadata": {**namespace, "name": picker["name"]}, "spec": service})
        selector = {"matchLabels": {LWS_NAME: "llama"}}
        spec = {"selector": selector, "targetPorts": [{"number": 80}], "endpointPickerRef": picker}
        server.create(INFERENCE_POOLS, {"metadata": {**namespace, "name": pool}, "spec": spec})
    rules = [{"backendRefs": [{"group": group, "kind": INFERENCE_POOLS.kind, "name": "stable"}]}]
    server.patch(HTTP_ROUTES, "default", "llama", {"spec": {"rules": rules}})
    pools = {"stable": "stable", "canary": "new"}
    share(server, {"gateway": {"httpRouteName": "llama", "inferencePool": pools}, "ingress": None})


def share(server: ApiServer, by: dict[str, Any]) -> None:
    steps = [{"replicas": 1, "traffic": "20%"}, {"replicas": "100%"}]
    strategy = {"canary": {"steps": steps, "trafficRoutings": [{"service": "api", **by}]}}
    server.patch(rollouts(), "default", "llama", {"spec": {"strategy": strategy}})


def approve(server: ApiServer) -> None:
    tell(server, {"canaryStatus": {"currentStepState": "StepReady"}})


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


async def every_duty(server: ApiServer) -> None:
    """A release, a way back in mid-promotion, more versions than the history keeps, one of them again, and the end."""
    create(server, "default")
    route(server)
    scale(server)
    await asyncio.sleep(30)
    set_image(server, "v1")
    await until(server, state("AwaitingApproval"))
    approve(server)
    await until(server, state("Healthy"))
    route_to_pools(server)
    await asyncio.sleep(30)
    set_image(server, "v2")
    await until(server, state("AwaitingApproval"))
    approve(server)
    await until(server, lambda status: status["summary"]["state"] == "Promoting" and status["summary"]["new"] > "2/2")
    tell(server, {"requestedAction": {"type": "Abort", "id": "1"}})
    await until(server, state("Aborted"))
    await what_explains(server)
    server.patch(LEADER_WORKER_SETS, "default", "llama", {"spec": {"replicas": 0}})
    await asyncio.sleep(30)
    for number in [*range(12), 9]:
        set_image(server, f"w{number}")
        await asyncio.sleep(10)
    server.delete(rollouts(), "default", "llama")
    await asyncio.sleep(60)


async def test_a_controller_lives_with_its_role_and_uses_all_of_it() -> None:
    rights = granted()
    async with cluster() as server, guarded(server, rights) as transport:
        await every_duty(server)
        with pytest.raises(ApiError):
            server.get(rollouts(), "default", "llama")
    assert transport.missed == set()
    assert transport.used == rights


async def test_a_missing_right_is_told_in_the_status() -> None:
    rights = granted() - {("leaderworkerset.x-k8s.io", "leaderworkersets", "create")}
    async with cluster() as server, guarded(server, rights):
        create(server, "default")
        await asyncio.sleep(30)
        set_image(server, "v1")
        await until(server, state("Stalled"))
        message = server.get(rollouts(), "default", "llama")["status"]["message"]
        assert "create" in message
        assert "leaderworkersets" in message
