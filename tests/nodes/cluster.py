"""A whole cluster with real nodes: a control plane, kubelets with containerd, a DNS, a gateway.

Of LeaderWorkerSet it has the sandbox's controllers and webhooks, as clients; everything else is what a cluster has. It
is made inside tests.nodes.enclosure, whose networks are its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import DEPLOYMENTS, NODES
from rollout_lws.sandbox.behaviours.autoscaler import Autoscalers
from rollout_lws.sandbox.behaviours.network.gateway import Gateways
from rollout_lws.sandbox.behaviours.nodes.kubelet import Kubelet
from rollout_lws.sandbox.behaviours.nodes.scheduler import Scheduler
from rollout_lws.sandbox.behaviours.nodes.volumes import VolumeBinder
from rollout_lws.sandbox.definitions import lws_crd
from tests.bench.processes import Child, child
from tests.e2e import contour, tools
from tests.e2e.cluster import webhook_certificates
from tests.e2e.daemons import daemon
from tests.e2e.defining import define
from tests.e2e.flags import Site
from tests.e2e.plane import ControlPlane, connected, control_plane
from tests.e2e.waiting import condition, until
from tests.nodes import gateway, manifests, network, settings
from tests.nodes.gateway import Gateway
from tests.nodes.node import Node, node

_PATIENCE = 120.0
#: What real parts do here.
_PLAYED_NO_MORE = (Scheduler, Kubelet, VolumeBinder, Gateways, Autoscalers)

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Cluster:
    plane: ControlPlane
    admin: Client
    nodes: Sequence[Node]
    gateway: Gateway
    #: The kube-proxy beside the control plane, by which users and webhooks reach Services.
    proxy: Child
    logs: Path


@asynccontextmanager
async def cluster(directory: Path, store: Path, progress: Progress, nodes: int = 2) -> AsyncIterator[Cluster]:
    """One with all its parts ready, and all images on each node, from here to the end of the block.

    ``directory`` is the run's own (tests.nodes.enclosure), ``store`` has the images. The programs must have been built.
    """
    began = time.monotonic()

    def told(what: str) -> None:
        progress(f"{time.monotonic() - began:5.1f} s  {what}")

    async with AsyncExitStack() as stack:
        logs = directory / "logs"
        logs.mkdir()
        await network.come_up()
        plane = await stack.enter_async_context(
            control_plane(
                tools.directory(tools.PLANE),
                logs,
                scheduler=True,
                install=_install,
                site=Site(network.PLANE, nodes=True),
            )
        )
        admin = Client(await stack.enter_async_context(connected(plane.admin)))
        told("the control plane is ready")
        numbers = range(1, nodes + 1)
        proxy = plane.kubeconfig_for(manifests.PROXY)
        nodes_programs = tools.directory(tools.NODE)
        starting = (
            node(each, numbers, directory / f"n{each}", nodes_programs, store, _identity(plane, proxy, each))
            for each in numbers
        )
        running = await asyncio.gather(*map(stack.enter_async_context, starting))
        for each in running:
            await until(admin, NODES, "", each.name, lambda obj: condition(obj, "Ready") == "True", _PATIENCE)
        told(f"{nodes} nodes are Ready")
        beside = await stack.enter_async_context(_proxy_of_the_plane(directory, proxy, logs))
        way = gateway.gateway(network.PLANE, plane.kubeconfig_for("contour", ["system:masters"]), logs)
        opened, _ = await asyncio.gather(
            stack.enter_async_context(way),
            stack.enter_async_context(_leader_worker_sets(plane, logs)),
        )
        told("the gateway and LeaderWorkerSet are there")
        for write in manifests.dns():
            await admin.send(write)
        await until(
            admin,
            DEPLOYMENTS,
            manifests.SYSTEM,
            manifests.DNS,
            lambda obj: condition(obj, "Available") == "True",
            _PATIENCE,
        )
        told("pods have a DNS")
        yield Cluster(plane, admin, running, opened, beside, logs)


async def _install(admin: Client) -> None:
    await define(admin, [lws_crd.manifest()], "models are served with it")
    await contour.install(admin)
    for write in manifests.rights():
        await admin.send(write)


def _identity(plane: ControlPlane, proxy: Path, number: int) -> settings.Identity:
    name = f"n{number}"
    certificate, key = plane.certificate_for(name, network.node_address(number), name)
    kubeconfig = plane.kubeconfig_for(f"system:node:{name}", ["system:nodes"])
    return settings.Identity(kubeconfig, proxy, certificate, key, plane.authority)


@asynccontextmanager
async def _proxy_of_the_plane(directory: Path, kubeconfig: Path, logs: Path) -> AsyncIterator[Child]:
    """Where the control plane is there is a kube-proxy too: the API server reaches webhooks by their Services."""
    file = directory / "kube-proxy.yaml"
    file.write_text(settings.kube_proxy("plane", network.PLANE, kubeconfig))
    async with daemon(tools.directory(tools.NODE) / "kube-proxy", f"--config={file}", logs=logs) as running:
        yield running


@asynccontextmanager
async def _leader_worker_sets(plane: ControlPlane, logs: Path) -> AsyncIterator[None]:
    """LeaderWorkerSet's controllers and webhooks, as the sandbox plays them."""
    left_out = [argument for each in _PLAYED_NO_MORE for argument in ("--without", each.name)]
    certificates = map(str, webhook_certificates(logs))
    arguments = (str(plane.admin), "--webhooks", *certificates, "--nodes", "0", *left_out)
    async with child("lws-sandbox", "-m", "tests.e2e.serve", *arguments, logs=logs) as served:
        await served.told("ready", lambda _: None, _PATIENCE)
        yield
