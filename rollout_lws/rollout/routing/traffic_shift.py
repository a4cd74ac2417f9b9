"""Requests while groups change hands: what has to be true of them before a group of either version goes.

With a second LeaderWorkerSet the canary takes over while the stable one is renewed. In one LeaderWorkerSet there is
nobody to take over: its two versions share one Service while the rest of it is renewed, and give up requests before
groups go back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.recent_writes import written_lately
from rollout_lws.rollout.routing.route import awaited, drained, grace_over, keep, note, route, withdraw
from rollout_lws.rollout.routing.route_result import Routed
from rollout_lws.rollout.routing.selector_pinning import point
from rollout_lws.rollout.routing.serving import behind_stable
from rollout_lws.rollout.routing.unmanaged_backends import unlisted
from rollout_lws.rollout.routing.versions import both_sides, new_side, stable_side
from rollout_lws.rollout.routing.weights import does_without, takes_over, weight_of
from rollout_lws.rollout.state import CleaningUp, Detaching, Idle, InSteps, Promoting, RollingBack
from rollout_lws.traffic import pinned_selectors
from rollout_lws.traffic.pools import unanswered


def protect(d: Draft) -> Draft:
    """Where a release neither goes on nor back, requests are still kept from a side that does not serve."""
    match d.state:
        case Idle() | InSteps() | Detaching() | RollingBack(promotion=False):
            d, _ = keep(d)
        case Promoting() | RollingBack() | CleaningUp():
            d, _ = keep(d) if d.capacity.one_workload else hand_over(d)
        case unknown:
            assert_never(unknown)
    return d


def for_promotion(d: Draft) -> tuple[Draft, Routed]:
    """Before regular groups of the stable LWS are renewed; done when no request is lost by a window."""
    return merge(d) if d.capacity.one_workload else hand_over(d)


def hand_over(d: Draft) -> tuple[Draft, Routed]:
    """The share that the canary has while stable groups are renewed, or, where it has groups enough, all requests,
    those of clients that use the Service directly included.
    """
    d, routed = keep(d)
    facts, record = d.o.routing, d.status.traffic
    if facts is None or record is None or record.step is None or facts.service is None:
        return d, routed
    stable, new = stable_side(d), new_side(d)
    d, pinned_new = point(d, pinned_selectors.of_new(facts), new)
    routed = routed if not routed.done else pinned_new
    # While paused, a canary that has become big enough gets no more than it had.
    kept_back = d.paused and weight_of((d.status.traffic or record).desired) < 100
    if kept_back or not takes_over(d):
        if not any(group.ready(d.now) for group in stable.groups):
            # Whoever serves keeps the requests; those that do not serve can be renewed, and only that mends them.
            return d, routed
        d = note(d, stable_drained_at=None)
        d, pinned = point(d, pinned_selectors.of_stable(facts), stable)
        return d, (pinned if routed.done else routed)
    if not routed.done:
        return d, routed
    own = {leader.metadata.name for leader in d.stable.leaders}
    service = facts.names.service
    listed = facts.endpoints.get(service, frozenset())
    before = len(d.writes)
    d, pinned = point(d, pinned_selectors.of_stable(facts), new)
    # Endpoints follow in a moment; where they do not, that is told.
    if len(d.writes) > before:
        d = d.persist_later(brief=True)
    else:
        d = d.brief_until(written_lately(d, facts.service) if own & listed else None)
    if not pinned.done:
        return d, pinned
    if own & listed or not listed:
        return d, Routed(False, f"waiting until Service {service} sends requests to groups of {new.name} only")
    if record.stable_drained_at is None:
        d = note(d, stable_drained_at=d.now)
    waited = drained(d, (d.status.traffic or record).stable_drained_at or d.now, f"groups of {stable.name}")
    return awaited(d, replace(waited, emptied=waited.done and not reached_by_others(d)))


def merge(d: Draft) -> tuple[Draft, Routed]:
    """All requests by the Service of the stable version, which leads to groups of both versions of the one LWS."""
    facts, record = d.o.routing, d.status.traffic
    if facts is None or record is None or record.step is None or facts.service is None:
        return keep(d)
    if record.step:
        if d.paused:
            d, _ = keep(d)
            return d, Routed(False, "paused: requests stay shared as they are")
        d, pinned = point(d, pinned_selectors.of_stable(facts), both_sides(d))
        if not pinned.done:
            return d, pinned
        new = new_side(d)
        # Groups that are gone, be it by scaling down, have nothing that would have to reach them first.
        if any(group.ready(d.now) for group in new.groups) and not behind_stable(d, facts, new):
            d, _ = keep(d)
            waits = f"waiting until Service {facts.names.service} sends requests to groups of both versions"
            return d, Routed(False, unanswered(facts, facts.names.stable_pool) or waits)
        d = note(d, step=0)
    d, routed = keep(d)
    return awaited(d, grace_over(d)) if routed.done else (d, routed)


def make_room(d: Draft, index: int | None = None) -> tuple[Draft, Routed]:
    """Before groups of the new version go, in step ``index`` or on the way back: requests go elsewhere, and those that
    run on these groups get the time to end. In place, where too few others serve, the share only follows.
    """
    record = d.status.traffic
    follows = d.capacity.updates_regular and record is not None and bool(record.step) and not does_without(d)
    if follows:
        d, routed = keep(d) if index is None else route(d, index)
        return awaited(d, grace_over(d)) if routed.done else (d, routed)
    d, emptied = withdraw(d)
    routes = d.o.routing is not None and record is not None and record.step is not None
    return d, replace(emptied, emptied=emptied.done and routes and not reached_by_others(d))


def reached_by_others(d: Draft) -> bool:
    """Whether a Service or pool that is not named sends requests to groups of the stable LWS."""
    facts = d.o.routing
    return facts is not None and any(unlisted(facts, [leader.metadata.labels for leader in d.stable.leaders]))
