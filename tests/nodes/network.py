"""The networks of a run: a bridge with the control plane, the gateway and the clients on it, and each node beside it.

All of it lies in the network namespace that the run is enclosed in; nodes have one of their own each, with one end of a
cable to the bridge. Pods of node N have addresses from 10.244.N.0/24, which are routed by way of that node.
"""

from __future__ import annotations

import asyncio

from tests.e2e.flags import SERVICE_RANGE

#: The address of the control plane and the gateway.
PLANE = "172.30.0.1"
PODS = "10.244.0.0/16"
_BRIDGE = "lan"


def node_address(number: int) -> str:
    return f"172.30.0.{10 + number}"


def pods_of(number: int) -> str:
    """The range of the addresses of a node's pods."""
    return f"10.244.{number}.0/24"


async def come_up() -> None:
    """The bridge, with the plane's address, and the way to Services, whose addresses kube-proxy replaces."""
    await _ip(
        "link set lo up",
        f"link add {_BRIDGE} type bridge",
        f"address add {PLANE}/24 dev {_BRIDGE}",
        f"link set {_BRIDGE} up",
        f"route add {SERVICE_RANGE} dev {_BRIDGE}",
    )


async def connect(number: int, process: int) -> None:
    """A cable from the bridge to the namespace of a process, where its end is called eth0; the way to its pods."""
    await _ip(
        f"link add n{number} type veth peer name eth0 netns {process}",
        f"link set n{number} master {_BRIDGE} up",
        f"route add {pods_of(number)} via {node_address(number)}",
    )


async def remove(number: int) -> None:
    """The cable with both ends, and the way to the node's pods: from now on nothing of the node is reached."""
    await _ip(f"route del {pods_of(number)}", f"link del n{number}")


async def _ip(*lines: str) -> None:
    """Have ``ip`` do what the lines say, in this namespace. RuntimeError with its words when it cannot."""
    process = await asyncio.create_subprocess_exec(
        *("ip", "-batch", "-"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    told, _ = await process.communicate("\n".join(lines).encode())
    if process.returncode:
        raise RuntimeError(f"ip: {told.decode(errors='replace')}")
