"""The time after a swap in which the groups of the version before stay, without requests.

The release is over, and Services stay pinned to the groups that serve. If the version before is applied again, its
groups get the requests by a hand-over without steps. Anything else ends the time early.
"""

from __future__ import annotations

from rollout_lws.api import SummaryState, TrafficRecord
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.lifecycle import finalize, idle
from rollout_lws.rollout.reasons import Ending, EventReason, Reason
from rollout_lws.rollout.roles import kept_groups, swapping
from rollout_lws.rollout.routing import route, selector_pinning
from rollout_lws.rollout.routing.route_result import Routed
from rollout_lws.rollout.routing.weights import recorded
from rollout_lws.rollout.state import Promoting
from rollout_lws.traffic.split import ALL_STABLE


def run(d: Draft) -> Draft:
    """Keeps the groups, or has them go; without a verdict once they are gone."""
    until = kept_groups.until(d)
    if until is None or not kept_groups.can_stay(d):
        return _goes(d)
    d, _ = route.withdraw(swapping.label_parked(d.wake(until)))
    d = selector_pinning.make_copy(d, d.o.routing) if d.o.routing is not None else d
    d, told = kept_groups.no_more_than_asked(d), kept_groups.told(d)
    d = idle.settle(d)
    if d.concluded:
        return d.adding(told).but(at_rest=not d.pending)
    return _comes_back(d)


def end(d: Draft) -> tuple[Draft, Routed]:
    """Has the groups go before their time is over; done when they are gone."""
    waiting = finalize.keeps_canary(d)
    if waiting:
        return route.withdraw(d)[0], Routed(False, waiting)
    if d.o.batch_release is not None:
        d, withdrawn = route.withdraw(d)
        if not withdrawn.done:
            return d, withdrawn
    d, gone = finalize.remove_made(d)
    return d.set(finalising=None, traffic=None, flaps=None, kept=None) if gone.done else d, gone


def _goes(d: Draft) -> Draft:
    # That they do not run the version which is asked for may be of an earlier moment.
    d = d.confirm_leader_set("the revision that groups which stay are of", d.o.canary) if d.pending else d
    d, gone = end(d)
    if gone.done:
        return d
    if gone.needs_person:
        return d.stalled(Reason.POD_STUCK_TERMINATING, gone.message)
    settled = d if d.pending else idle.settle(d)
    if settled.concluded:
        return settled.adding(f"the groups of {d.new_name} go: {gone.message}")
    told = f"the groups of {d.new_name} make room for a release: {gone.message}"
    return d.reconciling(Reason.PREPARING, SummaryState.PREPARING, told)


def _comes_back(d: Draft) -> Draft:
    """Hands over to the groups of the version before, whose release has just begun."""
    note = f"the groups of {d.new_name} run this version: they get all requests at once, without steps"
    d = d.event(EventReason.PROMOTING, note)
    d = d.set(traffic=TrafficRecord(desired=recorded(ALL_STABLE))).enter(Promoting(Ending.SUCCESS))
    return finalize.run(d)
