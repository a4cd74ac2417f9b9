"""Why a pod is not ready, as reported by the kubelet, the scheduler, and controllers that gate or evict it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rollout_lws.objects.released import RECOVER, REPLACEMENT_GATE, labels_among
from rollout_lws.objects.workloads import ContainerStateTerminated, ContainerStatus, Pod
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, worker_pods

#: Reasons of groups that are still starting up normally.
ON_THE_WAY = frozenset({"NotReady", "WorkersNotReady", "WarmingUp", "Terminating", "NotObserved"})
#: Waiting reasons of a container that is still starting up normally.
_NORMAL_WAITS = frozenset({"", "ContainerCreating", "PodInitializing"})
#: Conditions of a pod that is removed because of its node or for another pod: taints, drains, preemption, a lost node
#: (Kubernetes), an evicted Workload (Kueue).
_DISRUPTIONS = frozenset({"DisruptionTarget", "TerminationTarget"})
#: Reasons of a pod whose node is unreachable or shutting down.
_LOST = frozenset({"NodeLost", "NodeShutdown", "Shutdown"})


@dataclass(frozen=True, slots=True)
class PodTrouble:
    """What keeps a pod from being ready. ``severity``: higher is worse, 0 if the pod is ready. ``reason``: one word.
    ``detail``: the rest of a sentence that begins with the pod. ``container`` is the one at fault, "" for none.
    ``previous``: the container has ended before, so its output is in ``kubectl logs --previous``.
    """

    severity: int
    reason: str = ""
    detail: str = ""
    container: str = ""
    previous: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed container; ``text`` names it and has the kubelet's message. ``previous`` as in PodTrouble."""

    pod: str
    container: str
    text: str
    previous: bool = False


def pod_trouble(pod: Pod) -> PodTrouble:
    """The most severe known problem of a pod."""
    if pod.metadata.terminating:
        return _with_failure(1, "Terminating", "is terminating", _failure(pod))
    for status in _containers(pod):
        told = _container_trouble(status)
        if told is not None:
            return told
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    if gates == [REPLACEMENT_GATE]:
        return PodTrouble(1, "NotReady", "waits until the pods of the group that it replaces are gone")
    if gates:
        named = f"scheduling gate{'s' if len(gates) > 1 else ''} {', '.join(gates)}"
        return PodTrouble(2, "SchedulingGated", f"is held by {named}")
    refused = pod.unschedulable
    if refused is not None:
        return PodTrouble(2, refused.reason, f"is not scheduled: {refused.message or refused.reason}")
    if pod.status.phase == "Failed":
        why = pod.status.message or pod.status.reason
        return PodTrouble(4, pod.status.reason or "Failed", "failed" + (f": {why}" if why else ""))
    if pod.ready_since is not None:
        return PodTrouble(0)
    restarted = sum(status.restart_count for status in pod.status.container_statuses)
    if not restarted:
        # The phase is left out: a group that starts up is not worth a status write per phase.
        return PodTrouble(1, "NotReady", "is not ready")
    failure = _failure(pod)
    times = f"{restarted} restart{'s' if restarted > 1 else ''}"
    return _with_failure(2 if failure else 1, "NotReady", f"is not ready after {times}", failure)


def _with_failure(severity: int, reason: str, detail: str, failure: Failure | None) -> PodTrouble:
    if failure is None:
        return PodTrouble(severity, reason, detail)
    return PodTrouble(severity, reason, f"{detail}; {failure.text}", failure.container, failure.previous)


def command_to_recover(group: Group) -> str:
    """What a person types to have a group made again that has used up its restarts."""
    meta = group.leader.metadata
    return f"kubectl annotate pod {meta.name} {RECOVER}=true -n {meta.namespace}"


def name_of(pod: Pod) -> str:
    names = labels_among(pod.metadata.labels)
    role = "" if names is not None and names.leader is None else f" ({'leader' if pod.is_leader else 'worker'})"
    return f"pod {pod.metadata.name}{role}"


def pods_of(facts: Facts, group: Group) -> tuple[Pod, ...]:
    """The known leader and workers of a group."""
    return (group.leader, *worker_pods(facts).get(group.index, ()))


def last_failure(facts: Facts, group: Group) -> Failure | None:
    """The last failure of a container in a group; None when no container has failed."""
    for pod in pods_of(facts, group):
        failure = _failure(pod)
        if failure is not None:
            return replace(failure, text=f"{name_of(pod)} {failure.text}")
    return None


def lost_to_its_node(facts: Facts, group: Group) -> bool:
    """Whether a pod of the group is terminating or gone because of its node, not by its own fault."""
    return any(disrupted(pod) for pod in pods_of(facts, group))


def disrupted(pod: Pod) -> bool:
    """Whether a pod is terminating or gone because of its node, or for another pod."""
    if pod.status.reason in _LOST:
        return True
    return any(each.type in _DISRUPTIONS and each.status == "True" for each in pod.status.conditions)


def _containers(pod: Pod) -> Iterator[ContainerStatus]:
    yield from pod.status.init_container_statuses
    yield from pod.status.container_statuses


def _failure(pod: Pod) -> Failure | None:
    """The last failure of a container in a pod."""
    for status in _containers(pod):
        told = _container_trouble(status)
        # A container that ends with its deleted pod has not failed.
        if told is not None and not (pod.metadata.terminating and status.state.terminated):
            return Failure(pod.metadata.name, status.name, told.detail.strip(), told.previous)
    for status in _containers(pod):
        ended = status.last_state.terminated
        if ended is not None and ended.exit_code != 0:
            text = f"container {status.name} ended last with {_ending(ended)}"
            return Failure(pod.metadata.name, status.name, text, previous=True)
    return None


def _ending(ended: ContainerStateTerminated) -> str:
    text = f"{ended.reason or 'Error'} (exit {ended.exit_code})"
    return f"{text}: {ended.message.strip()}" if ended.message.strip() else text


def _container_trouble(status: ContainerStatus) -> PodTrouble | None:
    waiting, ended, before = status.state.waiting, status.state.terminated, status.last_state.terminated
    if waiting is not None and waiting.reason not in _NORMAL_WAITS:
        text = f"container {status.name}: {waiting.reason}"
        if before is not None:
            text += f"; it ended last with {_ending(before)}"
        told = f"{text}: {waiting.message}" if waiting.message else text
        return PodTrouble(4, waiting.reason, told, status.name, before is not None)
    if ended is not None and ended.exit_code != 0:
        told = f"container {status.name}: {_ending(ended)}"
        return PodTrouble(4, ended.reason or "Error", told, status.name)
    return None
