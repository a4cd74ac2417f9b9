"""What the demo releases: a model server of four groups of two pods with accelerators, and a canary in three steps.

The images are never pulled and the sandbox's kubelet runs nothing: a group only "loads" for some seconds.
"""

from __future__ import annotations

import copy
from typing import Any

from rollout_lws.objects.resources import LEADER_WORKER_SETS

Object = dict[str, Any]

NAMESPACE = "default"
NAME = "llama"
GROUPS = 4
IMAGE = "vllm/vllm-openai"
OLD, NEW, BAD = f"{IMAGE}:v0.18.1", f"{IMAGE}:v0.19.0", f"{IMAGE}:bad-v0.19.0"
#: Seconds that a step without approval pauses.
SHORT_PAUSE = 2


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


def rollout(api_version: str, workload_metadata: Object) -> Object:
    """One group with a short pause, two groups until somebody approves, then all of them by promotion."""
    name = workload_metadata["name"]
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
            "strategy": {
                "canary": {
                    "steps": [
                        {"replicas": 1, "pause": {"duration": SHORT_PAUSE}},
                        {"replicas": 2, "pause": {}},
                        {"replicas": "100%"},
                    ]
                }
            },
        },
    }


def with_short_pauses(rollout: Object) -> Object:
    """The Rollout with no pause longer than SHORT_PAUSE seconds: nobody watches a demo for ten minutes."""
    short = copy.deepcopy(rollout)
    for step in ((short["spec"].get("strategy") or {}).get("canary") or {}).get("steps") or ():
        pause = step.get("pause")
        if isinstance(pause, dict) and isinstance(pause.get("duration"), int):
            pause["duration"] = min(pause["duration"], SHORT_PAUSE)
    return short


def with_image(lws: Object, image: str) -> Object:
    """The LWS's leaderWorkerTemplate with ``image`` in the first container of each template."""
    template: Object = copy.deepcopy(lws["spec"]["leaderWorkerTemplate"])
    for role in ("leaderTemplate", "workerTemplate"):
        containers = ((template.get(role) or {}).get("spec") or {}).get("containers") or []
        if containers:
            containers[0]["image"] = image
    return template


def runs(lws: Object, image: str) -> bool:
    """Whether ``image`` is in every template of the LWS."""
    return bool(with_image(lws, image) == lws["spec"]["leaderWorkerTemplate"])


def with_annotation(lws: Object, value: str) -> Object:
    """The LWS's leaderWorkerTemplate with a harmless annotation: a new version of any user's LWS."""
    template: Object = copy.deepcopy(lws["spec"]["leaderWorkerTemplate"])
    for role in ("leaderTemplate", "workerTemplate"):
        if template.get(role):
            metadata = template[role].setdefault("metadata", {})
            metadata["annotations"] = {**(metadata.get("annotations") or {}), "demo.rollout-lws/version": value}
    return template
