"""What a cluster of real nodes has beside its control plane: rights of its proxies, its DNS."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rollout_lws.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DEPLOYMENTS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from rollout_lws.objects.writes import Create
from tests.nodes import images
from tests.nodes.settings import DNS_SERVICE

DNS = "coredns"
#: Who the nodes' proxies are to the API server.
PROXY = "system:kube-proxy"
SYSTEM = "kube-system"

_CORE_FILE = """\
.:53 {
  errors
  ready :8181
  kubernetes cluster.local in-addr.arpa {
    pods insecure
    ttl 5
  }
}
"""
_OF_THE_DNS = {"k8s-app": "kube-dns"}


def rights() -> Iterator[Create]:
    """The roles of the nodes' proxies and of the DNS."""
    rules = [
        {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ]
    yield _create(CLUSTER_ROLES, DNS, rules=rules)
    yield _bound(DNS, DNS, {"kind": "ServiceAccount", "name": DNS, "namespace": SYSTEM})
    yield _bound("kube-proxy", "system:node-proxier", {"kind": "User", "name": PROXY, "apiGroup": CLUSTER_ROLES.group})


def dns() -> Iterator[Create]:
    """CoreDNS as a Deployment, with the Service that the kubelets tell pods of."""
    yield _create(SERVICE_ACCOUNTS, DNS, SYSTEM)
    yield _create(CONFIG_MAPS, DNS, SYSTEM, data={"Corefile": _CORE_FILE})
    container = {
        "name": DNS,
        "image": images.DNS,
        "args": ["-conf", "/etc/coredns/Corefile"],
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns"}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
    }
    pod = {
        "serviceAccountName": DNS,
        "dnsPolicy": "Default",
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": DNS}}],
    }
    template = {"metadata": {"labels": _OF_THE_DNS}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": _OF_THE_DNS}, "template": template}
    yield _create(DEPLOYMENTS, DNS, SYSTEM, spec=spec)
    ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]
    service = {"clusterIP": DNS_SERVICE, "selector": _OF_THE_DNS, "ports": ports}
    yield _create(SERVICES, "kube-dns", SYSTEM, spec=service)


def _bound(name: str, role: str, subject: dict[str, str]) -> Create:
    reference = {"apiGroup": CLUSTER_ROLES.group, "kind": "ClusterRole", "name": role}
    return _create(CLUSTER_ROLE_BINDINGS, name, roleRef=reference, subjects=[subject])


def _create(resource: Resource, name: str, namespace: str = "", **members: Any) -> Create:
    return Create(resource, resource.manifest(name, namespace, **members), "a cluster with nodes has it")
