"""Proposes a Rollout for a workload that has none. Pure: a snapshot of its namespace in, a proposal with warnings
out.
"""

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
from rollout_lws.cli.init.kinds import SHORT
from rollout_lws.cli.init.routes import Routing
from rollout_lws.cli.init.steps import Proposed
from rollout_lws.errors import UsageError
from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS, SERVICES, STATEFUL_SETS
from rollout_lws.observe.snapshot import Snapshot
from rollout_lws.rollout.autoscaling.hpa_bounds import MAXIMUM, MINIMUM, scaled_workload
from rollout_lws.targets.owner import made_for_groups
from rollout_lws.targets.target import ROLLING_UPDATE, Target, called, takers
from rollout_lws.traffic import pools, services
from rollout_lws.traffic.registry import SPECS, either
from rollout_lws.workload.hold import resolved_surge

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A Rollout called ``name`` for a workload, and what else it needs. ``unlisted`` are Services and pools beside
    those of ``routing`` that would select the new version's pods; ``service`` is a Service to create, None when one
    exists; ``ignored`` are fields that the GitOps tools ``keepers`` must ignore.

    Of a pair, ``counterpart`` is the second workload, with its number of groups, and ``active_side`` the one to name,
    "" where route and groups say it. ``owner`` is the object that controls one of the two, so that no release may write
    them, as kind and name; "" without one. ``companions`` are its further workloads. ``is_autoscaled``: an autoscaler
    sets the workload's number of groups. ``kind`` is that of all of them.
    """

    name: str
    namespace: str
    kind: type[Target]
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
        """Names of the workloads that it releases."""
        beside = (name for each in self.companions for name in (each.name, each.counterpart))
        return (self.workload, self.counterpart, *beside) if self.counterpart else (self.workload,)


def propose(found: Snapshot, kind: type[Target], workload: str, capacity: CapacityStrategy, name: str = "") -> Proposal:
    """The proposal; UsageError, with what to do, when no Rollout is possible."""
    lws = found.workload(kind.resource, workload)
    if lws is None:
        raise UsageError(missing(found, kind, workload))
    _refuse(found, lws, capacity)
    routing = routes.find(found, lws)
    if capacity.shifts and not routing.routes:
        raise UsageError(_without_route(routing, capacity, takers(lws)))
    version = lws.version
    ignored = tuple(_ignored(found, lws, capacity, routing))
    live = (found.find(each.resource, each.name) for each in ignored)
    return Proposal(
        name=name or workload,
        namespace=lws.metadata.namespace,
        kind=kind,
        workload=workload,
        api_version=f"{found.keys.group}/v1beta1",
        capacity=capacity,
        replicas=lws.replicas,
        size=version.size,
        accelerators=version.accelerators_by_name,
        steps=steps.steps(capacity, lws.replicas, routed=routing.routes),
        routing=routing,
        unlisted=tuple(_unlisted(found, lws, routing)) if routing.routes else (),
        service=None if routing.service else _service(found, lws),
        keepers=tuple(dict.fromkeys(filter(None, (gitops.owner(each) for each in live if each is not None)))),
        ignored=ignored,
        warnings=tuple(_warnings(found, lws, capacity, routing)),
        is_autoscaled=bool(_autoscalers(found, lws)),
    )


def missing(found: Snapshot, kind: type[Target], name: str) -> str:
    """That there is no such workload, and what to do."""
    made = found.made_stateful_set(name) if kind.resource == STATEFUL_SETS else None
    if made is not None:
        return made_for_groups(name, made.workload)
    return f"there is no {kind.resource.kind} {name!r}: see `kubectl get {kind.resource.plural}`"


def not_released(found: Snapshot, lws: Target) -> None:
    """UsageError, with what to do, for a workload that a Rollout releases, that is a canary, or that stands for
    another.
    """
    place, short = called(lws), SHORT[lws.resource]
    rivals = sorted(each.metadata.name for each in found.rollouts_of(lws.metadata.name) if each.kind == lws.resource)
    if rivals:
        raise UsageError(
            f"{place} is released by rollout/{rivals[0]} already: look at it with `rollout-lws plan {rivals[0]}`"
        )
    canary = lws.metadata.labels.get(found.keys.canary_leader_worker_set)
    if canary:
        raise UsageError(f"{place} is the canary of a release: name the one it belongs to, {short}/{canary}")
    users = lws.metadata.labels.get(found.keys.stands_for)
    if users:
        raise UsageError(
            f"{place} was made by a release and serves in place of {users}, whose manifest is yours:"
            f" name that one, {short}/{users}"
        )


def _refuse(found: Snapshot, lws: Target, capacity: CapacityStrategy) -> None:
    not_released(found, lws)
    name = lws.metadata.name
    if capacity.surges and not lws.surges:
        raise UsageError(f"a {lws.resource.kind} has no surge groups: take --strategy canary or in-place")
    if max(1, lws.replicas) < capacity.least_replicas:
        other = "surge" if lws.surges else "canary"
        raise UsageError(
            f"{called(lws)} has {lws.replicas} groups, and in place nothing would serve while one is"
            f" renewed: take --strategy {other} or blue-green, or scale to 2"
        )
    if capacity.swaps and not _own_labels(lws):
        raise UsageError(
            f"the {takers(lws)}' template of {called(lws)} has no labels, and with --strategy {capacity.flag} a"
            f" Service has to select groups of two {lws.resource.kind}s by some: give it one, such as app: {name}"
        )


def _without_route(routing: Routing, capacity: CapacityStrategy, pods: str) -> str:
    """That nothing shares requests, which have to be elsewhere before a group goes."""
    kinds = either(each.resource for each in SPECS)
    why = "; ".join(routing.unfit) or f"no {kinds} leads to a Service of the {pods}"
    return (
        f"--strategy {capacity.flag} takes requests off single groups before they go, and nothing shares them: {why};"
        " make a route to the Service, or take --strategy canary"
    )


def _own_labels(lws: Target) -> Mapping[str, str]:
    """The labels of the template of the pods that take requests."""
    return (lws.version.leader_template.get("metadata") or {}).get("labels") or {}


def _service(found: Snapshot, lws: Target) -> Object:
    """A Service for the pods that take requests, by the user's own labels, so that it selects a canary's too."""
    leader, name = lws.version.leader_template, lws.metadata.name
    by_name, taking = lws.labels.workload, lws.labels.leader
    labels = _own_labels(lws) or ({by_name: name} if by_name is not None else {})
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
            "selector": {**labels, **dict([taking] if taking is not None else ())},
            "ports": [{"name": "http", "port": 80, "targetPort": target}],
        },
    }


def _unlisted(found: Snapshot, lws: Target, routing: Routing) -> Iterator[str]:
    """Services and pools, other than the named ones, that would select a new version's leaders."""
    labels = [
        {key: value for key, value in each.items() if key not in (lws.labels.mark, lws.labels.revision)}
        for each in routes.leaders_of(found, lws)[lws.metadata.name]
    ]
    for selecting, named in (
        (services.SELECTING, (routing.service,)),
        (pools.SELECTING, (routing.stable_pool, routing.canary_pool)),
    ):
        for live in found.plain(selecting.resource):
            name = live["metadata"]["name"]
            if (
                name not in named
                and not routes.is_of_discovery(live, lws)
                and any(selecting.selects(live, each) for each in labels)
            ):
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
    """The fields by which a workload is held."""
    members = ["partition"]
    if capacity.surges or resolved_surge(lws.strategy, max(1, lws.replicas)):
        members += ["maxSurge", "maxUnavailable"]
    elif capacity.swaps and isinstance(lws.strategy.max_unavailable, str):
        # Of the replicas that it gets, a percentage may be nothing, which it refuses.
        members.append("maxUnavailable")
    pointers = ["/".join(("", *lws.strategy_path, each)) for each in members]
    if lws.strategy.type != ROLLING_UPDATE:
        pointers.append("/".join(("", *lws.strategy_path[:-1], "type")))
    return Ignored(lws.resource, lws.metadata.name, tuple(pointers))


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
            f"no {either(each.resource for each in SPECS)} leads to the {takers(lws)}' Service, so the steps"
            " set no traffic weights: to have them, create a route to the Service and run init again"
        )
        if capacity.full_set:
            go = "go" if capacity.swaps else "are renewed one by one"
            yield f"without a route {capacity.title} takes no requests off the old groups before they {go}"
    for live in _autoscalers(found, lws) if not capacity.swaps else ():
        yield (
            f"HorizontalPodAutoscaler {live['metadata']['name']} scales {called(lws)}: a release holds it"
            + (f" at {lws.replicas} groups" if capacity.pins_replicas else ", so that it removes no group")
        )
