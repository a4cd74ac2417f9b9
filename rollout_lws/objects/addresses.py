"""Which addresses, ports and paths of pods may be asked: the rules for every request that an author of objects causes.

They keep such a request away from this machine, from a node's own servers and from the API server: an object's author
must get no further by the controller than without it.
"""

from __future__ import annotations

import ipaddress

#: SSH, etcd, kube-apiserver, kubelet, kube-proxy, kube-controller-manager, kube-scheduler: what listens at the address
#: of a node, which is that of a pod with hostNetwork, too.
NODE_PORTS = frozenset({22, 2379, 2380, 2381, 6443, 10248, 10249, 10250, 10255, 10256, 10257, 10258, 10259})


def pod_address(text: str) -> str:
    """A pod's address as a URL has it. ValueError says why it is not one: a status that names this machine, or its
    link, is not believed.
    """
    if not text:
        raise ValueError("it has no address yet")
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no address") from error
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast:
        raise ValueError(f"{address} is not a pod's address")
    return f"[{address}]" if address.version == 6 else str(address)


def node_port(port: int) -> str:
    """Why a port is not asked, as a sentence; "" if it may be."""
    return f"port {port} is a node's own: a pod that is asked needs another" if port in NODE_PORTS else ""


def declared(port: int, field: str) -> int:
    """A container port that may be asked, 0 for one that no template declares. ValueError says why not, and in which
    ``field`` another one is named.
    """
    if port <= 0:
        raise ValueError(f"its template declares no such container port: name one in {field}")
    if port in NODE_PORTS:
        raise ValueError(node_port(port))
    return port


def leads_elsewhere(path: str) -> bool:
    """Whether a path is more than one: behind the API server's proxy it would lead to another object."""
    return not path.startswith("/") or bool({".", ".."} & {*path.split("/")}) or bool(set("%?#\\") & {*path})
