"""How each process of the control plane is told to run: as in a cluster, but alone, on loopback, and for a short life.

Files are looked for in ``data``, where tests.e2e.plane puts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: Where pods find the API server: the first address of the Services' range.
SERVICE_RANGE, API_SERVICE = "10.96.0.0/16", "10.96.0.1"


@dataclass(frozen=True, slots=True)
class Site:
    """Where a control plane lives: ``host`` is the address of its API server, and ``nodes`` says whether real ones
    join. Without them nothing renews a node's lease, so no controller of nodes runs.
    """

    host: str = "127.0.0.1"
    nodes: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """What the API server is reached by."""
        return (self.host, "localhost", "kubernetes.default.svc", *((API_SERVICE,) if self.nodes else ()))


LOOPBACK = Site()
#: After so long without a word from a node it counts as lost; Kubernetes waits 50 seconds by default.
LOST_SECONDS = 20

#: What of the controller manager a release needs where no real nodes are.
CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "deployment-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "job-controller",
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


def api_server(data: Path, site: Site, port: int, audit_log: Path) -> Mapping[str, str]:
    shared = {
        "etcd-servers": _etcd_url(data),
        "bind-address": site.host,
        "advertise-address": site.host,
        "secure-port": str(port),
        "permit-port-sharing": "true",
        "tls-cert-file": str(data / "server.crt"),
        "tls-private-key-file": str(data / "server.key"),
        "client-ca-file": str(data / "ca.crt"),
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-signing-key-file": str(data / "tokens.key"),
        "service-account-key-file": str(data / "tokens.pub"),
        "service-cluster-ip-range": SERVICE_RANGE,
        "audit-policy-file": str(data / "audit-policy.yaml"),
        "audit-log-path": str(audit_log),
        "audit-log-maxsize": str(_AUDIT_MEGABYTES),
    }
    if not site.nodes:
        return {
            **shared,
            "authorization-mode": "RBAC",
            "endpoint-reconciler-type": "none",
            # Without a controller of nodes nothing would take the taint away again.
            "disable-admission-plugins": "TaintNodesByCondition",
        }
    return {
        **shared,
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "kubelet-client-certificate": str(data / "kubelet-client.crt"),
        "kubelet-client-key": str(data / "kubelet-client.key"),
        "kubelet-certificate-authority": str(data / "ca.crt"),
        "kubelet-preferred-address-types": "InternalIP",
    }


def controller_manager(data: Path, site: Site, kubeconfig: Path) -> Mapping[str, str]:
    return {
        "kubeconfig": str(kubeconfig),
        # Each controller then has the rights of its own role, as in a cluster.
        "use-service-account-credentials": "true",
        "service-account-private-key-file": str(data / "tokens.key"),
        "root-ca-file": str(data / "ca.crt"),
        **(_all_controllers(data) if site.nodes else {"controllers": ",".join(CONTROLLERS)}),
        **_ALONE,
        **_IMPATIENT,
    }


def _all_controllers(data: Path) -> Mapping[str, str]:
    # The one of volumes makes its directory of plug-ins, wherever that is.
    told = {"allocate-node-cidrs": "false", "node-monitor-grace-period": f"{LOST_SECONDS}s"}
    return {**told, "flex-volume-plugin-dir": str(data / "volume-plugins")}


def scheduler(kubeconfig: Path) -> Mapping[str, str]:
    return {"kubeconfig": str(kubeconfig), **_ALONE, **_IMPATIENT}


def etcd_socket(data: Path) -> Path:
    """A socket that only this user reaches needs neither a port nor a certificate."""
    return data / "etcd.sock"


def _etcd_url(data: Path) -> str:
    return f"unix://{etcd_socket(data)}"
