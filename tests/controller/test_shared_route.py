"""Two Rollouts that share one HTTPRoute: each writes its own part of it, takes its own back, and disturbs no other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from rollout_lws.api.resources import rollouts
from rollout_lws.objects.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    HTTP_ROUTES,
    LEADER_WORKER_SETS,
    LWS_WORKER_INDEX,
    SERVICES,
)
from rollout_lws.sandbox.api_resources import GATEWAYS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.cluster import Cluster, Options
from rollout_lws.sandbox.behaviours.faults import Timing
from rollout_lws.sandbox.meter import Client, TrafficMeter
from tests.controller.test_controller import ORIGIN, controlled
from tests.definitions import definitions
from tests.virtual_time import LoopClock

pytestmark = pytest.mark.looptime

MODELS = ("llama", "mistral")
#: Pods take longer to end than data planes take to hear of it.
TIMING = Timing(ready_after=5.0, leader_longer=2.0, terminate_after=5.0)
STEPS = [{"replicas": 1, "traffic": "20%", "pause": {}}, {"replicas": 2, "traffic": "50%", "pause": {}}]


def create_model(server: ApiServer, name: str) -> None:
    meta = {"namespace": "default"}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "vllm", "image": "vllm:v1"}]}}
    spec: dict[str, Any] = {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template}}
    server.create(LEADER_WORKER_SETS, {"metadata": {**meta, "name": name}, "spec": spec})
    selector = {"app": name, LWS_WORKER_INDEX: "0"}
    service = {"selector": selector, "ports": [{"port": 80}]}
    server.create(SERVICES, {"metadata": {**meta, "name": f"{name}-api"}, "spec": service})
    routing = {"service": f"{name}-api", "gateway": {"httpRouteName": "models"}}
    strategy = {"canary": {"steps": STEPS, "trafficRoutings": [routing]}, "minReadySeconds": 3}
    workload = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind, "name": name}
    body = {"metadata": {**meta, "name": name}, "spec": {"workloadRef": workload, "strategy": strategy}}
    server.create(rollouts(), body)


def create_route(server: ApiServer) -> None:
    """A path for each model, and one that both serve, llama three times as much."""
    meta = {"namespace": "default"}
    gateway = {"gatewayClassName": "any", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]}
    server.create(GATEWAYS, {"metadata": {**meta, "name": "inference"}, "spec": gateway})
    own = [
        {
            "matches": [{"path": {"type": "PathPrefix", "value": f"/{name}"}}],
            "backendRefs": [{"name": f"{name}-api", "port": 80}],
        }
        for name in MODELS
    ]
    both = [{"name": "llama-api", "port": 80, "weight": 3}, {"name": "mistral-api", "port": 80, "weight": 1}]
    spec = {"parentRefs": [{"name": "inference"}], "rules": [*own, {"backendRefs": both}]}
    server.create(HTTP_ROUTES, {"metadata": {**meta, "name": "models"}, "spec": spec})


@dataclass
class Shared:
    server: ApiServer
    meter: TrafficMeter

    def route(self) -> tuple[Any, Any]:
        found = self.server.get(HTTP_ROUTES, "default", "models")
        return found["spec"], found["metadata"].get("annotations") or {}

    def release(self, name: str) -> None:
        containers = [{"name": "vllm", "image": "vllm:v2"}]
        spec = {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": containers}}}}
        self.server.patch(LEADER_WORKER_SETS, "default", name, {"spec": spec})

    def publish(self, name: str, status: dict[str, Any]) -> None:
        self.server.patch(rollouts(), "default", name, {"status": status}, subresource="status")

    def approve(self, name: str) -> None:
        self.publish(name, {"canaryStatus": {"currentStepState": "StepReady"}})

    async def until(self, name: str, holds: Callable[[Any], bool]) -> None:
        for _ in range(1200):
            status = self.server.get(rollouts(), "default", name).get("status") or {}
            if holds(status):
                return
            await asyncio.sleep(1)
        raise AssertionError(status)

    async def step(self, name: str, number: int) -> None:
        await self.until(
            name, lambda s: s["summary"]["state"] == "AwaitingApproval" and s["currentStepIndex"] == number
        )

    async def ended(self, name: str, state: str) -> None:
        await self.until(name, lambda s: s["summary"]["state"] == state)

    async def shares(self) -> dict[str, dict[str, float]]:
        """Where requests of each path go, once data planes have heard of the last change."""
        await asyncio.sleep(3)
        begun = self.server.clock()
        await asyncio.sleep(10)
        return {
            path: {lws: round(share, 4) for lws, share in self.meter.shares(path, begun).items()}
            for path in (*MODELS, "both")
        }


@asynccontextmanager
async def shared() -> AsyncIterator[Shared]:
    server = ApiServer(lambda: LoopClock(ORIGIN).now().timestamp(), seed=1)
    for definition in definitions():
        server.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
    running = Cluster(server, Options(timing=TIMING))
    running.start()
    create_route(server)
    for name in MODELS:
        create_model(server, name)
    async with controlled(server):
        await asyncio.sleep(60)
    clients = [Client(name, route="models", path=f"/{name}/v1") for name in MODELS]
    meter = TrafficMeter(server, [*clients, Client("both", route="models", path="/v1")])
    meter.start()
    yield Shared(server, meter)
    meter.stop()
    running.stop()


async def test_each_has_its_own_share_and_what_one_gives_back_is_not_the_others() -> None:
    async with shared() as seen:
        before = seen.route()
        async with controlled(seen.server):
            seen.release("llama")
            await seen.step("llama", 1)
            seen.approve("llama")
            await seen.step("llama", 2)
            seen.release("mistral")
            await seen.step("mistral", 1)
            assert await seen.shares() == {
                "llama": {"llama": 0.5, "llama-canary": 0.5},
                "mistral": {"mistral": 0.8, "mistral-canary": 0.2},
                "both": {"llama": 0.375, "llama-canary": 0.375, "mistral": 0.2, "mistral-canary": 0.05},
            }
            seen.approve("llama")
            await seen.until("llama", lambda status: status["summary"]["state"] == "Promoting")
        # Another controller goes on from here.
        async with controlled(seen.server):
            await seen.ended("llama", "Healthy")
            assert await seen.shares() == {
                "llama": {"llama": 1.0},
                "mistral": {"mistral": 0.8, "mistral-canary": 0.2},
                "both": {"llama": 0.75, "mistral": 0.2, "mistral-canary": 0.05},
            }
            seen.publish("mistral", {"requestedAction": {"type": "Abort", "id": "1"}})
            await seen.ended("mistral", "Aborted")
            await asyncio.sleep(60)
        assert seen.route() == before
        assert (seen.meter.failures, [cut for cut in seen.meter.cuts if cut.cause != "renewed"]) == ([], [])
        assert sorted(each["metadata"]["name"] for each in seen.server.list(SERVICES, "default")) == [
            "llama",
            "llama-api",
            "mistral",
            "mistral-api",
        ]
