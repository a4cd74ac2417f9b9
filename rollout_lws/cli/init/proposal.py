"""Proposes a Rollout for an LWS that has none. Pure: a snapshot of its namespace in, objects and reasons out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.cli import gitops
from rollout_lws.cli.gitops import Ignored
from rollout_lws.cli.init import routes, steps
from rollout_lws.cli.init.routes import Routing
from rollout_lws.cli.init.steps import Proposed
from rollout_lws.errors import UsageError
from rollout_lws.objects.resources import (
    HORIZONTAL_POD_AUTOSCALERS,
    LEADER_WORKER_SETS,
    LWS_NAME,
    LWS_REVISION,
    LWS_WORKER_INDEX,
    SERVICES,
)
from rollout_lws.observe.snapshot import Snapshot
from rollout_lws.rollout.autoscaling.hpa_bounds import scaled_workload
from rollout_lws.rollout.routing.reach import reached_by
from rollout_lws.targets.target import Target
from rollout_lws.traffic import pools, services
from rollout_lws.workload.canary import canary_name
from rollout_lws.workload.hold import HOLD, hold_record, resolved_surge

Object = dict[str, Any]
_STRATEGY = "/spec/rolloutStrategy/rollingUpdateConfiguration"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A Rollout called ``name`` for an LWS, and what else it needs. ``service`` is a Service to create, None when one
    exists; ``ignored`` are fields that the GitOps tools ``keepers`` must ignore.
    """

    name: str
    namespace: str
    workload: str
    api_version: str
    capacity: CapacityStrategy
    replicas: int
    size: int
    accelerators: Mapping[str, int]
    steps: tuple[Proposed, ...]
    routing: Routing
    unlisted: tuple[str, ...] = ()
    service: Object | None = None
    keepers: tuple[str, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    warnings: tuple[str, ...] = field(default=())


def propose(found: Snapshot, workload: str, capacity: CapacityStrategy, name: str = "") -> Proposal:
    """The proposal; UsageError, with what to do, when no Rollout is possible."""
    lws = found.workload(LEADER_WORKER_SETS, workload)
    if lws is None:
        raise UsageError(f"there is no LeaderWorkerSet {workload!r}: see `kubectl get leaderworkersets`")
    _refuse(found, lws, capacity)
    routing = routes.find(found, workload)
    version = lws.version
    service = None if routing.service else _service(found, lws)
    keepers = _keepers(found, workload, routing)
    return Proposal(
        name=name or workload,
        namespace=lws.metadata.namespace,
        workload=workload,
        api_version=f"{found.keys.group}/v1beta1",
        capacity=capacity,
        replicas=lws.replicas,
        size=version.size,
        accelerators=version.accelerators_by_name,
        steps=steps.steps(capacity, lws.replicas, routed=routing.routes),
        routing=routing,
        unlisted=tuple(_unlisted(found, workload, routing)) if routing.routes else (),
        service=service,
        keepers=keepers,
        ignored=tuple(_ignored(found, lws, capacity, routing)),
        warnings=tuple(_warnings(found, lws, capacity, routing, service)),
    )


def _refuse(found: Snapshot, lws: Target, capacity: CapacityStrategy) -> None:
    name = lws.metadata.name
    rivals = sorted(each.metadata.name for each in found.rollouts_of(name))
    if rivals:
        raise UsageError(
            f"LeaderWorkerSet {name} is released by rollout/{rivals[0]} already: look at it with"
            f" `rollout-lws plan {rivals[0]}`"
        )
    canary = lws.metadata.labels.get(found.keys.canary_leader_worker_set)
    if canary:
        raise UsageError(f"LeaderWorkerSet {name} is the canary of a release: name the one it belongs to, lws/{canary}")
    if max(1, lws.replicas) < capacity.least_replicas:
        raise UsageError(
            f"LeaderWorkerSet {name} has {lws.replicas} groups, and in place nothing would serve while one is"
            " renewed: take --strategy surge or blue-green, or scale to 2"
        )


def _service(found: Snapshot, lws: Target) -> Object:
    """A Service for the leaders, selecting the user's own labels, so that it selects a canary LWS's leaders too."""
    template = lws.version.members["leaderWorkerTemplate"]
    leader = template.get("leaderTemplate") or template.get("workerTemplate") or {}
    labels = (leader.get("metadata") or {}).get("labels") or {LWS_NAME: lws.metadata.name}
    ports = [
        port
        for container in (leader.get("spec") or {}).get("containers") or ()
        for port in container.get("ports") or ()
    ]
    target = ports[0].get("name") or ports[0]["containerPort"] if ports else 8000
    taken = {each["metadata"]["name"] for each in found.plain(SERVICES)}
    names = (f"{lws.metadata.name}-{each}" for each in ("api", "http", "leaders"))
    return {
        "apiVersion": SERVICES.api_version,
        "kind": SERVICES.kind,
        "metadata": {"name": next(each for each in names if each not in taken), "namespace": lws.metadata.namespace},
        "spec": {
            "selector": {**labels, LWS_WORKER_INDEX: "0"},
            "ports": [{"name": "http", "port": 80, "targetPort": target}],
        },
    }


def _unlisted(found: Snapshot, workload: str, routing: Routing) -> Iterator[str]:
    """Services and pools, other than the named ones, that would select a new version's leaders."""
    labels = [
        {key: value for key, value in pod.metadata.labels.items() if key != LWS_NAME}
        for pod in found.every_leader()
        if pod.workload == workload
    ]
    for selecting, named in (
        (services.SELECTING, (routing.service,)),
        (pools.SELECTING, (routing.stable_pool, routing.canary_pool)),
    ):
        for live in found.plain(selecting.resource):
            name = live["metadata"]["name"]
            if name not in named and any(selecting.selects(live, each) for each in labels):
                yield f"{selecting.resource.kind} {name}"


def _changed_by_releases(found: Snapshot, workload: str, routing: Routing) -> Iterator[Object]:
    written = ((each.resource, each.name) for each in routing.ignored)
    for resource, name in ((LEADER_WORKER_SETS, workload), *written):
        live = found.find(resource, name)
        if live is not None:
            yield live


def _keepers(found: Snapshot, workload: str, routing: Routing) -> tuple[str, ...]:
    """GitOps owners of the objects that a release modifies."""
    owners = (gitops.owner(each) for each in _changed_by_releases(found, workload, routing))
    return tuple(dict.fromkeys(filter(None, owners)))


def _ignored(found: Snapshot, lws: Target, capacity: CapacityStrategy, routing: Routing) -> Iterator[Ignored]:
    """Fields that a release writes in objects that may be kept in Git; a release never modifies an Ingress."""
    members = ["partition"]
    strategy = lws.strategy
    if capacity.surges or resolved_surge(strategy, max(1, lws.replicas)):
        members += ["maxSurge", "maxUnavailable"]
    pointers = tuple(f"{_STRATEGY}/{each}" for each in members)
    yield Ignored(LEADER_WORKER_SETS, lws.metadata.name, pointers)
    if routing.routes:
        yield from routing.ignored
    for live in _autoscalers(found, lws.metadata.name):
        yield Ignored(HORIZONTAL_POD_AUTOSCALERS, live["metadata"]["name"], ("/spec/minReplicas", "/spec/maxReplicas"))


def _autoscalers(found: Snapshot, workload: str) -> list[Object]:
    return [each for each in found.plain(HORIZONTAL_POD_AUTOSCALERS) if scaled_workload(each) == workload]


def _warnings(
    found: Snapshot, lws: Target, capacity: CapacityStrategy, routing: Routing, service: Object | None
) -> Iterator[str]:
    name, replicas = lws.metadata.name, lws.replicas
    strategy = lws.strategy
    if replicas == 0:
        yield f"LeaderWorkerSet {name} has 0 groups: the steps are for one; run init again when it has more"
    if strategy.partition and not (strategy.partition >= HOLD and hold_record(lws, found.keys)):
        yield (
            f"LeaderWorkerSet {name} has partition {strategy.partition}: leave it out of its manifest, a Rollout holds"
            " the LWS by it; groups of two versions have to be one first"
        )
    yield from _probes(lws, routing)
    yield from routing.unfit
    if routing.router is not None and routing.stable_pool and not routing.canary_pool:
        yield (
            f"{routing.router.resource.kind} {routing.route} leads to InferencePool {routing.stable_pool}, and the new"
            " version needs a second pool with an endpoint picker of its own: make it, then run init again; until then"
            " no shares are given"
        )
    elif not routing.routes:
        yield from _unrouted(found, lws, capacity, service)
        if capacity.full_set:
            yield "without a route blue-green takes no requests off the old groups before they are renewed one by one"
    for live in _autoscalers(found, name):
        yield (
            f"HorizontalPodAutoscaler {live['metadata']['name']} scales {name}: it is held while a release is on"
            + (f", at {replicas} groups" if capacity.pins_replicas else ", so that it takes no group away")
        )


def _unrouted(found: Snapshot, lws: Target, capacity: CapacityStrategy, made: Object | None) -> Iterator[str]:
    """Which versions Services reach without a route; ``made`` is the proposed Service."""
    leaders = [pod.metadata.labels for pod in found.every_leader() if pod.workload == lws.metadata.name]
    new = {key: value for key, value in leaders[0].items() if key != LWS_REVISION} if leaders else {}
    if not capacity.one_workload:
        new[LWS_NAME] = canary_name(lws)
    found_by = reached_by((*found.plain(SERVICES), *((made,) if made else ())), leaders, new)
    if found_by.new:
        yield "no HTTPRoute or Ingress leads to the leaders: requests follow the number of groups, no shares are given"
        return
    ways = "surge or in-place" if lws.replicas > 1 else "surge"
    yield (
        f"the new version gets no requests before the promotion: Service {', '.join(found_by.old)} selects by labels"
        f" that its groups do not have, as they are in LeaderWorkerSet {canary_name(lws)}; take --strategy {ways}, in"
        " which it leads to groups of both versions, or give the leaders' template a label of your own and select by"
        " that and by " + LWS_WORKER_INDEX + ': "0"'
    )


def _probes(lws: Target, routing: Routing) -> Iterator[str]:
    """A release judges a group by its leader's readiness alone."""
    template = lws.version.members["leaderWorkerTemplate"]
    leader = template.get("leaderTemplate") or template.get("workerTemplate") or {}
    listed = (leader.get("spec") or {}).get("containers") or []
    probes = [each["readinessProbe"] for each in listed if each.get("readinessProbe")]
    if not probes:
        yield "leaders have no readinessProbe: a group counts as ready before its model is loaded; add one by HTTP"
    elif all("tcpSocket" in probe for probe in probes):
        yield "leaders are probed by TCP only: a port may be open before the model is loaded; probe /health by HTTP"
    if routing.routes and not any((each.get("lifecycle") or {}).get("preStop") for each in listed):
        yield (
            "leaders have no preStop: a group that is renewed while it gets requests loses those of the moment in which"
            " routers hear of it; add a sleep of some seconds"
        )
