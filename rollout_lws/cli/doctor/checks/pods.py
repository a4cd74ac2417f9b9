"""Whether the pods of one LWS are scheduled, and their containers run."""

from __future__ import annotations

from collections import Counter

from rollout_lws.cli.doctor.case import QUEUES, Case
from rollout_lws.cli.doctor.checks.group_troubles import QUEUED, Found, more, waits
from rollout_lws.cli.doctor.links import Link, Name, State, ok
from rollout_lws.objects.resources import LWS_NAME
from rollout_lws.workload.facts import Facts as Workload
from rollout_lws.workload.trouble import KUEUE_REASONS

# Scheduling


def scheduling(case: Case, side: Workload, about: str, found: list[Found]) -> Link:
    if not found:
        return ok(Name.SCHEDULING, about, "no pod waits for a node")
    found = sorted(found, key=lambda each: waits(case, each))
    worst = found[0]
    if worst.trouble.reason == "SchedulingGated" and (unread := case.unread(Name.SCHEDULING, about, *QUEUES)):
        return unread
    name = worst.pod.metadata.name if worst.pod is not None else side.name
    describe = case.kubectl(f"describe pod {name}")
    of_kueue = worst.trouble.reason in KUEUE_REASONS
    return Link(
        Name.SCHEDULING,
        State.WAITING if waits(case, worst) else State.BROKEN,
        f"Pod/{name}",
        worst.trouble.message + more(found),
        "it goes on when the queue lets it"
        if worst.trouble.reason in QUEUED
        else "the pod is placed as soon as what it waits for is there",
        (case.kubectl("get workloads.kueue.x-k8s.io"), describe) if of_kueue else (describe, "kubectl describe nodes"),
    )


# Containers


def containers(case: Case, side: Workload, about: str, found: list[Found]) -> Link:
    complained = case.complained(Name.CONTAINERS, about) if side is _rebuilt(case) else None
    if not found and complained is None:
        return ok(Name.CONTAINERS, about, "no container fails")
    by_itself = (
        "the kubelet restarts it, and LeaderWorkerSet recreates a group whose pod fails; that does not make this"
        " version ready"
    )
    if not found and complained is not None:
        steps = (case.itself("abort"), case.kubectl(f"get pods -l {LWS_NAME}={side.name}"))
        return Link(Name.CONTAINERS, State.BROKEN, about, complained.found, by_itself, steps)
    worst = found[0]
    name = worst.pod.metadata.name if worst.pod is not None else side.name
    return Link(
        Name.CONTAINERS,
        State.BROKEN,
        f"Pod/{name}",
        worst.trouble.message + more(found),
        by_itself,
        (*_ways_to_run(case, worst), *((case.itself("abort"),) if case.is_on else ())),
    )


def _rebuilt(case: Case) -> Workload | None:
    """The LWS whose groups are recreated repeatedly, when the rules complain of that."""
    count = Counter(each.workload for each in case.d.status.restarts)
    return max(case.facts.sides, key=lambda side: count[side.name], default=None)


def _ways_to_run(case: Case, found: Found) -> tuple[str, ...]:
    if found.pod is None:
        return ()
    name = found.pod.metadata.name
    describe = case.kubectl(f"describe pod {name}")
    status = found.pod.status
    for each in (*status.init_container_statuses, *status.container_statuses):
        before = " --previous" if each.last_state.terminated is not None and each.state.waiting is not None else ""
        if each.state.terminated is not None or before:
            return (case.kubectl(f"logs {name} -c {each.name}{before}"), describe)
    return (describe,)
