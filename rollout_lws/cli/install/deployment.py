"""The Deployment of the controller."""

from __future__ import annotations

from typing import Any

from rollout_lws.cli.install.installation import Installation
from rollout_lws.cli.install.rights import CONTROLLER
from rollout_lws.objects.resources import DEPLOYMENTS
from rollout_lws.settings import DEFAULT_API_GROUP

Object = dict[str, Any]
SELECTOR = {"app.kubernetes.io/name": "rollout-lws", "app.kubernetes.io/component": "controller"}
_HEALTH, _METRICS = 8081, 8080
#: The user that images without an account of their own run as; any other than root will do.
_USER = 65532
#: Seconds: the write at hand is finished first, and a request may take 30.
_GRACE = 40


def deployment(chosen: Installation) -> Object:
    """One controller, never two: Recreate ends the old one before the new one starts, since there is no leader
    election and two would race. Nothing rolls in between, because LeaderWorkerSets are held by their own partition.
    """
    return {
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": DEPLOYMENTS.kind,
        "metadata": {"name": CONTROLLER, "namespace": chosen.namespace},
        "spec": {
            "replicas": chosen.replicas,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": SELECTOR},
            "template": {"metadata": {"labels": dict(SELECTOR)}, "spec": _pod(chosen)},
        },
    }


def arguments(chosen: Installation) -> list[str]:
    """Of the program ``rollout-lws``; what is the controller's own default is left to it."""
    group = [] if chosen.api_group == DEFAULT_API_GROUP else [f"--api-group={chosen.api_group}"]
    watched = [f"--namespace={namespace}" for namespace in chosen.watch_namespaces]
    ports = [f"--health-probe-bind-address=:{_HEALTH}", f"--metrics-bind-address=:{_METRICS}"]
    return ["controller", *group, *watched, *ports, "--log-format=json"]


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
        "containers": [_container(chosen)],
    }


def _container(chosen: Installation) -> Object:
    return {
        "name": "controller",
        "image": chosen.image,
        "command": ["rollout-lws"],
        "args": arguments(chosen),
        # Nothing can be written to the image's files, the interpreter's cache included.
        "env": [{"name": "PYTHONDONTWRITEBYTECODE", "value": "1"}],
        "ports": [
            {"name": "health", "containerPort": _HEALTH, "protocol": "TCP"},
            {"name": "metrics", "containerPort": _METRICS, "protocol": "TCP"},
        ],
        "livenessProbe": _probe("/healthz", 20),
        "readinessProbe": _probe("/readyz", 5),
        # 100 MB for itself, 0.1 MB for each Rollout. No limit of CPU: a controller that is throttled is late.
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
