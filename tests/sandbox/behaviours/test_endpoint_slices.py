"""Who gets a Service's traffic."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rollout_lws.objects.resources import ENDPOINT_SLICES, LEADER_WORKER_SETS, LWS_REVISION, PODS, SERVICES
from rollout_lws.sandbox.apiserver import ApiServer
from tests.sandbox.behaviours import world
from tests.sandbox.behaviours.world import NAMESPACE, cluster, leaders, lws

pytestmark = pytest.mark.looptime


def service(server: ApiServer, name: str = "front", **spec: Any) -> None:
    body = {"selector": {"leaderworkerset.sigs.k8s.io/worker-index": "0"}, "ports": [{"port": 80, "targetPort": 8000}]}
    server.create(SERVICES, {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": {**body, **spec}})


def endpoints(server: ApiServer, name: str = "front") -> dict[str, dict[str, Any]]:
    (found,) = server.list(ENDPOINT_SLICES, NAMESPACE, f"kubernetes.io/service-name={name}")
    return {item["targetRef"]["name"]: item for item in found["endpoints"]}


def receiving(server: ApiServer, name: str = "front") -> set[str]:
    return {pod for pod, item in endpoints(server, name).items() if item["conditions"]["ready"]}


async def test_leaders_receive_traffic_from_when_they_are_ready_until_they_terminate() -> None:
    async with cluster() as server:
        service(server)
        server.create(LEADER_WORKER_SETS, lws())
        await asyncio.sleep(0.9)
        assert receiving(server) == set()
        await asyncio.sleep(0.2)
        assert receiving(server) == {"llm-0", "llm-1"}
        leader = world.pod(server, "llm-1")
        assert endpoints(server)["llm-1"]["targetRef"]["uid"] == leader["metadata"]["uid"]
        assert endpoints(server)["llm-1"]["addresses"] == [leader["status"]["podIP"]]
        server.delete(PODS, NAMESPACE, "llm-1")
        await asyncio.sleep(0.05)
        assert receiving(server) == {"llm-0"}
        assert endpoints(server)["llm-1"]["conditions"]["terminating"]


async def test_a_headless_service_publishes_pods_that_are_not_ready() -> None:
    async with cluster() as server:
        server.create(LEADER_WORKER_SETS, lws(size=1))
        await asyncio.sleep(0.5)
        assert receiving(server, "llm") == {"llm-0", "llm-1"}


async def test_a_changed_selector_moves_the_traffic() -> None:
    async with cluster() as server:
        service(server)
        server.create(LEADER_WORKER_SETS, lws("a", replicas=1))
        server.create(LEADER_WORKER_SETS, lws("b", replicas=1))
        await asyncio.sleep(3)
        assert receiving(server) == {"a-0", "b-0"}
        selector = {"leaderworkerset.sigs.k8s.io/name": "a"}
        server.patch(SERVICES, NAMESPACE, "front", {"spec": {"selector": selector}})
        await asyncio.sleep(0.1)
        assert receiving(server) == {"a-0"}


async def test_a_pod_whose_labels_no_longer_match_leaves() -> None:
    async with cluster() as server:
        server.create(LEADER_WORKER_SETS, lws(replicas=1, size=1))
        await asyncio.sleep(3)
        service(server, selector={LWS_REVISION: leaders(server)["0"]["metadata"]["labels"][LWS_REVISION]})
        await asyncio.sleep(0.1)
        assert receiving(server) == {"llm-0"}
        server.patch(PODS, NAMESPACE, "llm-0", {"metadata": {"labels": {LWS_REVISION: "other"}}})
        await asyncio.sleep(0.1)
        assert receiving(server) == set()


async def test_the_slice_goes_with_its_service() -> None:
    async with cluster() as server:
        service(server)
        await asyncio.sleep(0.1)
        assert len(server.list(ENDPOINT_SLICES, NAMESPACE)) == 1
        server.delete(SERVICES, NAMESPACE, "front")
        await asyncio.sleep(0.1)
        assert server.list(ENDPOINT_SLICES, NAMESPACE) == []
