"""What a decision is made from: one frozen picture of everything that concerns one Rollout, and the time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from rollout_lws.api import BatchRelease, Rollout
from rollout_lws.api.resources import Keys
from rollout_lws.objects.kueue import Workload
from rollout_lws.objects.meta import Meta
from rollout_lws.objects.resources import KUEUE_WORKLOADS, Resource
from rollout_lws.objects.workloads import ControllerRevision, Pod
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.marked import UNMARKED, Marked
from rollout_lws.traffic.split import Object
from rollout_lws.workload.facts import Facts, Listing, NamedObject


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the cluster's LeaderWorkerSet can do, read from its CRD (never from a version string)."""

    observed_generation: bool = True
    """status.observedGeneration exists: LWS 0.9 or newer."""
    group_identity: bool = False
    """spec.groupIdentity exists: LWS 1.0 or newer."""


@dataclass(frozen=True, slots=True)
class Queues:
    """What Kueue has of the namespace.

    ``workloads`` are listed only while they decide something; they are of the kind ``served`` if the cluster has any.
    ``listing`` is what became of that list. ``dispatching`` are the AdmissionChecks that are MultiKueue's;
    ``checks_pending`` while they are not listed, which they are only for Workloads of the LWS that name one.
    """

    workloads: tuple[Workload, ...] = ()
    served: Resource = KUEUE_WORKLOADS
    listing: Listing = Listing.UNAVAILABLE
    checks_pending: bool = False
    dispatching: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RefusedWrite:
    """A write of this Rollout that the API server does not carry out; it is tried again until it does.

    ``what`` names verb and object ("create LeaderWorkerSet llama-canary"), ``error`` is the server's own words,
    ``advice`` what a person can do ("" when nothing but waiting helps).
    """

    what: str
    error: str
    advice: str


@dataclass(frozen=True, slots=True, eq=False)
class Autoscalers:
    """HorizontalPodAutoscalers that scale the LWS which a Rollout names, or that carry a mark of this Rollout.

    ``living`` are the UIDs of all Rollouts of the namespace. ``synced`` is False while the first list is not in;
    ``trouble`` then says what stops it, "" when nothing does.
    """

    objects: tuple[Object, ...] = ()
    living: frozenset[str] = frozenset()
    synced: bool = True
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """The world as one Rollout sees it.

    ``rivals`` is the metadata of the other Rollouts of the namespace whose workloadRef names the same LWS. ``stable``
    is the LWS that the Rollout names, ``canary`` the LWS that carries this Rollout's canary label and name, both None
    when absent. ``remains`` are the objects that stand where a new canary would: StatefulSets, Services, Pods and LWS
    ControllerRevisions with the canary's name or its name label, and an LWS of that name which is not ours;
    ``pods_left`` are the pods among them. ``unknown_pods`` has an entry for the stable LWS, and for the canary's name,
    while not all its pods are known: why they cannot be listed, "" while the first list is on its way. ``history`` are
    the ControllerRevisions this Rollout keeps itself. ``refused`` is what stopped the last decision, None when it was
    carried out. ``marked`` is what carries notes of releases. ``routing`` are the objects that share requests, None for
    a Rollout that names none and has noted none. ``autoscalers`` are known while they are watched. ``services`` are all
    of the namespace by name, while a release is on that shares no requests.
    """

    now: datetime
    keys: Keys
    rollout: Rollout
    capabilities: Capabilities = Capabilities()
    rivals: tuple[Meta, ...] = ()
    stable: Facts | None = None
    canary: Facts | None = None
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
