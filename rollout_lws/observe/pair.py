"""Observes a pair: its two workloads, which of them is active, and the objects that lead to them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from rollout_lws.api import Rollout, rollout_spec
from rollout_lws.objects.resources import SERVICES, Resource
from rollout_lws.observe.routing import mentioning, plain_all
from rollout_lws.observe.world import World
from rollout_lws.rollout.observation import Companion
from rollout_lws.rollout.routing.sides import ACTIVE, Side, active_side
from rollout_lws.targets.target import Target
from rollout_lws.traffic.names import CANARY, STABLE, ManagedRef, Names, of_sides
from rollout_lws.traffic.registry import PAIR_KINDS
from rollout_lws.traffic.route.kinds import PAIR_RULES
from rollout_lws.traffic.route.pair import PairMark, mark_of
from rollout_lws.traffic.routers.of_rollout import named
from rollout_lws.traffic.services import backends
from rollout_lws.traffic.split import Backends
from rollout_lws.workload.facts import Facts


@dataclass(frozen=True, slots=True)
class Pair:
    """``stable`` is the ``active`` side's workload and ``canary`` the other one; while neither is known to be active
    (""), that of workloadRef and of counterpartRef. ``counterpart`` is the name in counterpartRef. ``names`` are those
    of a release that has moved requests, else the spec's; None without either. ``companions`` are on the same sides.
    """

    active: str
    stable: Target | None
    canary: Target | None
    counterpart: str
    names: Names | None
    companions: tuple[Companion, ...] = ()


def pair_of(
    world: World, rollout: Rollout, kind: Resource | None, facts: Callable[[Target], Facts], now: datetime
) -> Pair | None:
    """The pair that the Rollout names; None if it names one workload."""
    spec = rollout.spec
    if spec.counterpart_ref is None or kind is None:
        return None
    first, second = spec.workload_ref.name, spec.counterpart_ref.name
    one, other = (world.workload(kind, name) for name in (first, second))
    style = spec.strategy.style
    asked = named(style.traffic_routings[0] if style and style.traffic_routings else None)
    own = of_sides(asked, first, first) if asked is not None else None
    routes = _routes(asked)
    known = _on_record(world, rollout, routes)
    found = known[0] if known else None
    weights = _weights(world, routes, own)
    stable = rollout.status.stable if rollout.status is not None else None
    active = active_side(
        *(
            Side(
                name,
                facts(lws) if lws is not None else None,
                weight,
                _is_labelled(rollout, lws, world),
                spec.scales_sides,
            )
            for name, lws, weight in zip((first, second), (one, other), weights, strict=True)
        ),
        on_record=found[1].active if found is not None else "",
        asked=spec.active_side,
        now=now,
        stable=stable.workload_uid if stable is not None else None,
    )
    names = own if own is None or active in ("", first) else own.turned(active)
    if found is not None and found[1].backends is not None:
        begun = _of_release(known, names, active)
        names = begun if begun is not None else names
    turned = active == second
    companions = tuple(
        _companion(world, each, kind, facts, turned=turned) for each in sorted(spec.companions, key=_name)
    )
    return Pair(active, other if turned else one, one if turned else other, second, names, companions)


def _name(companion: rollout_spec.Companion) -> str:
    return companion.name


def _companion(
    world: World, asked: rollout_spec.Companion, kind: Resource, facts: Callable[[Target], Facts], *, turned: bool
) -> Companion:
    names = (asked.counterpart, asked.name) if turned else (asked.name, asked.counterpart)
    found = (world.workload(kind, name) for name in names)
    stable, canary = (facts(lws) if lws is not None else None for lws in found)
    return Companion(*names, stable, canary, asked.replicas)


def _is_labelled(rollout: Rollout, lws: Target | None, world: World) -> bool:
    """Whether a label says that the workload is the active side. Without a word of ours none is kept true."""
    return rollout.spec.scales_sides and lws is not None and lws.metadata.labels.get(world.keys.side) == ACTIVE


def _routes(asked: Names | None) -> tuple[ManagedRef, ...]:
    """The routes that these names have."""
    kinds = {resource.kind for resource in PAIR_KINDS}
    return tuple(ref for ref in asked.refs if ref.kind in kinds) if asked is not None else ()


def _weights(world: World, routes: Iterable[ManagedRef], own: Names | None) -> tuple[int, int]:
    """The weights of both sides in the first of these routes that is known; zeros without one."""
    if own is None:
        return 0, 0
    for ref in routes:
        resource = next(each for each in PAIR_KINDS if each.kind == ref.kind)
        near = [each for each in world.every(resource) if each.metadata.name == ref.name]
        for live in plain_all(near).values():
            return PAIR_RULES[resource].weights(live, backends(own))
    return 0, 0


def _on_record(world: World, rollout: Rollout, asked: Collection[ManagedRef]) -> list[tuple[ManagedRef, PairMark]]:
    """The routes that carry an entry of this Rollout, with that: first those that a release has moved requests in, then
    those that the spec names.
    """
    uid = rollout.metadata.uid
    marked = (
        (ManagedRef(resource.kind, str(live["metadata"]["name"])), mark)
        for resource in PAIR_KINDS
        for live in mentioning(world.every(resource), uid)
        if (mark := mark_of(live, uid, world.keys)) is not None
    )
    return sorted(marked, key=lambda each: (not each[1].begun, each[0] not in asked, each[0].name))


def _of_release(known: Sequence[tuple[ManagedRef, PairMark]], asked: Names | None, active: str) -> Names | None:
    """The names of the release that wrote the first of these entries; None where they are those that are asked for."""
    (route, mark), moved = known[0], known[0][1].backends
    if moved is None:
        return None
    both = moved if active in ("", mark.active) else Backends(moved.canary, moved.stable)
    if asked is not None and backends(asked) == both and route in asked.refs:
        return None
    refs = tuple(ref for ref, other in known if other.backends == moved)
    services = (both.stable.name, both.canary.name)
    if both.stable.kind != SERVICES.kind:
        services = (asked.service if asked is not None else "", "")
        refs += (ManagedRef(both.stable.kind, both.stable.name, STABLE),)
        refs += (ManagedRef(both.canary.kind, both.canary.name, CANARY),)
    return Names(service=services[0], canary_service=services[1], refs=refs, active=active or mark.active)
