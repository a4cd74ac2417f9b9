"""The new version's backend in the routes before its first share.

Gateways whose proxies learn of routes and of backends separately (Contour) fail requests while a proxy knows the share
of a backend that it does not know yet. So a route names the backend with weight 0 first, and gives it requests when its
Gateways have accepted that and the grace period has run. That is at the release's begin, while the new version's groups
load; a route that could not be written then, or that has lost the backend, names it when its share is due.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rollout_lws.objects.resources import INFERENCE_POOLS, SERVICES
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.routing.route_result import Routed
from rollout_lws.rollout.routing.routing_preflight import barred_route
from rollout_lws.rollout.routing.serving import behind_stable, stable_serves
from rollout_lws.rollout.routing.versions import new_endpoints
from rollout_lws.rollout.routing.weights import DEFAULT_GRACE_SECONDS, does_without, settings, share_of_step
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.router import Router
from rollout_lws.traffic.routers.of_rollout import routers
from rollout_lws.traffic.split import Split, listed

#: Reason of the write.
WITHOUT_REQUESTS = "the new version's backend, without requests yet"


def list_backend(d: Draft, pinned: Routed) -> Draft:
    """Writes the backend into the routes at the release's begin; ``pinned`` is the result of pinning in this pass.

    Later, ``Listing`` does so: before the BatchRelease is made, no tool can have taken the backend out again.
    """
    facts = d.o.routing
    if facts is None or facts.waits or d.o.batch_release is not None or not d.on_record or pinned.refused:
        return d
    if not (_shares(d) and _exists(d, facts)):
        return d
    split = listed(d.now)
    for each in routers(facts):
        state = each.state
        if state.unlisted and not (state.modified or state.unused or barred_route(d, each, split)):
            d = d.write(each.apply(split, WITHOUT_REQUESTS, checked=True))
    return d


def _shares(d: Draft) -> bool:
    """True if the release will share requests: in a step, or while a canary LWS serves during the promotion."""
    steps = range(1, len(d.strategy.steps) + 1)
    return not d.capacity.one_workload or any(share_of_step(d, index).reaches_new for index in steps)


def _exists(d: Draft, facts: RoutingFacts) -> bool:
    """True if the backend exists, or is created by this decision: routes that name one that does not are not accepted
    as a whole.
    """
    if facts.names.canary_pool:
        return facts.find(INFERENCE_POOLS, facts.names.canary_pool) is not None
    name = facts.canary_service_name
    return facts.canary_service is not None or any((w.resource, w.name) == (SERVICES, name) for w in d.writes)


@dataclass(frozen=True, slots=True)
class Listing:
    """What each router gets of a split now: the split, or the backend without requests. ``why`` it is not all of the
    split, "" if it is; ``until`` is when that ends by time alone, None if it never does.
    """

    splits: tuple[Split, ...]
    why: str = ""
    until: datetime | None = None

    @property
    def partial(self) -> bool:
        """Whether only some of the routers get the split."""
        return len(set(self.splits)) > 1

    @classmethod
    def of(cls, d: Draft, facts: RoutingFacts, every: Sequence[Router], split: Split) -> Listing:
        waits = [_waits(d, each) for each in every] if split.reaches_new and _stable_carries(d, facts) else []
        first = next((each for each in waits if each is not None), None)
        if first is None:
            return cls((split,) * len(every))
        # Routes give their first requests at the same time. One that lost the backend stops no other.
        begun = any(each.state.reaches_canary for each in every)
        held = [not begun or each is not None for each in waits]
        return cls(tuple(listed(d.now) if holds else split for holds in held), *first)


def _waits(d: Draft, router: Router) -> tuple[str, datetime | None] | None:
    """Why a route does not give the new version its share yet, and until when that is; None if it may."""
    state, asked = router.state, settings(d)
    if state.reaches_canary:
        return None
    if state.unlisted:
        return f"{state.ref} names the new version's backend before it gives it requests", None
    if state.listed_at is None:
        return None
    seconds = asked.grace_period_seconds if asked is not None else DEFAULT_GRACE_SECONDS
    # A moment ahead of our clock is none that this controller has written.
    until = d.yet_to_come(state.listed_at, seconds) if state.listed_at <= d.now else None
    if until is not None:
        return f"{state.ref} gives the new version its share at {until:%H:%M:%S} UTC", until
    return (state.unaccepted, None) if state.unaccepted else None


def _stable_carries(d: Draft, facts: RoutingFacts) -> bool:
    """True if all requests are answered while they go to the stable backend: by enough of stable's groups, or by the
    new version's that it leads to in a promotion. Otherwise the share cannot wait.
    """
    return (stable_serves(d, facts) and does_without(d)) or behind_stable(d, facts, new_endpoints(d))
