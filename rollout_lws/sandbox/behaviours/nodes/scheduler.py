"""Nodes with accelerators and the scheduler; pods of a group that fits on no node stay Pending."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rollout_lws.errors import UsageError
from rollout_lws.objects.quantities import exact
from rollout_lws.objects.resources import NODES, PODS
from rollout_lws.objects.writes import Patch, Write
from rollout_lws.sandbox.admission.metadata import timestamp
from rollout_lws.sandbox.behaviours.base import (
    NOTHING,
    Change,
    Key,
    Object,
    Outcome,
    View,
    key_of,
    labels_of,
    terminating,
)
from rollout_lws.sandbox.behaviours.faults import Timing, script_of

ACCELERATOR = "nvidia.com/gpu"


def node(number: int, gpus: int = 8) -> dict[str, Any]:
    """Node ``number`` as its kubelet registers it: ``gpus`` accelerators, 192 CPUs, 2 TiB of memory."""
    name = f"node-{number}"
    capacity = {"cpu": "192", "memory": "2Ti", "ephemeral-storage": "4Ti", "pods": "1000", ACCELERATOR: str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/zone": "sandbox-a",
            },
        },
        "spec": {},
        "status": {"capacity": capacity, "allocatable": capacity, "nodeInfo": {"kubeletVersion": "v1.36.3"}},
    }


def ready_status(registered: Object, now: float) -> dict[str, Any]:
    """The status of a ready node."""
    moment = timestamp(now)
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": moment,
        "lastTransitionTime": moment,
    }
    return {**registered["status"], "conditions": [condition]}


@dataclass(frozen=True, slots=True)
class Free:
    """A node and its unrequested resources, in thousandths of each resource."""

    name: str
    labels: Mapping[str, str]
    amounts: Mapping[str, int]
    schedulable: bool = True


class Scheduler:
    """Reconciles pods without a node, and retries all of them when resources become free.

    It evaluates resource requests, nodeSelector and cordons, but not affinity, taints or preemption.
    """

    name = "scheduler"

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        #: Pods without a node, in their order.
        self._waiting: dict[Key, None] = {}
        self._used: dict[str, Counter[str]] = {}

    def wakes(self, change: Change, view: View) -> Iterable[Key]:  # noqa: ARG002 (the change is enough)
        if change.resource == NODES:
            return tuple(self._waiting)
        if change.resource != PODS:
            return ()
        key = key_of(change.object)
        gained = "" if change.deleted or _ended(change.object) else change.object["spec"].get("nodeName", "")
        had = change.previous["spec"].get("nodeName", "") if change.previous and not _ended(change.previous) else ""
        if gained != had:
            if had:
                self._used.setdefault(had, Counter()).subtract(_requests(change.object))
            if gained:
                self._used.setdefault(gained, Counter()).update(_requests(change.object))
        if change.deleted or terminating(change.object) or change.object["spec"].get("nodeName"):
            self._waiting.pop(key, None)
            return tuple(self._waiting) if had and gained != had else ()
        if change.previous is None or key not in self._waiting:
            self._waiting[key] = None
            return (key,)
        return () if change.previous["spec"] == change.object["spec"] else (key,)

    def decide(self, key: Key, view: View, now: float) -> Outcome:
        pod = view.get(PODS, *key)
        if pod is None or terminating(pod) or pod["spec"].get("nodeName") or pod["spec"].get("schedulingGates"):
            return NOTHING
        refused = script_of(pod, self._timing).failure == "Unschedulable"
        return decide(pod, tuple(map(self._free, view.list(NODES))), refused, now)

    def _free(self, item: Object) -> Free:
        total = _amounts((item.get("status") or {}).get("allocatable"))
        used = self._used.get(item["metadata"]["name"], Counter())
        left = {name: value - used[name] for name, value in total.items()}
        return Free(item["metadata"]["name"], labels_of(item), left, not item["spec"].get("unschedulable"))


def decide(pod: Object, nodes: tuple[Free, ...], refused: bool, now: float) -> Outcome:
    """Bind the pod to the node with the most accelerators, then the fewest pods, or report why it fits on none, as
    always when it is ``refused``.
    """
    try:
        wanted = _requests(pod)
    except UsageError as error:
        return Outcome(_status(pod, _condition("False", now, "Unschedulable", f"resources: {error}")))
    selector = pod["spec"].get("nodeSelector") or {}
    reasons: Counter[str] = Counter()
    fitting: list[Free] = []
    for item in nodes:
        problems = _problems(item, wanted, selector)
        if refused and not problems:
            problems = [f"Insufficient {ACCELERATOR}"]
        reasons.update(problems)
        if not problems:
            fitting.append(item)
    namespace, name = key_of(pod)
    if not fitting:
        detail = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
        message = "no nodes available to schedule pods"
        if detail:
            message = f"0/{len(nodes)} nodes are available: {detail}."
        return Outcome(_status(pod, _condition("False", now, "Unschedulable", message)))
    chosen = max(fitting, key=lambda item: (item.amounts.get(ACCELERATOR, 0), item.amounts.get("pods", 0)))
    binding = Patch(PODS, namespace, name, {"spec": {"nodeName": chosen.name}}, "bind to a node with room")
    return Outcome((binding,))


def _problems(item: Free, wanted: Mapping[str, int], selector: Mapping[str, str]) -> list[str]:
    if not item.schedulable:
        return ["node(s) were unschedulable"]
    if any(item.labels.get(key) != value for key, value in selector.items()):
        return ["node(s) didn't match Pod's node affinity/selector"]
    short = [name for name, amount in wanted.items() if amount > item.amounts.get(name, 0)]
    return ["Too many pods" if name == "pods" else f"Insufficient {name}" for name in short]


def _condition(status: str, now: float, reason: str, message: str) -> dict[str, Any]:
    return {
        "type": "PodScheduled",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": timestamp(now),
    }


def _status(pod: Object, condition: Mapping[str, Any]) -> tuple[Write, ...]:
    conditions = (pod.get("status") or {}).get("conditions") or []
    if any(item["type"] == "PodScheduled" and item.get("message") == condition["message"] for item in conditions):
        return ()
    others = [item for item in conditions if item["type"] != "PodScheduled"]
    namespace, name = key_of(pod)
    body = {"status": {"phase": "Pending", "conditions": [*others, dict(condition)]}}
    return (Patch(PODS, namespace, name, body, "it fits on no node", subresource="status"),)


def _ended(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _requests(pod: Object) -> dict[str, int]:
    """A pod's effective requests: the sum of its containers, or its largest init container if that is more."""
    total: Counter[str] = Counter()
    for container in pod["spec"]["containers"]:
        total.update(_container(container))
    for container in pod["spec"].get("initContainers") or ():
        for name, amount in _container(container).items():
            total[name] = max(total[name], amount)
    return {**total, "pods": 1000}


def _container(container: Mapping[str, Any]) -> dict[str, int]:
    resources = container.get("resources") or {}
    if not resources:
        return {}
    return _amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _amounts(resources: Mapping[str, object] | None) -> dict[str, int]:
    """Amounts of resources in thousandths, so that sums have no rounding errors; UsageError for an invalid one."""
    return {name: thousandths(str(value)) for name, value in (resources or {}).items()}


@lru_cache(maxsize=512)
def thousandths(text: str) -> int:
    """The quantity times 1000, rounded up; UsageError when it is invalid."""
    try:
        number = exact(text) * 1000
    except ValueError as error:
        raise UsageError(f"{error}: write for example 500m, 2 or 16Gi") from None
    return int(number.to_integral_value(rounding="ROUND_CEILING"))
