"""The end of a release whose workloads change roles: all requests go to the new side, the other one drains.

The roles change in one write: of a pair on the route, of a swap on the workload that a release has made. Until then the
release can go back; after it ``status.stable`` follows.
"""

from __future__ import annotations

from dataclasses import dataclass

from rollout_lws.api import FinalisingStep, StableRecord, SummaryState
from rollout_lws.rollout.companions import lacking, left_behind, missing_from_inactive, places, record_complete
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates import release
from rollout_lws.rollout.gates.base import Failed, aborts
from rollout_lws.rollout.gates.capacity import WHEN_READY
from rollout_lws.rollout.gates.telling import waits
from rollout_lws.rollout.groups.crash_loops import remember_leaders
from rollout_lws.rollout.groups.health import (
    deadline_passed,
    further_ready,
    keep_clock,
    loading_words,
    waits_for_capacity,
)
from rollout_lws.rollout.groups.scaling import scale_new
from rollout_lws.rollout.groups.shifting import goes_back
from rollout_lws.rollout.history import store_version
from rollout_lws.rollout.lifecycle import actions
from rollout_lws.rollout.lifecycle.finalize_common import keep_time, overdue, turned_round
from rollout_lws.rollout.lifecycle.rollback import record_ending
from rollout_lws.rollout.lifecycle.shifting import halt, shift
from rollout_lws.rollout.reasons import Ending, EventReason, Reason
from rollout_lws.rollout.roles import kept_groups, swapping
from rollout_lws.rollout.routing import route, sides, traffic_shift
from rollout_lws.rollout.routing.drains import Leaving, drained
from rollout_lws.rollout.routing.route_result import Routed
from rollout_lws.rollout.routing.weights import groups_for_all, takes_over, weight_of
from rollout_lws.rollout.state import CleaningUp, Promoting, RollingBack
from rollout_lws.workload.groups import groups
from rollout_lws.workload.revisions import current_revision, observed, target_revision


def is_known(d: Draft) -> bool:
    """True if the status has the pair's active side as stable, or will once it follows a change of the roles."""
    return d.o.stable is not None and not d.o.undecided and (d.adopted or have_turned(d))


def have_turned(d: Draft) -> bool:
    """True if the roles have changed, and the status does not say so yet."""
    stable, other = d.status.stable, d.o.canary
    return swapping.have_turned(d) or (
        d.paired
        and isinstance(d.state, Promoting)
        and stable is not None
        and other is not None
        and stable.workload_uid == other.workload.metadata.uid
        and sides.have_turned(d)
    )


def no_release(d: Draft) -> str:
    """Why a pair's release cannot go on; "" if it can."""
    if not d.beside_users:
        return ""
    lacks = missing_from_inactive(d)
    if lacks:
        return f"{d.kind} {' and '.join(lacks)} was deleted"
    return "" if d.pending or d.asks_for_stable else f"no version of {d.other_name} is to be released"


def deleted(d: Draft) -> str:
    """That the LWS which is about to get all requests was deleted: it has to lose those that it has; "" if not."""
    made = d.made
    return f"{made.called} was deleted" if made is not None and made.workload.metadata.terminating else ""


def hand_over(d: Draft) -> Draft:
    """Moves all requests; without a verdict if another task continues in this pass."""
    if have_turned(d):
        return _became_stable(actions.refuse_abort(d, actions.promoted_already(d)))
    d = release.follow(d)
    failure = release.failed(d)
    over, gone = no_release(d), deleted(d)
    turned = (Ending.ROLLBACK, over) if over else turned_round(d)
    turned = turned or ((Ending.CONTINUOUS, gone) if gone else None)
    if failure is not None and turned is None and aborts(d) and not d.paused:
        turned = Ending.ABORTED, failure.message
    if turned is not None:
        d = record_ending(d, *turned)
        return d.enter(RollingBack(turned[0], promotion=False) if goes_back(d) else CleaningUp(turned[0]))
    if failure is not None and not d.paused:
        return _stops(d, failure)
    d, growth = _grows(d)
    routed = growth.routed
    if growth.waits_for:
        d = d if routed is not None else route.keep(d)[0]
        if growth.drains:
            return d.reconciling(Reason.DRAINING, SummaryState.PROMOTING, growth.waits_for)
        return _loads(d, growth.waits_for)
    d = d.set_sub(finalising_step=FinalisingStep.ROUTE_TRAFFIC_TO_NEW)
    if routed is None:
        # Without a record the weights are set all the same, and drained from now on.
        d, routed = route.route(d, len(d.strategy.steps))
    if d.paused:
        return actions.stays_paused(d, f"{d.name} hands over")
    if not d.paired:
        # The user's Service leads to one side, too.
        d, routed = traffic_shift.for_promotion(d)
    if not routed.done and not routed.timed:
        return _not_routed(d, routed.message)
    if d.paired:
        record = d.status.traffic
        since = (record.since if record is not None else None) or d.now
        d, routed = drained(d, since, Leaving(f"groups of {d.name}", d.stable, groups(d.stable)))
    if not routed.done:
        d = d.wake(routed.until)
        return d.reconciling(Reason.DRAINING, SummaryState.PROMOTING, routed.message)
    ready = sides.is_ready_to_turn(d) if d.paired else takes_over(d)
    if not ready:
        return _not_routed(d, f"{d.new_name} has to have all requests, and a ready group")
    told = f"{d.new_name} becomes the active side"
    d = sides.turn(d) if d.paired else swapping.turn(d)
    return d.reconciling(Reason.PROMOTING, SummaryState.PROMOTING, told)


@dataclass(frozen=True, slots=True)
class _Growth:
    """What the hand-over ``waits_for`` before the new side gets all requests, "" for nothing; with ``drains`` for
    requests on old groups. ``routed`` is the result of the weights if old groups go meanwhile, which takes them first.
    """

    waits_for: str = ""
    routed: Routed | None = None
    drains: bool = False


def _grows(d: Draft) -> tuple[Draft, _Growth]:
    """Has the new side get R groups, where a release scales it."""
    canary = d.o.canary
    has_all = _has_all(d)
    # Once it has all requests, more groups move none, whatever stops the hand-over.
    if d.scales_sides and d.paused and not has_all:
        return halt(d), _Growth()
    if not d.scales_sides or canary is None:
        return d, _Growth()
    d = remember_leaders(d, canary, d.new_revision, d.replicas, places(d, d.replicas))
    d = further_ready(d, d.ready_of_all)
    routed = None
    if d.capacity.shifts:
        d, routed = route.route(d, len(d.strategy.steps))
        d, _, result = shift(d, d.replicas, routed)
    else:
        result = scale_new(d, d.replicas)
    d = d.take(result)
    if (result.done or d.capacity.shifts) and (has_all or d.canary_ready >= groups_for_all(d)):
        return d, _Growth(routed=routed)
    others = lacking(d, d.replicas)
    ready = f"{d.ready_among(d.canary_groups)} of {d.replicas} groups of {canary.name} ready"
    ready += (f", {others}" if others else "") + loading_words(d)
    return d, _Growth(result.message or ready, routed, result.preparing and d.capacity.shifts)


def _has_all(d: Draft) -> bool:
    record = d.status.traffic
    return record is not None and weight_of(record.desired) == 100


def _stops(d: Draft, failure: Failed) -> Draft:
    d, growth = _grows(d) if _has_all(d) else (halt(d), _Growth())
    d = d if growth.routed is not None else route.keep(d)[0]
    return waits(d, failure, "hand-over")


def _not_routed(d: Draft, message: str) -> Draft:
    d = keep_clock(d, None)
    late = deadline_passed(d, None)
    if late is not None:
        told = f"hand-over: traffic was not routed in time: {message.rstrip('.')}"
        return d.stalled(late[0], f"{told}; it goes on by itself when it is", goes_on=True)
    return d.reconciling(Reason.ROUTING, SummaryState.PROMOTING, message)


def _loads(d: Draft, message: str) -> Draft:
    d = keep_time(d)
    passed, capacity = overdue(d), waits_for_capacity(d)
    if passed is not None:
        return d.stalled(passed[0], f"hand-over: {passed[1].rstrip('.')}; {WHEN_READY}", goes_on=True)
    if capacity is not None:
        return d.reconciling(*capacity)
    return d.reconciling(Reason.LOADING, SummaryState.PROMOTING, message)


def _became_stable(d: Draft) -> Draft:
    """Records the side that is active by now, with the version that was released: another one applied since is held."""
    return _of_pair(d) if d.paired else _of_swap(d)


def _released(d: Draft) -> StableRecord:
    """The version that was released, which the active side runs."""
    own, version = d.own_version.template_hash, d.status.observed_template_hash
    runs_own = observed(d.stable) and current_revision(d.stable) == target_revision(d.stable)
    same = version in (None, own) or runs_own
    return StableRecord(
        template_hash=own if same else version or own,
        revision=target_revision(d.stable) if same else d.sub.new_revision,
        workload_uid=d.stable.workload.metadata.uid,
    )


def _of_swap(d: Draft) -> Draft:
    before, record = d.status.stable, _released(d)
    revision = record.revision
    d = d.set(stable=record, kept=kept_groups.to_keep(d, before))
    d = d.set_sub(new_revision=revision, stable_revision=revision).enter(CleaningUp(Ending.SUCCESS))
    return d.event(EventReason.PROMOTED, f"{d.called} at revision {revision} has all requests")


def _of_pair(d: Draft) -> Draft:
    before, record = d.status.stable, _released(d)
    revision = record.revision
    # A version that was applied to the other side meanwhile is not on record, so that its release begins; unless it
    # was held there, and told so.
    inactive = before.template_hash if before is not None else None
    if d.scales_sides and d.o.canary is not None:
        inactive = left_behind(d, inactive or "")
    d = d.set(stable=record, active=d.name, inactive_hash=inactive)
    # What is applied to it meanwhile may have come to some of its workloads only.
    d = record_complete(d, before.template_hash) if before is not None else d
    if record.template_hash == d.own_version.template_hash:
        d = store_version(d, d.own_version, revision)
    d = d.set_sub(new_revision=revision, stable_revision=revision).enter(CleaningUp(Ending.SUCCESS))
    return d.event(EventReason.PROMOTED, f"{d.called} at revision {revision} has all requests and is the active side")
