"""Proposes a Rollout for two workloads with a way in of their own each, between which an HTTPRoute shares requests.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import yaml

from rollout_lws.capacity import known
from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.cli import gitops
from rollout_lws.cli.init import routes, steps
from rollout_lws.cli.init.companions import Companion, numbered
from rollout_lws.cli.init.proposal import Proposal, held, missing, not_released
from rollout_lws.cli.init.routes import Routing
from rollout_lws.errors import UsageError
from rollout_lws.objects.resources import INFERENCE_POOLS
from rollout_lws.observe.snapshot import Object, Snapshot
from rollout_lws.rollout.routing.group_drains import removable
from rollout_lws.targets.owner import renamed_with_each_version
from rollout_lws.targets.target import Target, called, takers
from rollout_lws.traffic import pools, services
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.names import CANARY, STABLE, ManagedRef, Names, of_sides
from rollout_lws.traffic.registry import PAIR_KINDS, either
from rollout_lws.traffic.route.kinds import PAIR_RULES
from rollout_lws.traffic.route.state import references, refers
from rollout_lws.traffic.router import Router
from rollout_lws.traffic.routers.of_rollout import PAIR_ROUTERS
from rollout_lws.traffic.services import backends
from rollout_lws.traffic.split import Backend


def propose_pair(
    found: Snapshot,
    kind: type[Target],
    workload: str,
    counterpart: str,
    name: str = "",
    touch: str = "",
    *,
    shift: bool = False,
    companions: Sequence[Companion] = (),
) -> Proposal:
    """The proposal; UsageError, with what to do, when no Rollout is possible. Releases scale both workloads, unless
    ``touch`` asks for the route alone, or another object controls one of them. ``shift``: one side gives up groups as
    the other one gets some. ``companions`` are further workloads of both sides.
    """
    if workload == counterpart:
        raise UsageError(f"--counterpart names {kind.resource.kind} {workload} itself: name the other one of the pair")
    first, other = _workload(found, kind, workload), _workload(found, kind, counterpart)
    beside = [(_workload(found, kind, each.name), _workload(found, kind, each.counterpart)) for each in companions]
    every = (first, other, *(each for both in beside for each in both))
    routing = _routing(found, first, other, companions)
    owner = next((each.metadata.controller for each in every if each.metadata.controller is not None), None)
    capacity = known.PAIR if touch or owner is not None else known.SCALED_PAIR
    if shift:
        capacity = known.SHIFTED_PAIR
        _refuse_shift(found, routing, (first, other))
    sides = _Sides.of(found, first, other, routing)
    sides = replace(sides, beside=tuple(both[0 if sides.inactive is first else 1] for both in beside))
    ignored = (*routing.ignored, *(held(each, capacity) for each in every if capacity.makes_groups))
    live = (found.find(each.resource, each.name) for each in ignored)
    return Proposal(
        name=name or workload,
        namespace=first.metadata.namespace,
        kind=kind,
        workload=workload,
        counterpart=counterpart,
        counterpart_replicas=other.replicas,
        active_side=sides.active.metadata.name if not sides.known or _goes(sides, capacity) else "",
        owner=f"{owner.kind} {owner.name}" if owner is not None else "",
        api_version=f"{found.keys.group}/v1beta1",
        capacity=capacity,
        replicas=first.replicas,
        size=first.version.size,
        accelerators=first.version.accelerators_by_name,
        steps=steps.steps(capacity, sides.active.replicas, routed=True),
        routing=routing,
        keepers=tuple(dict.fromkeys(filter(None, (gitops.owner(each) for each in live if each is not None)))),
        ignored=ignored,
        warnings=(*_warnings(sides, capacity), *_renamed(every)),
        companions=tuple(
            numbered(each, capacity, sides.active, both[0 if sides.active is first else 1])
            for each, both in zip(companions, beside, strict=True)
        ),
    )


@dataclass(frozen=True, slots=True)
class _Sides:
    """The side that serves today and the other one; not ``known`` if nothing but a Rollout can say it."""

    active: Target
    inactive: Target
    known: bool
    beside: tuple[Target, ...] = ()
    """Companions of the inactive side."""

    @property
    def standing(self) -> tuple[Target, ...]:
        """Workloads of the inactive side that have groups."""
        return tuple(each for each in (self.inactive, *self.beside) if each.replicas)

    @classmethod
    def of(cls, found: Snapshot, first: Target, other: Target, routing: Routing) -> _Sides:
        live = found.find(routing.router.resource, routing.route) if routing.router is not None else None
        weights = 0, 0
        if live is not None and routing.router is not None:
            both = backends(_names(routing, first.metadata.name))
            weights = PAIR_RULES[routing.router.resource].weights(live, both)
        with_requests = [each for each, weight in zip((first, other), weights, strict=True) if weight]
        with_groups = [each for each in (first, other) if each.replicas]
        active = next((each[0] for each in (with_requests, with_groups) if len(each) == 1), None)
        inactive = first if active is other else other
        return cls(active or first, inactive, known=active is not None)


def _workload(found: Snapshot, kind: type[Target], name: str) -> Target:
    lws = found.workload(kind.resource, name)
    if lws is None:
        raise UsageError(missing(found, kind, name))
    not_released(found, lws)
    return lws


def _routing(found: Snapshot, workload: Target, counterpart: Target, companions: Sequence[Companion] = ()) -> Routing:
    """What leads to each side, and the route that names both; UsageError, with what to add, where one is missing."""
    own, unfit = routes.services_of(found, workload, counterpart)
    others, other_unfit = routes.services_of(found, counterpart, workload)
    candidates = [
        *(Routing(one, pair=True, counterpart_service=other) for one, other in product(own, others)),
        *(
            Routing(own[0], stable_pool=one, canary_pool=other, pair=True)
            for one, other in product(
                _pools(found, workload, [each.name for each in companions]),
                _pools(found, counterpart, [each.counterpart for each in companions]),
            )
            if own and one != other
        ),
    ]
    near: list[str] = []
    for each in candidates:
        names = _names(each, workload.metadata.name)
        for router in PAIR_ROUTERS:
            for live in sorted(found.plain(router.spec.resource), key=_name):
                problem = _problem(found, router, names, live)
                if not problem:
                    return _at(each, router, _name(live))
                near += _lacking(names, router, live, problem)
    if near:
        raise UsageError(near[0])
    for name, fit, told in ((workload, own, unfit), (counterpart, others, other_unfit)):
        if not fit:
            raise UsageError(_no_service(name, told))
    raise UsageError(
        f"no {either(PAIR_KINDS)} refers to Service {own[0]} or Service {others[0]}: create one whose rule has"
        " backendRefs to both, weight 100 for the side that serves and 0 for the other one"
    )


def _refuse_shift(found: Snapshot, routing: Routing, members: tuple[Target, Target]) -> None:
    """UsageError, with what to do, where no group can be taken out of what leads to a side before it goes."""
    for lws in members:
        owner = lws.metadata.controller
        if owner is not None:
            raise UsageError(
                f"{called(lws)} is controlled by {owner.kind} {owner.name}, which would undo what a shift scales: leave"
                " out --shift"
            )
    for selecting, names in (
        (services.SELECTING, (routing.service, routing.counterpart_service)),
        (pools.SELECTING, (routing.stable_pool, routing.canary_pool)),
    ):
        for lws, name in zip(members, names, strict=True):
            live = found.find(selecting.resource, name) if name else None
            if live is not None and not removable(selecting.selector(live), lws):
                raise UsageError(
                    f"{selecting.resource.kind} {name} selects groups only by labels that the {lws.resource.kind} gives"
                    f" them, and with --shift a group loses a label of it before it goes: {_label_to_add(lws)}"
                )


def _label_to_add(lws: Target) -> str:
    own = (lws.version.leader_template.get("metadata") or {}).get("labels") or {}
    label = next((f"{key}: {value}" for key, value in sorted(own.items()) if key not in lws.selector), "")
    if label:
        return f"add a label of the template to its selector, such as {label}"
    if lws.selector:
        return (
            f"give the template of {called(lws)} a label that is not in the {lws.resource.kind}'s own selector, such as"
            f" serves: {lws.metadata.name}, and add it to its selector"
        )
    return f"give the templates of {called(lws)} a label, such as app: {lws.metadata.name}, and add it to its selector"


def _at(found: Routing, router: type[Router], route: str) -> Routing:
    return Routing(
        found.service,
        router.spec,
        route,
        found.stable_pool,
        found.canary_pool,
        pair=True,
        counterpart_service=found.counterpart_service,
    )


def _no_service(workload: Target, unfit: list[str]) -> str:
    why, name = f" ({unfit[0]})" if unfit else "", workload.metadata.name
    by_name, taking = workload.labels.workload, workload.labels.leader
    selector = f"by a label that the template of {name} alone has"
    if by_name is not None and taking is not None:
        selector = f'with the selector {{{by_name}: {name}, {taking[0]}: "{taking[1]}"}}'
    return (
        f"no Service selects the {takers(workload)} of {called(workload)} and of no other{why}: each side of a pair"
        f" needs one of its own, such as one {selector}"
    )


def _pools(found: Snapshot, workload: Target, beside: Sequence[str] = ()) -> list[str]:
    """The pools that select the leaders of a workload, and of no other one but those ``beside`` it."""
    leaders = {name: sets for name, sets in routes.leaders_of(found, workload).items() if name not in beside}
    names = routes.selecting_leaders(found, pools.SELECTING, leaders[workload.metadata.name])
    live = {name: found.find(INFERENCE_POOLS, name) for name in names}
    return [
        name
        for name, pool in live.items()
        if pool is not None and not pools.pool_problem(pool, "", found.keys, workload=workload, leaders=leaders)
    ]


def _names(routing: Routing, workload: str) -> Names:
    of_pools = tuple(
        ManagedRef(kind=INFERENCE_POOLS.kind, name=pool, version=version)
        for pool, version in ((routing.stable_pool, STABLE), (routing.canary_pool, CANARY))
        if pool
    )
    names = Names(service=routing.service, canary_service=routing.counterpart_service, refs=of_pools)
    return of_sides(names, workload, workload)


def _problem(found: Snapshot, router: type[Router], names: Names, live: Object) -> str:
    """Why a release cannot move requests in this route; "" when it can. It counts as in use, which shows only then."""
    objects = {router.spec.resource: {_name(live): router.spec.in_use({**live, "status": {}})}}
    facts = RoutingFacts(names, live["metadata"].get("namespace", ""), "", found.keys, objects=objects)
    problem = router(facts, _name(live)).check()
    return problem.message if problem is not None else ""


def _lacking(names: Names, router: type[Router], live: Object, problem: str) -> Iterator[str]:
    """What to add to a route that names one side of the pair only."""
    both, namespace = backends(names), str(live["metadata"].get("namespace", ""))
    kind = PAIR_RULES[router.spec.resource].kind
    for rule in kind.read(live):
        refs = references(rule)
        named = [any(refers(ref, each, namespace) for ref in refs) for each in (both.stable, both.canary)]
        if named.count(True) == 1:
            lacks, there = (both.canary, both.stable) if named[0] else (both.stable, both.canary)
            port = next((ref.get("port") for ref in refs if refers(ref, there, namespace)), None)
            reference = _reference(lacks, port)
            ((member, (_, added)),) = kind.route_of({"backendRefs": [reference, reference]}).items()
            line = yaml.safe_dump([added], sort_keys=False, default_flow_style=None).strip()
            yield f"{problem}. Below {member} of {router.spec.resource.kind} {_name(live)}:\n  {line}"


def _reference(backend: Backend, port: object) -> dict[str, object]:
    kind = {"group": backend.group, "kind": backend.kind} if backend.group else {}
    at = {"port": port} if port is not None and not backend.group else {}
    return {**kind, "name": backend.name, **at, "weight": 0}


def _goes(sides: _Sides, capacity: CapacityStrategy) -> bool:
    """Whether the Rollout takes groups that stand today: it has to be told so."""
    return capacity.makes_groups and bool(sides.standing)


def _warnings(sides: _Sides, capacity: CapacityStrategy) -> Iterator[str]:
    """What neither ``plan`` nor ``lint`` of the proposal tells."""
    active, other = sides.active.metadata.name, sides.inactive.metadata.name
    if not sides.known:
        yield (
            f"requests go to both {active} and {other} today, or to neither: the Rollout names {active} as activeSide,"
            f" and gives it all of them when it is applied; name {other} there if that one serves"
        )
    for each in sides.standing if _goes(sides, capacity) else ():
        yield (
            f"the Rollout scales {called(each)} to 0 when it is applied, as {active} serves: its groups"
            f" ({each.replicas}) go, and a release of a version there loads them again"
        )


def _renamed(every: Sequence[Target]) -> Iterator[str]:
    """That the proposal names one version of its workloads, told once."""
    yield from list(filter(None, map(renamed_with_each_version, every)))[:1]


def _name(live: Object) -> str:
    return str(live["metadata"]["name"])
