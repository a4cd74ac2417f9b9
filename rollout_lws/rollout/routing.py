"""Traffic in a release: which share the new version gets now, and whether routers accept it.

Level-triggered like the rest: each pass computes the share that shall be routed from the status, corrects it for a side
that does not serve, and compares the routing objects with it. At most one write an object a pass.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from rollout_lws.api import TrafficRecord
from rollout_lws.api.base import tallied
from rollout_lws.rollout import actions, quarrel
from rollout_lws.rollout.borrowing import answer, shares_noted
from rollout_lws.rollout.brevity import written_lately
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import Ending, Task
from rollout_lws.rollout.routable import barred
from rollout_lws.rollout.routed import DONE, Routed
from rollout_lws.rollout.serving import new_serves, safe, stable_serves
from rollout_lws.rollout.shares import (
    DEFAULT_DRAIN_SECONDS,
    DEFAULT_GRACE_SECONDS,
    recorded,
    settings,
    told,
    wanted_share,
    weight_of,
)
from rollout_lws.rollout.sides import new_side, stable_side
from rollout_lws.traffic import second_pool
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.pickers import unanswered
from rollout_lws.traffic.router import Router
from rollout_lws.traffic.routers import routers
from rollout_lws.traffic.split import ALL_STABLE, Split


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


def carry_all(d: Draft) -> None:
    """Without a stable group the canary has all the requests, provided that it had some of them before."""
    facts, record = d.o.routing, d.status.traffic
    if facts is not None and record is not None and record.since is not None and new_serves(d, facts):
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
        note(d, message=unsaid)
        return Routed(False, unsaid)
    nobody = next(filter(None, (each.nobody_accepts for each in every)), "") if split.reaches_new else ""
    if nobody and not any(each.given for each in every):
        # Those that accept it before our first write are asked from then on: nobody would be.
        note(d, desired=recorded(wanted), message=nobody)
        return Routed(False, nobody)
    refusal = next(filter(None, (barred(d, each, split) for each in every)), "") if split.reaches_new else ""
    if refusal:
        note(d, desired=recorded(wanted), message=refusal)
        return Routed(False, refusal, refused=True)
    denied = second_pool.denied(facts) if split.reaches_new else ""
    if denied and not any(each.reaches_new for each in every):
        note(d, desired=recorded(wanted), message=denied)
        return Routed(False, denied)
    if wanted.reaches_new:
        waits = _quarrelled(d, every, split)
        # From who does not serve it is taken whoever wants otherwise.
        if waits is not None and split.reaches_new:
            note(d, message=waits.message)
            return waits
    record = d.status.traffic or TrafficRecord()
    given = split.reaches_new or any(each.given for each in every) or record.since is not None
    reached_new = any(each.reaches_new for each in every)
    if d.step_entered and record.since is None and _lacks(every, split):
        # A first share that is on record before it is written would seem to have been taken away, if that write fails.
        return Routed(False, "the step is put on record first")
    writing = _write(d, every, split)
    if writing:
        withdrawn = wanted.reaches_new and not split.reaches_new and not cut_off
        lost = facts.names.canary_pool if withdrawn else facts.names.stable_pool
        silent = bool(unanswered(facts, lost)) and (withdrawn or split.weight == 100 > wanted.weight)
        if silent:
            note(d, unanswered=d.now)
        if (withdrawn and record.applied not in (None, recorded(ALL_STABLE))) or (silent and not withdrawn):
            d.set(flaps=tallied((d.status.flaps or 0) + 1))
        note(d, desired=recorded(wanted), message=why or None)
        # Routers may act on it long before they say so; and that nothing is given has to be accepted once more.
        again = reached_new and not split.reaches_new and record.applied == recorded(split)
        if record.since is None or again:
            note(d, since=d.now, applied=None)
        d.persist_later(brief=_is_recorded(d) and not (why or again))
        return Routed(False, why or f"{writing} is being written")
    refused = next(filter(None, (each.unaccepted for each in every)), "") or nobody
    if split.reaches_new:
        refused = refused or second_pool.unaccepted(facts)
    if refused:
        d.persist_later(brief=_is_recorded(d) and not nobody and any(written_lately(d, each.live) for each in every))
        note(d, desired=recorded(wanted), message=refused)
        return Routed(False, refused)
    if given and record.applied != recorded(split):
        note(d, since=d.now, applied=recorded(split))
    note(d, desired=recorded(wanted), message=why or None)
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
        writes = each.writes(split, f"{told(split)} of requests to the new version", checked=True)
        d.write(writes)
        writing += [str(each.ref)] if writes else []
    return ", ".join(writing)


def _lacks(every: tuple[Router, ...], split: Split) -> bool:
    return any(each.writes(split, "", checked=True) for each in every)


def _quarrelled(d: Draft, every: tuple[Router, ...], split: Split) -> Routed | None:
    """Why what others wrote over is not put back yet, None when it is to be, or nothing was written over."""
    record = d.status.traffic
    # What was taken away by ourselves, be it with the whole object, nobody has written over.
    stands = record is not None and record.since is not None and record.applied != recorded(ALL_STABLE)
    written_before = stands and split.reaches_new
    for each in every:
        # Our note may have gone together with what we wrote.
        if not each.missing and (each.written_over or (written_before and not each.given)):
            waits = quarrel.answer(d, each.live, each.ref, each.ignore)
            if waits is not None:
                return waits
    return None


def note(d: Draft, **changes: Any) -> None:
    """Put it on record."""
    d.set(traffic=(d.status.traffic or TrafficRecord()).model_copy(update=changes))


# The end


def withdraw(d: Draft) -> Routed:
    """Take the share away and let what runs end; done when the new side's groups may go.

    A side without a ready group goes without waiting, and so does one that never had a share; in an abort that was
    forced it goes after grace and drain, whatever routers say.
    """
    record, facts = d.status.traffic, d.o.routing
    if facts is None or not facts.names.any_router:
        return _withdrawn_by_notes(d)
    if record is None or record.step is None:
        if not any(each.reaches_new for each in routers(facts)):
            return DONE
        # The status was wiped: what is written there counts.
        record = TrafficRecord(step=0)
        d.set(traffic=record)
    if not (d.o.canary or new_side(d).exists):
        return _returned(d, facts) if _went_over(d) else DONE
    forced = actions.forced_since(d)
    if forced is not None and drained(d, forced, "the new version").done:
        # Whoever forced it knows that requests may be lost: no router is asked any more, and none can hold it up.
        return DONE
    if record.step:
        note(d, step=0)
    pinned = _answered(d, facts)
    routed = _apply(d, facts, ALL_STABLE)
    if not routed.done:
        return routed
    if not pinned.is_all_there_is:
        return pinned
    given_at = (d.status.traffic or record).since
    # Requests run on in ready groups even where nothing sends them new ones, their Service being gone.
    if given_at is None or not d.new_ready:
        return DONE
    return drained(d, given_at, "the new version")


def _withdrawn_by_notes(d: Draft) -> Routed:
    """The same where nothing names the routes any more, be it that the Service with the note was made anew, and
    trafficRoutings was removed: what they carry themselves tells of them.
    """
    forced = actions.forced_since(d)
    if forced is not None and drained(d, forced, "the new version").done:
        return DONE
    if d.o.routing is not None:
        _answered(d, d.o.routing)
    taken = shares_noted(d)
    if not taken.done:
        if d.writes:
            note(d, since=d.now, applied=None, desired=recorded(ALL_STABLE))
        return taken
    given_at = d.status.traffic.since if d.status.traffic else None
    return drained(d, given_at, "the new version") if given_at is not None and d.new_ready else DONE


def _went_over(d: Draft) -> bool:
    """Whether the groups of the one LWS went over to the new version by themselves, and serve."""
    ending = d.status.finalising
    natively = ending is not None and ending.reason == Ending.ROLLED_OUT_NATIVELY.value
    return natively and d.one_workload and any(group.ready(d.now) for group in stable_side(d).groups)


def _returned(d: Draft, facts: RoutingFacts) -> Routed:
    """Have the version that became stable reached by its own Service again, before the one made for it goes."""
    note(d, step=0)
    pinned = _answered(d, facts)
    if not pinned.is_all_there_is:
        return pinned
    if not stable_serves(d, facts):
        waits = f"waiting until Service {facts.names.service} sends requests to groups of the new version"
        return Routed(False, unanswered(facts, facts.names.stable_pool) or waits)
    routed = _apply(d, facts, ALL_STABLE)
    return grace_over(d) if routed.done else routed


def stay_pinned(d: Draft) -> None:
    """Put back what others take out of a selector before it can be given back."""
    facts = d.o.routing
    if facts is not None and d.status.traffic is not None:
        _answered(d, facts)


def _answered(d: Draft, facts: RoutingFacts) -> Routed:
    """Pins are kept for as long as the BatchRelease stands, which goes when everything has been given back."""
    return answer(d, facts) if d.o.batch_release is not None else DONE


def drained(d: Draft, since: datetime, where: str) -> Routed:
    """Whether routers have had their grace, and requests the time to end."""
    until = since + timedelta(seconds=sum(_patience(d)))
    if d.wake_in(until, 0):
        return DONE
    return Routed(False, f"requests that run on {where} get until {until:%H:%M:%S} UTC", timed=True)


def grace_over(d: Draft) -> Routed:
    """Whether routers have had their grace since the last change of shares."""
    since = d.status.traffic.since if d.status.traffic else None
    until = since + timedelta(seconds=_patience(d)[0]) if since is not None else d.now
    return DONE if d.wake_in(until, 0) else Routed(False, f"routers get until {until:%H:%M:%S} UTC to act on it")


def _patience(d: Draft) -> tuple[int, int]:
    """Seconds that routers get to act, and that running requests get to end."""
    asked = settings(d)
    if asked is None:
        return DEFAULT_GRACE_SECONDS, DEFAULT_DRAIN_SECONDS
    return asked.grace_period_seconds, asked.drain_seconds
