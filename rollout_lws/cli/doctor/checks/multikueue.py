"""Groups that MultiKueue dispatches to a worker cluster: their quota and cluster, as the manager cluster knows them."""

from __future__ import annotations

from dataclasses import replace

from rollout_lws.cli.doctor.case import QUEUES, Case
from rollout_lws.cli.doctor.links import Link, Name, State, ok
from rollout_lws.objects.kueue import PODS_READY_TIMEOUT, Workload
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.workload.dispatch import Dispatch
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import groups
from rollout_lws.workload.queueing import workload_of

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


def admission(case: Case, side: Facts, elsewhere: Dispatch) -> Link:
    """Whether Kueue admits the groups. It does not claim readiness, which only the worker cluster knows."""
    about = f"LeaderWorkerSet/{side.name}"
    unread = case.unread(Name.SCHEDULING, about, *QUEUES)
    if unread is not None:
        return unread
    known = groups(side)
    workloads = [workload_of(side, each) for each in known]
    admitted = sum(
        each is not None and each.is_true("Admitted") and bool(each.status.cluster_name) for each in workloads
    )
    text = (
        f"{admitted} of {len(known)} groups have quota here and in {elsewhere.where}; whether their pods are ready is"
        " known there only"
    )
    listed = case.kubectl("get workloads.kueue.x-k8s.io")
    evicted = [each.metadata.name for each in workloads if each is not None and _evictions(each)]
    if evicted:
        found = f"{text}; evicted for {PODS_READY_TIMEOUT}: Workload {', '.join(evicted)}. {_BLIND}"
        by_itself = "each time, the copy in the worker cluster is recreated"
        return Link(Name.SCHEDULING, State.BROKEN, about, found, by_itself, (listed,))
    if admitted == len(known):
        return ok(Name.SCHEDULING, about, text)
    return Link(Name.SCHEDULING, State.WAITING, about, text, "it goes on when Kueue lets it", (listed,))


def _evictions(workload: Workload | None) -> int:
    return workload.evictions(PODS_READY_TIMEOUT) if workload is not None else 0
