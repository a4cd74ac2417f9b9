"""What only a pair has: a Service or pool for each of two workloads, and a route that names both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rollout_lws.cli.doctor.case import Case
from rollout_lws.rollout.routing.versions import VersionEndpoints, new_endpoints, stable_endpoints
from rollout_lws.traffic import pools, services
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.pinned_selectors import Selector
from rollout_lws.traffic.route.kinds import PAIR_RULES
from rollout_lws.traffic.route.pair import mark_of
from rollout_lws.traffic.router import Router
from rollout_lws.traffic.services import backends
from rollout_lws.traffic.split import Object
from rollout_lws.workload.facts import Facts as Workload
from rollout_lws.workload.groups import groups

_BACK = "the controller gives them back to the active side as soon as it acts"


@dataclass(frozen=True, slots=True)
class Misled:
    """Why requests go where they are not answered, or where they do not belong; ``waits``: groups that would answer
    them are on their way.
    """

    text: str
    by_itself: str
    waits: bool = False


def selectors(case: Case, facts: RoutingFacts) -> Iterator[tuple[Selector, VersionEndpoints, Workload | None]]:
    """What selects the groups of each side, the active one's first."""
    both, names = case.facts.observation, facts.names
    of_pools = bool(names.stable_pool)
    selecting = pools.SELECTING if of_pools else services.SELECTING
    found = (names.stable_pool, names.canary_pool) if of_pools else (names.service, names.canary_service)
    ends = stable_endpoints(case.d), new_endpoints(case.d)
    for name, side, workload in zip(found, ends, (both.stable, both.canary), strict=True):
        if name:
            yield Selector(facts, selecting, name), side, workload


def misled(case: Case, facts: RoutingFacts, router: Router) -> Misled | None:
    """What is wrong with the requests of each side; None when nothing is."""
    both, ref, route = case.facts.observation, router.state.ref, router.state.objects[0].live
    if route is None or both.stable is None or both.undecided:
        return None
    shares = PAIR_RULES[router.spec.resource].weights(route, backends(facts.names))
    sides = list(zip((both.stable, both.canary), shares, strict=True))
    ready = {side.name for side, _ in sides if side is not None and _is_ready(case, side)}
    for side, weight in sides:
        if side is not None and weight and side.name not in ready:
            text = f"{ref} sends {_part(weight, shares)} of its requests to {side.name}, which has no ready group"
            back = _BACK if side is not both.stable else "they are answered as soon as one of its groups is ready"
            if side is both.stable and case.d.o.rollout.spec.replicas == 0:
                return Misled(text, "nothing, until the Rollout is scaled up", waits=True)
            # Groups that are made or load are the subject of the links before.
            return Misled(text, back, waits=bool(side.workload.replicas) and not ready)
    mark = mark_of(route, case.d.uid, case.d.keys)
    if both.canary is None or not shares[1] or case.is_on:
        return None
    part = _part(shares[1], shares)
    if mark is not None and mark.share:
        text = f"{ref} sends {part} of its requests to {both.canary.name}, while {both.stable.name} does not serve"
        return Misled(text, f"they go back to {both.stable.name} once it serves", waits=True)
    return Misled(
        f"{ref} sends {part} of its requests to {both.canary.name}, the inactive side, though no release is on", _BACK
    )


def disagreement(case: Case, facts: RoutingFacts) -> str:
    """Why the status and the route do not name the same active side; "" when they do."""
    said = case.d.status.active
    if said in (None, "", facts.names.active) or case.facts.observation.undecided:
        return ""
    return f"the route has {facts.names.active} as the active side, and the status {said}"


def asked_parents(case: Case, route: Object) -> tuple[object, ...]:
    """The parents that accepted the route before the release wrote it."""
    mark = mark_of(route, case.d.uid, case.d.keys)
    return tuple(mark.parents) if mark is not None else ()


def _is_ready(case: Case, side: Workload) -> bool:
    return any(group.ready(case.now) for group in groups(side))


def _part(weight: int, shares: tuple[int, int]) -> str:
    return "all" if weight == sum(shares) else f"{round(100 * weight / sum(shares))}%"
