"""Traffic in a release: which share the new version gets now, and whether routers accept it.

Level-triggered like the rest: each pass computes the share that shall be routed from the status, corrects it for a side
that does not serve, and compares the routing objects with it. At most one write an object a pass.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from rollout_lws.api import TrafficRecord
from rollout_lws.rollout import actions, quarrel
from rollout_lws.rollout.borrowing import answer, point
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import Task
from rollout_lws.rollout.routed import DONE, Routed
from rollout_lws.rollout.shares import (
    DEFAULT_DRAIN_SECONDS,
    DEFAULT_GRACE_SECONDS,
    canary_serves,
    safe,
    settings,
    takes_over,
    told,
    wanted_share,
    weight_of,
)
from rollout_lws.rollout.unlisted import unlisted
from rollout_lws.traffic import backends
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.router import Router
from rollout_lws.traffic.routers import routers
from rollout_lws.traffic.split import ALL_STABLE, Split
from rollout_lws.workload.canary import canary_name
from rollout_lws.workload.groups import groups


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
    ending = d.status.finalising
    if ending is None or ending.task == Task.CLEAN_UP:
        # In a promotion they are handed over.
        answer(d, facts)
    wanted = wanted_share(d)
    if d.paused:
        # Only what protects is written: less, but no more than there is.
        wanted = replace(wanted, weight=min(wanted.weight, weight_of(d.status.traffic.desired)))
    return _apply(d, facts, wanted)


def protect(d: Draft) -> None:
    """Where a release neither goes on nor back, requests are still kept from a side that does not serve."""
    if d.status.finalising is None:
        keep(d)
    else:
        hand_over(d)


def carry_all(d: Draft) -> None:
    """Without a stable group the canary has all the requests, provided that it had some of them before."""
    facts, record = d.o.routing, d.status.traffic
    if facts is not None and record is not None and record.since is not None and canary_serves(d, facts):
        answer(d, facts)
        _apply(d, facts, Split(100))


def _apply(d: Draft, facts: RoutingFacts, wanted: Split) -> Routed:
    if facts.waits:
        return Routed(False, facts.waits)
    every = routers(facts)
    missing = next(filter(None, (each.missing for each in every)), "")
    split, why = safe(d, facts, wanted)
    if missing and split.reaches_new:
        return Routed(False, f"{missing} does not exist: make it anew")
    cut_off = next(filter(None, (each.cut_off for each in every)), "")
    if cut_off and split.reaches_new:
        split, why = ALL_STABLE, cut_off
    unsaid = next(filter(None, (each.inexpressible(split) for each in every)), "")
    if unsaid:
        # A plan that was edited meanwhile: what stands is shared until it is put right.
        _record(d, message=unsaid)
        return Routed(False, unsaid)
    nobody = next(filter(None, (each.nobody_accepts for each in every)), "") if split.reaches_new else ""
    if nobody and not any(each.given for each in every):
        # Those that accept it before our first write are asked from then on: nobody would be.
        _record(d, desired=told(wanted), message=nobody)
        return Routed(False, nobody)
    if wanted.reaches_new:
        waits = _quarrelled(d, every, split)
        # From who does not serve it is taken whoever wants otherwise.
        if waits and split.reaches_new:
            _record(d, message=waits)
            return Routed(False, waits, contested=True)
    record = d.status.traffic or TrafficRecord()
    given = split.reaches_new or any(each.given for each in every) or record.since is not None
    reached_new = any(each.reaches_new for each in every)
    writing = _write(d, every, split)
    if writing:
        withdrawn = wanted.reaches_new and not split.reaches_new and not cut_off
        if withdrawn and record.applied not in (None, told(ALL_STABLE)):
            d.set(flaps=(d.status.flaps or 0) + 1)
        _record(d, desired=told(wanted), message=why or None)
        # Routers may act on it long before they say so; and that nothing is given has to be accepted once more.
        again = reached_new and not split.reaches_new and record.applied == told(split)
        if record.since is None or again:
            _record(d, since=d.now, applied=None)
        d.is_brief = _is_recorded(d) and not (why or again)
        return Routed(False, why or f"{writing} is being written")
    refused = next(filter(None, (each.unaccepted for each in every)), "") or nobody
    if refused:
        d.is_brief = _is_recorded(d) and not nobody and any(quarrel.written_lately(d, each.live) for each in every)
        _record(d, desired=told(wanted), message=refused)
        return Routed(False, refused)
    if given and record.applied != told(split):
        _record(d, since=d.now, applied=told(split))
    _record(d, desired=told(wanted), message=why or None)
    # Where stable fails the new version has more than was asked for, and it may be what mends stable.
    more = wanted.reaches_new and split.weight >= wanted.weight and split.matches == wanted.matches
    return DONE if more or not why else Routed(False, why)


def _is_recorded(d: Draft) -> bool:
    """Whether it is on record that this release has written a share: who takes it out again is known by that."""
    before = d.o.rollout.status
    return before is not None and before.traffic is not None and before.traffic.since is not None


def _write(d: Draft, every: tuple[Router, ...], split: Split) -> str:
    """Write what is not as the split wants it; gives the names of that, "" when all is."""
    writing = []
    for each in every:
        writes = each.writes(split, f"{told(split)} of requests to the new version")
        d.write(writes)
        writing += [each.what] if writes else []
    return ", ".join(writing)


def _quarrelled(d: Draft, every: tuple[Router, ...], split: Split) -> str:
    """Why what others wrote over is not put back yet, "" when it is to be, or nothing was written over."""
    record = d.status.traffic
    # What was taken away by ourselves, be it with the whole object, nobody has written over.
    stands = record is not None and record.since is not None and record.applied != told(ALL_STABLE)
    written_before = stands and split.reaches_new
    for each in every:
        # Our note may have gone together with what we wrote.
        if not each.missing and (each.written_over or (written_before and not each.given)):
            waits = quarrel.answer(d, each.live, each.what, each.ignore)
            if waits:
                return waits
    return ""


def _record(d: Draft, **changes: Any) -> None:
    d.set(traffic=(d.status.traffic or TrafficRecord()).model_copy(update=changes))


# The end


def withdraw(d: Draft) -> Routed:
    """Take the share away and let what runs end; done when the new side's groups may go.

    A side without a ready group goes without waiting, and so does one that never had a share; in an abort that was
    forced it goes after grace and drain, whatever routers say.
    """
    record, facts = d.status.traffic, d.o.routing
    if record is None or record.step is None or facts is None or d.o.canary is None:
        return DONE
    forced = actions.forced_since(d)
    if forced is not None and _drained(d, forced, "the new version").done:
        # Whoever forced it knows that requests may be lost: no router is asked any more, and none can hold it up.
        return DONE
    if record.step:
        _record(d, step=0)
    pinned = answer(d, facts)
    routed = _apply(d, facts, ALL_STABLE)
    if not routed.done:
        return routed
    if not (pinned.done or pinned.contested):
        return pinned
    given_at = (d.status.traffic or record).since
    # Requests run on in ready groups even where nothing sends them new ones, their Service being gone.
    if given_at is None or not d.canary_ready:
        return DONE
    return _drained(d, given_at, "the new version")


def _drained(d: Draft, since: datetime, where: str) -> Routed:
    """Whether routers have had their grace, and requests the time to end."""
    asked = settings(d)
    grace, drain = (
        (asked.grace_period_seconds, asked.drain_seconds) if asked else (DEFAULT_GRACE_SECONDS, DEFAULT_DRAIN_SECONDS)
    )
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
    name, canary = d.stable.lws.metadata.name, canary_name(d.stable.lws)
    pinned_new = point(d, backends.of_new(facts), canary)
    routed = routed if not routed.done else pinned_new
    # While paused, a canary that has become big enough gets no more than it had.
    kept_back = d.paused and weight_of((d.status.traffic or record).desired) < 100
    if kept_back or not takes_over(d):
        if not any(group.ready(d.now) for group in groups(d.stable)):
            # Whoever serves keeps the requests; those that do not serve can be renewed, and only that mends them.
            return routed
        _record(d, emptied=None)
        pinned = point(d, backends.of_stable(facts), name)
        return pinned if routed.done else routed
    if not routed.done:
        return routed
    own = {leader.metadata.name for leader in d.stable.leaders}
    service = facts.names.service
    listed = facts.endpoints.get(service, frozenset())
    pinned = point(d, backends.of_stable(facts), canary)
    if not pinned.done:
        return pinned
    if own & listed or not listed:
        return Routed(False, f"waiting until Service {service} sends requests to groups of {canary} only")
    if record.emptied is None:
        _record(d, emptied=d.now)
    drained = _drained(d, (d.status.traffic or record).emptied or d.now, f"groups of {name}")
    others = any(True for _ in unlisted(facts, [leader.metadata.labels for leader in d.stable.leaders]))
    return replace(drained, emptied=drained.done and not others)
