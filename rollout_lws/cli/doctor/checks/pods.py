"""Whether the pods of one workload are scheduled, run and are ready, and terminating ones go away."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from rollout_lws.cli.doctor.case import QUEUES, Case
from rollout_lws.cli.doctor.checks.group_troubles import QUEUED, Found, more, waits
from rollout_lws.cli.doctor.links import Link, Name, State, ok
from rollout_lws.objects.workloads import Pod
from rollout_lws.workload.facts import Facts as Workload
from rollout_lws.workload.groups import groups
from rollout_lws.workload.pod_words import name_of, pod_trouble, pods_of
from rollout_lws.workload.trouble import EXHAUSTED, KUEUE_REASONS

#: Seconds after its grace period within which the kubelet removes a pod.
_GONE_SECONDS = 60

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
    again = (
        ""
        if case.target.labels.leader is None
        else f", and {case.target.resource.kind} recreates a group whose pod fails"
    )
    by_itself = f"the kubelet restarts it{again}; that does not make this version ready"
    if not found and complained is not None:
        steps = (case.itself("abort"), case.kubectl(f"get pods -l {_selector(side)}"))
        return Link(Name.CONTAINERS, State.BROKEN, about, complained.found, by_itself, steps)
    worst = found[0]
    name = worst.pod.metadata.name if worst.pod is not None else side.name
    if worst.trouble.reason == EXHAUSTED:
        by_itself = f"nothing: {case.target.resource.kind} keeps its pods as they ended, so that they can be looked at"
    return Link(
        Name.CONTAINERS,
        State.BROKEN,
        f"Pod/{name}",
        worst.trouble.message + more(found),
        by_itself,
        (*_ways_to_run(case, worst), *((case.itself("abort"),) if case.is_on else ())),
    )


def _selector(side: Workload) -> str:
    """A label selector for the workload's pods; for those of all of its kind where none has only them."""
    labels = side.workload.labels
    own = {labels.workload: side.name} if labels.workload is not None else side.workload.selector
    return ",".join(f"{key}={value}" for key, value in sorted(own.items())) or labels.mark


def _rebuilt(case: Case) -> Workload | None:
    """The workload whose groups are recreated repeatedly, when the rules complain of that."""
    count = Counter(each.workload for each in case.d.status.restarts)
    return max(case.facts.members, key=lambda side: count[side.name], default=None)


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


# Readiness


def readiness(case: Case, side: Workload, about: str, found: list[Found]) -> Link:
    name, asked = side.name, side.workload.replicas
    stuck = _stuck(case, side)
    if stuck is not None:
        return _ending(case, stuck)
    if not found:
        ready = sum(each.ready(case.now, case.d.minimum) for each in groups(side))
        text = f"{ready} of {asked} groups are ready"
        if ready >= asked or side.workload.metadata.terminating:
            return ok(Name.READINESS, about, text)
        return Link(Name.READINESS, State.WAITING, about, text, "they are ready when they are made")
    worst = next((each for each in found if _is_late(case, side, each)), found[0])
    pod = worst.pod.metadata.name if worst.pod is not None else name
    late = _is_late(case, side, worst)
    text = _unready(worst) + (f" for {_unready_seconds(case, side, worst):.0f} s" if late else "")
    by_itself = "the group counts as soon as all its pods are ready"
    steps = (case.kubectl(f"logs {pod} --all-containers --tail=50"), case.kubectl(f"describe pod {pod}"))
    return Link(
        Name.READINESS,
        State.BROKEN if late else State.WAITING,
        f"Pod/{pod}",
        text + more(found),
        by_itself,
        steps,
    )


def _stuck(case: Case, side: Workload) -> Pod | None:
    """A pod that has been terminating for longer than its grace period, and is not kept by its controller."""
    kept = {each.group_index for each in side.leaders if each.is_kept}
    for pod in sorted(
        {each.metadata.uid: each for each in (*side.leaders, *side.pods)}.values(), key=lambda each: each.metadata.name
    ):
        ends = pod.metadata.deletion_timestamp
        if ends is not None and pod.group_index not in kept and (case.now - ends).total_seconds() > _GONE_SECONDS:
            return pod
    return None


def _ending(case: Case, pod: Pod) -> Link:
    name = pod.metadata.name
    since = (case.now - (pod.metadata.deletion_timestamp or case.now)).total_seconds()
    return Link(
        Name.READINESS,
        State.BROKEN,
        f"Pod/{name}",
        f"{name_of(pod)} is still terminating, {since:.0f} s after it had to be gone: does its node answer?",
        "it goes when its kubelet says so; while the Node object of a node that is gone stays, never",
        (
            case.kubectl(f"get pod {name} -o wide"),
            case.kubectl(f"delete pod {name} --force") + "   # only where its node is gone for good",
        ),
    )


def _unready(found: Found) -> str:
    """The message; when the problem only counts workers, it names one that is not ready too."""
    said = pod_trouble(found.pod).detail if found.pod is not None else ""
    if found.pod is None or not said or found.trouble.pod:
        return found.trouble.message
    return f"{found.trouble.message}: {name_of(found.pod)} {said}"


def _unready_seconds(case: Case, side: Workload, found: Found) -> float:
    """How long the pod has not been ready; when the problem only counts workers, since the last of them changed."""
    counted = found.trouble.reason == "WorkersNotReady" and found.group is not None
    pods = pods_of(side, found.group) if counted and found.group is not None else (found.pod,)
    since = [moment for pod in pods if pod is not None and (moment := _changed(pod)) is not None]
    return (case.now - max(since)).total_seconds() if since else 0.0


def _changed(pod: Pod) -> datetime | None:
    """When the pod's readiness last changed; its creation time when the kubelet has not reported any."""
    said = (each.last_transition_time for each in pod.status.conditions if each.type == "Ready")
    return next(said, None) or pod.metadata.creation_timestamp


def _is_late(case: Case, side: Workload, found: Found) -> bool:
    """Whether a group is not ready for longer than its progress deadline."""
    if found.pod is not None and found.pod.metadata.terminating:
        return False
    if found.trouble.severity > 1:
        return True
    strategy = case.d.o.rollout.spec.strategy
    deadline = strategy.progress_deadline_seconds or side.workload.version.progress_deadline_seconds
    return found.trouble.reason != "WarmingUp" and _unready_seconds(case, side, found) > deadline
