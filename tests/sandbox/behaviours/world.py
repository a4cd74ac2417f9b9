"""A small cluster in virtual time for the tests of the behaviours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from rollout_lws.objects.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    LEADER_WORKER_SETS,
    LWS_GROUP_INDEX,
    LWS_NAME,
    LWS_WORKER_INDEX,
    NAMESPACES,
    PODS,
    STATEFUL_SETS,
)
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.cluster import Cluster, Options
from rollout_lws.sandbox.definitions import lws_crd

NAMESPACE = "models"
EPOCH = 1_790_000_000.0


@asynccontextmanager
async def cluster(options: Options | None = None, version: str = "0.10") -> AsyncIterator[ApiServer]:
    """A running cluster with the LeaderWorkerSet CRD of ``version``; what fails inside fails the test."""
    loop = asyncio.get_running_loop()
    server = ApiServer(lambda: EPOCH + loop.time(), seed=1)
    server.create(CUSTOM_RESOURCE_DEFINITIONS, lws_crd.manifest(version))
    server.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    running = Cluster(server, options)
    running.start()
    try:
        yield server
    finally:
        running.stop()


def template(image: str = "model:A", annotations: dict[str, str] | None = None, **container: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"labels": {"app": "model"}}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": image, **container}]}}


def lws(name: str = "llm", replicas: int = 2, size: int = 2, **spec: Any) -> dict[str, Any]:
    groups = {"size": size, "workerTemplate": template(), **spec.pop("leaderWorkerTemplate", {})}
    return {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"replicas": replicas, "leaderWorkerTemplate": groups, **spec},
    }


def stateful_set(name: str = "web", replicas: int = 3, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    body = template()
    body["metadata"]["labels"] = labels
    return {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "selector": {"matchLabels": labels},
            "template": body,
            **spec,
        },
    }


def patch_lws(server: ApiServer, spec: dict[str, Any], name: str = "llm") -> None:
    server.patch(LEADER_WORKER_SETS, NAMESPACE, name, {"spec": spec})


def images(server: ApiServer) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in server.list(PODS, NAMESPACE)}


def pod(server: ApiServer, name: str) -> dict[str, Any]:
    return server.get(PODS, NAMESPACE, name)


def ready(obj: dict[str, Any]) -> bool:
    conditions = obj.get("status", {}).get("conditions", ())
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def leaders(server: ApiServer, name: str = "llm") -> dict[str, dict[str, Any]]:
    """Leader pods by group index."""
    found = server.list(PODS, NAMESPACE, f"{LWS_NAME}={name},{LWS_WORKER_INDEX}=0")
    return {item["metadata"]["labels"][LWS_GROUP_INDEX]: item for item in found}


def sizes(server: ApiServer) -> dict[str, int]:
    return {item["metadata"]["name"]: item["spec"]["replicas"] for item in server.list(STATEFUL_SETS, NAMESPACE)}
