"""Detaches an LWS: the Rollout is deleted or disabled, or may no longer manage the LWS.

At rest the controller restores the user's strategy and nothing rolls. A release in its steps is rolled back first; a
promotion is finished first. If a pending version must not start by itself, the hold stays, and an annotation says how
to release it.
"""

from __future__ import annotations

from dataclasses import replace

from rollout_lws.api import Phase, SummaryState, rollouts
from rollout_lws.capacity.batch_release import dismiss
from rollout_lws.capacity.stable_groups import named
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout.autoscaling import autoscalers
from rollout_lws.rollout.draft import Draft, Persist
from rollout_lws.rollout.groups.scaling import partition_update
from rollout_lws.rollout.lifecycle import (
    actions,
    finalize,
    handing_over,
    hold_enforcement,
    keeping,
    native_rollout,
    parking,
)
from rollout_lws.rollout.lifecycle.finalize import keeps_canary
from rollout_lws.rollout.lifecycle.rollback import begin_rollback
from rollout_lws.rollout.lifecycle.shifting import halt
from rollout_lws.rollout.reasons import Ending, EventReason, Reason
from rollout_lws.rollout.roles import kept_groups, swapping
from rollout_lws.rollout.routing import route, selector_pinning, sides
from rollout_lws.rollout.routing.route_result import DONE
from rollout_lws.rollout.state import CleaningUp, InSteps, Promoting, RollingBack
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import groups
from rollout_lws.workload.hold import give_back, hold_record
from rollout_lws.workload.revisions import current_revision, target_revision

#: Reasons for which the awaited groups will hardly become ready.
_IN_VAIN = frozenset({Reason.CHURN, Reason.RESTARTS_EXHAUSTED, Reason.DEADLINE, Reason.CAPACITY_DEADLINE})


def deleting(d: Draft) -> bool:
    return d.o.rollout.metadata.deletion_timestamp is not None


def leave(d: Draft, ending: Ending) -> Draft:
    """Ends the release, restores the objects and drops the finalizer. Always gives a verdict."""
    if not _is_kept(d):
        return _gone(d, ending)
    known = not d.paired or handing_over.is_known(d)
    if d.o.stable is not None and kept_groups.are_kept(d):
        d, gone = keeping.end(d)
        if not gone.done:
            return _leaving(d, ending, gone.message)
    if known and d.o.stable is not None and d.status.phase == Phase.PROGRESSING and d.status.stable is not None:
        d = d if d.paired else native_rollout.record_what_runs(d)
        # A pair's sides both stand, so that it goes back at once, even while it hands over.
        hands_over = d.capacity.swaps and isinstance(d.state, Promoting) and not handing_over.have_turned(d)
        if isinstance(d.state, InSteps) or hands_over:
            d = begin_rollback(d, ending, "the Rollout is leaving")
        elif d.state == CleaningUp(Ending.CONTINUOUS):
            d = d.enter(CleaningUp(ending))
        else:
            # A promotion that is finished first may be paused, or wait for a gate: what ends that is still answered.
            d = actions.act(d)
        d = finalize.run(d)
        lacks = sides.only_new_serves_whole(d)
        if lacks and _is_in_vain(d):
            return _leave_both(d, ending, lacks)
        if d.paired and isinstance(d.state, RollingBack) and _is_in_vain(d):
            why = f"{d.name} has {d.stable.workload.replicas} of {d.replicas} groups, which do not become ready"
            return _leave_both(d, ending, why)
        if _waits_in_vain(d):
            d = _leave_as_it_is(d, ending)
        if d.status.finalising is not None:
            return _leaving(d, ending, d.verdict.message if d.verdict else "")
    elif d.made is not None or d.o.batch_release is not None:
        waiting = keeps_canary(d)
        if waiting:
            return _leaving(d, ending, waiting)
        d, emptied = (d, DONE) if d.paired else route.withdraw(d)
        if not emptied.done:
            return _leaving(d, ending, emptied.message)
        d, gone = swapping.clear(d)
        if gone.done and d.o.batch_release is not None:
            d = d.write(dismiss(d.o.batch_release, d.keys))
        return _leaving(d, ending, gone.message or "removing the BatchRelease")
    if d.swapped and not swapping.leaves_as_is(d):
        return stays(d, ending)
    decided = d.paired and d.o.stable is not None and not d.o.undecided
    if decided and sides.is_on_record(d):
        # The entry that tells which side is active goes: until then the weights say so.
        d, rested = sides.rest(d, "the Rollout is leaving")
        if not rested.done:
            return _leaving(d, ending, rested.message)
    d, restored = selector_pinning.restore(parking.put_back(d))
    if restored.needs_person:
        d = d.stalled(Reason.POD_STUCK_TERMINATING, restored.message)
    if not restored.done:
        return _leaving(d, ending, restored.message)
    d, given_back = autoscalers.restore(d)
    if not given_back:
        return _leaving(d, ending, autoscalers.waits_for(d))
    for each in d.o.workloads if d.scales_sides else (d.o.stable,):
        d = _give_back(d, each) if each is not None else d
    return _gone(d, ending)


def stays(d: Draft, ending: Ending) -> Draft:
    """Keeps a Rollout whose workloads have changed roles: its manifests alone do not say which of them serves."""
    d = actions.act(hold_enforcement.keep_hold(d))
    d = d.set(phase=Phase.TERMINATING if ending is Ending.DELETED else Phase.DISABLING)
    return swapping.stays_away(d)


def _waits_in_vain(d: Draft) -> bool:
    """True if the rest of the release waits for groups that will hardly become ready."""
    if d.capacity.swaps:
        return False
    if d.o.canary is not None and partition_update(d).beside:
        # The canary's groups serve instead of those that are not ready, and detaching would delete them.
        return False
    return _is_in_vain(d) and isinstance(d.state, Promoting | RollingBack)


def _is_in_vain(d: Draft) -> bool:
    told = d.verdict
    return told is not None and told.condition == "Stalled" and told.reason in _IN_VAIN


def _leave_both(d: Draft, ending: Ending, why: str) -> Draft:
    """Leaves both sides of a pair as they are, with the requests that each has: the active one cannot carry all."""
    told = f"the Rollout has left {d.name} and {d.other_name} as they are, with the weights in the route: {why}"
    d = halt(d.but(writes=())).event(EventReason.DETACHED, told, warning=True)
    for each in d.o.workloads:
        d = _give_back(d, each)
    return _gone(d, ending)


def _leave_as_it_is(d: Draft, ending: Ending) -> Draft:
    """Keeps a broken version from blocking the detach: groups stay as they are under the hold, and restart with the
    version that they would restart with anyway.
    """
    own = partition_update(d)
    if own.is_open:
        return d.write(own.close("the Rollout is leaving"))
    if d.writes:
        return d
    d = native_rollout.record_what_runs(d, released=True)
    return finalize.run(d.enter(CleaningUp(ending)))


def _leaving(d: Draft, ending: Ending, message: str) -> Draft:
    phase = Phase.TERMINATING if ending is Ending.DELETED else Phase.DISABLING
    reason = Reason.TERMINATING if ending is Ending.DELETED else Reason.DISABLED
    if d.status.finalising is None:
        d = d.set(phase=phase)
    told = f"leaving the {d.kind}: {message}"
    ended = d.status.finalising is None and d.verdict is not None and d.verdict.reason is Reason.ABORTED
    if d.verdict is not None and d.verdict.condition == "Stalled" and not ended:
        return d.but(verdict=replace(d.verdict, message=told))
    return d.reconciling(reason, SummaryState.TERMINATING, told)


def _give_back(d: Draft, facts: Facts) -> Draft:
    lws = facts.workload
    mark = hold_record(lws, d.keys)
    # The mark of a side may be that of a Rollout of the pair that is gone.
    if mark is None or (mark.by != d.uid and not d.scales_sides):
        return _unlabel(d, facts)
    if facts is d.o.stable:
        waits = d.own_pending if d.adopted else current_revision(facts) != target_revision(facts)
    else:
        waits = lws.replicas > 0 and current_revision(facts) != target_revision(facts)
    if not waits:
        # The aborted version matters only to a Rollout that releases the LWS, and there is none now.
        body = give_back(lws, d.keys, forget=d.keys.aborted)
        d = d.event(EventReason.DETACHED, f"{facts.called} has its own strategy back", about=d.kind)
    else:
        text = (
            f"the version in the template of {facts.called} is not running: its groups"
            f" {_where_they_stay(d, facts)}. To let it roll at once, set {'.'.join(lws.strategy_path)}.partition to 0;"
            f" to have it released in steps, let a Rollout name this {d.kind}"
        )
        body = {"metadata": {"annotations": {d.keys.held: text}}}
        d = d.event(EventReason.UPDATE_HELD, text, warning=True, about=d.kind)
    if body is not None:
        body["metadata"] |= _without_finalizer(d, facts)
    if body is not None and d.keys.side in lws.metadata.labels and not d.swapped:
        body["metadata"]["labels"] = {d.keys.side: None}
    if body is not None and d.keys.replicas in lws.metadata.annotations:
        body["metadata"]["annotations"][d.keys.replicas] = None
        asked = d.o.rollout.spec.replicas
        number = d.own_size if asked is None else asked
        if facts is d.o.stable and lws.replicas < number:
            body["spec"] = {**body.get("spec", {}), "replicas": number}
    if body is not None:
        meta = lws.metadata
        d = d.write((Patch(lws.resource, meta.namespace, meta.name, body, "leaving", meta.resource_version),))
    return d


def _unlabel(d: Draft, facts: Facts) -> Draft:
    """Takes the label of a side that is not held."""
    meta = facts.workload.metadata
    marks = {
        "labels": {key: None for key in (d.keys.side,) if key in meta.labels and not d.swapped},
        "annotations": {key: None for key in (d.keys.replicas,) if key in meta.annotations},
    }
    metadata: dict[str, object] = {member: keys for member, keys in marks.items() if keys}
    metadata |= _without_finalizer(d, facts)
    if not metadata:
        return d
    body = {"metadata": metadata}
    resource = facts.workload.resource
    return d.write((Patch(resource, meta.namespace, meta.name, body, "leaving", meta.resource_version),))


def _without_finalizer(d: Draft, facts: Facts) -> dict[str, object]:
    """Takes the canary's finalizer from one that stays: a person who deletes it later has no controller that waits for
    its requests.
    """
    own = facts.workload.metadata.finalizers
    if not d.swapped or facts is not d.o.stable or d.keys.canary_finalizer not in own:
        return {}
    return {"finalizers": [each for each in own if each != d.keys.canary_finalizer] or None}


def _where_they_stay(d: Draft, facts: Facts) -> str:
    revision = d.stable_revision if facts is d.o.stable and d.adopted else current_revision(facts)
    others = [
        group for group in groups(facts) if 0 <= group.ordinal < facts.workload.replicas and group.revision != revision
    ]
    if not others:
        return f"stay at revision {revision}"
    return f"restart with revision {revision}, and group {named(others)} carries another one until then"


def _is_kept(d: Draft) -> bool:
    """True while our finalizer is present."""
    return d.keys.rollout_finalizer in d.o.rollout.metadata.finalizers


def _let_go(d: Draft) -> Draft:
    """Drops our finalizer; this pass no longer writes the status."""
    meta = d.o.rollout.metadata
    others = [each for each in meta.finalizers if each != d.keys.rollout_finalizer]
    body, resource = {"metadata": {"finalizers": others or None}}, rollouts(d.keys.group)
    patch = Patch(resource, meta.namespace, meta.name, body, "everything is restored", meta.resource_version)
    return d.write((patch,)).but(persist=Persist.NOT)


def _gone(d: Draft, ending: Ending) -> Draft:
    if ending is Ending.DELETED:
        d = _let_go(d) if _is_kept(d) else d.but(persist=Persist.NOT)
        return d.reconciling(Reason.TERMINATING, SummaryState.TERMINATING)
    d = d.set(
        phase=Phase.DISABLED,
        stable=None,
        kept=None,
        active=None,
        inactive_hash=None,
        complete=None,
        companion_resets=(),
        arriving=None,
        companions=(),
        start_requested=None,
        finalising=None,
        capacity=None,
        step=None,
        traffic=None,
        flaps=None,
        not_ready_groups=(),
        restarts=(),
        evictions=(),
        unadmitted_groups=(),
    )
    if _is_kept(d):
        return _let_go(d)
    lws = d.o.stable.workload if d.o.stable is not None else None
    if lws is not None and d.keys.held in lws.metadata.annotations:
        message = f"disabled; {d.called} stays held: {lws.metadata.annotations[d.keys.held]}"
    else:
        message = f"disabled: the {d.kind} rolls by its own strategy"
    if d.paired:
        message = "disabled: requests stay where they are"
    return d.ready(Reason.DISABLED, SummaryState.DISABLED, message)
