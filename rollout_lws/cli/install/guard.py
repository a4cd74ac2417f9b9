"""The guard's part of an installation: its webhook configurations, Service and RBAC."""

from __future__ import annotations

from typing import Any

from rollout_lws.api.resources import keys, rollouts
from rollout_lws.cli.install import rbac
from rollout_lws.cli.install.deployment import SELECTOR
from rollout_lws.cli.install.options import Installation
from rollout_lws.cli.install.rbac import CONTROLLER
from rollout_lws.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    LEADER_WORKER_SETS,
    MUTATING_WEBHOOKS,
    SERVICES,
    VALIDATING_WEBHOOKS,
    Resource,
)
from rollout_lws.settings import DEFAULT_GUARD

Object = dict[str, Any]
ROLE = f"{CONTROLLER}-guard"
_SERVICE_PORT = 443
#: Seconds; the guard answers in milliseconds, and the client of the write waits for it.
_TIMEOUT = 3
#: Skips objects that are being deleted, so finalizers can be removed even when no guard answers.
_STAYS = {"name": "not-going", "expression": "!has(object.metadata.deletionTimestamp)"}


def role(_: Installation) -> Object:
    return rbac.role(ROLE, rbac.guard_rules())


def binding(chosen: Installation) -> Object:
    return rbac.binding(CLUSTER_ROLE_BINDINGS.manifest(ROLE), CLUSTER_ROLES, ROLE, chosen.namespace)


def service(chosen: Installation) -> Object:
    """Only ready replicas: the API server does not trust the certificate of others yet."""
    port = {"name": "guard", "port": _SERVICE_PORT, "targetPort": "guard", "protocol": "TCP"}
    return SERVICES.manifest(DEFAULT_GUARD, chosen.namespace, spec={"selector": dict(SELECTOR), "ports": [port]})


def mutating(chosen: Installation) -> Object:
    """Reinvoked if a later webhook changes the object."""
    hold = _webhook(chosen, "hold", ["UPDATE"], LEADER_WORKER_SETS) | {
        "reinvocationPolicy": "IfNeeded",
        "matchConditions": [_in_care(chosen), _by_others(chosen), _STAYS],
    }
    return MUTATING_WEBHOOKS.manifest(DEFAULT_GUARD, webhooks=[hold])


def validating(chosen: Installation) -> Object:
    pending = _webhook(chosen, "pending", ["UPDATE"], LEADER_WORKER_SETS) | {
        "matchConditions": [_in_care(chosen), _by_others(chosen), _STAYS]
    }
    plan = _webhook(chosen, "plan", ["CREATE", "UPDATE"], rollouts(chosen.api_group)) | {
        "matchConditions": [_by_others(chosen), _STAYS]
    }
    return VALIDATING_WEBHOOKS.manifest(DEFAULT_GUARD, webhooks=[pending, plan])


def _webhook(chosen: Installation, rule: str, operations: list[str], resource: Resource) -> Object:
    """Without caBundle, which the controllers own: applying this leaves their value alone."""
    watched = [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(chosen.watch_namespaces)}]
    rules = {"apiGroups": [resource.group], "apiVersions": [resource.version], "resources": [resource.plural]}
    return {
        "name": f"{rule}.guard.rollout-lws",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "service": {
                "name": DEFAULT_GUARD,
                "namespace": chosen.namespace,
                "path": f"/{rule}",
                "port": _SERVICE_PORT,
            }
        },
        "rules": [{**rules, "operations": operations, "scope": "Namespaced"}],
        "namespaceSelector": {"matchExpressions": watched} if chosen.watch_namespaces else {},
        "matchPolicy": "Equivalent",
        "failurePolicy": chosen.guard_failure_policy,
        "sideEffects": "None",
        "timeoutSeconds": _TIMEOUT,
    }


def _in_care(chosen: Installation) -> Object:
    """Only managed LWSs are sent to the guard."""
    key = keys(chosen.api_group).original
    expression = f"has(oldObject.metadata.annotations) && '{key}' in oldObject.metadata.annotations"
    return {"name": "in-care", "expression": expression}


def _by_others(chosen: Installation) -> Object:
    """Skips the controller's own writes, so releases continue even when no guard answers."""
    account = f"system:serviceaccount:{chosen.namespace}:{CONTROLLER}"
    return {"name": "not-by-the-controller", "expression": f"request.userInfo.username != '{account}'"}
