"""Proposes a Rollout for an LWS that has none. Pure: a snapshot of its namespace in, a proposal and warnings out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.cli import gitops
from rollout_lws.cli.init import routes, steps
from rollout_lws.cli.init.routes import Routing
from rollout_lws.cli.init.steps import Proposed
from rollout_lws.errors import UsageError
from rollout_lws.objects.resources import LEADER_WORKER_SETS, LWS_NAME
from rollout_lws.observe.snapshot import Snapshot
from rollout_lws.targets.target import Target
from rollout_lws.traffic import pools, services


@dataclass(frozen=True, slots=True)
class Proposal:
    """A Rollout called ``name`` for an LWS. ``unlisted`` are Services and pools beside those of ``routing`` that would
    select the new version's leaders.
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
    warnings: tuple[str, ...] = field(default=())


def propose(found: Snapshot, workload: str, capacity: CapacityStrategy, name: str = "") -> Proposal:
    """The proposal; UsageError, with what to do, when no Rollout is possible."""
    lws = found.workload(LEADER_WORKER_SETS, workload)
    if lws is None:
        raise UsageError(f"there is no LeaderWorkerSet {workload!r}: see `kubectl get leaderworkersets`")
    _refuse(found, lws, capacity)
    routing = routes.find(found, workload)
    version = lws.version
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
        warnings=tuple(_warnings(found, lws, routing)),
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


def _warnings(found: Snapshot, lws: Target, routing: Routing) -> Iterator[str]:
    """What neither ``plan`` nor ``lint`` of the proposal tells."""
    yield from routing.unfit
    if routing.router is not None and routing.stable_pool and not routing.canary_pool:
        yield (
            f"{routing.router.resource.kind} {routing.route} leads to InferencePool {routing.stable_pool}, and the new"
            " version needs a second pool with an endpoint picker of its own: make it, then run init again; until then"
            " no shares are given"
        )
    elif not routing.routes:
        yield "no route to a Service of the leaders is there, so steps have no shares of requests"
    written = ((LEADER_WORKER_SETS, lws.metadata.name), *(routing.written if routing.routes else ()))
    live = (found.find(resource, name) for resource, name in written)
    for keeper in dict.fromkeys(gitops.owner(each) for each in live if each is not None):
        if keeper:
            yield (
                f"{keeper} keeps objects in which a release writes for its time: let it leave these fields alone, as"
                " docs/traffic.md shows (With Argo CD or Flux)"
            )
