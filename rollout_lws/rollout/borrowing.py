"""Services, pools and routes of the user's, borrowed for a release: pinned before it, given back after it.

What a Rollout that is gone has left behind is given back as well, by the notes that it left on the very objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta

from rollout_lws.api import Phase, TrafficRecord
from rollout_lws.objects.resources import SERVICES, Resource
from rollout_lws.objects.writes import Create, Delete
from rollout_lws.rollout import lingering, quarrel
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import EventReason
from rollout_lws.rollout.routed import DONE, Routed
from rollout_lws.rollout.shares import DEFAULT_GRACE_SECONDS, answers_for_stable, settings
from rollout_lws.rollout.sides import Side, new_side, stable_side
from rollout_lws.traffic import backends, marks, services
from rollout_lws.traffic.backends import Selector
from rollout_lws.traffic.facts import RoutingFacts, looked_at_kinds, named
from rollout_lws.traffic.router import Router
from rollout_lws.traffic.routers import routers
from rollout_lws.traffic.selectors import selector_changes

_OVER = "the release is over"


def watched(d: Draft) -> tuple[tuple[str, ...], tuple[Resource, ...]]:
    """Services of which the endpoints are wanted, and kinds of which all objects of the namespace are: while something
    is, or may be, routed.
    """
    facts = d.o.routing
    if facts is None:
        return (), ()
    stable = d.status.stable
    waits = d.o.stable is not None and stable is not None and d.version.template_hash != stable.template_hash
    routes = d.status.phase == Phase.PROGRESSING or d.status.traffic is not None
    if not (waits or routes or d.o.canary is not None or any(True for _ in _left_behind(facts))):
        return (), ()
    return (*facts.endpoints,), looked_at_kinds(facts.names)


def prepare(d: Draft) -> Routed:
    """Pin what selects groups and make the canary's Service, before any pod exists that the first would select."""
    facts = d.o.routing
    if settings(d) is None or facts is None or facts.service is None:
        return DONE
    record = d.status.traffic or TrafficRecord()
    if record.borrowed != facts.names:
        d.set(traffic=record.model_copy(update={"borrowed": facts.names}))
        d.status_first = d.status_first or d.on_record
    if not d.on_record:
        return Routed(False, "the release is put on record first")
    new = new_side(d)
    pinned = answer(d, facts)
    pinned_new = point(d, backends.of_new(facts), new)
    if facts.canary_service is None:
        body = services.canary_service(
            facts.service,
            d.uid,
            d.keys,
            name=facts.canary_service_name,
            changes=selector_changes(new.selects, target(d)),
            owner=facts.owner,
        )
        d.write((Create(SERVICES, body, "the new version's groups"),))
    return pinned if not pinned.done else pinned_new


def renamed(d: Draft) -> bool:
    """Whether the spec names something else before anything was pinned: that is on record from then on, and what it
    names is looked at in the next pass.
    """
    record, facts = d.status.traffic, d.o.routing
    if record is None or record.borrowed is None or facts is None or not facts.synced:
        return False
    asked, made = named(settings(d)), facts.canary_service
    taken = any(each.given for each in _borrowed(facts)) or (made is not None and facts.is_ours(made))
    if asked == record.borrowed or d.o.batch_release is not None or taken:
        return False
    d.set(traffic=record.model_copy(update={"borrowed": asked}))
    return True


def answer(d: Draft, facts: RoutingFacts) -> Routed:
    """Have the stable version's Service and pool select whoever can answer: the new one while no stable group can."""
    side = new_side(d) if answers_for_stable(d, facts) else stable_side(d)
    return point(d, backends.of_stable(facts), side) if side.exists or d.o.stable is not None else DONE


def keep_pinned(d: Draft) -> None:
    """Nothing new is prepared while a release is paused, but what others take out of a selector is put back."""
    if _pinned_before(d):
        prepare(d)


def target(d: Draft) -> str:
    """Which pods of a group receive requests."""
    asked = settings(d)
    return asked.target if asked else "AsSelected"


def point(d: Draft, selectors: Iterable[Selector], side: Side) -> Routed:
    """Have these select the groups of one side; done when all do and no router says that it cannot use one as it is."""
    found = DONE
    for each in selectors:
        live = each.live
        if any((write.resource, write.name) == (each.selecting.resource, each.name) for write in d.writes):
            # One rule of this decision has pointed it already.
            found = Routed(False, f"{each.what} is pinned to groups of {side.name}") if found.done else found
            continue
        if live is not None and _pinned_before(d) and (each.drifted or not each.given):
            waits = quarrel.answer(d, live, each.what, each.ignore)
            if waits:
                found = Routed(False, waits, contested=True)
                continue
        writes = each.pin(side.selects, side.name, target(d))
        d.write(writes)
        said = f"{each.what} is pinned to groups of {side.name}" if writes else each.unaccepted
        if said and found.done:
            found = Routed(False, said)
    return found


def _pinned_before(d: Draft) -> bool:
    """Whether an earlier decision of this release has pinned what it names: the BatchRelease is made after that."""
    before = d.o.rollout.status
    if before is None or before.traffic is None or before.traffic.borrowed is None or d.o.batch_release is None:
        return False
    # One decision may end a release, with everything given back, and begin the next.
    return before.finalising is None or d.status.finalising is not None


def restore(d: Draft) -> Routed:
    """Give everything back and remove the canary's Service, as soon as no request could reach a version that leaves;
    done when nothing is left to do. A user's object that is gone counts as given back.
    """
    facts = d.o.routing
    if facts is None:
        return DONE
    unreached = is_unreached(d)
    if not unreached.done:
        return unreached
    before = len(d.writes)
    for each in _borrowed(facts):
        d.write(each.give_back(_OVER))
    made = facts.canary_service
    if made is not None and facts.is_ours(made):
        meta = made["metadata"]
        d.write((Delete(SERVICES, meta["namespace"], meta["name"], meta["uid"], _OVER),))
    if len(d.writes) == before:
        return DONE
    return Routed(False, "giving Services and routes back")


def is_unreached(d: Draft) -> Routed:
    """Whether no request could reach a version that leaves if everything were given back now."""
    facts = d.o.routing
    if facts is None:
        return DONE
    if not facts.synced:
        return Routed(False, facts.waits)
    reached = lingering.reached(d, facts)
    return _pickers_know(d, facts) if reached.done else reached


def _pickers_know(d: Draft, facts: RoutingFacts) -> Routed:
    """Whether endpoint pickers have had the time to hear that the last pod that could get requests is gone."""
    record = d.status.traffic
    if record is None or not facts.names.stable_pool or not lingering.leaves(d):
        return DONE
    if record.gone is None:
        record = record.model_copy(update={"gone": d.now})
        d.set(traffic=record)
    asked, gone = settings(d), record.gone or d.now
    until = gone + timedelta(seconds=asked.grace_period_seconds if asked else DEFAULT_GRACE_SECONDS)
    if d.wake_in(until, 0):
        return DONE
    return Routed(False, f"endpoint pickers get until {until:%H:%M:%S} UTC to hear that the last pod is gone")


def _borrowed(facts: RoutingFacts) -> tuple[Selector | Router, ...]:
    return (*routers(facts), *backends.of_stable(facts), *backends.of_new(facts))


# Left behind


def _left_behind(facts: RoutingFacts) -> Iterator[tuple[Selector | Router, str]]:
    """What carries notes of Rollouts that are gone (deleted while this controller was, or with their finalizer taken
    off by hand), with their UIDs.
    """
    for each in _borrowed(facts):
        live = each.live
        for uid in marks.others(live, facts.by, facts.keys) if live is not None else ():
            if uid not in facts.living:
                yield each, uid


def take_back(d: Draft) -> bool:
    """Give back what Rollouts that are gone have borrowed; True while there is something."""
    facts = d.o.routing
    if facts is None:
        return False
    ghost = next((uid for _, uid in _left_behind(facts)), None)
    if ghost is None:
        return False
    told = []
    for each in _borrowed(replace(facts, by=ghost)):
        writes = each.give_back("the Rollout that wrote it is gone")
        told += [each.what] if writes else []
        d.write(writes)
    if told:
        d.notice(
            EventReason.GIVEN_BACK,
            f"{', '.join(told)} carried what a Rollout that is gone (UID {ghost}) had written; it is given back",
            warning=True,
        )
    return True
