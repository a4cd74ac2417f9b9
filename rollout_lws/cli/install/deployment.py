"""The controller's Deployment and its PodDisruptionBudget."""

from __future__ import annotations

from typing import Any

from rollout_lws.cli.install.options import GUARD, Installation
from rollout_lws.cli.install.rbac import CONTROLLER
from rollout_lws.objects.resources import DEFAULT_API_GROUP, DEPLOYMENTS, POD_DISRUPTION_BUDGETS

Object = dict[str, Any]
SELECTOR = {"app.kubernetes.io/name": "rollout-lws", "app.kubernetes.io/component": "controller"}
HEALTH_PORT, METRICS_PORT, GUARD_PORT = 8081, 8080, 9443
#: User id for images without one of their own; any id but root's works.
_USER = 65532
#: Seconds: the controller finishes its current write (up to 30 s a request), then the guard serves for 5 more.
_GRACE = 45


def deployment(chosen: Installation) -> Object:
    """Leader election allows several replicas, so a rolling update starts each new pod before it ends an old one, and a
    version that does not start leaves the previous one running.
    """
    spec = {
        "replicas": chosen.replicas,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "selector": {"matchLabels": dict(SELECTOR)},
        "template": {"metadata": {"labels": dict(SELECTOR)}, "spec": _pod(chosen)},
    }
    return DEPLOYMENTS.manifest(CONTROLLER, chosen.namespace, spec=spec)


def disruption_budget(chosen: Installation) -> Object:
    """Drains evict one pod at a time, and may always evict one that is not ready."""
    spec = {
        "maxUnavailable": 1,
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
        "selector": {"matchLabels": dict(SELECTOR)},
    }
    return POD_DISRUPTION_BUDGETS.manifest(CONTROLLER, chosen.namespace, spec=spec)


def arguments(chosen: Installation) -> list[str]:
    """Arguments of ``rollout-lws``, without those that equal the controller's defaults."""
    group = [] if chosen.api_group == DEFAULT_API_GROUP else [f"--api-group={chosen.api_group}"]
    watched = [f"--namespace={namespace}" for namespace in chosen.watch_namespaces]
    ports = [f"--health-probe-bind-address=:{HEALTH_PORT}", f"--metrics-bind-address=:{METRICS_PORT}"]
    guard = ["--guard", f"--guard-bind-address=:{GUARD_PORT}"] if GUARD in chosen.extras else []
    # Leader election even with one replica: two run during an upgrade.
    return ["controller", "--leader-elect", *group, *watched, *ports, *guard, "--log-format=json"]


def container_ports(chosen: Installation) -> dict[str, int]:
    """Ports that a pod listens on, by name."""
    guard = {"guard": GUARD_PORT} if GUARD in chosen.extras else {}
    return {"health": HEALTH_PORT, "metrics": METRICS_PORT, **guard}


def _pod(chosen: Installation) -> Object:
    return {
        "serviceAccountName": CONTROLLER,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": _GRACE,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_apart()]}},
        "containers": [_container(chosen)],
    }


def _apart() -> Object:
    """Prefer different nodes, so that losing one costs one replica; a single node still runs all."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": dict(SELECTOR)}}
    return {"weight": 100, "podAffinityTerm": term}


def _container(chosen: Installation) -> Object:
    return {
        "name": "controller",
        "image": chosen.image,
        "command": ["rollout-lws"],
        "args": arguments(chosen),
        # The root filesystem is read-only, so Python cannot write its bytecode cache.
        "env": [{"name": "PYTHONDONTWRITEBYTECODE", "value": "1"}],
        "ports": [
            {"name": name, "containerPort": port, "protocol": "TCP"} for name, port in container_ports(chosen).items()
        ],
        "livenessProbe": _probe("/healthz", 20),
        "readinessProbe": _probe("/readyz", 5),
        # 100 MB for itself, 0.05 MB for each Rollout. No limit of CPU: a controller that is throttled is late.
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _probe(path: str, period: int) -> Object:
    probed = {"httpGet": {"path": path, "port": "health"}, "periodSeconds": period}
    return probed | {"timeoutSeconds": 5, "failureThreshold": 3}
