"""The pods of one group: node, containers, what is wrong, and the commands that show more."""

from __future__ import annotations

import shlex
from typing import Any

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.get.caller import Caller
from rollout_lws.cli.releases import target_of, typed, workload_names
from rollout_lws.cli.rollouts import fetch_rollout, items
from rollout_lws.errors import UsageError
from rollout_lws.objects.resources import PODS, Resource
from rollout_lws.objects.workloads import ContainerStatus, Pod
from rollout_lws.workload.pod_words import pod_trouble

Object = dict[str, Any]


def fetch_group(
    transport: Transport, rollouts: Resource, caller: Caller, name: str, workload: str, index: str
) -> Object:
    """The pods of a group of a release as they are now, the leader first. UsageError for a workload of another one."""
    rollout = fetch_rollout(transport, rollouts, name)
    if workload not in workload_names(rollout):
        raise UsageError(f"rollout/{name} has no workload {workload!r}")
    labels = target_of(rollout).labels
    of_workload = f"{labels.workload}={workload}," if labels.workload is not None else ""
    found = [typed(each, Pod) for each in items(transport, PODS, labelSelector=f"{of_workload}{labels.index}={index}")]
    return group_view([pod for pod in found if pod.workload == workload], caller)


def group_view(pods: list[Pod], caller: Caller) -> Object:
    """The same of pods that are known. ``commands`` are about the pod to blame, else about the leader."""
    ordered = sorted(pods, key=lambda pod: (not pod.is_leader, len(pod.metadata.name), pod.metadata.name))
    worst = max(ordered, key=lambda pod: pod_trouble(pod).severity, default=None)
    return {
        "pods": [_pod(each) for each in ordered],
        "commands": _commands(worst, caller) if worst is not None else [],
    }


def _pod(pod: Pod) -> Object:
    told, meta, status = pod_trouble(pod), pod.metadata, pod.status
    return {
        "name": meta.name,
        "leader": pod.is_leader,
        "node": pod.spec.node_name,
        "phase": "Terminating" if meta.terminating else status.phase,
        "ready": pod.is_ready,
        "created": meta.creation_timestamp.isoformat() if meta.creation_timestamp is not None else "",
        "reason": told.reason,
        "detail": told.detail,
        "container": told.container,
        "previous": told.previous,
        "containers": [_container(each) for each in (*status.init_container_statuses, *status.container_statuses)],
    }


def _container(status: ContainerStatus) -> Object:
    """``state`` is the kubelet's reason, or "Running"; ``message`` is its last words, also of the run before."""
    waiting, ended, before = status.state.waiting, status.state.terminated, status.last_state.terminated
    state = waiting.reason or "Waiting" if waiting is not None else "Running"
    message = waiting.message if waiting is not None else ""
    if ended is not None:
        state, message = ended.reason or f"exit {ended.exit_code}", ended.message
    if before is not None:
        last = f"ended last with {before.reason or 'Error'} (exit {before.exit_code})"
        last += f": {before.message.strip()}" if before.message.strip() else ""
        message = f"{message}; {last}" if message else last
    return {
        "name": status.name,
        "ready": status.ready,
        "restarts": status.restart_count,
        "state": state,
        "message": message,
    }


def _commands(pod: Pod, caller: Caller) -> list[str]:
    told, name = pod_trouble(pod), shlex.quote(pod.metadata.name)
    where = "" if "--namespace" in caller.flags else f" -n {shlex.quote(pod.metadata.namespace)}"
    container = f" -c {shlex.quote(told.container)}" if told.container else ""
    before = " -p" if told.previous else ""
    return [caller.kubectl(f"logs {name}{container}{before}{where}"), caller.kubectl(f"describe pod {name}{where}")]
