"""Releases that are not on record any more, because the status was wiped or forged, and have taken groups of the
workload that serves: they go back.

What says so are the workloads, the route and the note of the number, never the status.
"""

from __future__ import annotations

from rollout_lws.api import Phase, SummaryState, TrafficRecord
from rollout_lws.capacity.table import recorded as recorded_capacity
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import Ending, EventReason, Reason
from rollout_lws.rollout.routing import sides
from rollout_lws.rollout.routing.weights import does_without, recorded
from rollout_lws.rollout.state import CleaningUp, Detaching, Idle, RollingBack
from rollout_lws.traffic.routers.of_rollout import routers
from rollout_lws.traffic.split import Split
from rollout_lws.workload.revisions import target_revision


def is_unfinished(d: Draft) -> bool:
    """True if a release has taken so many groups of the active side that the others could not carry all requests."""
    if d.stable.workload.replicas >= d.own_size:
        return False
    return (sides.shares(d) if d.paired else _shares(d)) and not does_without(d)


def must_go_back(d: Draft) -> bool:
    """True if the status does not say that a release takes groups of the active side, which is none of a pair, and one
    has.
    """
    at_rest = isinstance(d.state, Idle | Detaching | CleaningUp)
    return not d.paired and at_rest and d.o.stable is not None and is_unfinished(d)


def resume_rollback(d: Draft) -> Draft:
    """Has the release go back, in which the active side gets its groups again."""
    weight = sides.weight_of_new(d) if d.paired else _weight_of_new(d)
    d = d.set(
        phase=Phase.PROGRESSING,
        traffic=TrafficRecord(step=1, since=d.now, desired=recorded(Split(weight))),
        observed_template_hash=d.version.template_hash,
        observed_rollout_id=d.release_id,
        capacity=recorded_capacity(d.strategy, swapped=d.swapped, gives=not (d.paired or d.swapped)),
    )
    d = d.set_sub(new_revision=target_revision(d.edited), current_step_index=1)
    d = d.enter(RollingBack(Ending.ROLLBACK, promotion=False))
    serves = "is the active side of the pair" if d.paired else "serves"
    note = (
        f"{d.called} {serves}, and has {d.stable.workload.replicas} of {d.replicas} groups: it gets the others back"
        f" before {d.other_name} loses its requests"
    )
    return d.event(EventReason.ADOPTED, note, warning=True).reconciling(
        Reason.ROLLING_BACK, SummaryState.ROLLING_BACK, note
    )


def _shares(d: Draft) -> bool:
    facts = d.o.routing
    return d.o.canary is not None and facts is not None and any(each.state.reaches_canary for each in routers(facts))


def _weight_of_new(d: Draft) -> int:
    facts = d.o.routing
    return min((each.state.weight for each in routers(facts)), default=0) if facts is not None else 0
