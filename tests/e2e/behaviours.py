"""The parts of a cluster that no Go module brings, or that would need machines: LeaderWorkerSet, kubelets, Gateways.

They are the sandbox's, run as clients of an API server beside the real StatefulSet controller, garbage collector and
EndpointSlice controller.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from rollout_lws.api import rollouts
from rollout_lws.errors import ApiError
from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    GRPC_ROUTES,
    HORIZONTAL_POD_AUTOSCALERS,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    LEADER_WORKER_SETS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SERVICES,
    STATEFUL_SETS,
)
from rollout_lws.objects.writes import Create, Patch
from rollout_lws.sandbox.api_resources import GATEWAYS
from rollout_lws.sandbox.behaviours.autoscaler import Autoscalers
from rollout_lws.sandbox.behaviours.base import Behaviour
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.lws.controller import LeaderWorkerSets
from rollout_lws.sandbox.behaviours.lws.pods import GroupPods
from rollout_lws.sandbox.behaviours.lws.restarts import KeptPods
from rollout_lws.sandbox.behaviours.network.gateway import Gateways
from rollout_lws.sandbox.behaviours.nodes import scheduler
from rollout_lws.sandbox.behaviours.nodes.kubelet import Kubelet
from rollout_lws.sandbox.behaviours.nodes.scheduler import Scheduler
from rollout_lws.sandbox.behaviours.nodes.volumes import VolumeBinder
from tests.e2e.remote import RemoteRunner

#: All that any of them looks at.
RESOURCES = (
    NAMESPACES,
    NODES,
    PODS,
    SERVICES,
    PERSISTENT_VOLUME_CLAIMS,
    STATEFUL_SETS,
    CONTROLLER_REVISIONS,
    LEADER_WORKER_SETS,
    HORIZONTAL_POD_AUTOSCALERS,
    GATEWAYS,
    HTTP_ROUTES,
    GRPC_ROUTES,
    INFERENCE_POOLS,
    rollouts(),
)
#: There is a kubelet on every node, and each looks after its own pods.
_KUBELETS = 8


def everything(options: Options) -> tuple[Behaviour, ...]:
    """Of machines (scheduler, kubelets, storage) and of controllers that a cluster may have real ones of."""
    machines = Scheduler(options.timing), Kubelet(options.timing), VolumeBinder()
    gateways, autoscalers = Gateways(options.gateway_lag), Autoscalers(options.autoscaler_lag)
    return (*machines, LeaderWorkerSets(), GroupPods(), KeptPods(), gateways, autoscalers)


#: What each of them is called.
NAMES = tuple(each.name for each in everything(Options()))


@asynccontextmanager
async def running(
    client: Client, options: Options | None = None, behaviours: Sequence[Behaviour] | None = None
) -> AsyncIterator[RemoteRunner]:
    """``behaviours`` (all by default) and as many nodes as ``options`` say (0 where there are real ones), from here to
    the end of the block, which raises what went wrong inside. StatefulSets are the real controller's, of whatever
    variant.
    """
    options = options or Options()
    if behaviours is None:
        behaviours = everything(options)
    runner = RemoteRunner(client, behaviours, RESOURCES, {Kubelet.name: _KUBELETS})
    async with runner.running():
        await asyncio.gather(*(_register(client, number, options.gpus_per_node) for number in range(options.nodes)))
        yield runner


async def _register(client: Client, number: int, gpus: int) -> None:
    """One node, as its kubelet would; one that is there already is taken over."""
    body = scheduler.node(number, gpus)
    try:
        await client.send(Create(NODES, body, "a kubelet registers its node"))
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
    status = scheduler.ready_status(body, time.time())
    name = body["metadata"]["name"]
    await client.send(Patch(NODES, "", name, {"status": status}, "the kubelet is ready", subresource="status"))
