"""An LWS at rest: judges its pending version, and starts the release or reports why it does not start."""

from __future__ import annotations

from rollout_lws.api import AbortedRecord, Phase, StableRecord, StepRecord, StepState, SummaryState
from rollout_lws.api.base import with_fields
from rollout_lws.capacity.table import recorded
from rollout_lws.rollout.autoscaling import autoscalers
from rollout_lws.rollout.companions import inactive_workloads, record_complete
from rollout_lws.rollout.decision import Refusal
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.groups.multikueue import waits_for_workloads
from rollout_lws.rollout.history import drop_surplus, record_stable, store_version
from rollout_lws.rollout.lifecycle.adoption import waits_for_empty, waits_for_workload
from rollout_lws.rollout.preflight import cannot_release, claims_changed, invalid_spec, refused_by_spec
from rollout_lws.rollout.reasons import Ending, EventReason, Reason
from rollout_lws.rollout.recent_writes import applied_lately
from rollout_lws.rollout.roles import kept_groups, swapping
from rollout_lws.rollout.roles.writes import forget_number
from rollout_lws.rollout.routing import orphaned_annotations, scripts, selector_pinning
from rollout_lws.rollout.routing.route_result import DONE
from rollout_lws.rollout.routing.unmanaged_backends import of_one_workload
from rollout_lws.rollout.state import CleaningUp
from rollout_lws.rollout.step_plan import plan_hash
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.revisions import is_empty, observed, target_revision


def settle(d: Draft) -> Draft:
    """Judges an LWS at rest; gives a verdict unless it has just started a release, or ends one that is not recorded."""
    stable = d.status.stable
    if stable is None:
        raise LookupError("a workload at rest has been adopted")
    d, giving = orphaned_annotations.take_back(d)
    if giving:
        return d.reconciling(Reason.CLEANING_UP, SummaryState.PREPARING, "restoring what a deleted Rollout had changed")
    pinned = orphaned_annotations.left_pinned(d)
    d = d.wake(pinned.until)
    if pinned.needs_person:
        return d.stalled(Reason.POD_STUCK_TERMINATING, pinned.message)
    if not pinned.done:
        message = f"restoring what a deleted Rollout had changed: {pinned.message}"
        return d.reconciling(Reason.CLEANING_UP, SummaryState.PREPARING, message)
    left = d.o.marked.any_own and d.o.canary is None and d.o.batch_release is None
    # The status was forged or lost during a release, or another manager reapplied what the release wrote.
    d, restored = selector_pinning.restore(d) if left else (d, DONE)
    if restored.needs_person:
        return d.stalled(Reason.POD_STUCK_TERMINATING, restored.message)
    if not restored.done:
        message = f"restoring what a release had changed: {restored.message}"
        return d.reconciling(Reason.CLEANING_UP, SummaryState.PREPARING, message)
    if d.o.canary is None or d.swapped:
        # Of a release that is over, or of a manifest that was exported in one.
        d = forget_number(d)
    cleared, kept = DONE, kept_groups.are_kept(d)
    d = d if kept else d.set(kept=None)
    if d.swapped:
        d = _wants_home(d)
    begun = (d.o.marked.any_own or d.o.batch_release is not None) if d.swapped else _has_canary(d)
    if begun and not (kept or d.pending):
        # The same, and the other workload may have requests.
        return d.set(phase=Phase.PROGRESSING).enter(CleaningUp(Ending.ROLLBACK))
    if d.swapped and not (kept or begun):
        d, cleared = swapping.clear(d, told=True)
    refusal = invalid_spec(d)
    if refusal and not d.pending:
        return d.refuse(refusal)
    if d.swapped and d.o.canary is None:
        return swapping.users_missing(d)
    refusal = (claims_changed if d.beside_users else refused_by_spec)(d) if d.pending and d.replicas else None
    if refusal:
        # LWS cannot even act on some of these, so waiting for it would hide the refusal.
        return refuse(d, refusal)
    waited = next((each for each in _awaited(d) if not observed(each)), None)
    if waited is not None:
        aborted = d.status.aborted
        if d.status.phase == Phase.ABORTED and aborted and aborted.template_hash == d.version.template_hash:
            # Something else in the LWS has changed, for example its strategy when the release ended.
            return stays_aborted(d)
        return waits_for_workload(d, SummaryState.PREPARING, waited)
    if d.asks_for_stable:
        return _nothing_pending(d, stable)
    if target_revision(d.stable) == stable.revision and not d.swapped:
        # Another spelling of the same version (1000m and 1): LWS keeps the revision, so nothing is released.
        d = record_stable(d, d.version, stable.revision, "the same revision for another template")
        return _nothing_pending(d, stable)
    if d.replicas == 0:
        return _at_zero(d)
    if _is_aborted(d):
        return stays_aborted(judged(_known_as_aborted(d)).set(phase=Phase.ABORTED))
    refusal = cannot_release(d)
    if refusal:
        return refuse(d, refusal)
    if not cleared.done:
        return d.reconciling(Reason.PREPARING, SummaryState.PREPARING, cleared.message)
    facts = d.o.routing
    if facts is not None and facts.waits:
        d = d.brief_until(applied_lately(d) if not facts.trouble else None)
        return d.reconciling(Reason.PREPARING, SummaryState.ROUTING, facts.waits)
    unknown = scripts.awaited(facts, scripts.planned(d)) if facts is not None else ""
    if facts is not None and unknown:
        d = d.brief_until(applied_lately(d) if not facts.scripts.waits else None)
        return d.reconciling(Reason.PREPARING, SummaryState.ROUTING, unknown)
    if not d.o.autoscalers.synced:
        d = d.brief_until(applied_lately(d) if not d.o.autoscalers.trouble else None)
        return autoscalers.await_list(d)
    unlisted = waits_for_workloads(d)
    if unlisted is not None:
        d = d.wake(unlisted.until).brief_until(applied_lately(d))
        return d.reconciling(Reason.PREPARING, SummaryState.LOADING, unlisted.message)
    return start(d)


def _is_aborted(d: Draft) -> bool:
    """True if the pending version is the aborted one, by our hash or by LWS's revision."""
    aborted = d.status.aborted
    if aborted is None:
        return False
    if d.swapped and d.status.start_requested:
        return False
    return aborted.template_hash == d.version.template_hash or aborted.revision == target_revision(d.edited)


def _known_as_aborted(d: Draft) -> Draft:
    """Updates the aborted version's hash to the current one."""
    aborted = d.status.aborted
    if aborted is None or aborted.template_hash == d.version.template_hash:
        return d
    d = d.confirm_leader_set("the revision that was aborted, for another template")
    return d.set(aborted=aborted.model_copy(update={"template_hash": d.version.template_hash}))


def stays_aborted(d: Draft) -> Draft:
    """Gives the verdict while the LWS's template has the aborted version."""
    aborted = d.status.aborted or AbortedRecord(template_hash="")
    return d.conclude(
        "Stalled",
        Reason.ABORTED,
        SummaryState.ABORTED,
        f"release {aborted.release_id or aborted.revision} was aborted ({aborted.message or aborted.reason}); revision"
        f" {d.stable_revision} serves. Apply another version, or start this one again: {d.command('retry')}",
    )


def refuse(d: Draft, refusal: Refusal) -> Draft:
    """Keeps the version held; an Event on the LWS reports it once, so that the hold is never silent."""
    if d.status.observed_template_hash != d.version.template_hash:
        d = d.event(
            EventReason.RELEASE_REFUSED, f"the new version waits: {refusal.message}", warning=True, about=d.kind
        )
    d = judged(d)
    return d.refuse(refusal)


def _nothing_pending(d: Draft, stable: StableRecord) -> Draft:
    seen = d.swapped or d.status.observed_workload_generation == _generation(d)
    if target_revision(d.stable) != stable.revision and not seen:
        d = d.confirm_leader_set("the revision that stable is said to have now")
        d = d.event(
            EventReason.REVISION_RENAMED,
            f"{d.kind} calls the unchanged version {target_revision(d.stable)} instead of {stable.revision};"
            " nothing is released",
        )
    d = judged(d)
    d = d.set(phase=Phase.HEALTHY)
    d = d.set_sub(stable_revision=stable.revision, new_revision=stable.revision)
    d = drop_surplus(d)
    return rests(d).adding(_unreached(d)).adding(_goes_away(d))


def _goes_away(d: Draft) -> str:
    """What to do about one that serves in place of the user's and is being deleted; "" if it is not."""
    if not (d.swapped and d.stable.workload.metadata.terminating):
        return ""
    return f"{d.called} is being deleted, and serves until its requests are at {d.other_name}: {d.command('home')}"


def _unreached(d: Draft) -> str:
    """Which Services lead to no group, as they select those of the parked LWS by its name; "" if none does."""
    found = [f"{resource.kind} {name}" for resource, name in of_one_workload(d, d.other_name)] if d.swapped else []
    if not found:
        return ""
    named = ", ".join(found[:3]) + (", ..." if len(found) > 3 else "")
    return (
        f"{named} selects groups of {d.other_name}, which has none while {d.name} serves: select them by labels of the"
        " template"
    )


def rests(d: Draft) -> Draft:
    """Gives the verdict for an LWS that runs its own version. It reports an obstacle to the next version at once,
    although nothing waits yet; not with 0 groups, where a change is not released in steps.
    """
    refusal = cannot_release(d) if d.replicas else None
    message = f"the next version would wait: {refusal.message}" if refusal else ""
    return d.ready(Reason.HEALTHY, SummaryState.HEALTHY, message)


def _at_zero(d: Draft) -> Draft:
    """Without groups a change takes effect by itself: it becomes stable, unless it is the aborted version."""
    d = judged(d)
    if _is_aborted(d):
        return _known_as_aborted(d).stalled(
            Reason.SCALED_TO_ZERO,
            f"{d.stable.called} has 0 groups and holds the aborted version: the next"
            " scale-up would start it; apply another version first",
        )
    if not is_empty(d.stable):
        return waits_for_empty(d, SummaryState.PREPARING)
    if d.swapped:
        told = f"{d.edited.name} becomes the active side: neither has groups"
        d = swapping.turn(d.set(start_requested=None))
        return d.reconciling(Reason.PREPARING, SummaryState.PREPARING, told)
    revision = target_revision(d.stable)
    d = record_stable(d, d.version, revision)
    d = d.set_sub(stable_revision=revision, new_revision=revision)
    d = d.event(EventReason.ROLLED_OUT_NATIVELY, f"version {revision} is stable: Target has no groups to release")
    return d.ready(Reason.HEALTHY, SummaryState.HEALTHY)


def _awaited(d: Draft) -> tuple[Facts, ...]:
    """The workloads on which their controller has to have acted; it acts on none that is being deleted."""
    return tuple(each for each in (d.stable, d.edited) if not (d.swapped and each.workload.metadata.terminating))


def _has_canary(d: Draft) -> bool:
    return d.made is not None and not d.made.workload.metadata.terminating


def _wants_home(d: Draft) -> Draft:
    """Has the user's workload get the requests back before one that a release has made is gone, if that is deleted."""
    if not d.stable.workload.metadata.terminating or d.o.canary is None or d.status.start_requested:
        return d
    if d.status.aborted is not None:
        # A person, or a failure, has ended that before.
        return d
    note = f"{d.called} is being deleted: its requests go to {d.edited.called} first"
    return d.set(start_requested=True).event(EventReason.RELEASE_STARTED, note, warning=True)


def judged(d: Draft) -> Draft:
    """Records that the version of the template was judged."""
    return d.set(
        observed_template_hash=d.version.template_hash,
        observed_rollout_id=d.release_id,
        observed_workload_generation=_generation(d),
    )


def _generation(d: Draft) -> int:
    return d.edited.workload.metadata.generation


def start(d: Draft) -> Draft:
    """Begins the release of the pending version."""
    revision = target_revision(d.edited)
    reused = d.status.observed_rollout_id == d.release_id and d.status.observed_template_hash not in (
        None,
        "",
        d.version.template_hash,
    )
    for facts in inactive_workloads(d) if d.beside_users else (d.stable,):
        d = d.confirm_leader_set("the revision that is released", facts)
    d = record_complete(store_version(d, d.version, revision)).set(arriving=None)
    d = judged(d)
    d = d.set(
        phase=Phase.PROGRESSING,
        capacity=recorded(d.strategy, swapped=d.swapped),
        step=StepRecord(started_at=d.now),
        gates=(),
        release_gates=(),
        gate_jobs=tuple(with_fields(each, earlier=True) for each in d.status.gate_jobs),
        finalising=None,
        kept=None,
        restarts=(),
        evictions=(),
        not_ready_groups=(),
    )
    d = d.begin_sub(
        observed_workload_generation=_generation(d),
        observed_rollout_id=d.release_id,
        rollout_hash=plan_hash(d.o.rollout.spec.strategy),
        stable_revision=d.stable_revision,
        new_revision=revision,
        pod_template_hash=revision,
        current_step_index=1,
        next_step_index=2 if len(d.strategy.steps) > 1 else -1,
        current_step_state=StepState.BEFORE_STEP_UPGRADE,
        last_update_time=d.now.replace(microsecond=0),
    )
    d = d.event(
        EventReason.RELEASE_STARTED, f"release {d.release_id}: {len(d.strategy.steps)} steps to revision {revision}"
    )
    if reused:
        d = d.event(
            EventReason.ROLLOUT_ID_REUSED,
            f"rollout-id {d.release_id} named another version before: a gate on it cannot tell them apart",
            warning=True,
        )
    return d
