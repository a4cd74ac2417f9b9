"""Small objects of kinds that both servers serve and that nobody but a test writes to."""

from __future__ import annotations

from typing import Any

from rollout_lws.api.resources import rollouts
from rollout_lws.objects.resources import LEADER_WORKER_SETS

Object = dict[str, Any]

ROLLOUTS = rollouts()


def config_map(name: str = "settings", data: dict[str, str] | None = None, **metadata: Any) -> Object:
    return {"metadata": {"name": name, **metadata}, "data": data or {"key": "value"}}


def pod(name: str = "web", *, image: str = "registry.example/web:1", **metadata: Any) -> Object:
    """Nobody schedules it, so that it stays as it is written and goes at once when it is deleted."""
    spec = {"containers": [{"name": "main", "image": image}], "terminationGracePeriodSeconds": 0}
    return {"metadata": {"name": name, **metadata}, "spec": spec}


def service(name: str = "web", **spec: Any) -> Object:
    return {"metadata": {"name": name}, "spec": {"ports": [{"name": "http", "port": 80}], **spec}}


def lws(name: str = "llama", *, image: str = "registry.example/llama:1", **spec: Any) -> Object:
    """A LeaderWorkerSet that nobody acts on."""
    template = {"spec": {"containers": [{"name": "main", "image": image}]}}
    group = {"size": 2, "workerTemplate": template}
    return {
        "apiVersion": LEADER_WORKER_SETS.api_version,
        "kind": LEADER_WORKER_SETS.kind,
        "metadata": {"name": name},
        "spec": {"leaderWorkerTemplate": group, "rolloutStrategy": {"type": "RollingUpdate"}, **spec},
    }


def rollout(name: str = "llama", **spec: Any) -> Object:
    """A Rollout of the LeaderWorkerSet of the same name."""
    workload = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind, "name": name}
    canary = {"steps": [{"replicas": 1}, {"replicas": "100%"}]}
    return {
        "apiVersion": ROLLOUTS.api_version,
        "kind": ROLLOUTS.kind,
        "metadata": {"name": name},
        "spec": {"workloadRef": workload, "strategy": {"canary": canary}, **spec},
    }


def stateful_set(name: str = "web", replicas: int = 0) -> Object:
    """One whose controller has nothing to do but to tell its status."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}}
    spec = {"replicas": replicas, "serviceName": name, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}
