"""Traffic routing of a release: the canary's current traffic weight, and whether routers accept it.

Level-triggered: each pass computes the wanted weight from the status, corrects it for a version that does not serve,
and compares the routing objects with it. At most one write per object and pass.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from rollout_lws.api import TrafficRecord
from rollout_lws.api.base import tallied
from rollout_lws.api.words import DrainUntil
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import Ending
from rollout_lws.rollout.recent_writes import written_lately
from rollout_lws.rollout.routing import scripts
from rollout_lws.rollout.routing.backend_listing import WITHOUT_REQUESTS, Listing
from rollout_lws.rollout.routing.drains import Leaving, drained, fixed
from rollout_lws.rollout.routing.route_result import DONE, Routed
from rollout_lws.rollout.routing.routing_preflight import barred_route
from rollout_lws.rollout.routing.selector_pinning import answer, answer_conflict, make_copy, withdraw_annotated
from rollout_lws.rollout.routing.serving import new_serves, safe, stable_serves
from rollout_lws.rollout.routing.versions import new_endpoints, stable_endpoints
from rollout_lws.rollout.routing.weights import (
    DEFAULT_GRACE_SECONDS,
    recorded,
    settings,
    told,
    wanted_split,
    weight_of,
)
from rollout_lws.rollout.state import Promoting, RollingBack, ending_of, forced_since
from rollout_lws.traffic import pools
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.pools import unanswered
from rollout_lws.traffic.registry import spec_of
from rollout_lws.traffic.router import Router, RouteState
from rollout_lws.traffic.routers.custom import evaluations
from rollout_lws.traffic.routers.of_rollout import routers
from rollout_lws.traffic.split import ALL_STABLE, Split
from rollout_lws.workload.groups import Group


def route(d: Draft, index: int) -> tuple[Draft, Routed]:
    """Routes the traffic weight of step ``index``; done when all routers have accepted it."""
    if settings(d) is None:
        return d, DONE
    record = d.status.traffic or TrafficRecord()
    if record.step != index:
        d = d.set(traffic=record.model_copy(update={"step": index}))
    return keep(d)


def keep(d: Draft) -> tuple[Draft, Routed]:
    """Keeps the current weight routed: rewrites what others changed, withdraws it from a version that fails."""
    facts, record = d.o.routing, d.status.traffic
    if facts is None or ((record is None or record.step is None) and not d.paired):
        return d, DONE
    record = record or TrafficRecord()
    if not isinstance(d.state, Promoting | RollingBack):
        # A promotion moves the pins itself (see ``hand_over``).
        d, _ = answer(d, facts)
    wanted = wanted_split(d)
    if d.paused:
        # Only protective writes: the weight may fall, but not rise.
        wanted = replace(wanted, weight=min(wanted.weight, weight_of(record.desired)))
        wanted = wanted if _has_shared(record, facts) else ALL_STABLE
    return _apply(d, facts, wanted)


def carry_all(d: Draft) -> Draft:
    """Gives the canary all requests while stable has no group, provided that it had some before."""
    facts, record = d.o.routing, d.status.traffic
    if facts is not None and record is not None and record.since is not None and new_serves(d, facts):
        d, _ = answer(d, facts)
        d, _ = _apply(d, facts, Split(100))
    return d


def _apply(d: Draft, facts: RoutingFacts, wanted: Split) -> tuple[Draft, Routed]:
    if facts.waits:
        return d, Routed(False, facts.waits)
    every = routers(facts)
    states = tuple(each.state for each in every)
    missing = next(filter(None, (each.missing for each in states)), "")
    found = safe(d, facts, wanted)
    d, split, why = d.wake(found.until), found.split, found.why
    if missing and split.names_new:
        return d, Routed(False, f"{missing} does not exist: make it anew")
    cut_off = next(filter(None, (each.cut_off for each in states)), "")
    if cut_off and split.names_new:
        split, why = ALL_STABLE, cut_off
    needed = evaluations(every, split)
    d = d.but(evaluations=(*d.evaluations, *needed))
    unknown = scripts.awaited(facts, needed) if split.reaches_new else ""
    if unknown:
        # What is written stays as it is; mostly the answer takes some milliseconds.
        return d.persist_later(brief=not facts.scripts.waits), Routed(False, unknown)
    unsaid = next((problem.message for each in every if (problem := each.check(split)) is not None), "")
    if unsaid:
        # The plan was edited during the release: the current weights stay until the user corrects it.
        return set_traffic(d, message=unsaid), Routed(False, unsaid)
    unused = next(filter(None, (each.unused for each in states)), "") if split.names_new else ""
    if unused and any(each.unused and not each.modified for each in states):
        # Later passes ask the routers that accepted the route before our first write: there would be none.
        return set_traffic(d, desired=recorded(wanted), message=unused), Routed(False, unused)
    refusal = next(filter(None, (barred_route(d, each, split) for each in every)), "") if split.names_new else ""
    if refusal:
        return set_traffic(d, desired=recorded(wanted), message=refusal), Routed(False, refusal, refused=True)
    denied = pools.canary_denied(facts) if split.reaches_new else ""
    if denied and not any(each.reaches_canary for each in states):
        return set_traffic(d, desired=recorded(wanted), message=denied), Routed(False, denied)
    if wanted.reaches_new:
        d, waits = _quarrelled(d, every, split)
        # A version that does not serve loses its traffic even if another manager keeps overwriting it.
        if waits is not None and split.names_new:
            return set_traffic(d, message=waits.message), waits
    record = d.status.traffic or TrafficRecord()
    listing = Listing.of(d, facts, every, split)
    d, why = d.wake(listing.until), why or listing.why
    if listing.why and not listing.partial:
        split = listing.splits[0]
    given = split.reaches_new or _has_shared(record, facts)
    reached_new = any(each.reaches_canary for each in states)
    if d.step_is_new and record.since is None and _lacks(every, split):
        # If the status recorded the first weight and its write failed, another manager would seem to have removed it.
        return d, Routed(False, "the step is put on record first")
    d, writing = _write(d, every, listing.splits)
    if writing:
        withdrawn = wanted.reaches_new and not split.names_new and not cut_off
        lost = facts.names.canary_pool if withdrawn else facts.names.stable_pool
        silent = bool(unanswered(facts, lost)) and (withdrawn or split.weight == 100 > wanted.weight)
        if silent:
            d = set_traffic(d, unanswered=d.now)
        if (withdrawn and record.applied not in (None, recorded(ALL_STABLE))) or (silent and not withdrawn):
            d = d.set(flaps=tallied((d.status.flaps or 0) + 1))
        d = set_traffic(d, desired=recorded(wanted), message=why or None)
        # Routers may apply a weight long before they report it; and removing it has to be accepted once more.
        again = reached_new and not split.reaches_new and record.applied == recorded(split)
        if any(one.only_lists and each.unlisted for one, each in zip(listing.splits, states, strict=True)):
            d = set_traffic(d, listed_at=d.now)
        # What another writer wrote there may have given the new version requests.
        meddled = any(state.unmarked or any(each.drifted for each in state.objects) for state in states)
        if (record.since is None and (given or meddled)) or again:
            d = set_traffic(d, since=d.now, applied=None)
        d = d.persist_later(brief=_is_recorded(d, states) and not (why or again))
        return d, Routed(False, why or f"{writing} is being written")
    refused = next(filter(None, (each.unaccepted for each in states)), "") or unused
    if split.reaches_new:
        refused = refused or pools.canary_unaccepted(facts)
    if refused and given:
        written = (written_lately(d, each.live) for state in states for each in state.objects)
        lately = (moment for moment in written if moment is not None)
        d = d.brief_until(next(lately, None) if _is_recorded(d, states) and not unused else None)
        # The status has lost it, or has not been written since the share was.
        since = record.since or d.now
        return set_traffic(d, desired=recorded(wanted), message=refused, since=since), Routed(False, refused)
    if listing.partial:
        return set_traffic(d, desired=recorded(wanted), message=why), Routed(False, why)
    if given and record.applied != recorded(split):
        d = set_traffic(d, since=d.now, applied=recorded(split))
    d = set_traffic(d, desired=recorded(wanted), message=why or None)
    # If stable fails, the canary gets more than the step asks for, and it may be the fix.
    more = wanted.reaches_new and split.weight >= wanted.weight and split.matches == wanted.matches
    return d, DONE if more or not why else Routed(False, why)


def _is_recorded(d: Draft, states: tuple[RouteState, ...]) -> bool:
    """True if it is stored that this release wrote the routes, so that a removal can be noticed: in the status, or on
    each of them.
    """
    before = d.o.rollout.status
    stored = before is not None and before.traffic is not None and before.traffic.since is not None
    return stored or all(each.modified for each in states)


def _has_shared(record: TrafficRecord, facts: RoutingFacts) -> bool:
    """True if this release has given the new version requests: by the status, or by what is written into the routes,
    which the status may have lost.
    """
    return record.since is not None or any(each.state.carried for each in routers(facts))


def _write(d: Draft, every: tuple[Router, ...], splits: tuple[Split, ...]) -> tuple[Draft, str]:
    """Writes every object that differs from its split; returns their names, "" if there is none."""
    writing = []
    for each, split in zip(every, splits, strict=True):
        reason = WITHOUT_REQUESTS if split.only_lists else f"{told(split)} of requests to the new version"
        writes = each.apply(split, reason, checked=True)
        d = d.write(writes)
        writing += [str(each.state.ref)] if writes else []
    return d, ", ".join(writing)


def _lacks(every: tuple[Router, ...], split: Split) -> bool:
    return any(each.apply(split, "", checked=True) for each in every)


def _quarrelled(d: Draft, every: tuple[Router, ...], split: Split) -> tuple[Draft, Routed | None]:
    """Why a write conflict is not resolved yet; None if it is resolved now, or there is none."""
    record = d.status.traffic
    # Weights that the controller removed itself, even with the whole object, are no conflict.
    given = record is not None and record.since is not None and record.applied != recorded(ALL_STABLE)
    relisted = record is not None and record.listed_at is not None
    for router in every:
        state = router.state
        for each in state.objects if not state.missing else ():
            # Our annotation may have been removed together with the written fields.
            wiped = split.reaches_new and given and not each.modified
            lost = state.unlisted and not state.withdrawn and (each.modified or given or relisted)
            unnamed = split.names_new and each is state.objects[0] and (lost or state.unmarked)
            if each.drifted or wiped or unnamed:
                spec = spec_of(each.ref.kind) or router.spec
                d, waits = answer_conflict(d, each.live, each.ref, spec.advice)
                if waits is not None:
                    return d, waits
    return d, None


def set_traffic(d: Draft, **changes: Any) -> Draft:
    """Sets fields of the traffic record."""
    return d.set(traffic=(d.status.traffic or TrafficRecord()).model_copy(update=changes))


# The end of a release


def withdraw(d: Draft, going: tuple[Group, ...] | None = None) -> tuple[Draft, Routed]:
    """Removes the canary's weight and drains its requests; done when the canary's groups may go, or only those that
    are ``going``.

    A version without a ready group goes without waiting, and so does one that never had weight. In a forced abort it
    goes after grace and drainSeconds, whatever routers and engines report.
    """
    record, facts = d.status.traffic, d.o.routing
    if facts is None or not facts.names.any_router:
        return _withdrawn_by_notes(d)
    if record is None or record.step is None:
        states = [each.state for each in routers(facts)]
        if not any(each.reaches_canary or each.carried or each.unmarked for each in states):
            return d, DONE
        # The status was wiped: the weight written in the routes counts.
        record = TrafficRecord(step=0)
        d = d.set(traffic=record)
    if not (d.o.canary or new_endpoints(d).exists):
        return _returned(d, facts) if _went_over(d) else (d, DONE)
    forced = _forced(d)
    if forced.done:
        # The user who forced the abort accepts that requests may be lost: no router can delay it.
        return d, DONE
    d = d.wake(forced.until)
    if record.step:
        d = set_traffic(d, step=0)
    d, pinned = _answered(d, facts)
    d, routed = _apply(d, facts, ALL_STABLE)
    if not routed.done:
        # Routers accept no route with a Service that another client has deleted, whatever its weight.
        turned = d.capacity.swaps and ending_of(d.state) is Ending.SUCCESS
        lists = any(each.state.modified for each in routers(facts)) and not (d.paired or d.capacity.one_workload)
        return make_copy(d, facts, stable_endpoints(d) if turned else None) if lists else d, routed
    if not pinned.is_all_there_is:
        return d, pinned
    if d.capacity.swaps and ending_of(d.state) is Ending.SUCCESS:
        # What ran on groups of the old version has ended before the roles changed, unless another client has had the
        # user's Service lead to them since.
        known = d.status.traffic or record
        again = max((each.at for each in known.conflicts if each.at is not None), default=None)
        if again is not None and (known.stable_drained_at is None or again > known.stable_drained_at):
            return awaited(*drained(d, again, _leaving(d, going)))
        return awaited(d, grace_over(d))
    return run_out(d, going)


def run_out(d: Draft, going: tuple[Group, ...] | None = None) -> tuple[Draft, Routed]:
    """Lets the requests end that run on the canary's groups, or on those that are ``going``: they get no more."""
    given_at = d.status.traffic.since if d.status.traffic else None
    # Requests may still be running in ready groups even if their Service is gone.
    if given_at is None or not _works(d):
        return d, DONE
    return awaited(*drained(d, given_at, _leaving(d, going)))


def _withdrawn_by_notes(d: Draft) -> tuple[Draft, Routed]:
    """The same if nothing names the routes any more (the annotated Service was recreated and trafficRoutings removed):
    their own annotations identify them.
    """
    forced = _forced(d)
    if forced.done:
        return d, DONE
    d = d.wake(forced.until)
    if d.o.routing is not None:
        d, _ = _answered(d, d.o.routing)
    d, taken = withdraw_annotated(d)
    if not taken.done:
        return set_traffic(d, since=d.now, applied=None, desired=recorded(ALL_STABLE)) if d.writes else d, taken
    return run_out(d)


def _works(d: Draft) -> bool:
    """Whether requests may still run on the new version, whatever its workload's template says by now. A group that is
    not ready may be busy, which its engine tells where it is asked.
    """
    asked = settings(d)
    ready = any(group.ready(d.now) for group in new_endpoints(d).groups)
    return ready or (asked is not None and asked.draining.until is DrainUntil.IDLE)


def _leaving(d: Draft, going: tuple[Group, ...] | None = None) -> Leaving:
    return Leaving("the new version", d.home, new_endpoints(d).groups if going is None else going)


def _forced(d: Draft) -> Routed:
    """Done if grace and drainSeconds have passed since an abort was forced."""
    forced = forced_since(d.status)
    return fixed(d, forced, "the new version") if forced is not None else Routed(False)


def _went_over(d: Draft) -> bool:
    """True if the groups of the one LWS rolled natively to the new version and serve."""
    natively = ending_of(d.state) is Ending.ROLLED_OUT_NATIVELY
    return natively and d.capacity.one_workload and any(group.ready(d.now) for group in stable_endpoints(d).groups)


def _returned(d: Draft, facts: RoutingFacts) -> tuple[Draft, Routed]:
    """Before the canary Service goes, waits until the stable Service reaches the version that became stable."""
    d = set_traffic(d, step=0)
    d, pinned = _answered(d, facts)
    if not pinned.is_all_there_is:
        return d, pinned
    if not stable_serves(d, facts):
        waits = f"waiting until Service {facts.names.service} sends requests to groups of the new version"
        return d, Routed(False, unanswered(facts, facts.names.stable_pool) or waits)
    d, routed = _apply(d, facts, ALL_STABLE)
    return awaited(d, grace_over(d)) if routed.done else (d, routed)


def stay_pinned(d: Draft) -> Draft:
    """Restores pins that others remove from a selector before it can be restored to the user's."""
    facts = d.o.routing
    if facts is not None and d.status.traffic is not None:
        d, _ = _answered(d, facts)
    return d


def _answered(d: Draft, facts: RoutingFacts) -> tuple[Draft, Routed]:
    """Keeps pins while the BatchRelease exists, which is deleted after everything was restored."""
    return answer(d, facts) if d.o.batch_release is not None else (d, DONE)


def awaited(d: Draft, routed: Routed) -> tuple[Draft, Routed]:
    """The result, with a wake-up if it may change by time alone."""
    return d.wake(routed.until), routed


def grace_over(d: Draft) -> Routed:
    """Done when routers have had their grace period since the last change of weights."""
    asked, since = settings(d), d.status.traffic.since if d.status.traffic else None
    seconds = asked.grace_period_seconds if asked is not None else DEFAULT_GRACE_SECONDS
    until = since + timedelta(seconds=seconds) if since is not None else d.now
    if until <= d.now:
        return DONE
    return Routed(False, f"routers get until {until:%H:%M:%S} UTC to act on it", until=until)
