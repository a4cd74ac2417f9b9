"""Everything known about one LeaderWorkerSet at one moment; the controller collects it and never changes it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rollout_lws.objects.kueue import Workload
from rollout_lws.objects.workloads import ControllerRevision, CoreEvent, Pod, StatefulSet
from rollout_lws.targets.target import Target, called


class Listing(Enum):
    """Whether Kueue's Workloads are known: all of them, not yet, none since the cluster does not serve them, or not at
    all since the list fails or RBAC forbids it.
    """

    DONE = "Done"
    PENDING = "Pending"
    UNAVAILABLE = "Unavailable"
    REFUSED = "Refused"


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """One LWS with everything that belongs to it; each observation has its own, equal only to itself.

    ``leader_set`` is the StatefulSet of the LWS's name when the LWS controls it. ``leaders`` are its leader pods,
    ``worker_sets`` the StatefulSets controlled by those pods. ``pods`` are all pods of the LWS, listed only while a
    release is in progress or a group is not ready, otherwise (). ``revisions`` are LWS's own ControllerRevisions,
    ``set_revisions`` those of the leader StatefulSet (both carry LWS's name label; the owner's kind tells them apart).
    ``refusals`` are Events of StatefulSets that could not create a pod, listed only while a group is missing.
    ``queued`` are Kueue's Workloads for its groups, listed only while a decision needs them; ``listing`` says whether
    they are.
    """

    workload: Target
    leader_set: StatefulSet | None = None
    leaders: tuple[Pod, ...] = ()
    worker_sets: tuple[StatefulSet, ...] = ()
    pods: tuple[Pod, ...] = ()
    revisions: tuple[ControllerRevision, ...] = ()
    set_revisions: tuple[ControllerRevision, ...] = ()
    refusals: tuple[CoreEvent, ...] = ()
    queued: tuple[Workload, ...] = ()
    listing: Listing = Listing.UNAVAILABLE

    @property
    def name(self) -> str:
        return self.workload.metadata.name

    @property
    def called(self) -> str:
        """Kind and name, for messages."""
        return called(self.workload)


@dataclass(frozen=True, slots=True)
class NamedObject:
    """An object found under a name or label that a canary would use, with enough to tell ours from others'."""

    kind: str
    name: str
    terminating: bool = False
