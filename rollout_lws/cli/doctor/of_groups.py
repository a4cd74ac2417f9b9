"""Groups and pods of one LWS: whether they are made, have a node, run, and are ready."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rollout_lws.cli.doctor.case import Case
from rollout_lws.cli.doctor.facts import changed_at
from rollout_lws.cli.doctor.links import Link, Name, State, ok
from rollout_lws.cli.doctor.strays import Stray, strays
from rollout_lws.objects.resources import LWS_NAME, PODS, STATEFUL_SETS
from rollout_lws.objects.workloads import Pod
from rollout_lws.rollout.silence import SILENCE_SECONDS
from rollout_lws.workload.facts import Facts as Workload
from rollout_lws.workload.groups import Group, groups
from rollout_lws.workload.pod_words import name_of, pod_trouble, pods_of
from rollout_lws.workload.template import version_of
from rollout_lws.workload.trouble import CAPACITY_REASONS, QUOTA_REASONS, Trouble, troubles

#: Troubles of groups that are not made as a whole, and of those that are there and just not ready; all that is neither,
#: nor a wait for a node, is what the kubelet says of a container or a pod.
_UNMADE = frozenset({"FailedCreate", "QuotaExceeded", "NoWorkers", "WrongSize"})
_UNREADY = frozenset({"NotReady", "WarmingUp", "WorkersNotReady", "Terminating"})
_UNPLACED = (CAPACITY_REASONS | QUOTA_REASONS | {"SchedulerError", "GroupLost", "Deactivated", "Rejected"}) - _UNMADE
#: Waits that end without anybody: a queue has them in its order.
_QUEUED = frozenset({"WaitingForWorkload", "WaitingForQuota", "WaitingForAdmissionChecks", "EvictedByKueue"})
#: Seconds after the end of its grace period in which a pod that a kubelet ends is gone.
_GONE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Found:
    """What is wrong with one group, and the pod of it that shows it."""

    trouble: Trouble
    group: Group | None
    pod: Pod | None


def links(case: Case, side: Workload) -> tuple[Link, ...]:
    """The four links of one LWS, in their order."""
    about = f"LeaderWorkerSet/{side.lws.metadata.name}"
    unread = case.unread(Name.GROUPS, about, PODS, STATEFUL_SETS)
    if unread is not None:
        return (unread,)
    found = _found(case, side)
    return (
        _groups(case, side, about, [each for each in found if each.trouble.reason in _UNMADE]),
        _scheduling(case, side, about, [each for each in found if each.trouble.reason in _UNPLACED]),
        _containers(case, side, about, [each for each in found if _is_of_containers(each.trouble)]),
        _readiness(case, side, about, [each for each in found if each.trouble.reason in _UNREADY]),
    )


def _is_of_containers(trouble: Trouble) -> bool:
    return trouble.reason not in _UNMADE | _UNPLACED | _UNREADY


def _found(case: Case, side: Workload) -> list[Found]:
    """The trouble of each group, whatever its version, worst first."""
    known = groups(side)
    revisions = {each.revision for each in known} or {""}
    every = {each for revision in revisions for each in troubles(side, revision, case.now, case.d.minimum)}
    found = []
    for trouble in sorted(every, key=lambda each: (-each.severity, each.group)):
        group = next((each for each in known if each.index == trouble.group), None)
        if trouble.group:
            found.append(Found(trouble, group, _worst_pod(side, group) if group is not None else None))
    return found


def _worst_pod(side: Workload, group: Group) -> Pod:
    return max(pods_of(side, group), key=lambda pod: pod_trouble(pod)[0])


def _more(found: Iterable[Found]) -> str:
    others = [each.trouble.group for each in found][1:]
    return (
        f" (and {len(others)} more group{'s' if len(others) > 1 else ''}: {', '.join(others[:10])})" if others else ""
    )


# Made


def _groups(case: Case, side: Workload, about: str, found: list[Found]) -> Link:
    name = side.lws.metadata.name
    missed = _strays(case, side)
    if missed:
        return _stray(case, side, missed)
    if found:
        worst = found[0].trouble
        maker = side.leader_set if found[0].group is None else found[0].group.workers
        made_by = maker.metadata.name if maker is not None else name
        steps = [case.kubectl(f"describe statefulset {made_by}")]
        if worst.reason == "QuotaExceeded":
            steps.insert(0, case.kubectl("describe resourcequota"))
        if worst.reason in ("NoWorkers", "WrongSize"):
            steps = ["kubectl get pods -n lws-system", case.kubectl(f"describe leaderworkerset {name}")]
        at = f"StatefulSet/{made_by}" if maker is not None else about
        if worst.reason in ("NoWorkers", "WrongSize") and found[0].group is not None:
            at = f"Pod/{found[0].group.leader.metadata.name}"
        by_itself = "it is tried again and again, and the group comes when nothing refuses it any more"
        return Link(
            Name.GROUPS, State.BROKEN, at, worst.message + _more(found), case.users(side), by_itself, tuple(steps)
        )
    complained = case.complained(Name.GROUPS, about, (case.kubectl(f"scale leaderworkerset {name} --replicas=1"),))
    if complained is not None and side is case.facts.observation.stable:
        return complained
    return _missing(case, side, about)


def _missing(case: Case, side: Workload, about: str) -> Link:
    name, asked = side.lws.metadata.name, side.lws.spec.replicas
    there = {each.ordinal for each in groups(side)}
    missing = [str(each) for each in range(asked) if each not in there]
    made = f"{asked - len(missing)} of {asked} groups are made"
    if not missing or side.lws.metadata.terminating:
        return ok(Name.GROUPS, about, made)
    if side.leader_set is None:
        by_itself = "they come when the leader StatefulSet is there"
        return Link(Name.GROUPS, State.WAITING, about, made, case.users(side), by_itself)
    since = changed_at(case.facts.workloads.get(name, {}))
    waits = since is not None and (case.now - since).total_seconds() < SILENCE_SECONDS
    pods = f"pod {name}-{missing[0]}" + (f" and {len(missing) - 1} more" if len(missing) > 1 else "")
    return Link(
        Name.GROUPS,
        State.WAITING if waits else State.BROKEN,
        f"StatefulSet/{name}",
        f"{made}: {pods} is missing, and no Event says why",
        case.users(side),
        "they come when the StatefulSet controller acts: is kube-controller-manager running?",
        (case.kubectl(f"describe statefulset {name}"), case.kubectl("get events --field-selector reason=FailedCreate")),
    )


def _strays(case: Case, side: Workload) -> tuple[Stray, ...]:
    known = {each.metadata.uid: each for each in (*side.leaders, *side.pods)}
    return strays(known.values(), side.leaders, case.facts.sets.get(side.lws.metadata.name, ()))


def _stray(case: Case, side: Workload, found: Sequence[Stray]) -> Link:
    one = next((each for each in found if each.is_missed(case.now)), found[0])
    owner = f"{'StatefulSet' if one.resource == PODS else 'Pod'} {one.owner}"
    kept = "cannot make its own" if one.resource == PODS else "cannot have its workers"
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    missed = one.is_missed(case.now)
    return Link(
        Name.GROUPS,
        State.BROKEN if missed else State.WAITING,
        f"{one.kind}/{one.name}",
        f"{one.kind} {one.name} is left over{more}: it belongs to a {owner} that is gone (UID {one.owner_uid}), and the"
        f" one that has taken its name {kept}",
        case.users(side),
        "nothing: the garbage collector has missed it, and looks again when kube-controller-manager restarts"
        if missed
        else "the garbage collector deletes it, mostly within seconds",
        tuple(case.kubectl(f"delete {each.kind.lower()} {each.name}") for each in found[:5]),
    )


# On a node


def _scheduling(case: Case, side: Workload, about: str, found: list[Found]) -> Link:
    if not found:
        return ok(Name.SCHEDULING, about, "no pod waits for a node")
    worst = found[0]
    name = worst.pod.metadata.name if worst.pod is not None else side.lws.metadata.name
    waits = worst.trouble.reason in _QUEUED
    return Link(
        Name.SCHEDULING,
        State.WAITING if waits else State.BROKEN,
        f"Pod/{name}",
        worst.trouble.message + _more(found),
        case.users(side),
        "it goes on when the queue lets it" if waits else "the pod is placed as soon as what it waits for is there",
        _ways_to_a_node(case, worst.trouble, name),
    )


def _ways_to_a_node(case: Case, trouble: Trouble, pod: str) -> tuple[str, ...]:
    """Where what is missing can be looked at: the scheduler's words say what that is."""
    said, describe = trouble.message.lower(), case.kubectl(f"describe pod {pod}")
    if "kueue" in said:
        return (case.kubectl("get workloads.kueue.x-k8s.io"), describe)
    if "taint" in said:
        columns = "NAME:.metadata.name,TAINTS:.spec.taints[*].key"
        return (f"kubectl get nodes -o custom-columns={columns}", describe)
    if "persistentvolumeclaim" in said:
        return (case.kubectl("get persistentvolumeclaims"), describe)
    if "insufficient" in said or "unschedulable" in said:
        return ("kubectl describe nodes", describe)
    return (describe,)


# Running


def _containers(case: Case, side: Workload, about: str, found: list[Found]) -> Link:
    complained = case.complained(Name.CONTAINERS, about) if side is _rebuilt(case) else None
    if not found and complained is None:
        return ok(Name.CONTAINERS, about, "no container fails")
    by_itself = (
        "the kubelet tries it again, and LeaderWorkerSet makes a group anew whose pod fails; this version does not get"
        " ready by that"
    )
    if not found and complained is not None:
        steps = (case.itself("abort"), case.kubectl(f"get pods -l {LWS_NAME}={side.lws.metadata.name}"))
        return Link(Name.CONTAINERS, State.BROKEN, about, complained.found, case.users(side), by_itself, steps)
    worst = found[0]
    name = worst.pod.metadata.name if worst.pod is not None else side.lws.metadata.name
    return Link(
        Name.CONTAINERS,
        State.BROKEN,
        f"Pod/{name}",
        worst.trouble.message + _more(found),
        case.users(side),
        by_itself,
        _ways_to_run(case, worst),
    )


def _rebuilt(case: Case) -> Workload | None:
    """The LWS whose groups are rebuilt again and again, where the rules complain of that."""
    count = Counter(each.workload for each in case.d.status.restarts)
    return max(case.facts.sides, key=lambda side: count[side.lws.metadata.name], default=None)


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


# Ready


def _readiness(case: Case, side: Workload, about: str, found: list[Found]) -> Link:
    name, asked = side.lws.metadata.name, side.lws.spec.replicas
    stuck = _stuck(case, side)
    if stuck is not None:
        return _ending(case, side, stuck)
    if not found:
        ready = sum(each.ready(case.now, case.d.minimum) for each in groups(side))
        text = f"{ready} of {asked} groups are ready"
        if ready >= asked or side.lws.metadata.terminating:
            return ok(Name.READINESS, about, text)
        return Link(Name.READINESS, State.WAITING, about, text, case.users(side), "they are ready when they are made")
    worst = next((each for each in found if _is_late(case, side, each)), found[0])
    pod = worst.pod.metadata.name if worst.pod is not None else name
    late = _is_late(case, side, worst)
    text = _unready(worst) + (f" for {_age(case, worst):.0f} s" if late else "")
    by_itself = "the group counts as soon as all its pods are ready"
    steps = (case.kubectl(f"logs {pod} --all-containers --tail=50"), case.kubectl(f"describe pod {pod}"))
    return Link(
        Name.READINESS,
        State.BROKEN if late else State.WAITING,
        f"Pod/{pod}",
        text + _more(found),
        case.users(side),
        by_itself,
        steps,
    )


def _stuck(case: Case, side: Workload) -> Pod | None:
    """A pod that is going for longer than its grace period."""
    for pod in sorted(
        {each.metadata.uid: each for each in (*side.leaders, *side.pods)}.values(), key=lambda each: each.metadata.name
    ):
        ends = pod.metadata.deletion_timestamp
        if ends is not None and (case.now - ends).total_seconds() > _GONE_SECONDS:
            return pod
    return None


def _ending(case: Case, side: Workload, pod: Pod) -> Link:
    name = pod.metadata.name
    since = (case.now - (pod.metadata.deletion_timestamp or case.now)).total_seconds()
    return Link(
        Name.READINESS,
        State.BROKEN,
        f"Pod/{name}",
        f"{name_of(pod)} is still terminating, {since:.0f} s after it had to be gone: does its node answer?",
        case.users(side),
        "it goes when its kubelet says so; where the node is gone for good, never",
        (
            case.kubectl(f"get pod {name} -o wide"),
            case.kubectl(f"delete pod {name} --force") + "   # only where its node is gone for good",
        ),
    )


def _unready(found: Found) -> str:
    """Of workers that are counted only, the one that is not ready too."""
    said = pod_trouble(found.pod)[2] if found.pod is not None else ""
    if not said or said in found.trouble.message:
        return found.trouble.message
    return f"{found.trouble.message}: {said}"


def _age(case: Case, found: Found) -> float:
    made = found.pod.metadata.creation_timestamp if found.pod is not None else None
    return (case.now - made).total_seconds() if made is not None else 0.0


def _is_late(case: Case, side: Workload, found: Found) -> bool:
    """Whether a group is not ready for longer than loading takes."""
    if found.pod is not None and found.pod.metadata.terminating:
        return False
    if found.trouble.severity > 1:
        return True
    strategy = case.d.o.rollout.spec.strategy
    deadline = strategy.progress_deadline_seconds or version_of(side.lws.spec).progress_deadline_seconds
    return found.trouble.reason != "WarmingUp" and _age(case, found) > deadline
