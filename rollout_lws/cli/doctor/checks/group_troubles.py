"""Problems of the groups of one workload, as the controller reports them, with the pod that shows each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from rollout_lws.cli.doctor.case import Case
from rollout_lws.objects.workloads import Pod
from rollout_lws.rollout.groups.evictions import evicted_before
from rollout_lws.workload.facts import Facts as Workload
from rollout_lws.workload.groups import Group, groups
from rollout_lws.workload.pod_words import pod_trouble, pods_of
from rollout_lws.workload.trouble import CAPACITY_REASONS, KUEUE_REASONS, QUOTA_REASONS, Trouble, troubles

#: Problems of groups that are not completely created, and of groups that exist and are not ready. All others, apart
#: from waiting for a node, are reported by the kubelet for a container or a pod.
UNMADE = frozenset({"FailedCreate", "QuotaExceeded", "NoWorkers", "WrongSize"})
UNREADY = frozenset({"NotReady", "WarmingUp", "WorkersNotReady", "Terminating"})
UNPLACED = (CAPACITY_REASONS | QUOTA_REASONS | KUEUE_REASONS | {"SchedulerError"}) - UNMADE


#: Waits that end without intervention, in the queue's order.
QUEUED = frozenset({"WaitingForWorkload", "WaitingForQuota", "WaitingForAdmissionChecks", "EvictedByKueue"})
#: Waits that end when capacity is free, which may take long.
_FOR_ROOM = CAPACITY_REASONS | {"QuotaExceeded", "SchedulingGated"}
#: Seconds after which a wait for capacity needs a person, unless capacityDeadlineSeconds is set.
ROOM_SECONDS = 15 * 60


@dataclass(frozen=True, slots=True)
class Found:
    """The problem of one group, and its pod that shows it."""

    trouble: Trouble
    group: Group | None
    pod: Pod | None


def found_in(case: Case, side: Workload) -> list[Found]:
    """The problem of each group, of any version, worst first."""
    known = groups(side)
    revisions = {each.revision for each in known} or {""}
    every = {each for revision in revisions for each in _troubles(case, side, revision)}
    found = []
    for trouble in sorted(every, key=lambda each: (-each.severity, each.group)):
        group = next((each for each in known if each.index == trouble.group), None)
        if trouble.group:
            found.append(Found(trouble, group, _worst_pod(side, group) if group is not None else None))
    return found


def _troubles(case: Case, side: Workload, revision: str) -> tuple[Trouble, ...]:
    return troubles(side, revision, case.now, case.d.minimum, evicted_before(case.d))


def _worst_pod(side: Workload, group: Group) -> Pod:
    return max(pods_of(side, group), key=lambda pod: pod_trouble(pod).severity)


def waits(case: Case, found: Found) -> bool:
    """Whether the group is queued, or waits for capacity within the deadline."""
    if found.trouble.reason in QUEUED:
        return True
    if found.trouble.reason not in _FOR_ROOM:
        return False
    since = _waiting_since(found)
    longest = case.d.o.rollout.spec.strategy.capacity_deadline_seconds or ROOM_SECONDS
    return since is None or (case.now - since).total_seconds() < longest


def _waiting_since(found: Found) -> datetime | None:
    """When the scheduler first reported the pod as unschedulable, or the API server refused to create it."""
    if found.trouble.reason == "QuotaExceeded":
        return found.trouble.since
    if found.pod is None:
        return None
    said = (each.last_transition_time for each in found.pod.status.conditions if each.type == "PodScheduled")
    return next(said, None) or found.pod.metadata.creation_timestamp


def more(found: Iterable[Found]) -> str:
    others = [each.trouble.group for each in found][1:]
    return (
        f" (and {len(others)} more group{'s' if len(others) > 1 else ''}: {', '.join(others[:10])})" if others else ""
    )
