"""Ends a release: promotion through partition windows, or rollback, then clean-up of what the release created.

Each task is idempotent; ``status.finalising`` records the current one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from rollout_lws.api import AbortedRecord, FinalisingStep, Phase, StepState, SummaryState
from rollout_lws.capacity.batch_release import dismiss
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.groups import volume_claims
from rollout_lws.rollout.groups.health import deadline_passed, keep_clock
from rollout_lws.rollout.groups.shifting import goes_back
from rollout_lws.rollout.history import record_outcome
from rollout_lws.rollout.lifecycle import handing_over, idle
from rollout_lws.rollout.lifecycle.promote import promote
from rollout_lws.rollout.lifecycle.rollback import roll_back
from rollout_lws.rollout.lifecycle.shifting import fill, go_back, without_groups
from rollout_lws.rollout.reasons import Ending, EventReason, Reason
from rollout_lws.rollout.recent_writes import scaled_lately
from rollout_lws.rollout.roles import kept_groups
from rollout_lws.rollout.routing import route, selector_pinning, sides
from rollout_lws.rollout.routing.route_result import DONE, Routed
from rollout_lws.rollout.state import CleaningUp, Detaching, Idle, InSteps, Promoting, RollingBack, task_of
from rollout_lws.workload.groups import groups


def run(d: Draft) -> Draft:
    """One pass over an ending release, through as many tasks as the cluster's state allows; always gives a verdict.

    A task that returns without a verdict has entered another task.
    """
    d = d.but(verdict=None)
    while not d.concluded:
        match d.state:
            case Promoting():
                hands_over = d.capacity.swaps or handing_over.have_turned(d)
                d = handing_over.hand_over(d) if hands_over else promote(d)
            case RollingBack() as state:
                d = _on_record(d, state)
                d = go_back(d, state) if goes_back(d) or d.paired else roll_back(d, state)
            case CleaningUp(ending):
                d = clean_up(d, ending)
            case Idle() | InSteps() | Detaching():
                raise LookupError("no release is ending")
            case unknown:
                assert_never(unknown)
    return d


def _on_record(d: Draft, state: RollingBack) -> Draft:
    """If other writers put unknown words into the status, replaces them by the state that they are read as."""
    record = d.status.finalising
    known = record is not None and (record.reason, record.task) == (state.ending.value, task_of(state).value)
    return d if known else d.enter(state)


def clean_up(d: Draft, ending: Ending) -> Draft:
    """Removes canary and BatchRelease; the last pass reports how the release ended."""
    d = d.set_sub(finalising_step=FinalisingStep.RELEASE_WORKLOAD_CONTROL)
    state = SummaryState.PROMOTING if ending is Ending.SUCCESS else SummaryState.ROLLING_BACK
    waiting = keeps_canary(d)
    if waiting:
        d, _ = route.keep(d)
        d = keep_clock(d, None)
        late = deadline_passed(d, None)
        if late is not None:
            return d.stalled(late[0], f"clean-up: {late[1].rstrip('.')}; {waiting}", goes_on=True)
        return d.reconciling(Reason.WAITING_FOR_STABLE, state, waiting)
    # The sides of a pair have changed their roles by then, and the requests are where they stay.
    stay = d.paired and ending is Ending.SUCCESS and sides.have_turned(d)
    # Nor does a release that is over, or a Rollout that leaves, wait for a side: requests stay where they are served.
    stay = stay or (ending in (Ending.SUCCESS, Ending.DELETED, Ending.DISABLED) and sides.only_new_serves(d))
    d, emptied = (d, Routed(True)) if stay else route.withdraw(d)
    if not emptied.done:
        d = d.set_sub(finalising_step=FinalisingStep.ROUTE_TRAFFIC_TO_STABLE)
        if emptied.timed:
            return d.reconciling(Reason.DRAINING, state, emptied.message)
        d = keep_clock(d, None)
        late = deadline_passed(d, None)
        if late is not None:
            told = f"clean-up: traffic was not routed in time: {emptied.message.rstrip('.')}"
            return d.stalled(late[0], f"{told}; it goes on by itself when it is", goes_on=True)
        return d.reconciling(Reason.ROUTING, state, emptied.message)
    if kept_groups.may_stay(d, ending):
        d = selector_pinning.turn_copy(kept_groups.begin(_is_over(d, ending, keeps=True)))
        return _tell_end(d, ending).adding(kept_groups.told(d))
    d, removed = remove_made(d)
    if removed.needs_person:
        return d.stalled(Reason.POD_STUCK_TERMINATING, removed.message)
    if not removed.done:
        return d.reconciling(Reason.CLEANING_UP, state, removed.message)
    return _tell_end(_is_over(volume_claims.told_of_surge(d), ending), ending)


def remove_made(d: Draft) -> tuple[Draft, Routed]:
    """Removes what a release has made and no request reaches any more, and restores what it has pinned; done when
    nothing is left of it. ``needs_person`` if that waits for a pod that does not terminate by itself.
    """
    d = volume_claims.told_of_canary(d)
    d, gone = _without_groups(d)
    record = d.o.batch_release
    unreached = restored = gone
    if gone.done:
        d, unreached = selector_pinning.await_unreached(d)
        d, restored = _restored(d) if unreached.done else (route.stay_pinned(d), unreached)
    if unreached.done and record is not None:
        d = d.write(dismiss(record, d.keys))
    # The next release creates a BatchRelease of the same name, so this one must be gone.
    if restored.done and record is None:
        return d, DONE
    # Groups without requests mostly terminate at once; only a longer wait is reported.
    if d.writes:
        d = d.persist_later(brief=True)
    else:
        d = d.brief_until(scaled_lately(d, d.made.workload) if d.made is not None else None)
    told = unreached.message or "removing what was made for the release"
    return d, Routed(False, told, needs_person=unreached.needs_person)


def _without_groups(d: Draft) -> tuple[Draft, Routed]:
    """Removes the groups that the release has made, which get no requests any more. Of a pair the route gets its
    weights at rest, and then the inactive side is scaled to 0, unless no group of the active one is ready.
    """
    d, rested = _restored(d) if d.paired else (d, DONE)
    d, gone = without_groups(d) if rested.done else (d, rested)
    if gone.done and d.capacity.shifts:
        d, gone = fill(d)
    return d, replace(gone, done=gone.done or gone.refused)


def _restored(d: Draft) -> tuple[Draft, Routed]:
    return sides.rest(d, "the release is over") if d.paired else selector_pinning.restore(d)


def keeps_canary(d: Draft) -> str:
    """Why the canary must stay, "" if it may go: the controller never deletes the last version that serves.

    A canary that the user deletes goes: the user has seen this message, or means it.
    """
    canary, stable = d.made, d.o.stable
    if canary is None or stable is None or canary.workload.metadata.terminating or stable.workload.metadata.terminating:
        return ""
    if d.replicas == 0 or any(group.ready(d.now) for group in groups(stable)):
        return ""
    serving = sum(group.ready(d.now) for group in groups(canary))
    if not serving:
        return ""
    name, meta = stable.name, canary.workload.metadata
    return (
        f"no group of {name} is ready, so {serving} of canary {meta.name} keep serving until one is. To do without"
        f" them now: kubectl delete {d.kind.lower()} {meta.name} -n {meta.namespace}"
    )


def _is_over(d: Draft, ending: Ending, *, keeps: bool = False) -> Draft:
    """Has the status say that the release is over; ``keeps``: but for groups that stay for a while."""
    revision = d.stable_revision
    d = d if keeps else d.set(finalising=None, traffic=None, kept=None)
    d = d.set(
        flaps=None,
        capacity=None,
        step=None,
        restarts=(),
        evictions=(),
        not_ready_groups=(),
        phase=Phase.HEALTHY,
        paused=None,
    )
    before = d.sub
    d = d.begin_sub(
        observed_workload_generation=before.observed_workload_generation,
        observed_rollout_id=before.observed_rollout_id,
        rollout_hash=before.rollout_hash,
        stable_revision=revision,
        new_revision=revision if ending is Ending.SUCCESS else before.new_revision,
        pod_template_hash=before.pod_template_hash,
        current_step_index=before.current_step_index,
        next_step_index=-1,
        current_step_state=StepState.COMPLETED,
        finalising_step=FinalisingStep.END,
        last_update_time=d.now.replace(microsecond=0),
    )
    return d.set(start_requested=None)


def _tell_end(d: Draft, ending: Ending) -> Draft:
    """Gives the verdict when a release is over."""
    release, revision = d.status.observed_rollout_id, d.stable_revision
    if ending in (Ending.SUCCESS, Ending.ROLLED_OUT_NATIVELY):
        d = d.set(aborted=None)
        d = d.event(EventReason.COMPLETED, f"release {release} is complete: revision {revision}")
        d = _mark_aborted(d, None)
        return idle.rests(d)
    d = record_outcome(d, ending)
    if ending is Ending.ABORTED:
        d = d.set(phase=Phase.ABORTED)
        d = _mark_aborted(d, d.status.aborted)
        d = d.event(EventReason.ABORTED, f"release {release} is aborted; revision {revision} serves", warning=True)
        return idle.stays_aborted(d)
    if ending is Ending.ROLLBACK:
        d = d.event(EventReason.ROLLED_BACK, f"release {release} was taken back; revision {revision} serves")
        return idle.rests(d)
    return d.reconciling(Reason.CLEANING_UP, SummaryState.ROLLING_BACK, "the release has ended")


def _mark_aborted(d: Draft, record: AbortedRecord | None) -> Draft:
    """Annotates the LWS with the aborted version too, for a recreated Rollout."""
    if d.paired:
        # No release writes the workloads. Of a recreated Rollout the version is the inactive one.
        return d
    meta = d.stable.workload.metadata
    text = record.model_dump_json(by_alias=True, exclude_none=True) if record else None
    if meta.annotations.get(d.keys.aborted) == text:
        return d
    body = {"metadata": {"annotations": {d.keys.aborted: text}}}
    return d.write((Patch(d.resource, meta.namespace, meta.name, body, "which version was aborted"),))
