"""Groups that MultiKueue dispatches to a worker cluster: their quota and cluster, as the manager cluster knows them."""

from __future__ import annotations

from dataclasses import replace

from rollout_lws.cli.doctor.case import QUEUES, Case
from rollout_lws.cli.doctor.links import Link, Name, State
from rollout_lws.objects.kueue import PODS_READY_TIMEOUT, Workload
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.workload.dispatch import Dispatch
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, groups
from rollout_lws.workload.queueing import Kind, queueing, workload_of

_BLIND = (
    "Kueue on this manager evicts groups whose pods it cannot see: raise waitForPodsReady.timeout or set"
    " DisableWaitForPodsReady"
)


def refused(case: Case, side: Facts, found: Link) -> Link:
    """The link of an LWS that is not released for that reason, with what happens to it without intervention."""
    evictions = max((_evictions(workload_of(side, each)) for each in groups(side)), default=0)
    listed = case.kubectl("get workloads.kueue.x-k8s.io")
    described = case.kubectl(f"describe {LEADER_WORKER_SETS} {side.name}")
    return replace(found, by_itself=_BLIND if evictions else found.by_itself, next=(listed, described))


def admission(case: Case, side: Facts, elsewhere: Dispatch) -> tuple[Link, ...]:
    """One link per group. None claims readiness, which only the worker cluster knows."""
    unread = case.unread(Name.SCHEDULING, f"LeaderWorkerSet/{side.name}", *QUEUES)
    if unread is not None:
        return (unread,)
    return tuple(_of_group(case, side, elsewhere, each) for each in groups(side))


def _of_group(case: Case, side: Facts, elsewhere: Dispatch, group: Group) -> Link:
    workload = workload_of(side, group)
    evictions = _evictions(workload)
    admitted = workload is not None and workload.is_true("Admitted") and bool(workload.status.cluster_name)
    state = State.BROKEN if evictions else State.OK if admitted else State.WAITING
    place = f"cluster {workload.status.cluster_name}" if workload and workload.status.cluster_name else elsewhere.where
    words = [_quota(case, side, group, workload), f"whether its pods are ready is known in {place} only"]
    if evictions:
        times = f"{evictions} time{'s' if evictions > 1 else ''}"
        words.append(f"evicted {times} for {PODS_READY_TIMEOUT}. {_BLIND}")
    about = f"Workload/{workload.metadata.name}" if workload else f"Pod/{group.leader.metadata.name}"
    if state is State.OK:
        return Link(Name.SCHEDULING, state, about, "; ".join(words))
    return Link(
        Name.SCHEDULING,
        state,
        about,
        "; ".join(words),
        case.users(side),
        "each time, its copy in the worker cluster is recreated" if evictions else "it goes on when Kueue lets it",
        (case.kubectl(f"describe workloads.kueue.x-k8s.io {workload.metadata.name}"),) if workload else (),
    )


def _evictions(workload: Workload | None) -> int:
    return workload.evictions(PODS_READY_TIMEOUT) if workload is not None else 0


def _quota(case: Case, side: Facts, group: Group, workload: Workload | None) -> str:
    """Whether the group has quota in the manager and in the worker cluster; if not, Kueue's message."""
    called = f"group {group.index} of {side.name}"
    # Evictions are reported separately: they say nothing about a group whose pods run elsewhere.
    known = {workload.metadata.uid: _evictions(workload)} if workload is not None else {}
    said = queueing(side, group, case.now, known)
    if said is not None and said.kind is not Kind.LOADS:
        return said.message
    if workload is None or not workload.is_true("QuotaReserved"):
        return f"{called} has no quota here yet"
    if not workload.status.cluster_name:
        return f"{called} has quota here, and no cluster yet"
    if workload.is_true("Admitted"):
        return f"{called} has quota here and in cluster {workload.status.cluster_name}"
    return f"{called} has quota here, and waits for that in cluster {workload.status.cluster_name}"
