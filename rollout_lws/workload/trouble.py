"""Why a group is not ready, in the kubelet's or scheduler's own words, worst first.

With LWS's default restart policy a crashing group is deleted and made anew before it shows CrashLoopBackOff for long,
so what a pod said last is worth little alone: churn of leader UIDs is counted elsewhere (``status.restarts``).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from rollout_lws.objects.workloads import ContainerStatus, Pod
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import SIZE_ANNOTATION, Group, groups
from rollout_lws.workload.revisions import observed

#: Waiting reasons of a container that is simply on its way.
_NORMAL_WAITS = frozenset({"", "ContainerCreating", "PodInitializing"})

#: Reasons that mean "no room", not "bad version".
CAPACITY_REASONS = frozenset({"Unschedulable"})
QUOTA_REASONS = frozenset({"SchedulingGated"})

#: Longest message: with the sentence around it, it must fit into a status field.
TEXT_LIMIT = 1024


@dataclass(frozen=True, slots=True)
class Trouble:
    """One group's worst problem; ``severity`` orders them, higher is worse."""

    workload: str
    group: str
    reason: str
    message: str
    severity: int


def troubles(facts: Facts, revision: str, now: datetime, minimum: float = 0) -> tuple[Trouble, ...]:
    """The groups of ``revision`` that are not ready, or not for ``minimum`` seconds yet, worst first."""
    found = [
        _trouble(facts, group, minimum)
        for group in groups(facts)
        if group.revision == revision and not group.ready(now, minimum)
    ]
    name = facts.lws.metadata.name
    if not observed(facts):
        found.append(
            Trouble(
                name, "", "NotObserved", f"LeaderWorkerSet {name}: its controller has not acted on the last change", 1
            )
        )
    return tuple(sorted(found, key=lambda trouble: -trouble.severity))


def _trouble(facts: Facts, group: Group, minimum: float) -> Trouble:
    name = facts.lws.metadata.name
    if group.ready_since is not None:
        message = f"group {group.index} is ready since {group.ready_since:%H:%M:%S} UTC and counts after {minimum:g} s"
        return Trouble(name, group.index, "WarmingUp", message, 0)
    pods = [pod for pod in facts.pods if pod.group_index == group.index and not pod.is_leader]
    worst = max((_pod_trouble(pod) for pod in [group.leader, *pods]), key=lambda found: found[0])
    severity, reason, message = worst
    if severity <= 1 and group.leader.ready_since is not None:
        size = int(group.leader.metadata.annotations.get(SIZE_ANNOTATION, "1") or "1")
        if group.workers is None and size > 1:
            severity, reason = 3, "NoWorkers"
            message = f"pod {group.leader.metadata.name} (leader) is ready, but its worker StatefulSet does not exist"
        elif group.workers is not None and size > 1 and group.workers.spec.replicas != size - 1:
            severity, reason = 3, "WrongSize"
            message = (
                f"group {group.index} was made with {group.workers.spec.replicas} workers instead of {size - 1}: delete"
                f" pod {group.leader.metadata.name} to have it made anew"
            )
        elif group.workers is not None and size > 1:
            ready = group.workers.status.available_replicas
            severity, reason, message = 1, "WorkersNotReady", f"{ready} of {size - 1} workers are ready"
    if len(message) > TEXT_LIMIT:
        message = message[: TEXT_LIMIT - 1] + "…"
    return Trouble(name, group.index, reason, message, severity)


def _pod_trouble(pod: Pod) -> tuple[int, str, str]:
    role = "leader" if pod.is_leader else "worker"
    called = f"pod {pod.metadata.name} ({role})"
    if pod.metadata.terminating:
        return 1, "Terminating", f"{called} is terminating"
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        told = _container_trouble(called, status)
        if told:
            return told
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return 2, condition.reason, f"{called} is not scheduled: {condition.message or condition.reason}"
    if pod.status.phase == "Failed":
        why = pod.status.message or pod.status.reason
        return 4, pod.status.reason or "Failed", f"{called} failed" + (f": {why}" if why else "")
    if pod.ready_since is not None:
        return 0, "", ""
    restarted = sum(status.restart_count for status in pod.status.container_statuses)
    return (
        1,
        "NotReady",
        # No phase: a group on its way is not worth a status write each time that changes.
        f"{called} is not ready" + (f" after {restarted} restarts" if restarted else ""),
    )


def _container_trouble(called: str, status: ContainerStatus) -> tuple[int, str, str] | None:
    waiting, ended, before = status.state.waiting, status.state.terminated, status.last_state.terminated
    if waiting is not None and waiting.reason not in _NORMAL_WAITS:
        text = f"{called} container {status.name}: {waiting.reason}"
        if before is not None:
            text += f"; it ended last with {before.reason} (exit {before.exit_code})"
        return 4, waiting.reason, f"{text}: {waiting.message}" if waiting.message else text
    if ended is not None and ended.exit_code != 0:
        reason = ended.reason or "Error"
        return 4, reason, f"{called} container {status.name}: {reason} (exit {ended.exit_code})"
    return None
