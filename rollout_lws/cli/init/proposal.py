"""Proposes a Rollout for an LWS that has none. Pure: a snapshot of its namespace in, a proposal and warnings out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.cli import gitops
from rollout_lws.cli.gitops import Ignored
from rollout_lws.cli.init import routes, steps
from rollout_lws.cli.init.companions import Companion
from rollout_lws.cli.init.routes import Routing
from rollout_lws.cli.init.steps import Proposed
from rollout_lws.errors import UsageError
from rollout_lws.objects.resources import (
    HORIZONTAL_POD_AUTOSCALERS,
    LEADER_WORKER_SETS,
    LWS_NAME,
    LWS_WORKER_INDEX,
    SERVICES,
)
from rollout_lws.observe.snapshot import Snapshot
from rollout_lws.rollout.autoscaling.hpa_bounds import MAXIMUM, MINIMUM, scaled_workload
from rollout_lws.targets.target import Target, called
from rollout_lws.traffic import pools, services
from rollout_lws.traffic.registry import SPECS
from rollout_lws.workload.hold import resolved_surge

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A Rollout called ``name`` for an LWS, and what else it needs. ``unlisted`` are Services and pools beside those of
    ``routing`` that would select the new version's leaders; ``service`` is a Service to create, None when one exists;
    ``ignored`` are fields that the GitOps tools ``keepers`` must ignore.

    Of a pair, ``counterpart`` is the second LWS, with its number of groups, and ``active_side`` the one to name, ""
    where route and groups say it. ``owner`` is the object that controls one of the two, so that no release may write
    them, as kind and name; "" without one. ``companions`` are its further LWSs. ``is_autoscaled``: an autoscaler sets
    the LWS's number of groups.
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
    counterpart: str = ""
    counterpart_replicas: int = 0
    active_side: str = ""
    owner: str = ""
    companions: tuple[Companion, ...] = ()
    is_autoscaled: bool = False

    @property
    def workloads(self) -> tuple[str, ...]:
        """Names of the LWSs that it releases."""
        beside = (name for each in self.companions for name in (each.name, each.counterpart))
        return (self.workload, self.counterpart, *beside) if self.counterpart else (self.workload,)


def propose(found: Snapshot, workload: str, capacity: CapacityStrategy, name: str = "") -> Proposal:
    """The proposal; UsageError, with what to do, when no Rollout is possible."""
    lws = found.workload(LEADER_WORKER_SETS, workload)
    if lws is None:
        raise UsageError(f"there is no LeaderWorkerSet {workload!r}: see `kubectl get leaderworkersets`")
    _refuse(found, lws, capacity)
    routing = routes.find(found, workload)
    if capacity.shifts and not routing.routes:
        raise UsageError(_without_route(routing, capacity))
    version = lws.version
    ignored = tuple(_ignored(found, lws, capacity, routing))
    live = (found.find(each.resource, each.name) for each in ignored)
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
        service=None if routing.service else _service(found, lws),
        keepers=tuple(dict.fromkeys(filter(None, (gitops.owner(each) for each in live if each is not None)))),
        ignored=ignored,
        warnings=tuple(_warnings(found, lws, capacity, routing)),
        is_autoscaled=bool(_autoscalers(found, lws)),
    )


def not_released(found: Snapshot, lws: Target) -> None:
    """UsageError, with what to do, for an LWS that a Rollout releases, that is a canary, or that stands for another."""
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
    users = lws.metadata.labels.get(found.keys.stands_for)
    if users:
        raise UsageError(
            f"LeaderWorkerSet {name} was made by a release and serves in place of {users}, whose manifest is yours:"
            f" name that one, lws/{users}"
        )


def _refuse(found: Snapshot, lws: Target, capacity: CapacityStrategy) -> None:
    not_released(found, lws)
    name = lws.metadata.name
    if max(1, lws.replicas) < capacity.least_replicas:
        raise UsageError(
            f"LeaderWorkerSet {name} has {lws.replicas} groups, and in place nothing would serve while one is"
            " renewed: take --strategy surge or blue-green, or scale to 2"
        )
    if capacity.swaps and not _own_labels(lws):
        raise UsageError(
            f"the leaders' template of LeaderWorkerSet {name} has no labels, and with --strategy {capacity.flag} a"
            f" Service has to select groups of two LeaderWorkerSets by some: give it one, such as app: {name}"
        )


def _without_route(routing: Routing, capacity: CapacityStrategy) -> str:
    """That nothing shares requests, which have to be elsewhere before a group goes."""
    kinds = " or ".join(each.resource.kind for each in SPECS)
    why = "; ".join(routing.unfit) or f"no {kinds} leads to a Service of the leaders"
    return (
        f"--strategy {capacity.flag} takes requests off single groups before they go, and nothing shares them: {why};"
        " make a route to the Service, or take --strategy canary"
    )


def _own_labels(lws: Target) -> Mapping[str, str]:
    """The labels of the leaders' template."""
    return (lws.version.leader_template.get("metadata") or {}).get("labels") or {}


def _service(found: Snapshot, lws: Target) -> Object:
    """A Service for the leaders, selecting the user's own labels, so that it selects a canary LWS's leaders too."""
    leader, name = lws.version.leader_template, lws.metadata.name
    labels = _own_labels(lws) or {LWS_NAME: name}
    containers = (leader.get("spec") or {}).get("containers") or ()
    ports = [port for each in containers for port in each.get("ports") or ()]
    target = ports[0].get("name") or ports[0]["containerPort"] if ports else 8000
    taken = {each["metadata"]["name"] for each in found.plain(SERVICES)}
    names = (f"{name}-{each}" for each in chain(("api", "http", "leaders"), (f"leaders-{n}" for n in count(2))))
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
        {key: value for key, value in each.items() if key != LWS_NAME}
        for each in routes.leaders_of(found, workload)[workload]
    ]
    for selecting, named in (
        (services.SELECTING, (routing.service,)),
        (pools.SELECTING, (routing.stable_pool, routing.canary_pool)),
    ):
        for live in found.plain(selecting.resource):
            name = live["metadata"]["name"]
            if name not in named and any(selecting.selects(live, each) for each in labels):
                yield f"{selecting.resource.kind} {name}"


def _ignored(found: Snapshot, lws: Target, capacity: CapacityStrategy, routing: Routing) -> Iterator[Ignored]:
    """Fields that a release writes in objects that may be kept in Git."""
    yield held(lws, capacity)
    if routing.routes:
        yield from routing.ignored
    # Where the Rollout has the number of groups, an autoscaler has to scale the Rollout.
    for live in _autoscalers(found, lws) if not capacity.swaps else ():
        pointers = (f"/spec/{MINIMUM}", f"/spec/{MAXIMUM}")
        yield Ignored(HORIZONTAL_POD_AUTOSCALERS, live["metadata"]["name"], pointers)


def held(lws: Target, capacity: CapacityStrategy) -> Ignored:
    """The fields by which an LWS is held."""
    members = ["partition"]
    if capacity.surges or resolved_surge(lws.strategy, max(1, lws.replicas)):
        members += ["maxSurge", "maxUnavailable"]
    elif capacity.swaps and isinstance(lws.strategy.max_unavailable, str):
        # Of the replicas that it gets, a percentage may be nothing, which LWS refuses.
        members.append("maxUnavailable")
    return Ignored(lws.resource, lws.metadata.name, tuple("/".join(("", *lws.strategy_path, each)) for each in members))


def _autoscalers(found: Snapshot, lws: Target) -> list[Object]:
    return [each for each in found.plain(HORIZONTAL_POD_AUTOSCALERS) if scaled_workload(each) == lws.metadata.name]


def _warnings(found: Snapshot, lws: Target, capacity: CapacityStrategy, routing: Routing) -> Iterator[str]:
    """What neither ``plan`` nor ``lint`` of the proposal tells."""
    if lws.replicas == 0:
        yield f"{called(lws)} has 0 groups: the steps are for one; run init again when it has more"
    yield from routing.unfit
    if routing.router is not None and routing.stable_pool and not routing.canary_pool:
        yield (
            f"{routing.router.resource.kind} {routing.route} leads to InferencePool {routing.stable_pool}, and the new"
            " version needs a second pool with an endpoint picker of its own: make it, then run init again; until then"
            " the steps set no traffic weights"
        )
    elif not routing.routes:
        yield (
            f"no {' or '.join(each.resource.kind for each in SPECS)} leads to the leaders' Service, so the steps set no"
            " traffic weights: to have them, create a route to the Service and run init again"
        )
        if capacity.full_set:
            go = "go" if capacity.swaps else "are renewed one by one"
            yield f"without a route {capacity.title} takes no requests off the old groups before they {go}"
    for live in _autoscalers(found, lws) if not capacity.swaps else ():
        yield (
            f"HorizontalPodAutoscaler {live['metadata']['name']} scales {called(lws)}: a release holds it"
            + (f" at {lws.replicas} groups" if capacity.pins_replicas else ", so that it removes no group")
        )
