"""The kinds that a Rollout can release, with the labels that their controllers give to pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollout_lws.objects.resources import (
    LEADER_WORKER_SETS,
    LWS_GROUP_INDEX,
    LWS_NAME,
    LWS_PREFIX,
    LWS_REVISION,
    LWS_WORKER_INDEX,
    Resource,
)


@dataclass(frozen=True, slots=True)
class PodLabels:
    """Names of the labels that the pods of a kind carry, and the ControllerRevisions of their versions."""

    workload: str
    """Has the workload's name."""
    revision: str
    """Has the version's revision, which the workload's controller has given it."""
    index: str
    """Has the group's index among the workload's groups."""
    leader: tuple[str, str] | None
    """Name and value of the label that only pods which take requests carry; None if a group is a single pod, so that
    all of them do.
    """
    record: str
    """On a ControllerRevision: has the version's revision; "" if the revision is the ControllerRevision's name."""
    prefixes: tuple[str, ...]
    """Of names of labels that controllers add: no template has them."""

    @property
    def leaders(self) -> str:
        """Label selector of the pods that take requests, of all workloads of the kind."""
        return self.workload if self.leader is None else "=".join(self.leader)

    def marks_leader(self, labels: Mapping[str, str]) -> bool:
        """Whether a pod of the kind with these labels takes requests."""
        return self.leader is None or labels.get(self.leader[0]) == self.leader[1]


#: What the workloads of each kind give to their pods.
RELEASED: Mapping[Resource, PodLabels] = {
    LEADER_WORKER_SETS: PodLabels(
        workload=LWS_NAME,
        revision=LWS_REVISION,
        index=LWS_GROUP_INDEX,
        leader=(LWS_WORKER_INDEX, "0"),
        record=LWS_REVISION,
        prefixes=(LWS_PREFIX, "statefulset.kubernetes.io/", "apps.kubernetes.io/"),
    ),
}
#: Of the kind whose groups have pods besides their leaders.
WITH_WORKERS = RELEASED[LEADER_WORKER_SETS]


def labels_among(labels: Mapping[str, str | None]) -> PodLabels | None:
    """The names for the kind whose workload label is among ``labels``, of an object or a selector; None without one."""
    # A plain loop, since each rule asks for each pod.
    for each in RELEASED.values():
        if each.workload in labels:
            return each
    return None


def workload_among(labels: Mapping[str, str | None]) -> str:
    """The name of the workload among ``labels``; "" without one."""
    names = labels_among(labels)
    return (names is not None and labels.get(names.workload)) or ""
