"""Traffic in a release: which share the new version gets now, whether routers accept it, and giving everything back.

Level-triggered like the rest: each pass computes the share that shall be routed from the status, corrects it for a side
that does not serve, and compares the routing object with it. At most one write an object a pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from rollout_lws.api import Phase, TrafficRecord, rollouts
from rollout_lws.objects.merge import merge_patch
from rollout_lws.objects.resources import HTTP_ROUTES, SERVICES, Resource
from rollout_lws.objects.writes import Create, Delete, Patch
from rollout_lws.release.record import owner_reference
from rollout_lws.rollout import quarrel
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.shares import (
    canary_serves,
    safe,
    settings,
    takes_over,
    told,
    wanted_share,
    weight_of,
)
from rollout_lws.traffic import http_route, marks, services
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.split import ALL_STABLE, Backend, Backends, Object, Split
from rollout_lws.workload.canary import canary_name


@dataclass(frozen=True, slots=True)
class Routed:
    """Whether routers have accepted what is wanted; ``message`` says what is waited for, "" when nothing is."""

    done: bool
    message: str = ""
    contested: bool = False
    """Somebody else writes over what we have written, and a person has to stop that."""


DONE = Routed(True)


def watched(d: Draft) -> tuple[tuple[str, ...], bool]:
    """Services of which the endpoints are wanted, and whether routes are: while something is, or may be, routed."""
    facts = d.o.routing
    stable = d.status.stable
    waits = d.o.stable is not None and stable is not None and d.version.template_hash != stable.template_hash
    if facts is None or not (d.status.phase == Phase.PROGRESSING or waits or d.status.traffic is not None):
        return (), False
    return (facts.service_name, facts.canary_service_name), bool(facts.route_name)


# Writing


def prepare(d: Draft) -> Routed:
    """Pin the stable Service and make the canary's, before any pod exists that the first would select."""
    facts = d.o.routing
    if settings(d) is None or facts is None or facts.service is None:
        return DONE
    record = d.status.traffic or TrafficRecord()
    if record.service != facts.service_name or record.route != (facts.route_name or None):
        d.set(traffic=record.model_copy(update={"service": facts.service_name, "route": facts.route_name or None}))
    pinned = point(d, facts, d.stable.lws.metadata.name)
    if facts.canary_service is None:
        body = services.canary_service(
            facts.service,
            d.uid,
            d.keys,
            name=facts.canary_service_name,
            changes=services.selector_changes(canary_name(d.stable.lws), target(d)),
            owner=_owner(d),
        )
        d.write((Create(SERVICES, body, "the new version's groups"),))
    return pinned


def target(d: Draft) -> str:
    """Which pods of a group receive requests."""
    asked = settings(d)
    return asked.target if asked else "AsSelected"


def point(d: Draft, facts: RoutingFacts, lws: str) -> Routed:
    """Have the stable Service select the groups of ``lws``."""
    if facts.service is None:
        return DONE
    what = f"Service {facts.service_name}"
    marked = marks.read(facts.service, d.uid, d.keys) is not None
    if _pinned_before(d) and (services.drifted(facts.service, d.uid, d.keys) or not marked):
        waits = quarrel.answer(d, facts.service, what, _LEAVE_SERVICE)
        if waits:
            return Routed(False, waits, contested=True)
    pinned = services.pin(facts.service, d.uid, d.keys, services.selector_changes(lws, target(d)))
    if pinned == facts.service:
        return DONE
    _write(d, SERVICES, facts.service, pinned, f"only groups of {lws} behind {what}")
    return Routed(False, f"{what} is pinned to groups of {lws}")


def _pinned_before(d: Draft) -> bool:
    """Whether an earlier decision of this release has pinned the stable Service."""
    before = d.o.rollout.status
    return before is not None and before.traffic is not None and before.traffic.service is not None


def route(d: Draft, index: int) -> Routed:
    """Have the share of step ``index`` routed; done when all routers have accepted it."""
    if settings(d) is None:
        return DONE
    record = d.status.traffic or TrafficRecord()
    if record.step != index:
        d.set(traffic=record.model_copy(update={"step": index}))
    return keep(d)


def keep(d: Draft) -> Routed:
    """Have what shall be routed now routed: rewritten where others changed it, withdrawn where a side fails."""
    facts = d.o.routing
    if facts is None or d.status.traffic is None or d.status.traffic.step is None:
        return DONE
    wanted = wanted_share(d)
    if d.paused:
        # Only what protects is written: less, but no more than there is.
        wanted = replace(wanted, weight=min(wanted.weight, weight_of(d.status.traffic.desired)))
    return _apply(d, facts, wanted)


def carry_all(d: Draft) -> None:
    """Without a stable LWS the canary has all the requests, provided that it had some of them before."""
    facts, record = d.o.routing, d.status.traffic
    if facts is not None and record is not None and record.step and canary_serves(d, facts):
        _apply(d, facts, Split(100))


def _apply(d: Draft, facts: RoutingFacts, wanted: Split) -> Routed:
    record = d.status.traffic or TrafficRecord()
    if not facts.synced:
        return Routed(False, facts.trouble or "routes and endpoints are being listed")
    if facts.route is None:
        missing = f"HTTPRoute {facts.route_name} does not exist: make it anew"
        return DONE if not wanted.reaches_new else Routed(False, missing)
    split, why = safe(d, facts, wanted)
    marked = marks.read(facts.route, d.uid, d.keys) is not None
    refused = _nobody_accepts(facts.route) if split.reaches_new else ""
    if refused and not marked:
        # Those that accept it before our first write are asked from then on: nobody would be.
        _record(d, desired=told(wanted), message=refused)
        return Routed(False, refused)
    backends = Backends(Backend(facts.service_name), Backend(facts.canary_service_name))
    written = http_route.routed(facts.route, d.uid, d.keys, backends, split)
    if wanted.reaches_new and _written_over(d, facts.route, split):
        waits = quarrel.answer(d, facts.route, f"HTTPRoute {facts.route_name}", _LEAVE_ROUTE)
        record = d.status.traffic or record
        if waits:
            _record(d, message=waits)
            return Routed(False, waits, contested=True)
    given = split.reaches_new or marked
    # What was never given need not be taken away.
    if written != facts.route and given:
        if wanted.reaches_new and not split.reaches_new and record.applied not in (None, told(ALL_STABLE)):
            d.set(flaps=(d.status.flaps or 0) + 1)
        _write(d, HTTP_ROUTES, facts.route, written, f"{told(split)} of requests to the new version")
        _record(d, desired=told(wanted), message=why or None)
        # Routers may act on it long before they say so; and that nothing is given has to be accepted once more.
        again = not split.reaches_new and http_route.reaches_new(facts.route, d.uid, d.keys)
        if record.since is None or (again and record.applied == told(split)):
            _record(d, since=d.now, applied=None)
        return Routed(False, why or f"HTTPRoute {facts.route_name} is being written")
    refused = http_route.unaccepted(facts.route, http_route.parents(facts.route, d.uid, d.keys)) or refused
    if refused:
        _record(d, desired=told(wanted), message=refused)
        return Routed(False, refused)
    if given and record.applied != told(split):
        _record(d, since=d.now, applied=told(split))
    _record(d, desired=told(wanted), message=why or None)
    return DONE if split == wanted or not why else Routed(False, why)


def _nobody_accepts(live: Object) -> str:
    """Why no share counts as routed, whatever has been written; "" when some Gateway accepts the route."""
    if http_route.accepting_parents(live):
        return ""
    return f"no Gateway accepts HTTPRoute {live['metadata']['name']} as it is: correct what its status.parents says"


#: What to do about somebody who writes over us.
_LEAVE_ROUTE = "let it ignore the rules of the route"
_LEAVE_SERVICE = "let it ignore the selector of the Service"


def _written_over(d: Draft, live: Object, split: Split) -> bool:
    """Whether what we wrote into the route is not as we left it, or ``split`` is to be written where it was before."""
    record = d.status.traffic
    marked = marks.read(live, d.uid, d.keys) is not None
    written_before = record is not None and record.since is not None
    return bool(http_route.drifted(live, d.uid, d.keys)) or (written_before and not marked and split.reaches_new)


def _record(d: Draft, **changes: Any) -> None:
    d.set(traffic=(d.status.traffic or TrafficRecord()).model_copy(update=changes))


def _write(d: Draft, resource: Resource, live: Object, after: Object, reason: str) -> None:
    changes = merge_patch(live, after)
    if changes:
        meta = live["metadata"]
        d.write((Patch(resource, meta["namespace"], meta["name"], changes, reason, meta["resourceVersion"]),))


def _owner(d: Draft) -> Mapping[str, Any]:
    resource = rollouts(d.keys.group)
    return owner_reference(d.o.rollout, resource.kind, resource.api_version)


# The end


def withdraw(d: Draft) -> Routed:
    """Take the share away and let what runs end; done when the new side's groups may go.

    A side that does not serve goes without waiting, and so does one that never had a share.
    """
    record, facts = d.status.traffic, d.o.routing
    if record is None or record.step is None or facts is None or d.o.canary is None:
        return DONE
    if record.step:
        _record(d, step=0)
    pinned = point(d, facts, d.stable.lws.metadata.name) if d.o.stable is not None else DONE
    routed = _apply(d, facts, ALL_STABLE)
    if not routed.done:
        return routed
    if not (pinned.done or pinned.contested):
        return pinned
    given_at = (d.status.traffic or record).since
    if given_at is None or not canary_serves(d, facts):
        return DONE
    return _drained(d, given_at, "the new version")


def _drained(d: Draft, since: datetime, where: str) -> Routed:
    """Whether routers have had their grace, and requests the time to end."""
    asked = settings(d)
    grace, drain = (asked.grace_period_seconds, asked.drain_seconds) if asked else (3, 30)
    if d.wake_in(since, grace + drain):
        return DONE
    until = since + timedelta(seconds=grace + drain)
    return Routed(False, f"requests that run on {where} get until {until:%H:%M:%S} UTC")


def hand_over(d: Draft) -> Routed:
    """Before stable groups are renewed: the share that the canary has meanwhile, or, where it has groups enough, all
    requests, those of clients that use the Service directly included; done when no request is lost by a window.
    """
    routed, facts, record = keep(d), d.o.routing, d.status.traffic
    if facts is None or record is None or record.step is None or facts.service is None:
        return routed
    name = d.stable.lws.metadata.name
    if not takes_over(d):
        _record(d, emptied=None)
        pinned = point(d, facts, name)
        return pinned if routed.done else routed
    if not routed.done:
        return routed
    canary = canary_name(d.stable.lws)
    own = {leader.metadata.name for leader in d.stable.leaders}
    listed = facts.endpoints.get(facts.service_name, frozenset())
    pinned = point(d, facts, canary)
    if pinned.contested:
        return pinned
    if not pinned.done or own & listed or not listed:
        return Routed(False, f"waiting until Service {facts.service_name} sends requests to groups of {canary} only")
    if record.emptied is None:
        _record(d, emptied=d.now)
    return _drained(d, (d.status.traffic or record).emptied or d.now, f"groups of {name}")


def restore(d: Draft) -> bool:
    """Give Service and route back and remove the canary's Service; True when nothing is left to do."""
    facts = d.o.routing
    if facts is None:
        return True
    if not facts.synced:
        return False
    before = len(d.writes)
    if facts.route is not None:
        _write(d, HTTP_ROUTES, facts.route, http_route.own(facts.route, d.uid, d.keys), "the release is over")
    if facts.service is not None:
        _write(d, SERVICES, facts.service, services.unpinned(facts.service, d.uid, d.keys), "the release is over")
    if facts.canary_service is not None and is_ours(d, facts.canary_service):
        meta = facts.canary_service["metadata"]
        d.write((Delete(SERVICES, meta["namespace"], meta["name"], meta["uid"], "the release is over"),))
    return len(d.writes) == before


def is_ours(d: Draft, service: Object) -> bool:
    """Whether this Rollout has made the Service."""
    owners = service["metadata"].get("ownerReferences") or ()
    return any(each.get("uid") == d.uid for each in owners)
