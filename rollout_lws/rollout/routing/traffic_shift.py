"""Traffic shift: the state that traffic must be in before a group of either version goes.

With a canary LWS the canary takes over while stable is updated. A single LWS has no such substitute: both versions
share one Service while the rest of it is updated, and groups give up requests before they are rolled back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.recent_writes import written_lately
from rollout_lws.rollout.routing.drains import Leaving, drained
from rollout_lws.rollout.routing.route import awaited, grace_over, keep, route, run_out, set_traffic, withdraw
from rollout_lws.rollout.routing.route_result import Routed
from rollout_lws.rollout.routing.selector_pinning import make_copy, point
from rollout_lws.rollout.routing.serving import behind_stable
from rollout_lws.rollout.routing.unmanaged_backends import unlisted
from rollout_lws.rollout.routing.versions import all_endpoints, new_endpoints, stable_endpoints
from rollout_lws.rollout.routing.weights import carries, does_without, takes_over, weight_of
from rollout_lws.rollout.state import CleaningUp, Detaching, Idle, InSteps, Promoting, RollingBack, forced_since
from rollout_lws.traffic import pinned_selectors
from rollout_lws.traffic.pools import unanswered
from rollout_lws.workload.groups import Group, groups


def protect(d: Draft) -> Draft:
    """For passes in which the release neither advances nor rolls back: rewrites what others changed in routes and
    selectors, and takes requests from a version that has stopped serving.
    """
    match d.state:
        case Idle() | InSteps() | Detaching() | RollingBack(promotion=False):
            d, _ = keep(d)
        case Promoting() | RollingBack() | CleaningUp():
            turned = d.capacity.swaps and isinstance(d.state, CleaningUp)
            d, _ = keep(d) if d.capacity.one_workload or turned else hand_over(d)
        case unknown:
            assert_never(unknown)
    return d


def for_promotion(d: Draft) -> tuple[Draft, Routed]:
    """Before regular groups of the stable LWS are updated; done when a partition window would lose no request."""
    return merge(d) if d.capacity.one_workload else hand_over(d)


def hand_over(d: Draft) -> tuple[Draft, Routed]:
    """Gives the canary its weight while stable groups are updated, or all requests if it has enough groups. That
    includes clients that use the Service directly.
    """
    d, routed = keep(d)
    facts, record = d.o.routing, d.status.traffic
    if facts is None or record is None or record.step is None or facts.service is None:
        return d, routed
    stable, new = stable_endpoints(d), new_endpoints(d)
    # Another client may have deleted it.
    d = make_copy(d, facts) if new.exists else d
    d, pinned_new = point(d, pinned_selectors.of_new(facts), new)
    routed = routed if not routed.done else pinned_new
    # During a pause, a canary that has become big enough gets no more weight.
    kept_back = d.paused and weight_of((d.status.traffic or record).desired) < 100
    if kept_back or not takes_over(d):
        if not any(group.ready(d.now) for group in stable.groups):
            # The version that serves keeps the requests; for groups that do not, an update may be the only fix.
            return d, routed
        d = set_traffic(d, stable_drained_at=None)
        d, pinned = point(d, pinned_selectors.of_stable(facts), stable)
        return d, (pinned if routed.done else routed)
    if not routed.done:
        return d, routed
    own = {leader.metadata.name for leader in d.stable.leaders}
    service = facts.names.service
    listed = facts.endpoints.get(service, frozenset())
    before = len(d.writes)
    d, pinned = point(d, pinned_selectors.of_stable(facts), new)
    # Endpoints mostly follow at once; only a longer wait is reported.
    if len(d.writes) > before:
        d = d.persist_later(brief=True)
    else:
        d = d.brief_until(written_lately(d, facts.service) if own & listed else None)
    if not pinned.done:
        return d, pinned
    if own & listed or not listed:
        return d, Routed(False, f"waiting until Service {service} sends requests to groups of {new.name} only")
    if record.stable_drained_at is None:
        d = set_traffic(d, stable_drained_at=d.now)
    since = (d.status.traffic or record).stable_drained_at or d.now
    d, waited = drained(d, since, Leaving(f"groups of {stable.name}", d.stable, _renewed(d)))
    return awaited(d, replace(waited, emptied=waited.done and not reached_by_others(d)))


def _renewed(d: Draft) -> tuple[Group, ...]:
    """Groups of the stable LWS that a promotion, or its rollback, still has to renew."""
    stays = d.sub.new_revision if isinstance(d.state, Promoting) else d.stable_revision
    return tuple(group for group in groups(d.stable) if group.revision != stays)


def merge(d: Draft) -> tuple[Draft, Routed]:
    """Sends all requests through the stable Service, pinned to groups of both versions of the one LWS."""
    facts, record = d.o.routing, d.status.traffic
    if facts is None or record is None or record.step is None or facts.service is None:
        return keep(d)
    if record.step:
        if d.paused:
            d, _ = keep(d)
            return d, Routed(False, "paused: requests stay shared as they are")
        d, pinned = point(d, pinned_selectors.of_stable(facts), all_endpoints(d))
        if not pinned.done:
            return d, pinned
        new = new_endpoints(d)
        # Groups that are gone, for example scaled down, need not be reachable first.
        if any(group.ready(d.now) for group in new.groups) and not behind_stable(d, facts, new):
            d, _ = keep(d)
            waits = f"waiting until Service {facts.names.service} sends requests to groups of both versions"
            return d, Routed(False, unanswered(facts, facts.names.stable_pool) or waits)
        d = set_traffic(d, step=0)
    d, routed = keep(d)
    return awaited(d, grace_over(d)) if routed.done else (d, routed)


def make_room(d: Draft, index: int | None = None, going: tuple[Group, ...] | None = None) -> tuple[Draft, Routed]:
    """Moves requests away from groups of the new version before those ``going`` (None: all of them) go, in step
    ``index`` or in a rollback, and lets running requests drain. In place, if too few other groups serve, the weight
    only follows, unless the rollback is forced.
    """
    record = d.status.traffic
    follows = d.capacity.takes_places and record is not None and bool(record.step) and not does_without(d)
    if follows and forced_since(d.status) is None:
        d, routed = keep(d) if index is None else route(d, index)
        if not routed.done:
            return d, routed
        # Without a weight, those that go get no more requests, and what runs on them ends.
        return awaited(d, grace_over(d)) if carries(d) else run_out(d, going)
    d, emptied = withdraw(d, going)
    routes = d.o.routing is not None and record is not None and record.step is not None
    return d, replace(emptied, emptied=emptied.done and routes and not reached_by_others(d))


def reached_by_others(d: Draft) -> bool:
    """True if a Service or pool that the Rollout does not name sends requests to groups of the stable LWS."""
    facts = d.o.routing
    return facts is not None and any(unlisted(facts, [leader.metadata.labels for leader in d.stable.leaders]))
