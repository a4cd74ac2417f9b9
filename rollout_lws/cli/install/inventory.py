"""Kinds of an installation's objects, their kubectl names, and lists of them on a cluster."""

from __future__ import annotations

from typing import Any

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.install.manifests import PART_OF, PRODUCT
from rollout_lws.cli.install.rbac import CONTROLLER
from rollout_lws.objects.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    POD_MONITORS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICE_MONITORS,
    SERVICES,
    VALIDATING_WEBHOOKS,
    Resource,
)

Object = dict[str, Any]
#: Admission webhooks and policies.
WEBHOOKS = (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS, ADMISSION_POLICY_BINDINGS, ADMISSION_POLICIES)
#: Objects that serve the controller in its namespace.
SERVING = (POD_DISRUPTION_BUDGETS, SERVICE_MONITORS, POD_MONITORS, SERVICES, NETWORK_POLICIES)
RIGHTS = (ROLE_BINDINGS, ROLES, CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES)
_OTHERS = (DEPLOYMENTS, SERVICE_ACCOUNTS, CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES)
RESOURCES = {each.kind: each for each in (*WEBHOOKS, *SERVING, *RIGHTS, *_OTHERS)}


def listed(transport: Transport, resource: Resource, namespace: str = "", **query: str) -> list[Object]:
    """Objects of a kind, in all namespaces unless one is given; [] when the cluster does not serve the kind."""
    found = (transport.find(resource.path(namespace), **query) or {}).get("items") or ()
    return [{"kind": resource.kind, **each} for each in found]


def labelled(transport: Transport, resource: Resource) -> list[Object]:
    """Objects of a kind with an installation's label."""
    return listed(transport, resource, labelSelector=f"{PART_OF}={PRODUCT}")


def name_of(resource: Resource, obj: Object) -> str:
    """The name in kubectl's form: deployment.apps/name."""
    group = f".{resource.group}" if resource.group else ""
    return f"{resource.kind.lower()}{group}/{obj['metadata']['name']}"


def starting(namespace: str) -> str:
    """The command that starts a controller whose Deployment is scaled to 0."""
    return f"kubectl -n {namespace} scale deployment/{CONTROLLER} --replicas=1"


def place_of(resource: Resource, obj: Object) -> str:
    """The object's name and namespace."""
    namespace = obj["metadata"].get("namespace")
    return name_of(resource, obj) + (f" in namespace {namespace}" if namespace else "")
