"""What is said of one pod: by the kubelet of its containers, by the scheduler, and by whoever holds or removes it."""

from __future__ import annotations

from collections.abc import Iterator

from rollout_lws.objects.workloads import ContainerStateTerminated, ContainerStatus, Pod
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group

#: Reasons of groups that are simply on their way.
ON_THE_WAY = frozenset({"NotReady", "WorkersNotReady", "WarmingUp", "Terminating", "NotObserved"})
#: Waiting reasons of a container that is simply on its way.
_NORMAL_WAITS = frozenset({"", "ContainerCreating", "PodInitializing"})
#: Conditions of a pod that is removed for its node's sake, or for another's: taints, drains, preemption, a node that is
#: gone (Kubernetes), an evicted Workload (Kueue).
_DISRUPTIONS = frozenset({"DisruptionTarget", "TerminationTarget"})
#: Reasons of a pod whose node does not answer any more, or is going down.
_LOST = frozenset({"NodeLost", "NodeShutdown", "Shutdown"})


def pod_trouble(pod: Pod) -> tuple[int, str, str]:
    """Severity (higher is worse, 0 for none), reason and the sentence about a pod."""
    called = name_of(pod)
    if pod.metadata.terminating:
        words = _container_words(pod)
        return 1, "Terminating", f"{called} is terminating" + (f"; {words}" if words else "")
    for status in _containers(pod):
        told = _container_trouble(called, status)
        if told:
            return told
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    if gates:
        named = f"scheduling gate{'s' if len(gates) > 1 else ''} {', '.join(gates)}"
        return 2, "SchedulingGated", f"{called} is held by {named}"
    refused = pod.unschedulable
    if refused is not None:
        return 2, refused.reason, f"{called} is not scheduled: {refused.message or refused.reason}"
    if pod.status.phase == "Failed":
        why = pod.status.message or pod.status.reason
        return 4, pod.status.reason or "Failed", f"{called} failed" + (f": {why}" if why else "")
    if pod.ready_since is not None:
        return 0, "", ""
    restarted = sum(status.restart_count for status in pod.status.container_statuses)
    if not restarted:
        # No phase: a group on its way is not worth a status write each time that changes.
        return 1, "NotReady", f"{called} is not ready"
    words = _container_words(pod)
    times = f"{restarted} restart{'s' if restarted > 1 else ''}"
    message = f"{called} is not ready after {times}" + (f"; {words}" if words else "")
    return 2 if words else 1, "NotReady", message


def name_of(pod: Pod) -> str:
    return f"pod {pod.metadata.name} ({'leader' if pod.is_leader else 'worker'})"


def pods_of(facts: Facts, group: Group) -> tuple[Pod, ...]:
    """The leader and the workers of a group, as far as they are known."""
    return (group.leader, *(pod for pod in facts.pods if pod.group_index == group.index and not pod.is_leader))


def last_words(facts: Facts, group: Group) -> str:
    """Pod, container and the kubelet's words of the last failure in a group, "" when nothing in it has failed."""
    for pod in pods_of(facts, group):
        words = _container_words(pod)
        if words:
            return f"{name_of(pod)} {words}"
    return ""


def lost_to_its_node(facts: Facts, group: Group) -> bool:
    """Whether a pod of the group is going, or gone, for a reason that is none of its own."""
    return any(_disrupted(pod) for pod in pods_of(facts, group))


def _disrupted(pod: Pod) -> bool:
    if pod.status.reason in _LOST:
        return True
    return any(each.type in _DISRUPTIONS and each.status == "True" for each in pod.status.conditions)


def _containers(pod: Pod) -> Iterator[ContainerStatus]:
    yield from pod.status.init_container_statuses
    yield from pod.status.container_statuses


def _container_words(pod: Pod) -> str:
    """Container and the kubelet's words of the last failure in a pod."""
    for status in _containers(pod):
        told = _container_trouble("", status)
        # What ends with a pod that is deleted has not failed.
        if told and not (pod.metadata.terminating and status.state.terminated):
            return told[2].strip()
    for status in _containers(pod):
        ended = status.last_state.terminated
        if ended is not None and ended.exit_code != 0:
            return f"container {status.name} ended last with {_ending(ended)}"
    return ""


def _ending(ended: ContainerStateTerminated) -> str:
    text = f"{ended.reason or 'Error'} (exit {ended.exit_code})"
    return f"{text}: {ended.message.strip()}" if ended.message.strip() else text


def _container_trouble(called: str, status: ContainerStatus) -> tuple[int, str, str] | None:
    waiting, ended, before = status.state.waiting, status.state.terminated, status.last_state.terminated
    if waiting is not None and waiting.reason not in _NORMAL_WAITS:
        text = f"{called} container {status.name}: {waiting.reason}"
        if before is not None:
            text += f"; it ended last with {_ending(before)}"
        return 4, waiting.reason, f"{text}: {waiting.message}" if waiting.message else text
    if ended is not None and ended.exit_code != 0:
        return 4, ended.reason or "Error", f"{called} container {status.name}: {_ending(ended)}"
    return None
