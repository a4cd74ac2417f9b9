"""What the programs of a node are told: as on a small cluster's node, but within what one machine lends them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.nodes import images, network

#: Where pods ask for names.
DNS_SERVICE = "10.96.0.10"
_CNI_PROGRAMS = ("/usr/lib/cni", "/opt/cni/bin")


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a node is: files with its kubeconfig, that of its kube-proxy, the certificate and the key of the kubelet's
    server, and the authority that it trusts.
    """

    kubeconfig: Path
    proxy: Path
    certificate: Path
    key: Path
    authority: Path


def containerd(directory: Path) -> str:
    """Its configuration, TOML; its own files and those of pods' networks are in ``directory``.

    No score of the kernel's memory killer is lowered: that takes a right that containers of builders lack.
    """
    programs = next(path for path in _CNI_PROGRAMS if Path(path, "bridge").exists())
    return f"""\
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{directory}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{images.PAUSE}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{programs}"
    conf_dir = "{directory}/networks"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
"""


def pods_network(number: int) -> str:
    """How pods of node ``number`` are connected, JSON of the container network interface."""
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": network.pods_of(number)}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": False, "hairpinMode": True}
    plugins = [{**bridge, "ipam": addresses}, {"type": "portmap", "capabilities": {"portMappings": True}}]
    return json.dumps({"cniVersion": "0.4.0", "name": "pods", "plugins": plugins})


def kubelet(number: int, identity: Identity, group: str, directory: Path) -> str:
    """Its configuration, YAML; ``group`` is the path of the control group that its pods live in, ``directory`` where
    its own files are.
    """
    return _document(
        "kubelet.config.k8s.io/v1beta1",
        "KubeletConfiguration",
        {
            "address": network.node_address(number),
            "healthzBindAddress": "127.0.0.1",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(identity.authority)},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(identity.certificate),
            "tlsPrivateKeyFile": str(identity.key),
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": group,
            "failCgroupV1": False,
            "enforceNodeAllocatable": [],
            "failSwapOn": False,
            "oomScoreAdj": 0,
            "clusterDomain": "cluster.local",
            "clusterDNS": [DNS_SERVICE],
            "resolvConf": "/dev/null",
            "volumePluginDir": str(directory / "volumes"),
            "maxPods": 200,
            "serializeImagePulls": False,
            # There is no registry to pull an image from again.
            "imageGCHighThresholdPercent": 100,
            "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
            "kubeAPIQPS": 200,
            "kubeAPIBurst": 400,
            "nodeStatusUpdateFrequency": "5s",
            # Renewed four times in that, so that a busy machine loses no node (tests.e2e.flags.LOST_SECONDS).
            "nodeLeaseDurationSeconds": 16,
        },
    )


def kube_proxy(name: str, address: str, kubeconfig: Path) -> str:
    """The configuration, YAML, of the one that is called ``name`` at ``address``."""
    return _document(
        "kubeproxy.config.k8s.io/v1alpha1",
        "KubeProxyConfiguration",
        {
            "mode": "nftables",
            "hostnameOverride": name,
            "clientConnection": {"kubeconfig": str(kubeconfig)},
            "bindAddress": address,
            "healthzBindAddress": "127.0.0.1:10256",
            "metricsBindAddress": "127.0.0.1:10249",
            "clusterCIDR": network.PODS,
            # The machine's own limits on connections are nobody's business here.
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
            "nftables": {"minSyncPeriod": "0s", "syncPeriod": "30s"},
        },
    )


def _document(version: str, kind: str, values: Mapping[str, object]) -> str:
    return yaml.safe_dump({"apiVersion": version, "kind": kind, **values}, sort_keys=False)
