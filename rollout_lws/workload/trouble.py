"""Why a group is not ready, with the messages of the kubelet, the scheduler or a controller, worst first.

With LWS's default restart policy a crashing group is deleted and recreated before it shows CrashLoopBackOff for long,
so a pod's last state alone means little: changes of leader UIDs are counted elsewhere (``status.restarts``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from rollout_lws.objects.kueue import GROUP_INDEX, PREFIX
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import SIZE_ANNOTATION, Group, groups
from rollout_lws.workload.pod_words import command_to_recover, last_failure, name_of, pod_trouble, pods_of
from rollout_lws.workload.queueing import GIVEN_UP, Kind, given_up, queueing
from rollout_lws.workload.revisions import comes_back_at, observed

#: Reasons that mean "no room" or "no quota", not "bad version".
CAPACITY_REASONS = frozenset({"Unschedulable"})
_KUEUE_WAITS = frozenset(
    {"WaitingForWorkload", "WaitingForQuota", "WaitingForAdmissionChecks", "Blocked", "Held", "EvictedByKueue"}
)
QUOTA_REASONS = _KUEUE_WAITS | {"SchedulingGated", "QuotaExceeded"}
#: Reasons of groups that Kueue does not admit or has evicted.
KUEUE_REASONS = _KUEUE_WAITS | {"GroupLost", "Deactivated", "Rejected", GIVEN_UP}

#: Reason of groups that have used up their restarts.
EXHAUSTED = "RestartsExhausted"

#: Longest message: with the sentence around it, it must fit into a status field.
TEXT_LIMIT = 1024

#: The highest severity of what waiting mostly ends.
LOADING = 2
_SEVERITY = {Kind.LOADS: 1, Kind.WAITS: 2, Kind.FAILED: 4}
_NONE: Mapping[str, int] = {}

#: Index of a group on a Workload or in an Event, where any writer may have put any text.
_ORDINAL = re.compile(r"[0-9]{1,10}")
_REFUSED_POD = re.compile(r"^create Pod (?P<pod>\S+) in StatefulSet ")


@dataclass(frozen=True, slots=True)
class Trouble:
    """One group's worst problem; ``severity`` orders them, higher is worse. ``group`` is "" for the LWS as a whole.
    ``pod`` and ``container`` are the ones at fault, "" for none; ``previous``: the container's output is in ``kubectl
    logs --previous``. ``since``: when a failure to create the pod was first reported.
    """

    workload: str
    group: str
    reason: str
    message: str
    severity: int
    pod: str = ""
    container: str = ""
    previous: bool = False
    since: datetime | None = None


def troubles(
    facts: Facts, revision: str, now: datetime, minimum: float = 0, evicted: Mapping[str, int] = _NONE
) -> tuple[Trouble, ...]:
    """Groups of ``revision`` that are not ready, or not for ``minimum`` seconds yet, and missing ones, worst first.
    ``evicted``: how often Kueue had evicted a group before it got that revision, by the Workload's UID.
    """
    found = [
        _trouble(facts, group, now, minimum, evicted)
        for group in groups(facts)
        if group.revision == revision and not group.ready(now, minimum)
    ]
    found += _missing(facts, revision, evicted)
    name = facts.name
    if not observed(facts):
        message = (
            f"{facts.called}: its controller has not acted on the last change; if that lasts, is it running?"
            f" {facts.workload.look_at_controller}"
        )
        found.append(Trouble(name, "", "NotObserved", message, 1))
    return tuple(sorted(found, key=lambda trouble: -trouble.severity))


def _trouble(facts: Facts, group: Group, now: datetime, minimum: float, evicted: Mapping[str, int]) -> Trouble:
    name = facts.name
    if group.exhausted:
        return _exhausted(facts, group)
    if group.ready_since is not None:
        message = f"group {group.index} is ready since {group.ready_since:%H:%M:%S} UTC and counts after {minimum:g} s"
        return Trouble(name, group.index, "WarmingUp", message, 0)
    troubled = ((pod, pod_trouble(pod)) for pod in pods_of(facts, group))
    pod, worst = max(troubled, key=lambda found: found[1].severity)
    severity, reason = worst.severity, worst.reason
    message = f"{name_of(pod)} {worst.detail}" if worst.detail else ""
    of_pod = Trouble(name, group.index, reason, message, severity, pod.metadata.name, worst.container, worst.previous)
    told = queueing(facts, group, now, evicted)
    found = of_pod
    if told is not None and told.kind is Kind.FAILED:
        found = Trouble(name, group.index, told.reason, told.message, 4)
        if severity > LOADING:
            found = replace(of_pod, reason=told.reason, message=f"{told.message}; {message}", severity=4)
    elif (
        told is not None and reason == "SchedulingGated" and (told.kind is Kind.WAITS or not _others_gate(facts, group))
    ):
        found = Trouble(name, group.index, told.reason, told.message, _SEVERITY[told.kind])
    of_workers = _of_workers(facts, group) if found.severity <= 1 else None
    if of_workers is not None:
        return of_workers
    if found.reason == "NotReady":
        found = replace(found, message=found.message + _leader_first(facts, group))
    return replace(found, message=shortened(found.message))


def _exhausted(facts: Facts, group: Group) -> Trouble:
    failure, name = last_failure(facts, group), facts.name
    why = f": {failure.text}" if failure is not None else ""
    told = f"group {group.index} of {name} has used up its restarts, and is made again only when asked for{why}"
    message = f"{shortened(told, TEXT_LIMIT // 2)}; when that is fixed: {command_to_recover(group)}"
    if failure is None:
        return Trouble(name, group.index, EXHAUSTED, message, 4, group.leader.metadata.name)
    return Trouble(name, group.index, EXHAUSTED, message, 4, failure.pod, failure.container, failure.previous)


def _of_workers(facts: Facts, group: Group) -> Trouble | None:
    """The problem of the group's workers as a whole; None when the group does not wait for them."""
    name = facts.name
    refused = _refused(facts, group.workers.metadata.uid) if group.workers is not None else {}
    for said in (said for pod, said in refused.items() if not any(each.metadata.name == pod for each in facts.pods)):
        return _not_created(group.index, facts, said)
    leader, size = group.leader.metadata.name, group.size
    if size is None:
        message = f'annotation {SIZE_ANNOTATION} of pod {leader} (leader) says "{_said(group)}", which is no number'
        message = f"{message}: delete the pod to have group {group.index} recreated"
        return Trouble(name, group.index, "WrongSize", message, 3, leader)
    if size <= 1 or group.leader.ready_since is None:
        return None
    if group.workers is None:
        message = f"pod {leader} (leader) is ready, but its worker StatefulSet does not exist"
        return Trouble(name, group.index, "NoWorkers", message, 3, leader)
    made, asked = group.workers.spec.replicas, size - 1
    if made != asked:
        message = f"group {group.index} was made with {made} workers instead of {asked}: delete pod {leader} to have it"
        return Trouble(name, group.index, "WrongSize", f"{message} recreated", 3, leader)
    message = f"{group.workers.status.available_replicas} of {asked} workers are ready"
    return Trouble(name, group.index, "WorkersNotReady", message, 1)


def _leader_first(facts: Facts, group: Group) -> str:
    """Explains a deadlock: the leader's readiness needs its workers, and the workers are created once it is ready."""
    asked = (group.size or 1) - 1
    if not facts.workload.leaders_first or asked < 1 or group.leader.ready_since is not None:
        return ""
    made = group.workers.status.replicas if group.workers is not None else 0
    if made >= asked:
        return ""
    return (
        f"; startupPolicy is LeaderReady, so LWS makes this group's workers only when the leader is ready: {made} of"
        f" {asked} workers exist, and a leader that needs them to be ready never is"
    )


def _said(group: Group) -> str:
    return shortened(group.leader.metadata.annotations[SIZE_ANNOTATION], 20)


def _others_gate(facts: Facts, group: Group) -> bool:
    """Whether a pod of the group has a scheduling gate that is not Kueue's."""
    gates = (gate.name for pod in pods_of(facts, group) for gate in pod.spec.scheduling_gates)
    return any(not each.startswith(PREFIX) for each in gates)


def _missing(facts: Facts, revision: str, evicted: Mapping[str, int]) -> Iterator[Trouble]:
    """Problems of groups without a leader pod: Kueue evicted the group, which was not ready in time, if it comes
    back at ``revision``; otherwise the API server rejected the creation of its pod.
    """
    if facts.leader_set is None:
        return
    name, standing = facts.name, {group.index for group in groups(facts)}
    put_out = {each.metadata.annotations.get(GROUP_INDEX, ""): each for each in facts.queued}
    refused = {pod.rpartition("-")[2]: each for pod, each in _refused(facts, facts.leader_set.metadata.uid).items()}
    known = (each for each in {*put_out, *refused} - standing if _ORDINAL.fullmatch(each))
    first = facts.workload.first_ordinal
    gone = (each for each in known if first <= int(each) < first + facts.workload.replicas)
    for index in sorted(gone, key=int):
        told = None
        if index in put_out and revision and comes_back_at(facts, int(index) - first) == revision:
            told = given_up(put_out[index], f"group {index} of {name}", evicted)
        if told is not None:
            yield Trouble(name, index, told.reason, told.message, _SEVERITY[told.kind])
        elif index in refused:
            yield _not_created(index, facts, refused[index])


@dataclass(frozen=True, slots=True)
class _Refused:
    """Why a StatefulSet could not create a pod: the API server's message, and since when it is reported."""

    message: str
    since: datetime


def _refused(facts: Facts, uid: str) -> dict[str, _Refused]:
    """The last message of a StatefulSet for each pod that it could not create."""
    said: dict[str, _Refused] = {}
    for event in sorted(facts.refusals, key=lambda each: each.moment):
        match = _REFUSED_POD.match(event.message)
        if match and event.involved_object.uid == uid:
            before, since = said.get(match["pod"]), event.metadata.creation_timestamp or event.moment
            again = before is not None and before.message == event.message
            said[match["pod"]] = _Refused(event.message, min(since, before.since) if before and again else since)
    return said


def _not_created(index: str, facts: Facts, said: _Refused) -> Trouble:
    name = facts.name
    text = shortened(f"group {index} of {name} cannot be made: {said.message}")
    # The API server's message is the only sign of an exhausted ResourceQuota.
    full = "exceeded quota" in said.message
    reason, severity = ("QuotaExceeded", 2) if full else ("FailedCreate", 3)
    return Trouble(name, index, reason, text, severity, since=said.since)


def shortened(text: str, limit: int = TEXT_LIMIT) -> str:
    """``text`` with at most ``limit`` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
