"""What an installation can have besides: the network closed, metrics collected, its deletions of pods limited, edits
judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rollout_lws.cli.install import guard
from rollout_lws.cli.install.deployment import METRICS_PORT, SELECTOR, container_ports
from rollout_lws.cli.install.installation import (
    GUARD,
    NETWORK_POLICY,
    POD_DELETION_POLICY,
    POD_MONITOR,
    SERVICE_MONITOR,
    Installation,
)
from rollout_lws.cli.install.rights import CONTROLLER
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
#: Policies are in no namespace, and their names are everybody's.
DELETION_POLICY = f"{CONTROLLER}-pod-deletion"


def network_policy(chosen: Installation) -> Object:
    """Nobody reaches but the ports that are there. What the controller itself reaches is not limited: where the API
    server listens, a policy would have to know, and one that is wrong cuts the controller off.
    """
    ports = [{"port": port, "protocol": "TCP"} for port in sorted(container_ports(chosen).values())]
    spec = {"podSelector": _selected(), "policyTypes": ["Ingress"], "ingress": [{"ports": ports}]}
    return _made(NETWORK_POLICIES, CONTROLLER, spec, chosen.namespace)


def pod_monitor(chosen: Installation) -> Object:
    """Every replica is asked: who does not lead has metrics of its own."""
    spec = {"selector": _selected(), "podMetricsEndpoints": [_scraped()]}
    return _made(POD_MONITORS, CONTROLLER, spec, chosen.namespace)


def metrics_service(chosen: Installation) -> Object:
    """Without an address of its own: it is there to be looked up, each pod is asked itself."""
    port = {"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics", "protocol": "TCP"}
    made = _made(
        SERVICES, METRICS_SERVICE, {"clusterIP": "None", "selector": dict(SELECTOR), "ports": [port]}, chosen.namespace
    )
    return {**made, "metadata": {**made["metadata"], "labels": {"app.kubernetes.io/component": "metrics"}}}


def service_monitor(chosen: Installation) -> Object:
    labels = {"app.kubernetes.io/name": SELECTOR["app.kubernetes.io/name"], "app.kubernetes.io/component": "metrics"}
    spec = {"selector": {"matchLabels": labels}, "endpoints": [_scraped()]}
    return _made(SERVICE_MONITORS, CONTROLLER, spec, chosen.namespace)


def deletion_policy(chosen: Installation) -> Object:
    """A role cannot tell pods apart; this can: of all pods that the controller may delete by its role, only leaders of
    LeaderWorkerSets may go.
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
    return _made(ADMISSION_POLICIES, DELETION_POLICY, spec)


def deletion_policy_binding(_: Installation) -> Object:
    spec = {"policyName": DELETION_POLICY, "validationActions": ["Deny"]}
    return _made(ADMISSION_POLICY_BINDINGS, DELETION_POLICY, spec)


#: What each word brings, in the order in which it can be applied.
_BROUGHT: Mapping[str, tuple[Callable[[Installation], Object], ...]] = {
    NETWORK_POLICY: (network_policy,),
    POD_MONITOR: (pod_monitor,),
    SERVICE_MONITOR: (metrics_service, service_monitor),
    POD_DELETION_POLICY: (deletion_policy, deletion_policy_binding),
    GUARD: (guard.role, guard.binding, guard.service, guard.mutating, guard.validating),
}
#: Kinds that a cluster has only when somebody has installed them, by the word that needs them.
NEEDED: Mapping[str, Resource] = {POD_MONITOR: POD_MONITORS, SERVICE_MONITOR: SERVICE_MONITORS}


def wanted(chosen: Installation) -> list[Object]:
    """The objects that ``chosen`` asks for."""
    return [make(chosen) for extra, made in _BROUGHT.items() if extra in chosen.extras for make in made]


def unwanted(chosen: Installation) -> list[Object]:
    """Those that it does not ask for, as they would be: an installation before may have made them. What is bound goes
    after what binds it.
    """
    return [make(chosen) for extra, made in _BROUGHT.items() if extra not in chosen.extras for make in reversed(made)]


def _scraped() -> Object:
    """``namespace`` is the Rollout's in what is told, and has to stay so."""
    return {"port": "metrics", "path": "/metrics", "honorLabels": True}


def _selected() -> Object:
    return {"matchLabels": dict(SELECTOR)}


def _made(resource: Resource, name: str, spec: Object, namespace: str = "") -> Object:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}
