"""Releases that take groups from one workload as another one gets some: forward, and back.

Requests move first: the weights are such that the groups which go are not needed. Then those groups lose their label
and drain, and only then their workload is scaled.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rollout_lws.api import FinalisingStep, Phase, SummaryState
from rollout_lws.capacity.result import CapacityResult
from rollout_lws.capacity.stable_groups import named
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.groups.crash_loops import remember_leaders
from rollout_lws.rollout.groups.health import further_ready
from rollout_lws.rollout.groups.scaling import scale_new
from rollout_lws.rollout.groups.shifting import goes_back, going, next_numbers, remaining, room_for_stable, unknown_pods
from rollout_lws.rollout.lifecycle.finalize_common import keep_time, overdue, turned_round
from rollout_lws.rollout.lifecycle.native_rollout import past_stable
from rollout_lws.rollout.lifecycle.parking import park
from rollout_lws.rollout.lifecycle.rollback import record_ending, roll_back
from rollout_lws.rollout.reasons import Ending, Reason
from rollout_lws.rollout.roles import swapping
from rollout_lws.rollout.roles.writes import forget_number
from rollout_lws.rollout.routing import route
from rollout_lws.rollout.routing.group_drains import put_back_all, put_back_staying, take_out
from rollout_lws.rollout.routing.route import awaited, grace_over
from rollout_lws.rollout.routing.route_result import DONE, Routed
from rollout_lws.rollout.routing.weights import does_without
from rollout_lws.rollout.state import FORCEABLE, CleaningUp, RollingBack, ending_of, forced_since
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import groups


def shift(d: Draft, wanted: int, routed: Routed) -> tuple[Draft, Routed, CapacityResult]:
    """Has both sides go on towards ``wanted`` groups of the new version; ``routed`` is the result of the weights that
    this takes. Gives what requests on groups of the new version that go wait for, and what the new side takes, which is
    done when it has ``wanted`` groups.
    """
    if unknown_pods(d) is not None:
        return d, DONE, CapacityResult(preparing=True, message=_until_gone(d))
    numbers = next_numbers(d)
    d, may_begin = _may_begin(d, routed)
    d, told = _stable_has(d, numbers.stable, may_begin=may_begin)
    told = told or _until_gone(d)
    canary = d.o.canary
    if canary is None or numbers.new >= canary.workload.replicas:
        d = put_back_staying(d, canary, numbers.new) if canary is not None else d
        # One without groups is not made before there is room for the first.
        scaled = scale_new(d, numbers.new) if canary is not None or numbers.new else CapacityResult(done=True)
        if scaled.done and numbers.new < wanted:
            # No deadline runs while nothing loads.
            waits = bool(told) and d.canary_ready >= numbers.new
            scaled = replace(scaled, done=False, preparing=waits, message=told or _not_ready(d))
        return d, DONE, scaled
    d, number, emptied = _emptied(d, canary, numbers.new, may_begin=may_begin)
    scaled = scale_new(d, number)
    return d, emptied, replace(scaled, done=scaled.done and number == wanted)


def _may_begin(d: Draft, routed: Routed) -> tuple[Draft, bool]:
    """Whether groups may lose their requests: routers have accepted the weights, and had time to act on them."""
    d, waited = awaited(d, grace_over(d))
    return d, routed.done and waited.done


def _stable_has(d: Draft, number: int, *, may_begin: bool) -> tuple[Draft, str]:
    """Scales the stable side to this number, in the end; what that waits for, "" for nothing."""
    facts = d.o.stable
    if facts is None or unknown_pods(d) is not None:
        return d, ""
    d = put_back_staying(d, facts, number)
    emptied = DONE
    if number < facts.workload.replicas:
        d, number, emptied = _emptied(d, facts, number, may_begin=may_begin)
    if number != facts.workload.replicas:
        d = d.write((_scaled(d, facts, number),))
    return d, emptied.message


def _emptied(d: Draft, facts: Facts, number: int, *, may_begin: bool) -> tuple[Draft, int, Routed]:
    """The number that the side may have by now, on the way down to ``number``."""
    leaving = going(facts, number)
    d, done, waits = take_out(d, facts, leaving, may_begin=may_begin)
    return d, number if done == len(leaving) else leaving[done].ordinal + 1, waits


def _scaled(d: Draft, facts: Facts, number: int) -> Patch:
    """The number, and what it was before the release took groups, which no status has to say then. That is forgotten
    when the groups are there again and have the requests.
    """
    workload, meta = facts.workload, facts.workload.metadata
    noted = str(d.replicas)
    body: dict[str, Any] = {"spec": {"replicas": number}}
    if number < d.replicas and meta.annotations.get(d.keys.replicas) != noted:
        body["metadata"] = {"annotations": {d.keys.replicas: noted}}
    reason = f"{number} groups instead of {workload.replicas} of {d.replicas}"
    return Patch(workload.resource, meta.namespace, meta.name, body, reason, meta.resource_version)


def _until_gone(d: Draft) -> str:
    """Which groups have to be gone before others come; "" without any."""
    facts, unknown = d.o.stable, unknown_pods(d)
    if unknown is not None:
        return unknown or f"pods of {d.name} and {d.other_name} are being listed"
    above = remaining(facts) if facts is not None else ()
    gone = ", ".join(str(ordinal) for ordinal in above[:3])
    return f"{d.edited.name} gets its next group when group {gone} of {d.name} is gone" if gone else ""


def _not_ready(d: Draft) -> str:
    """Which groups keep others from going; "" if all are ready."""
    facts = d.o.stable
    down = named([group for group in groups(facts) if not group.ready(d.now)]) if facts is not None else ""
    return f"group {down} of {d.name} is not ready: no further group may go before it is" if down else ""


def fill(d: Draft) -> tuple[Draft, Routed]:
    """Scales the active side to R once the other one has left it the room; done when it has R groups."""
    facts = d.stable
    number = min(d.replicas, facts.workload.replicas + room_for_stable(d))
    if facts.workload.replicas >= d.replicas:
        return d, DONE
    if number > facts.workload.replicas:
        d = d.write((_scaled(d, facts, number),))
    return d, Routed(False, f"{d.called} gets {d.replicas} groups instead of {facts.workload.replicas}")


def halt(d: Draft) -> Draft:
    """Gives the groups that were about to go their requests again while nothing goes on."""
    return put_back_all(d) if d.capacity.shifts else d


# Back


def go_back(d: Draft, state: RollingBack) -> Draft:
    """Gives the active side its groups back as those of the other one go; without a verdict if another task continues
    in this pass.
    """
    turned = turned_round(d)
    if turned is not None and turned[0] not in (state.ending, Ending.CONTINUOUS):
        state = replace(state, ending=turned[0])
        d = record_ending(d, *turned).enter(state).set(phase=Phase.PROGRESSING)
    if not goes_back(d):
        return _is_back(d, state)
    d = d.set_sub(finalising_step=FinalisingStep.RESUME_WORKLOAD)
    d = remember_leaders(d, d.stable, d.stable_revision, d.replicas)
    ready = sum(group.ready(d.now) for group in groups(d.stable))
    d = keep_time(further_ready(d, ready))
    numbers = next_numbers(d)
    if does_without(d) or forced_since(d.status) is not None:
        d, emptied = route.withdraw(d)
        d, told = _stable_has(d, numbers.stable, may_begin=emptied.done)
        d, emptied = without_groups(d) if emptied.done else (d, emptied)
        if emptied.done and d.stable.workload.replicas >= d.replicas and (ready >= d.replicas or overdue(d)):
            return _is_back(d, state)
    else:
        d, routed = route.keep(d)
        d, may_begin = _may_begin(d, routed)
        d, told = _stable_has(d, numbers.stable, may_begin=may_begin)
        canary, emptied = d.o.canary, routed
        # One that is being deleted is scaled no more, and goes as a whole when the requests are back.
        goes = canary is not None and not canary.workload.metadata.terminating
        if canary is not None and goes and numbers.new < canary.workload.replicas:
            d, number, emptied = _emptied(d, canary, numbers.new, may_begin=may_begin)
            d = d.take(scale_new(d, number))
    return _comes_back(d, emptied, told, ready)


def _is_back(d: Draft, state: RollingBack) -> Draft:
    """Goes on when the active side has its groups: some may have been updated while it was not held."""
    return roll_back(d, state) if not d.paired and past_stable(d) else d.enter(CleaningUp(state.ending))


def without_groups(d: Draft) -> tuple[Draft, Routed]:
    """Removes the groups that the release has made, which get no requests any more."""
    return park(d, ends=True) if d.paired else swapping.clear(forget_number(d))


def _comes_back(d: Draft, emptied: Routed, told: str, ready: int) -> Draft:
    passed = overdue(d)
    doing = f"{ready} of {d.replicas} groups of {d.name} ready"
    waits = emptied.message or told
    doing = f"{doing}; {waits}" if waits else doing
    if passed is not None:
        told = f"going back: {passed[1].rstrip('.')}; it goes on by itself: {doing}"
        if ending_of(d.state) in FORCEABLE:
            told += f". To send all requests to {d.name} now: {d.command('abort', '--force')}"
        return d.stalled(passed[0], told, goes_on=True)
    if emptied.contested:
        return d.stalled(Reason.ROUTE_CONFLICT, emptied.message, field=emptied.field)
    if emptied.timed:
        return d.reconciling(Reason.DRAINING, SummaryState.ROLLING_BACK, doing)
    return d.reconciling(Reason.ROLLING_BACK, SummaryState.ROLLING_BACK, doing)
