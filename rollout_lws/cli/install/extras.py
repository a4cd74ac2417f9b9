"""Optional parts of an installation: NetworkPolicy, metrics monitors, a pod deletion policy, and the guard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rollout_lws.cli.install import guard
from rollout_lws.cli.install.deployment import METRICS_PORT, SELECTOR, container_ports
from rollout_lws.cli.install.options import (
    GUARD,
    NETWORK_POLICY,
    POD_DELETION_POLICY,
    POD_MONITOR,
    SERVICE_MONITOR,
    Installation,
)
from rollout_lws.cli.install.rbac import CONTROLLER
from rollout_lws.objects.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    LWS_WORKER_INDEX,
    NETWORK_POLICIES,
    POD_MONITORS,
    PODS,
    SERVICE_MONITORS,
    SERVICES,
    Resource,
)

Object = dict[str, Any]
METRICS_SERVICE = f"{CONTROLLER}-metrics"
#: Admission policies are cluster-scoped, so their names need a prefix.
DELETION_POLICY = f"{CONTROLLER}-pod-deletion"


def network_policy(chosen: Installation) -> Object:
    """Allow ingress to the controller's ports only. Egress is not limited: a policy would need the API server's
    address, and a wrong one would cut the controller off.
    """
    ports = [{"port": port, "protocol": "TCP"} for port in sorted(container_ports(chosen).values())]
    spec = {"podSelector": _selected(), "policyTypes": ["Ingress"], "ingress": [{"ports": ports}]}
    return NETWORK_POLICIES.manifest(CONTROLLER, chosen.namespace, spec=spec)


def pod_monitor(chosen: Installation) -> Object:
    """Scrapes every replica, since standby replicas have metrics of their own."""
    spec = {"selector": _selected(), "podMetricsEndpoints": [_scraped()]}
    return POD_MONITORS.manifest(CONTROLLER, chosen.namespace, spec=spec)


def metrics_service(chosen: Installation) -> Object:
    """Headless: the ServiceMonitor only needs it for discovery, and Prometheus scrapes each pod."""
    port = {"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics", "protocol": "TCP"}
    spec = {"clusterIP": "None", "selector": dict(SELECTOR), "ports": [port]}
    made = SERVICES.manifest(METRICS_SERVICE, chosen.namespace, spec=spec)
    made["metadata"]["labels"] = {"app.kubernetes.io/component": "metrics"}
    return made


def service_monitor(chosen: Installation) -> Object:
    labels = {"app.kubernetes.io/name": SELECTOR["app.kubernetes.io/name"], "app.kubernetes.io/component": "metrics"}
    spec = {"selector": {"matchLabels": labels}, "endpoints": [_scraped()]}
    return SERVICE_MONITORS.manifest(CONTROLLER, chosen.namespace, spec=spec)


def deletion_policy(chosen: Installation) -> Object:
    """RBAC cannot tell pods apart, but an admission policy can: of the pods that the controller's role may delete, it
    permits leaders of LeaderWorkerSets only.
    """
    account = f"system:serviceaccount:{chosen.namespace}:{CONTROLLER}"
    rule = {"apiGroups": [PODS.group], "apiVersions": [PODS.version], "operations": ["DELETE"]}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{**rule, "resources": [PODS.plural]}]},
        "matchConditions": [{"name": "by-the-controller", "expression": f"request.userInfo.username == '{account}'"}],
        "validations": [
            {
                "expression": (
                    f"has(oldObject.metadata.labels) && '{LWS_WORKER_INDEX}' in oldObject.metadata.labels"
                    f" && oldObject.metadata.labels['{LWS_WORKER_INDEX}'] == '0'"
                ),
                "message": "rollout-lws deletes leaders of LeaderWorkerSets only",
                "reason": "Forbidden",
            }
        ],
    }
    return ADMISSION_POLICIES.manifest(DELETION_POLICY, spec=spec)


def deletion_policy_binding(_: Installation) -> Object:
    spec = {"policyName": DELETION_POLICY, "validationActions": ["Deny"]}
    return ADMISSION_POLICY_BINDINGS.manifest(DELETION_POLICY, spec=spec)


#: Objects of each extra, in the order in which they can be applied.
_BROUGHT: Mapping[str, tuple[Callable[[Installation], Object], ...]] = {
    NETWORK_POLICY: (network_policy,),
    POD_MONITOR: (pod_monitor,),
    SERVICE_MONITOR: (metrics_service, service_monitor),
    POD_DELETION_POLICY: (deletion_policy, deletion_policy_binding),
    GUARD: (guard.role, guard.binding, guard.service, guard.mutating, guard.validating),
}
#: Extras that need kinds which not every cluster serves: the kind, and what provides it.
NEEDED: Mapping[str, tuple[Resource, str]] = {
    POD_MONITOR: (POD_MONITORS, "the Prometheus operator"),
    SERVICE_MONITOR: (SERVICE_MONITORS, "the Prometheus operator"),
    POD_DELETION_POLICY: (ADMISSION_POLICIES, "Kubernetes 1.30 or newer"),
}


def wanted(chosen: Installation) -> list[Object]:
    """The objects of the extras in ``chosen``."""
    return [make(chosen) for extra, made in _BROUGHT.items() if extra in chosen.extras for make in made]


def _scraped() -> Object:
    """honorLabels keeps the metrics' own ``namespace`` label, which is the Rollout's."""
    return {"port": "metrics", "path": "/metrics", "honorLabels": True}


def _selected() -> Object:
    return {"matchLabels": dict(SELECTOR)}
