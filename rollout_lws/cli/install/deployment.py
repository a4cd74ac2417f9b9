"""The Deployment of the controller, and how many of its pods may be away."""

from __future__ import annotations

from typing import Any

from rollout_lws.cli.install.options import GUARD, Installation
from rollout_lws.cli.install.rbac import CONTROLLER
from rollout_lws.objects.resources import DEFAULT_API_GROUP, DEPLOYMENTS, POD_DISRUPTION_BUDGETS

Object = dict[str, Any]
SELECTOR = {"app.kubernetes.io/name": "rollout-lws", "app.kubernetes.io/component": "controller"}
HEALTH_PORT, METRICS_PORT, GUARD_PORT = 8081, 8080, 9443
#: The user that images without an account of their own run as; any other than root will do.
_USER = 65532
#: Seconds: the write at hand is finished first, and a request may take 30; then the guard judges on for 5.
_GRACE = 45


def deployment(chosen: Installation) -> Object:
    """One leads and the others wait, so several may run at a time: an upgrade ends none before the next one is ready,
    and a version that does not start leaves the one before in charge.
    """
    spec = {
        "replicas": chosen.replicas,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "selector": {"matchLabels": dict(SELECTOR)},
        "template": {"metadata": {"labels": dict(SELECTOR)}, "spec": _pod(chosen)},
    }
    return DEPLOYMENTS.manifest(CONTROLLER, chosen.namespace, spec=spec)


def disruption_budget(chosen: Installation) -> Object:
    """Drains take one at a time, and never wait for one that does not run anyway."""
    spec = {
        "maxUnavailable": 1,
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
        "selector": {"matchLabels": dict(SELECTOR)},
    }
    return POD_DISRUPTION_BUDGETS.manifest(CONTROLLER, chosen.namespace, spec=spec)


def arguments(chosen: Installation) -> list[str]:
    """Of the program ``rollout-lws``; what is the controller's own default is left to it."""
    group = [] if chosen.api_group == DEFAULT_API_GROUP else [f"--api-group={chosen.api_group}"]
    watched = [f"--namespace={namespace}" for namespace in chosen.watch_namespaces]
    ports = [f"--health-probe-bind-address=:{HEALTH_PORT}", f"--metrics-bind-address=:{METRICS_PORT}"]
    guard = ["--guard", f"--guard-bind-address=:{GUARD_PORT}"] if GUARD in chosen.extras else []
    # With one replica too: while it is upgraded there are two.
    return ["controller", "--leader-elect", *group, *watched, *ports, *guard, "--log-format=json"]


def container_ports(chosen: Installation) -> dict[str, int]:
    """Where a pod listens, by name."""
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
    """One node that goes takes one of them; where there is one node only, all run there."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": dict(SELECTOR)}}
    return {"weight": 100, "podAffinityTerm": term}


def _container(chosen: Installation) -> Object:
    return {
        "name": "controller",
        "image": chosen.image,
        "command": ["rollout-lws"],
        "args": arguments(chosen),
        # Nothing can be written to the image's files, the interpreter's cache included.
        "env": [{"name": "PYTHONDONTWRITEBYTECODE", "value": "1"}],
        "ports": [
            {"name": name, "containerPort": port, "protocol": "TCP"} for name, port in container_ports(chosen).items()
        ],
        "livenessProbe": _probe("/healthz", 20),
        "readinessProbe": _probe("/readyz", 5),
        # 62 MB for itself, 0.05 MB for each Rollout. No limit of CPU: a controller that is throttled is late.
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
