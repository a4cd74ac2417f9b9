"""Everything that is known about one LeaderWorkerSet at one moment, gathered by the shell and never changed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rollout_lws.objects.core_events import CoreEvent
from rollout_lws.objects.kueue import Workload
from rollout_lws.objects.workloads import ControllerRevision, LeaderWorkerSet, Pod, StatefulSet


class Listing(Enum):
    """Whether Kueue's Workloads are known: all of them, not yet, or not at all, as the cluster serves none or they may
    not be listed.
    """

    DONE = "Done"
    PENDING = "Pending"
    UNAVAILABLE = "Unavailable"


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """One LWS with what belongs to it; each observation has its own, equal to nothing but itself.

    ``leader_set`` is the StatefulSet of the LWS's name when the LWS controls it. ``leaders`` are its leader pods,
    ``worker_sets`` the StatefulSets controlled by those pods. ``pods`` are all pods of the LWS: the shell lists them
    only while a release is on or a group is not ready, and passes () otherwise. ``revisions`` are LWS's own
    ControllerRevisions, ``set_revisions`` those of the leader StatefulSet (both carry LWS's name label, told apart by
    the owner's kind). ``refusals`` are Events of StatefulSets that could not make a pod and ``queued`` Kueue's
    Workloads for its groups: the shell lists the former only while a group is missing, the latter while they decide
    something, and ``listing`` says whether it has.
    """

    lws: LeaderWorkerSet
    leader_set: StatefulSet | None = None
    leaders: tuple[Pod, ...] = ()
    worker_sets: tuple[StatefulSet, ...] = ()
    pods: tuple[Pod, ...] = ()
    revisions: tuple[ControllerRevision, ...] = ()
    set_revisions: tuple[ControllerRevision, ...] = ()
    refusals: tuple[CoreEvent, ...] = ()
    queued: tuple[Workload, ...] = ()
    listing: Listing = Listing.UNAVAILABLE


@dataclass(frozen=True, slots=True)
class NamedObject:
    """An object found under a name or label that a canary would use; enough to tell ours from others'."""

    kind: str
    name: str
    terminating: bool = False
