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
    STATEFUL_SETS,
    Resource,
)

#: What the StatefulSet controller gives to each pod: its name, its ordinal, and the ControllerRevision of its version,
#: whose name begins with the StatefulSet's.
POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"
POD_REVISION = "controller-revision-hash"
#: Label of the ControllerRevisions that it makes.
RECORD_HASH = "controller.kubernetes.io/hash"
#: Annotations of a leader whose group LeaderWorkerSet does not make again by itself, since it has used up its
#: maxGroupRestarts: that it is so, and that it is to be made again. Source: LWS's KEP-820.
RESTARTS_EXHAUSTED = LWS_PREFIX + "group-restart-budget-exhausted"
RECOVER = LWS_PREFIX + "recover"
#: Scheduling gate of the leader of a group without a number that takes the place of one whose pods still end. Source:
#: LWS's KEP-898.
REPLACEMENT_GATE = LWS_PREFIX + "group-replacement"
#: On a LeaderWorkerSet: how often its groups were made again, as JSON of numbers by ``<revision>/<group index>``.
RESTART_COUNTS = LWS_PREFIX + "group-restart-counts"


@dataclass(frozen=True, slots=True)
class PodLabels:
    """Names of the labels that the pods of a kind carry, and the ControllerRevisions of their versions.

    The last four fields select objects, with label selectors as the API server reads them.
    """

    workload: str | None
    """Has the workload's name; None for a kind whose pods have only their own."""
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
    workloads: str
    """The objects of the kind that can be released."""
    leaders: str
    """The pods that take requests, of all workloads of the kind."""
    records: str
    """The ControllerRevisions of all workloads of the kind."""
    stateful_sets: str | None
    """The StatefulSets that workloads of the kind have made; None for a kind whose objects make pods themselves."""

    @property
    def mark(self) -> str:
        """A label by which every pod of the kind can be told, and from which its workload's name follows."""
        return self.workload if self.workload is not None else POD_NAME

    def workload_of(self, labels: Mapping[str, str]) -> str:
        """The name of the workload that a pod with these labels belongs to; "" if none has it."""
        value = labels.get(self.mark) or ""
        return value if self.workload is not None else _stateful_set(value)

    def marks_leader(self, labels: Mapping[str, str]) -> bool:
        """Whether a pod of the kind with these labels takes requests."""
        return self.leader is None or labels.get(self.leader[0]) == self.leader[1]


_PREFIXES = (LWS_PREFIX, "statefulset.kubernetes.io/", "apps.kubernetes.io/")
#: Those of other controllers: a LeaderWorkerSet gives its label to all that it makes.
_NOT_OF_LWS = f"!{LWS_NAME}"
#: What the workloads of each kind give to their pods. The pods of a LeaderWorkerSet are those of StatefulSets, too:
#: they are told by the first that fits.
RELEASED: Mapping[Resource, PodLabels] = {
    LEADER_WORKER_SETS: PodLabels(
        workload=LWS_NAME,
        revision=LWS_REVISION,
        index=LWS_GROUP_INDEX,
        leader=(LWS_WORKER_INDEX, "0"),
        record=LWS_REVISION,
        prefixes=_PREFIXES,
        workloads="",
        leaders=f"{LWS_WORKER_INDEX}=0",
        records=LWS_NAME,
        stateful_sets=LWS_NAME,
    ),
    STATEFUL_SETS: PodLabels(
        workload=None,
        revision=POD_REVISION,
        index=POD_INDEX,
        leader=None,
        record="",
        prefixes=(*_PREFIXES, POD_REVISION),
        workloads=_NOT_OF_LWS,
        leaders=f"{POD_NAME},{_NOT_OF_LWS}",
        records=f"{RECORD_HASH},{_NOT_OF_LWS}",
        stateful_sets=None,
    ),
}
#: Of the kind whose groups have pods besides their leaders.
WITH_WORKERS = RELEASED[LEADER_WORKER_SETS]


def labels_among(labels: Mapping[str, str | None]) -> PodLabels | None:
    """The names for the kind whose pods carry these labels; None for pods of another kind. An object of LeaderWorkerSet
    is told as well: it carries its workload's name.
    """
    # A plain loop, since each rule asks for each pod.
    for each in RELEASED.values():
        if each.mark in labels:
            return each
    return None


def workload_among(labels: Mapping[str, str]) -> str:
    """The name of the workload that a pod with these labels belongs to; "" for pods of another kind."""
    names = labels_among(labels)
    return names.workload_of(labels) if names is not None else ""


def workload_selected(selected: Mapping[str, str | None]) -> str:
    """The name of the one workload that a selector with these labels is limited to, or to one version or group of it;
    "" if none is told by them.
    """
    labels = {key: value for key, value in selected.items() if value is not None}
    return workload_among(labels) or _stateful_set(labels.get(POD_REVISION, ""))


def _stateful_set(made: str) -> str:
    """The name of the StatefulSet whose controller has made this name of a pod or ControllerRevision: it appends a dash
    and an ordinal or a hash, and no label has the name alone.
    """
    return made.rpartition("-")[0]
