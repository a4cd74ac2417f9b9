"""Objects of a release that only has to look right: an LWS `llama`, its canary, and leader pods."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

from rollout_lws.cli.demo import manifests
from rollout_lws.cli.releases import Release, assemble
from rollout_lws.objects.resources import LWS_NAME, LWS_REVISION, LWS_WORKER_INDEX

Object = dict[str, Any]
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
BEGAN = "2026-01-01T11:00:00Z"
_PREFIX = "leaderworkerset.sigs.k8s.io/"


def lws(name: str = "llama", *, size: int = 1, replicas: int = 4, tag: str = "v0.18.1") -> Object:
    made = manifests.workload()
    made["metadata"] |= {"name": name, "uid": name, "creationTimestamp": BEGAN, "generation": 41}
    made["spec"] |= {"replicas": replicas}
    made["spec"]["leaderWorkerTemplate"]["size"] = size
    for role in ("leader", "worker"):
        container = made["spec"]["leaderWorkerTemplate"][f"{role}Template"]["spec"]["containers"][0]
        container["image"] = f"{manifests.IMAGE}:{tag}"
    return made


def canary(replicas: int = 1, **more: Any) -> Object:
    made = lws("llama-canary", replicas=replicas, **more)
    made["metadata"]["labels"] = {"rollouts.kruise.io/canary-leaderworkerset": "llama"}
    return made


def pod(
    workload: str, group: int, revision: str, *, worker: int = 0, ready: bool = True, size: int = 1, **status: Any
) -> Object:
    labels = {
        LWS_NAME: workload,
        LWS_WORKER_INDEX: str(worker),
        f"{_PREFIX}group-index": str(group),
        LWS_REVISION: revision,
    }
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": "2026-01-01T11:11:42Z"}
    name = f"{workload}-{group}" + (f"-{worker}" if worker else "")
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "labels": labels,
            "annotations": {f"{_PREFIX}size": str(size)},
            "creationTimestamp": BEGAN,
        },
        "spec": {"containers": []},
        "status": {
            "phase": "Running",
            "conditions": [condition],
            "containerStatuses": [{"name": "vllm-leader", "ready": ready}],
            **status,
        },
    }


def workers(leader: Object, available: int) -> Object:
    """The StatefulSet of the workers of this leader's group."""
    meta, size = leader["metadata"], int(leader["metadata"]["annotations"][f"{_PREFIX}size"])
    return {
        "metadata": {
            "name": meta["name"],
            "namespace": "default",
            "uid": f"{meta['name']}-workers",
            "generation": 1,
            "labels": {LWS_NAME: meta["labels"][LWS_NAME], LWS_REVISION: meta["labels"][LWS_REVISION]},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"], "controller": True}
            ],
        },
        "spec": {"replicas": size - 1},
        "status": {
            "observedGeneration": 1,
            "availableReplicas": available,
            "currentRevision": "r",
            "updateRevision": "r",
        },
    }


def rollout(spec: Object | None = None, **status: Any) -> Object:
    made = manifests.rollout("rollouts.kruise.io/v1beta1", {"name": "llama", "namespace": "prod"})
    made["metadata"] |= {"namespace": "prod", "uid": "rollout", "generation": 1}
    if spec is not None:
        made["spec"]["strategy"] = copy.deepcopy(spec)
    made["status"] = {"phase": "Progressing", "stable": {"revision": "old"}, "summary": {"state": "Loading"}, **status}
    return made


def release(made: Object, workloads: list[Object], pods: list[Object], sets: list[Object] | None = None) -> Release:
    return assemble(made, workloads, sets or [], pods)
