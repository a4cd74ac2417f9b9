"""Observes a pair: its two workloads, which of them is active, and the objects that lead to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from rollout_lws.api import Rollout, rollout_spec
from rollout_lws.objects.resources import HTTP_ROUTES, SERVICES, Resource
from rollout_lws.observe.routing import mentioning, plain_all
from rollout_lws.observe.world import World
from rollout_lws.rollout.observation import Companion
from rollout_lws.rollout.routing.sides import ACTIVE, Side, active_side
from rollout_lws.targets.target import Target
from rollout_lws.traffic.names import CANARY, STABLE, ManagedRef, Names, of_sides
from rollout_lws.traffic.route.pair import PairMark, mark_of, weights_of
from rollout_lws.traffic.routers import named
from rollout_lws.traffic.services import backends
from rollout_lws.traffic.split import Backends, Object
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
    routes = {ref.name for ref in asked.refs if ref.kind == HTTP_ROUTES.kind} if asked is not None else set[str]()
    live = _named(world, routes)
    found = _on_record(world, rollout, routes)
    weights = weights_of(live, backends(own)) if live is not None and own is not None else (0, 0)
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
        begun = _of_release(*found, names, active)
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


def _named(world: World, names: set[str]) -> Object | None:
    """The route that the spec names, if it is known."""
    near = [each for each in world.every(HTTP_ROUTES) if each.metadata.name in names] if names else []
    return next(iter(plain_all(near).values()), None)


def _on_record(world: World, rollout: Rollout, names: set[str]) -> tuple[str, PairMark] | None:
    """Name and entry of the route that carries one of this Rollout: one that a release has moved requests in, else the
    one that the spec names, else any.
    """
    uid = rollout.metadata.uid
    marked = (
        (str(live["metadata"]["name"]), mark)
        for live in mentioning(world.every(HTTP_ROUTES), uid)
        if (mark := mark_of(live, uid, world.keys)) is not None
    )
    return min(marked, key=lambda each: (not each[1].begun, each[0] not in names, each[0]), default=None)


def _of_release(route: str, mark: PairMark, asked: Names | None, active: str) -> Names | None:
    """The names of the release that wrote this entry; None where they are those that are asked for."""
    moved = mark.backends
    if moved is None:
        return None
    both = moved if active in ("", mark.active) else Backends(moved.canary, moved.stable)
    if asked is not None and backends(asked) == both and route in {ref.name for ref in asked.refs}:
        return None
    refs: tuple[ManagedRef, ...] = (ManagedRef(HTTP_ROUTES.kind, route),)
    services = (both.stable.name, both.canary.name)
    if both.stable.kind != SERVICES.kind:
        services = (asked.service if asked is not None else "", "")
        refs += (ManagedRef(both.stable.kind, both.stable.name, STABLE),)
        refs += (ManagedRef(both.canary.kind, both.canary.name, CANARY),)
    return Names(service=services[0], canary_service=services[1], refs=refs, active=active or mark.active)
