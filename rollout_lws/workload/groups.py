"""Groups: one leader pod and its workers, old or new, ready or not, always as a whole.

LWS's own counters include surge groups, and its Available condition can be true for a group that never was ready. So
readiness is computed here, per group, from leader pods and worker StatefulSets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from types import MappingProxyType

from rollout_lws.objects.released import RECOVER
from rollout_lws.objects.resources import LWS_PREFIX, PODS
from rollout_lws.objects.scaling import whole_number
from rollout_lws.objects.workloads import Pod, StatefulSet
from rollout_lws.objects.writes import Patch
from rollout_lws.workload.facts import Facts

SIZE_ANNOTATION = LWS_PREFIX + "size"
_LATEST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Group:
    """One group. ``ready_since`` is when its last part became ready, None while it is not; ``first`` is the index of
    the workload's first group.
    """

    index: str
    revision: str
    leader: Pod
    workers: StatefulSet | None
    ready_since: datetime | None
    first: int = 0
    place: int | None = None
    """Its place among the groups of a workload whose groups have no numbers: it changes when others go."""

    @property
    def ordinal(self) -> int:
        """Its place among the workload's groups, from 0; -1 for an index that is no number or before the first."""
        if self.place is not None:
            return self.place
        return max(-1, int(self.index) - self.first) if self.index.isdigit() else -1

    @property
    def size(self) -> int | None:
        """Number of pods, from LWS's annotation on the leader pod; None while that annotation is not a number."""
        return _size(self.leader)

    @property
    def uid(self) -> str:
        return self.leader.metadata.uid

    @property
    def exhausted(self) -> bool:
        """Whether it has used up its restarts: its workload's controller makes it again only when asked to."""
        return self.leader.is_kept

    @property
    def terminating(self) -> bool:
        """Whether it goes. A group whose restarts are exhausted stays, though its pods have ended."""
        return self.leader.metadata.terminating and not self.exhausted

    def ready(self, now: datetime, minimum: float = 0) -> bool:
        """Ready for at least ``minimum`` seconds; 0 means immediately, even if the kubelet's clock is ahead of ours."""
        if self.ready_since is None:
            return False
        return minimum <= 0 or self.ready_since + timedelta(seconds=minimum) <= now


# Ten rules of one decision ask for the same groups; a few decisions run at a time.
@lru_cache(maxsize=16)
def groups(facts: Facts) -> tuple[Group, ...]:
    """All groups of an LWS by ordinal, surge groups included; a group without a leader pod does not exist."""
    workers = {owner.uid: each for each in facts.worker_sets if (owner := each.metadata.controller) is not None}
    # A terminating leader and its replacement have the same name, so there is at most one pod per index.
    pods = worker_pods(facts)
    first = facts.workload.first_ordinal
    found = [group_of(leader, workers.get(leader.metadata.uid), pods, first) for leader in facts.leaders]
    if not facts.workload.can_be_held:
        return tuple(replace(group, place=place) for place, group in enumerate(sorted(found, key=_goes_last)))
    return tuple(sorted(found, key=lambda group: (group.ordinal, group.index)))


def _goes_last(group: Group) -> tuple[bool, bool, datetime, str]:
    """Order of groups without numbers: a ReplicaSet with fewer replicas takes the last ones away first."""
    since = group.ready_since or group.leader.metadata.creation_timestamp or _LATEST
    return group.leader.metadata.terminating, group.ready_since is None, since, group.index


@lru_cache(maxsize=16)
def worker_pods(facts: Facts) -> Mapping[str, tuple[Pod, ...]]:
    """The known pods of groups besides their leaders, by the group's index."""
    found: dict[str, list[Pod]] = {}
    for pod in facts.pods:
        if not pod.is_leader:
            found.setdefault(pod.group_index, []).append(pod)
    return {index: tuple(pods) for index, pods in found.items()}


def group_of(
    leader: Pod,
    workers: StatefulSet | None,
    pods: Mapping[str, tuple[Pod, ...]] = MappingProxyType({}),
    first: int = 0,
) -> Group:
    """The group of a leader and its worker StatefulSet; ``pods``, the workers by group, give a more exact time since
    when it is ready. ``first`` is the index of the workload's first group.
    """
    index = leader.group_index or leader.metadata.name.rpartition("-")[2]
    return Group(index, leader.revision, leader, workers, _ready_since(leader, workers, pods.get(index, ())), first)


def _ready_since(leader: Pod, workers: StatefulSet | None, pods: tuple[Pod, ...]) -> datetime | None:
    since = leader.ready_since
    size = _size(leader)
    if since is None or size is None:
        return None
    if size <= 1:
        return since
    if workers is None or workers.metadata.terminating or not _complete(workers, leader.revision, size - 1):
        return None
    # The StatefulSet does not report since when its pods are ready; the pods do, where they are watched.
    moments = [pod.ready_since for pod in pods]
    return max([since, *(moment for moment in moments if moment is not None)])


def _size(leader: Pod) -> int | None:
    return whole_number(leader.metadata.annotations.get(SIZE_ANNOTATION) or "1")


def _complete(workers: StatefulSet, revision: str, count: int) -> bool:
    status = workers.status
    return (
        workers.revision == revision
        and workers.spec.replicas == count
        and status.available_replicas == count
        and status.observed_generation >= workers.metadata.generation
        and status.current_revision == status.update_revision
    )


def ask_again(group: Group, reason: str) -> Patch:
    """Has an exhausted group made again, as deleting its leader has any other one."""
    meta = group.leader.metadata
    body = {"metadata": {"annotations": {RECOVER: "true"}}}
    return Patch(PODS, meta.namespace, meta.name, body, reason, meta.resource_version)


def moment_ready(group: Group, minimum: float, now: datetime) -> datetime | None:
    """When a ready group will have been ready for ``minimum`` seconds; None if it has been or is not ready."""
    if group.ready_since is None or group.ready(now, minimum):
        return None
    return group.ready_since + timedelta(seconds=minimum)
