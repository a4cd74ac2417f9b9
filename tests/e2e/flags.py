"""How each process of the control plane is told to run: as in a cluster, but alone, on loopback, and for a short life.

Files are looked for in ``data``, where tests.e2e.plane puts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

#: What of the controller manager a release needs, and no controller of nodes: nobody here renews their leases.
CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "deployment-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "replicaset-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "statefulset-controller",
)
#: Far more than any run writes: a log that is rotated has lost its beginning.
_AUDIT_MEGABYTES = 10_000
#: What limits the speed of a controller here is to be the API server, not the controller's own modesty.
_IMPATIENT = {"kube-api-qps": "1000", "kube-api-burst": "2000"}
#: One of each, and none that anybody asks for its health.
_ALONE = {"leader-elect": "false", "secure-port": "0"}


def etcd(data: Path) -> Mapping[str, str]:
    return {
        "data-dir": str(data / "etcd"),
        "listen-client-urls": _etcd_url(data),
        "listen-peer-urls": f"unix://{data / 'etcd-peers.sock'}",
        # It insists on advertising a host and a port; nobody looks for a single member there.
        "advertise-client-urls": "http://localhost:2379",
        "unsafe-no-fsync": "true",
        "log-level": "warn",
    }


def api_server(data: Path, host: str, port: int, audit_log: Path) -> Mapping[str, str]:
    return {
        "etcd-servers": _etcd_url(data),
        "bind-address": host,
        "advertise-address": host,
        "secure-port": str(port),
        "permit-port-sharing": "true",
        "tls-cert-file": str(data / "server.crt"),
        "tls-private-key-file": str(data / "server.key"),
        "client-ca-file": str(data / "ca.crt"),
        "authorization-mode": "RBAC",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-signing-key-file": str(data / "tokens.key"),
        "service-account-key-file": str(data / "tokens.pub"),
        "service-cluster-ip-range": "10.96.0.0/16",
        "endpoint-reconciler-type": "none",
        # Without a controller of nodes nobody would take the taint away again.
        "disable-admission-plugins": "TaintNodesByCondition",
        "audit-policy-file": str(data / "audit-policy.yaml"),
        "audit-log-path": str(audit_log),
        "audit-log-maxsize": str(_AUDIT_MEGABYTES),
    }


def controller_manager(data: Path, kubeconfig: Path) -> Mapping[str, str]:
    return {
        "kubeconfig": str(kubeconfig),
        # Each controller then has the rights of its own role, as in a cluster.
        "use-service-account-credentials": "true",
        "service-account-private-key-file": str(data / "tokens.key"),
        "root-ca-file": str(data / "ca.crt"),
        "controllers": ",".join(CONTROLLERS),
        **_ALONE,
        **_IMPATIENT,
    }


def scheduler(kubeconfig: Path) -> Mapping[str, str]:
    return {"kubeconfig": str(kubeconfig), **_ALONE, **_IMPATIENT}


def etcd_socket(data: Path) -> Path:
    """A socket that only this user reaches needs neither a port nor a certificate."""
    return data / "etcd.sock"


def _etcd_url(data: Path) -> str:
    return f"unix://{etcd_socket(data)}"
