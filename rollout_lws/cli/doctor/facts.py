"""Input of doctor's checks: the controller's own observation of a Rollout, and objects read in addition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from rollout_lws.api.resources import rollouts
from rollout_lws.cli.custom_networks import Known
from rollout_lws.cli.doctor.cluster import Cluster
from rollout_lws.cli.releases import target_of, typed
from rollout_lws.objects.resources import SERVICES, Resource
from rollout_lws.objects.workloads import StatefulSet
from rollout_lws.observe.observer import observe
from rollout_lws.observe.snapshot import Object
from rollout_lws.rollout.observation import Observation
from rollout_lws.targets.target import Target
from rollout_lws.traffic.dialling import Service
from rollout_lws.workload.facts import Facts as Workload


@dataclass(frozen=True, slots=True, order=True)
class PendingWrite:
    """A write that a controller would make, in words, and the Rollout's resourceVersion that it is based on."""

    text: str
    version: str
    about: str = ""
    """The object to write, as ``Kind/name``."""


@dataclass(frozen=True, slots=True)
class Before:
    """The first look: the writes pending then, and the links that were not ok, by name and object. ``broken`` is
    whether any of them was broken.
    """

    pending_writes: frozenset[PendingWrite]
    amiss: frozenset[tuple[str, str]]
    broken: bool


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """``rollout`` and ``workloads`` are the raw objects, the latter by name. ``sets`` are all StatefulSets of a
    workload by its name, itself if it is one, including those whose leader is gone. ``refused`` has the server's
    message by kind, for kinds that may not be read. ``gate_services`` are the Services that gates ask, by name.
    ``networks`` are the scripts of the controller, None where the Rollout names no object for one, and ``lacking`` what
    the controller may not do with those objects. ``before`` is the first look, None during it.
    """

    observation: Observation
    rollout: Object
    workloads: Mapping[str, Object] = field(default_factory=dict)
    sets: Mapping[str, tuple[StatefulSet, ...]] = field(default_factory=dict)
    refused: Mapping[Resource, str] = field(default_factory=dict)
    gate_services: Mapping[str, Service] = field(default_factory=dict)
    networks: Known | None = None
    lacking: tuple[str, ...] = ()
    before: Before | None = None

    @property
    def pending_writes(self) -> frozenset[PendingWrite] | None:
        return None if self.before is None else self.before.pending_writes

    @property
    def now(self) -> datetime:
        return self.observation.now

    def is_fresh(self, live: Mapping[str, Any], seconds: float) -> bool:
        """Whether the object was written within ``seconds``; if the time is unknown, an object counts as fresh in the
        first look only.
        """
        since = changed_at(live)
        return self.pending_writes is None if since is None else (self.now - since).total_seconds() < seconds

    @property
    def sides(self) -> tuple[Workload, ...]:
        """The workloads that exist: the stable one, that of the workloadRef, and its canary; of a pair the active side
        first.
        """
        both = (self.observation.stable, self.observation.canary)
        return tuple(each for each in both if each is not None)

    @property
    def members(self) -> tuple[Workload, ...]:
        """The same with companions of a pair, those of each side after it."""
        observed = self.observation
        active = (observed.stable, *(each.stable for each in observed.companions))
        inactive = (observed.canary, *(each.canary for each in observed.companions))
        return tuple(each for each in (*active, *inactive) if each is not None)


def gather(cluster: Cluster, name: str, now: datetime, before: Before | None = None) -> Facts | None:
    """Everything about Rollout ``name``; None when it does not exist. Unreadable when it is malformed."""
    observation = observe(cluster, name, now)
    if observation is None:
        return None
    found = cluster.find(rollouts(cluster.keys.group), name)
    kind = target_of(found or {})
    names = [observation.rollout.spec.workload_ref.name, *(each.name for each in observation.workloads)]
    services = _gate_services(cluster, observation)
    workloads = {each: cluster.find(kind.resource, each) for each in names}
    known = {each: live for each, live in workloads.items() if live is not None}
    routing = observation.routing
    custom = routing is not None and bool(routing.names.custom)
    return Facts(
        observation=observation,
        rollout=found or {},
        workloads=known,
        sets={each: _sets(cluster, kind, each, live) for each, live in known.items()},
        refused=dict(cluster.refused),
        gate_services=services,
        networks=cluster.networks if custom else None,
        lacking=cluster.lacking(each for each in routing.custom.values() if each) if routing and custom else (),
        before=before,
    )


def _sets(cluster: Cluster, kind: type[Target], name: str, live: Object) -> tuple[StatefulSet, ...]:
    made = kind.labels.stateful_sets is not None
    return tuple(cluster.stateful_sets(name)) if made else (typed(live, StatefulSet),)


def _gate_services(cluster: Cluster, observation: Observation) -> dict[str, Service]:
    style = observation.rollout.spec.strategy.style
    asked = (gate.http for gate in style.every_gate) if style is not None else ()
    names = {http.service for http in asked if http is not None and http.service is not None}
    found = ((name, cluster.find(SERVICES, name)) for name in sorted(names))
    return {name: msgspec.convert(live, Service) for name, live in found if live is not None}


def changed_at(live: Mapping[str, Any]) -> datetime | None:
    """When the object, other than its status, was last written, by metadata.managedFields; None when these have no time
    and the object has changed since it was created.
    """
    meta = live.get("metadata") or {}
    times = [each.get("time") for each in meta.get("managedFields") or () if each.get("subresource") != "status"]
    if not any(times) and meta.get("generation", 1) > 1:
        return None
    known = [time for time in (*times, meta.get("creationTimestamp")) if time]
    return max((datetime.fromisoformat(time) for time in known), default=None)
