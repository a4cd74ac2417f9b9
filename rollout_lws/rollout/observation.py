"""The input of a decision: one frozen snapshot of everything that concerns one Rollout, and the time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from rollout_lws.api import BatchRelease, Rollout
from rollout_lws.api.resources import Keys
from rollout_lws.objects.jobs import Job
from rollout_lws.objects.kueue import Workload
from rollout_lws.objects.meta import Meta
from rollout_lws.objects.resources import KUEUE_WORKLOADS, Resource
from rollout_lws.objects.workloads import ControllerRevision, CoreEvent, Pod
from rollout_lws.rollout.decision import Answered, Question
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.marked import UNMARKED, Marked
from rollout_lws.traffic.split import Object
from rollout_lws.workload.facts import Facts, Listing, NamedObject


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Features of the cluster's LeaderWorkerSet, read from its CRD (never from a version string)."""

    observed_generation: bool = True
    """status.observedGeneration exists: LWS 0.9 or newer."""
    group_identity: bool = False
    """spec.groupIdentity exists: LWS 1.0 or newer."""


@dataclass(frozen=True, slots=True)
class Queues:
    """Kueue's objects in the namespace.

    ``workloads`` are listed only while a decision depends on them; they are of the kind ``served`` if the cluster has
    any. ``listing`` is the state of that list. ``dispatching`` are the AdmissionChecks of MultiKueue;
    ``checks_pending`` is true while they are not listed. They are listed only for Workloads of the LWS that name one.
    """

    workloads: tuple[Workload, ...] = ()
    served: Resource = KUEUE_WORKLOADS
    listing: Listing = Listing.UNAVAILABLE
    checks_pending: bool = False
    dispatching: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class GateJobs:
    """Jobs of the names that the status has, of any owner, and those that gates of the Rollout have made besides;
    ``pods`` are those of each.

    ``pods_pending`` are the Jobs whose pods are not listed yet. ``refusals`` say why pods of a Job could not be
    created. ``cron_jobs`` are those that gates name. ``unknown`` and ``cron_jobs_unknown`` say why either kind is not
    known: "" before the first list has arrived, None once it is.
    """

    jobs: Mapping[str, Job] = field(default_factory=dict)
    pods: Mapping[str, tuple[Pod, ...]] = field(default_factory=dict)
    pods_pending: frozenset[str] = frozenset()
    refusals: Mapping[str, tuple[CoreEvent, ...]] = field(default_factory=dict)
    cron_jobs: Mapping[str, Object] = field(default_factory=dict)
    unknown: str | None = None
    cron_jobs_unknown: str | None = None


@dataclass(frozen=True, slots=True)
class RefusedWrite:
    """A write of this Rollout that the API server refuses; the controller retries it until it succeeds.

    ``what`` names verb and object ("create LeaderWorkerSet llama-canary"), ``error`` is the server's message,
    ``advice`` what the user can do ("" if only waiting helps).
    """

    what: str
    error: str
    advice: str


@dataclass(frozen=True, slots=True, eq=False)
class Autoscalers:
    """HorizontalPodAutoscalers that scale the Rollout's LWS or carry an annotation of this Rollout; ``of_rollout`` are
    those that scale the Rollout itself.

    ``living`` are the UIDs of all existing Rollouts of the namespace. ``synced`` is False until the first list has
    arrived; ``trouble`` then says what prevents it, "" if nothing does.
    """

    objects: tuple[Object, ...] = ()
    of_rollout: tuple[Object, ...] = ()
    living: frozenset[str] = frozenset()
    synced: bool = True
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Companion:
    """A further workload of each side of a pair: ``stable`` serves with the active side, ``canary`` with the other one;
    None where it does not exist. ``asked`` is the number of groups in the spec, of the one whose side is active.
    """

    name: str
    other_name: str
    stable: Facts | None
    canary: Facts | None
    asked: int | str | None

    @property
    def edited(self) -> Facts | None:
        """The one whose template asks for a version."""
        return self.canary if self.canary is not None else self.stable

    @property
    def both(self) -> tuple[Facts, ...]:
        """Those that exist."""
        return tuple(each for each in (self.stable, self.canary) if each is not None)


@dataclass(frozen=True, slots=True)
class Observation:
    """The snapshot that one Rollout is decided from.

    ``rivals`` is the metadata of the namespace's other Rollouts whose workloadRef names the same LWS. ``stable`` is the
    LWS that the Rollout names, ``canary`` the LWS with this Rollout's canary label and name; both None if absent. Of a
    pair, ``active`` is the name of the active side, ``stable`` that side and ``canary`` the other one, the user's too;
    while it is ``undecided`` they are workloadRef and counterpartRef. While a workload that a release has made serves
    in place of the user's, they are ``swapped``: ``stable`` is the one that serves, and ``canary`` the user's.
    ``companions`` are further workloads of a pair, on the same sides, by name. ``made_by`` tells of StatefulSets that
    the Rollout names which LWS has made them for its groups, so that they are no workloads of their own. ``remains``
    are leftovers that block a new canary: StatefulSets, Services, Pods and LWS ControllerRevisions with the canary's
    name or its name label, and an LWS of that name which is not ours; ``pods_left`` are the pods among them, or,
    swapped, those of the user's LWS that is gone. ``unknown_pods`` has an entry for the stable LWS, and for the
    canary's name, while not all its pods are known: why they cannot be listed, "" before the first list has arrived.
    ``history`` are the ControllerRevisions that this Rollout keeps. ``refused`` is the write that stopped the last
    decision, None if there was none. ``marked`` are the objects with annotations of releases. ``routing`` are the
    objects that split traffic, None for a Rollout that names none and has recorded none. ``autoscalers`` are known
    while they are watched. ``services`` are all Services of the namespace by name, while a release without traffic
    routing is in progress, and for swaps without one. ``answers`` are the measurements that the last decision wanted,
    as far as they have come. ``gate_jobs`` are the Jobs of gates, while some are watched.
    """

    now: datetime
    keys: Keys
    rollout: Rollout
    capabilities: Capabilities = Capabilities()
    rivals: tuple[Meta, ...] = ()
    stable: Facts | None = None
    canary: Facts | None = None
    active: str = ""
    swapped: bool = False
    companions: tuple[Companion, ...] = ()
    made_by: Mapping[str, str] = field(default_factory=dict)
    remains: tuple[NamedObject, ...] = ()
    pods_left: tuple[Pod, ...] = ()
    unknown_pods: Mapping[str, str] = field(default_factory=dict)
    batch_release: BatchRelease | None = None
    history: tuple[ControllerRevision, ...] = ()
    refused: RefusedWrite | None = None
    marked: Marked = UNMARKED
    routing: RoutingFacts | None = None
    autoscalers: Autoscalers = Autoscalers()
    queues: Queues = Queues()
    services: Mapping[str, Object] = field(default_factory=dict)
    answers: Mapping[Question, Answered] = field(default_factory=dict)
    gate_jobs: GateJobs = GateJobs()

    @property
    def workloads(self) -> tuple[Facts, ...]:
        """The workloads that exist: stable and canary, of a pair those of companions as well."""
        own = tuple(each for each in (self.stable, self.canary) if each is not None)
        return (*own, *(facts for each in self.companions for facts in each.both))

    @property
    def undecided(self) -> bool:
        """Whether nothing says which side of a pair is active."""
        return self.rollout.spec.counterpart_ref is not None and not self.active
