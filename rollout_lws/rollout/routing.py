"""Traffic in a release: which share the new version gets now, whether routers accept it, and giving everything back.

Level-triggered like the rest: each pass computes the share that shall be routed from the status, corrects it for a side
that does not serve, and compares the routing object with it. At most one write an object a pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from rollout_lws.api import Phase, TrafficRecord, TrafficRouting, rollouts, scaling
from rollout_lws.objects.merge import merge_patch
from rollout_lws.objects.resources import HTTP_ROUTES, SERVICES, Resource
from rollout_lws.objects.writes import Create, Delete, Patch
from rollout_lws.release.batches import makes_no_groups, wanted_groups
from rollout_lws.release.record import owner_reference
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import Task
from rollout_lws.traffic import http_route, services
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.split import ALL_STABLE, Backend, Backends, Object, Split
from rollout_lws.workload.canary import canary_name
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import groups
from rollout_lws.workload.hold import resolved_unavailable, users_strategy

#: A side that stopped serving gets its share back after so many seconds, twice as many each time, at most the second.
SHORTEST_BAN_SECONDS, LONGEST_BAN_SECONDS = 10, 300


@dataclass(frozen=True, slots=True)
class Routed:
    """Whether routers have accepted what is wanted; ``message`` says what is waited for, "" when nothing is."""

    done: bool
    message: str = ""


DONE = Routed(True)


def settings(d: Draft) -> TrafficRouting | None:
    """The Rollout's own words on traffic, None when it leaves traffic alone."""
    canary = d.o.rollout.spec.strategy.canary
    return canary.traffic_routings[0] if canary and canary.traffic_routings else None


def watched(d: Draft) -> tuple[tuple[str, ...], bool]:
    """Services of which the endpoints are wanted, and whether routes are: while something is, or may be, routed."""
    facts = d.o.routing
    stable = d.status.stable
    waits = d.o.stable is not None and stable is not None and d.version.template_hash != stable.template_hash
    if facts is None or not (d.status.phase == Phase.PROGRESSING or waits or d.status.traffic is not None):
        return (), False
    return (facts.service_name, facts.canary_service_name), bool(facts.route_name)


# Shares


def share_of_step(d: Draft, index: int) -> Split:
    """What step ``index`` (1-based) says; one with neither traffic nor matches takes the new version's share away."""
    steps = d.strategy.steps
    index = max(1, min(index, len(steps)))
    if makes_no_groups(steps, index):
        # The promotion itself: what serves meanwhile is what the step before has made.
        index -= 1
    step = steps[index - 1]
    if step.traffic == "auto":
        new = wanted_groups(steps, index, d.replicas)
        weight = max(1, round(100 * new / (d.replicas + new)))
    else:
        weight = scaling.scaled(step.traffic, 100) if step.traffic else 0
    return Split(weight, step.matches, step.request_header_modifier)


def _share_in_promotion(d: Draft, split: Split) -> Split:
    """Stable groups go down in windows, so the canary carries at least what it is of all that stay up."""
    new = len(d.canary_groups)
    allowed = resolved_unavailable(users_strategy(d.stable.lws, d.keys), d.replicas)
    staying = new + d.replicas - max(1, min(allowed, new, d.replicas - 1))
    return replace(split, weight=max(split.weight, -(-100 * new // staying) if staying else 0))


def _wanted(d: Draft) -> Split:
    record = d.status.traffic
    if record is None or not record.step or settings(d) is None:
        return ALL_STABLE
    split, ending = share_of_step(d, record.step), d.status.finalising
    if ending is not None and ending.task in (Task.PROMOTE, Task.GO_BACK):
        return _share_in_promotion(d, split)
    return split


def _told(split: Split) -> str:
    matched = f" and {len(split.matches)} matches" if split.matches else ""
    return f"{split.weight}%{matched}"


# Which side serves


def _stable_serves(d: Draft, facts: RoutingFacts) -> bool:
    return _serves(d, d.o.stable, facts.endpoints.get(facts.service_name, frozenset()))


def _canary_serves(d: Draft, facts: RoutingFacts) -> bool:
    return _serves(d, d.o.canary, facts.endpoints.get(facts.canary_service_name, frozenset()))


def _serves(d: Draft, side: Facts | None, endpoints: frozenset[str]) -> bool:
    """A side serves when it has a ready group and a ready endpoint among its own pods."""
    if side is None or not any(group.ready(d.now) for group in groups(side)):
        return False
    return any(pod.metadata.name in endpoints for pod in (*side.leaders, *side.pods))


def _banned(d: Draft) -> datetime | None:
    """Until when a new side that stopped serving stays without its share, None when it may have it."""
    flaps = d.status.flaps or 0
    if not flaps or d.o.canary is None:
        return None
    ready = [group.ready_since for group in groups(d.o.canary) if group.ready_since is not None]
    seconds = min(max(d.minimum, SHORTEST_BAN_SECONDS) * 2 ** (flaps - 1), LONGEST_BAN_SECONDS)
    moment = min(ready) + timedelta(seconds=seconds) if ready else None
    return moment if moment is not None and moment > d.now else None


def _safe(d: Draft, facts: RoutingFacts, split: Split) -> tuple[Split, str]:
    """``split`` as far as both sides can carry it, and why it is not more."""
    record = d.status.traffic or TrafficRecord()
    new, stable = _canary_serves(d, facts), _stable_serves(d, facts)
    if split.reaches_new and not new:
        if not stable:
            return _standing(split, record), "neither version has a ready endpoint: shares stay as they are"
        return ALL_STABLE, f"Service {facts.canary_service_name} has no ready endpoint: its share waits"
    banned = _banned(d)
    if split.reaches_new and banned is not None and stable:
        d.wake(banned)
        return ALL_STABLE, f"the new version stopped serving before: its share comes back at {banned:%H:%M:%S} UTC"
    if (
        split.weight < 100
        and new
        and not stable
        and d.o.stable is not None
        and record.applied not in (None, _told(ALL_STABLE))
    ):
        why = f"Service {facts.service_name} has no ready endpoint: all requests go to the new version"
        return replace(split, weight=100), why
    if split.weight == 100 and stable:
        threshold = d.strategy.failure_threshold
        needed = d.replicas - (scaling.scaled(threshold, d.replicas) if threshold else 0)
        if d.canary_ready < needed:
            return _standing(split, record), f"100% needs {needed} ready groups of the new version"
    return split, ""


def _standing(split: Split, record: TrafficRecord) -> Split:
    """``split`` with the weight that was accepted last."""
    return replace(split, weight=_weight(record.applied))


def _weight(told: str | None) -> int:
    text = (told or "0%").partition("%")[0]
    return int(text) if text.isdigit() else 0


def carries(d: Draft) -> bool:
    """Whether requests go to the new version now, as far as routers have been told."""
    record = d.status.traffic
    nothing = (None, _told(ALL_STABLE))
    return record is not None and not (record.desired in nothing and record.applied in nothing)


# Writing


def prepare(d: Draft) -> None:
    """Pin the stable Service and make the canary's, before any pod exists that the first would select."""
    asked, facts = settings(d), d.o.routing
    if asked is None or facts is None or facts.service is None:
        return
    record = d.status.traffic or TrafficRecord()
    if record.service != facts.service_name or record.route != (facts.route_name or None):
        d.set(traffic=record.model_copy(update={"service": facts.service_name, "route": facts.route_name or None}))
    lws = d.stable.lws.metadata.name
    pinned = services.pin(facts.service, d.uid, d.keys, services.selector_changes(lws, asked.target))
    _write(d, SERVICES, facts.service, pinned, f"only groups of {lws} behind Service {facts.service_name}")
    if facts.canary_service is None:
        body = services.canary_service(
            facts.service,
            d.uid,
            d.keys,
            name=facts.canary_service_name,
            changes=services.selector_changes(canary_name(d.stable.lws), asked.target),
            owner=_owner(d),
        )
        d.write((Create(SERVICES, body, "the new version's groups"),))


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
    wanted = _wanted(d)
    if d.paused:
        # Only what protects is written: less, but no more than there is.
        wanted = replace(wanted, weight=min(wanted.weight, _weight(d.status.traffic.desired)))
    return _apply(d, facts, wanted)


def _apply(d: Draft, facts: RoutingFacts, wanted: Split) -> Routed:
    record = d.status.traffic or TrafficRecord()
    if not facts.synced:
        return Routed(False, facts.trouble or "HTTPRoutes are being listed")
    if facts.route is None:
        missing = f"HTTPRoute {facts.route_name} does not exist: make it anew"
        return DONE if not wanted.reaches_new else Routed(False, missing)
    split, why = _safe(d, facts, wanted)
    backends = Backends(Backend(facts.service_name), Backend(facts.canary_service_name))
    written = http_route.routed(facts.route, d.uid, d.keys, backends, split)
    if written != facts.route:
        if wanted.reaches_new and not split.reaches_new and record.applied not in (None, _told(ALL_STABLE)):
            d.set(flaps=(d.status.flaps or 0) + 1)
        _write(d, HTTP_ROUTES, facts.route, written, f"{_told(split)} of requests to the new version")
        _record(d, desired=_told(wanted), message=why or None)
        return Routed(False, why or f"HTTPRoute {facts.route_name} is being written")
    refused = http_route.unaccepted(facts.route, http_route.parents(facts.route, d.uid, d.keys))
    if refused:
        _record(d, desired=_told(wanted), message=refused)
        return Routed(False, refused)
    if record.applied != _told(split):
        _record(d, since=d.now)
    _record(d, desired=_told(wanted), applied=_told(split), message=why or None)
    return DONE if split == wanted or not why else Routed(False, why)


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
    record, facts, asked = d.status.traffic, d.o.routing, settings(d)
    if record is None or record.step is None or facts is None or d.o.canary is None:
        return DONE
    if record.step:
        _record(d, step=0)
    never = record.applied is None and record.desired is None
    if never:
        return DONE
    routed = _apply(d, facts, ALL_STABLE)
    if not routed.done:
        return routed
    if not _canary_serves(d, facts):
        return DONE
    grace, drain = (asked.grace_period_seconds, asked.drain_seconds) if asked else (3, 30)
    since = (d.status.traffic or record).since or d.now
    if d.wake_in(since, grace + drain):
        return DONE
    until = since + timedelta(seconds=grace + drain)
    return Routed(False, f"requests that run on the new version get until {until:%H:%M:%S} UTC")


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
    if facts.canary_service is not None and _is_ours(d, facts.canary_service):
        meta = facts.canary_service["metadata"]
        d.write((Delete(SERVICES, meta["namespace"], meta["name"], meta["uid"], "the release is over"),))
    return len(d.writes) == before


def _is_ours(d: Draft, service: Object) -> bool:
    owners = service["metadata"].get("ownerReferences") or ()
    return any(each.get("uid") == d.uid for each in owners)
