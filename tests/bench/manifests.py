"""What the benchmark releases: a model server with the templates that such servers really have, some KB each.

Sizes decide what lists, watches and caches cost, so toy templates would flatter every figure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rollout_lws.api.resources import rollouts
from rollout_lws.objects.resources import (
    DEFAULT_API_GROUP,
    HTTP_ROUTES,
    LEADER_WORKER_SETS,
    LWS_WORKER_INDEX,
    SERVICES,
    Resource,
)
from rollout_lws.sandbox.api_resources import GATEWAYS
from rollout_lws.sandbox.behaviours.faults import PREFIX
from tests.scenarios.styles import CANARY_STYLE, Style

Object = dict[str, Any]

NAME = "llama"
ROLLOUTS = rollouts(DEFAULT_API_GROUP)
IMAGE = "registry.example.com/serving/vllm-openai"
_MODEL = "meta-llama/Llama-3.1-405B-Instruct-FP8"


def workload(namespace: str, *, replicas: int, size: int, load: float) -> Object:
    """An LWS of ``replicas`` groups of ``size`` pods that are ready ``load`` seconds after they were started."""
    template = {"size": size, "restartPolicy": "RecreateGroupOnPodRestart", **templates("v0.18.1", load)}
    return {
        "metadata": {"name": NAME, "namespace": namespace, "labels": {"app.kubernetes.io/name": NAME}},
        "spec": {"replicas": replicas, "leaderWorkerTemplate": template},
    }


def templates(tag: str, load: float) -> Object:
    """The part of a leaderWorkerTemplate that a new version replaces."""
    serve = f"ray-start.sh leader && vllm serve {_MODEL} --tensor-parallel-size 8 --pipeline-parallel-size 2"
    join = "ray-start.sh worker --address $(LWS_LEADER_ADDRESS)"
    leader, worker = (_pod(tag, load, role, line) for role, line in (("leader", serve), ("worker", join)))
    probe = {"httpGet": {"path": "/health", "port": 8080}, "initialDelaySeconds": 120, "periodSeconds": 10}
    leader["spec"]["containers"][0] |= {
        "ports": [{"containerPort": 8080, "name": "http"}, {"containerPort": 8265, "name": "ray"}],
        "readinessProbe": {**probe, "failureThreshold": 3},
        "livenessProbe": {**probe, "initialDelaySeconds": 1800},
    }
    return {"leaderTemplate": leader, "workerTemplate": worker}


def _pod(tag: str, load: float, role: str, command: str) -> Object:
    environment = {
        "HF_HOME": "/models/huggingface",
        "NCCL_DEBUG": "WARN",
        "NCCL_IB_HCA": "mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7",
        "NCCL_SOCKET_IFNAME": "eth0",
        "VLLM_HOST_IP": "0.0.0.0",
        "VLLM_LOGGING_LEVEL": "INFO",
        "VLLM_USE_RAY_COMPILED_DAG": "1",
    }
    token = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hugging-face", "key": "token"}}}
    accelerators = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "8"}
    container = {
        "name": f"vllm-{role}",
        "image": f"{IMAGE}:{tag}",
        "command": ["sh", "-c", command],
        "env": [*({"name": key, "value": value} for key, value in environment.items()), token],
        "resources": {"limits": accelerators, "requests": accelerators},
        "volumeMounts": [{"mountPath": "/dev/shm", "name": "dshm"}, {"mountPath": "/models", "name": "models"}],
    }
    return {
        "metadata": {
            "labels": {"app.kubernetes.io/name": NAME, "app.kubernetes.io/component": role},
            "annotations": {
                PREFIX + "ready-after": f"{load:.3f}s",
                PREFIX + "terminate-after": "0.05s",
                "prometheus.io/scrape": "true",
                "prometheus.io/port": "8080",
            },
        },
        "spec": {
            "containers": [container],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _nodes("h100-8x")}},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "volumes": [
                {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}},
                {"name": "models", "persistentVolumeClaim": {"claimName": "models"}},
            ],
        },
    }


def _nodes(instance_type: str) -> Object:
    term = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [instance_type]}
    return {"nodeSelectorTerms": [{"matchExpressions": [term]}]}


#: Seconds that requests get to end on a version that goes; the defaults would only make the benchmark longer.
GRACE, DRAIN = 1, 1


def traffic(namespace: str) -> Iterable[tuple[Resource, Object]]:
    """A Service for the leaders, and a Gateway with an HTTPRoute to it."""
    selector = {"app.kubernetes.io/name": NAME, LWS_WORKER_INDEX: "0"}
    gateway = {"gatewayClassName": "any", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]}
    route = {"parentRefs": [{"name": "inference"}], "rules": [{"backendRefs": [{"name": "api", "port": 80}]}]}
    for resource, name, spec in (
        (SERVICES, "api", {"selector": selector, "ports": [{"port": 80, "targetPort": 8080}]}),
        (GATEWAYS, "inference", gateway),
        (HTTP_ROUTES, NAME, route),
    ):
        yield resource, {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


def rollout(namespace: str, steps: Iterable[Object], style: Style = CANARY_STYLE) -> Object:
    """Steps of which any has ``traffic`` share the requests of what ``traffic`` gives."""
    steps = list(steps)
    gateway = {"httpRouteName": NAME}
    routing = [{"service": "api", "gateway": gateway, "gracePeriodSeconds": GRACE, "drainSeconds": DRAIN}]
    routings = {"trafficRoutings": routing} if any("traffic" in step for step in steps) else {}
    strategy = {style.key: {"steps": steps, **routings, **style.words}}
    reference = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind, "name": NAME}
    return {
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": {"workloadRef": reference, "strategy": strategy},
    }
