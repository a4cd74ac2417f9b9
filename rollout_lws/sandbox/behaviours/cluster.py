"""The cluster around the API server: wires all controllers, LWS's webhooks and the nodes together."""

from __future__ import annotations

from dataclasses import dataclass, field

from rollout_lws.objects.resources import NODES
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.autoscaler import Autoscalers
from rollout_lws.sandbox.behaviours.deployments import Deployments, ReplicaSets
from rollout_lws.sandbox.behaviours.disaggregated_sets import DisaggregatedSets
from rollout_lws.sandbox.behaviours.faults import Timing
from rollout_lws.sandbox.behaviours.garbage_collector import GarbageCollector
from rollout_lws.sandbox.behaviours.jobs import Jobs
from rollout_lws.sandbox.behaviours.lws import admission, pod_admission
from rollout_lws.sandbox.behaviours.lws.controller import LeaderWorkerSets
from rollout_lws.sandbox.behaviours.lws.pods import GroupPods
from rollout_lws.sandbox.behaviours.lws.restarts import KeptPods
from rollout_lws.sandbox.behaviours.network.endpoint_slices import EndpointSlices
from rollout_lws.sandbox.behaviours.network.gateway import Gateways
from rollout_lws.sandbox.behaviours.nodes import scheduler
from rollout_lws.sandbox.behaviours.nodes.kubelet import Kubelet
from rollout_lws.sandbox.behaviours.nodes.scheduler import Scheduler
from rollout_lws.sandbox.behaviours.nodes.volumes import VolumeBinder
from rollout_lws.sandbox.behaviours.runner import Runner
from rollout_lws.sandbox.behaviours.statefulset import StatefulSets, Variant


@dataclass(frozen=True, slots=True)
class Options:
    """``nodes`` with ``gpus_per_node`` accelerators each, the pods' ``timing``, the StatefulSet controller's variant,
    the seconds until a Gateway reports a route as accepted, and the seconds until an autoscaler acts on its metric.
    """

    nodes: int = 8
    gpus_per_node: int = 8
    timing: Timing = field(default_factory=Timing)
    stateful_sets: Variant = "legacy"
    gateway_lag: float = 0.2
    autoscaler_lag: float = 15.0


class Cluster:
    """A Kubernetes cluster with LeaderWorkerSet on ``server``, which must already have the CRDs: v0.10, or 1.0
    where its definition is the installed one. Without that of DisaggregatedSets there are none.

    ``start`` needs a running event loop; ``stop`` ends all activity and raises the errors of the behaviours, if any.
    """

    def __init__(self, server: ApiServer, options: Options | None = None) -> None:
        self.server = server
        self.options = options or Options()
        self.runner = Runner(
            server,
            (
                GarbageCollector(),
                Scheduler(self.options.timing),
                Kubelet(self.options.timing),
                StatefulSets(self.options.stateful_sets),
                Deployments(),
                ReplicaSets(),
                Jobs(),
                LeaderWorkerSets(),
                GroupPods(),
                KeptPods(),
                DisaggregatedSets(),
                EndpointSlices(),
                Gateways(self.options.gateway_lag),
                VolumeBinder(),
                Autoscalers(self.options.autoscaler_lag),
            ),
        )

    def start(self) -> None:
        self.server.admission += [admission.admit, pod_admission.admit]
        self.runner.start()
        for number in range(self.options.nodes):
            body = scheduler.node(number, self.options.gpus_per_node)
            name = body["metadata"]["name"]
            self.server.create(NODES, body)
            status = scheduler.ready_status(body, self.server.clock())
            self.server.patch(NODES, "", name, {"status": status}, subresource="status")

    def stop(self) -> None:
        for hook in (admission.admit, pod_admission.admit):
            self.server.admission.remove(hook)
        self.runner.stop()
