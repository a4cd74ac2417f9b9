"""Adoption of an LWS: records which version is stable and holds the LWS from then on.

Each LWS object (by UID) is adopted once. Nothing restarts: the hold is written while the LWS is at rest, or exists
already.
"""

from __future__ import annotations

from typing import Any

import msgspec

from rollout_lws.api import (
    AbortedRecord,
    Phase,
    RolloutStatus,
    StableRecord,
    StepState,
    SummaryState,
    TrafficRecord,
    rollouts,
)
from rollout_lws.capacity.batch_release import dismiss
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout.autoscaling import autoscalers
from rollout_lws.rollout.draft import Draft, Persist
from rollout_lws.rollout.groups.multikueue import waits_for_workloads
from rollout_lws.rollout.groups.scaling import partition_update
from rollout_lws.rollout.groups.watch_demand import was_dispatched
from rollout_lws.rollout.history import store_version
from rollout_lws.rollout.lifecycle.unfinished import is_unfinished, resume_rollback
from rollout_lws.rollout.preflight import invalid_spec
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.rollout.recent_writes import applied_lately
from rollout_lws.rollout.roles import swapping
from rollout_lws.rollout.routing import orphaned_annotations, route, selector_pinning
from rollout_lws.rollout.routing.route_result import Routed
from rollout_lws.rollout.routing.weights import recorded
from rollout_lws.targets.target import ON_DELETE
from rollout_lws.targets.version import Version, version_together
from rollout_lws.traffic.split import ALL_STABLE
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import groups
from rollout_lws.workload.hold import HOLD, hold, hold_record
from rollout_lws.workload.revisions import (
    current_revision,
    is_empty,
    leaders_revisions,
    lws_revision,
    observed,
    recorded_version,
    set_is_settled,
    target_revision,
)
from rollout_lws.workload.standstill import to_delete

#: The LWS controller acts within a second and restarts within half a minute.
SILENCE_SECONDS = 60


def looks_first(d: Draft) -> Draft | None:
    """Gives a verdict while it is unknown whether this unmanaged LWS may be adopted; None once it is known."""
    unlisted = None if d.adopted else waits_for_workloads(d)
    if unlisted is None:
        return None
    d = d.wake(unlisted.until)
    if was_dispatched(d):
        # After a restart the controller does not know that yet: the previous verdict stands until it does.
        return d
    return d.reconciling(Reason.ADOPTING, SummaryState.ADOPTING, unlisted.message)


def add_finalizer(d: Draft) -> Draft | None:
    """Adds our finalizer before anything is modified, so that deletion waits for the restore; None if it is there."""
    meta = d.o.rollout.metadata
    if d.keys.rollout_finalizer in meta.finalizers:
        return None
    finalizers = [*meta.finalizers, d.keys.rollout_finalizer]
    body = {"metadata": {"finalizers": finalizers}}
    patch = Patch(
        rollouts(d.keys.group),
        meta.namespace,
        meta.name,
        body,
        "nothing that a release changed may be left behind",
        meta.resource_version,
    )
    # The response to this patch triggers the reconcile that writes the status, with the new resourceVersion.
    return d.write((patch,)).but(persist=Persist.NOT)


def adopt(d: Draft) -> Draft:
    """Records stable and holds the LWS; without a verdict once it is managed and a version is pending."""
    unfinished = is_unfinished(d)
    d = d if unfinished else _replaced(d)
    if d.concluded:
        return d
    # Adoption is no precondition: groups that roll natively need their traffic too. A route of another LWS that refuses
    # writes does not keep this LWS from being held.
    d, running = running_version(orphaned_annotations.take_back_last(d))
    if running is None:
        return d
    d = _adopted(d, *running)
    return resume_rollback(d) if unfinished and invalid_spec(d) is None else d


def running_version(d: Draft) -> tuple[Draft, tuple[Version, str] | None]:
    """The version that all groups of the stable LWS run, and its revision; None, with a verdict, if they run several,
    or that is not known yet.
    """
    return _running(d, d.stable, d.stable.workload.version if d.beside_users else d.version)


def running_together(d: Draft) -> tuple[Draft, tuple[Version, str] | None]:
    """The same of a pair's active side: the version that its workloads run together, and the first one's revision."""
    d, running = running_version(d)
    if running is None:
        return d, None
    others: list[Version] = []
    for each in d.o.companions:
        if each.stable is None:
            raise LookupError(f"{each.name} does not exist")
        d, own = _running(d, each.stable, each.stable.workload.version)
        if own is None:
            return d, None
        others.append(own[0])
    return d, (version_together(running[0], others), running[1])


def _running(d: Draft, facts: Facts, own_version: Version) -> tuple[Draft, tuple[Version, str] | None]:
    lws = facts.workload
    if not observed(facts):
        return waits_for_workload(d, SummaryState.ADOPTING, facts), None
    if lws.replicas == 0:
        if not is_empty(facts):
            return waits_for_empty(d, SummaryState.ADOPTING, facts), None
        return d, (own_version, target_revision(facts))
    current = current_revision(facts)
    mixed = bool(leaders_revisions(facts) - {current})
    held = lws.strategy.partition >= HOLD and hold_record(lws, d.keys) is not None
    by_hand = lws.strategy.type == ON_DELETE
    if not mixed and set_is_settled(facts):
        return d, (own_version, current)
    if by_hand and partition_update(d, of=facts).all_are(target_revision(facts)):
        # Its controller lets the current revision follow only once it rolls.
        return d, (own_version, target_revision(facts))
    if not mixed and (held or by_hand):
        own = lws_revision(facts, current)
        version = recorded_version(own) if own else None
        if version is not None:
            return d, (version, current)
        told = (
            f"{facts.called} is held with groups of revision {current or 'unknown'}, but its ControllerRevision is"
            f" gone: annotate it {d.keys.release_hold}=true to let the pending version roll"
        )
        return d.stalled(Reason.REVISION_MISSING, told), None
    if lws.strategy.partition > 0:
        told = (
            f"{facts.called} runs several versions because of its partition {lws.strategy.partition}: set it to 0 to"
            f" let the new version roll, or restore the old template; the {d.kind} is adopted once it has one version"
        )
        return d.stalled(Reason.PARTITION_IN_USE, told), None
    told = f"waiting until {facts.called} has finished its own rolling update{to_delete(facts, d.now)}"
    return d.reconciling(Reason.NATIVE_ROLLOUT, SummaryState.ADOPTING, told), None


def _has_one_version(d: Draft) -> bool:
    return not leaders_revisions(d.stable) - {current_revision(d.stable)}


def waits_for_empty(d: Draft, state: SummaryState, waited: Facts | None = None) -> Draft:
    """Gives the verdict while the groups of an LWS scaled to zero, by default the stable one, are terminating."""
    called = waited.called if waited is not None else d.called
    return d.reconciling(
        Reason.SCALING_TO_ZERO,
        state,
        f"{called} has 0 groups: waiting until its controller has acted on that, and the last is gone",
    )


def _replaced(d: Draft) -> Draft:
    """Removes the canary of a recreated LWS before adoption. The canary keeps serving until the new LWS does; while
    that takes, this gives a verdict.
    """
    left = d.status.traffic is not None or d.o.marked.any_own
    users = d.o.canary
    serves = d.swapped and users is not None and any(group.ready(d.now) for group in groups(users))
    if serves and d.stable.workload.replicas == 0 and is_empty(d.stable):
        told = f"{d.other_name} serves, and {d.name} has no groups: it becomes the active side"
        return swapping.turn(d).reconciling(Reason.ADOPTING, SummaryState.ADOPTING, told)
    parked = d.swapped and d.o.canary is not None and is_empty(d.o.canary)
    if (d.o.canary is None or parked) and d.o.batch_release is None and not left:
        return d
    serving = any(group.ready(d.now) for group in groups(d.stable))
    # A group that has just become ready serves too; minReadySeconds only delays its being counted.
    kept = d.o.canary is not None and any(group.ready(d.now) for group in groups(d.o.canary))
    if not serving and kept and d.replicas:
        d = route.carry_all(d)
        message = f"{d.called} was recreated; the canary goes as soon as a group of it is ready"
        return d.reconciling(Reason.ADOPTING, SummaryState.ADOPTING, message)
    if d.replicas and observed(d.stable) and _has_one_version(d) and set_is_settled(d.stable):
        # Restoring the earlier LWS's objects may fail for long; the pending version must be held meanwhile.
        d = write_hold(d, f"the {d.kind} is in care before what was changed is restored")
    if d.o.routing is not None and d.o.routing.waits:
        return d.reconciling(Reason.ADOPTING, SummaryState.ADOPTING, d.o.routing.waits)
    d, giving = orphaned_annotations.take_back(d)
    if giving or (d.status.traffic is None and not orphaned_annotations.left_pinned(d).done):
        # The orphaned canary had traffic weight until now, so requests are still running there.
        d = d.set(traffic=TrafficRecord(step=0, applied=recorded(ALL_STABLE), since=d.now))
    if giving:
        waits = "restoring what a deleted Rollout had changed"
        return d.reconciling(Reason.CLEANING_UP, SummaryState.ADOPTING, waits)
    d, emptied = route.withdraw(d)
    if not emptied.done:
        return d.reconciling(Reason.ADOPTING, SummaryState.ADOPTING, emptied.message)
    d, gone = swapping.clear(d)
    restored = gone if not gone.done else Routed(False)
    if gone.done:
        d, restored = selector_pinning.restore(d)
    if gone.done and d.o.batch_release is not None:
        d = d.write(dismiss(d.o.batch_release, d.keys))
    if restored.done and d.o.batch_release is None:
        return d.set(traffic=None, flaps=None)
    if restored.needs_person:
        return d.stalled(Reason.POD_STUCK_TERMINATING, restored.message)
    waits = restored.message or f"removing the canary of an earlier {d.kind}"
    return d.reconciling(Reason.CLEANING_UP, SummaryState.ADOPTING, waits)


def _adopted(d: Draft, stable: Version, revision: str) -> Draft:
    lws = d.stable.workload
    d = d.confirm_leader_set("the revision that is recorded as stable")
    d = autoscalers.expect_leftovers(d)
    d = write_hold(d, f"the {d.kind} is in care")
    d = store_version(d, stable, revision)
    d = d.set(
        phase=Phase.HEALTHY,
        stable=StableRecord(template_hash=stable.template_hash, revision=revision, workload_uid=lws.metadata.uid),
        aborted=_aborted_mark(d),
        **AT_REST,
    )
    d = d.begin_sub(
        stable_revision=revision,
        new_revision=revision,
        next_step_index=-1,
        current_step_state=StepState.COMPLETED,
    )
    refusal = invalid_spec(d)
    if refusal is not None:
        return d.refuse(refusal)
    d = d.event(EventReason.ADOPTED, f"{d.called} is held at revision {revision}")
    # The response to the hold triggers the next reconcile, which judges the pending version.
    return d.ready(Reason.HEALTHY, SummaryState.HEALTHY) if d.asks_for_stable else d


_FRESH = RolloutStatus()
#: All fields of a release or of an earlier LWS, at their empty values.
AT_REST: dict[str, Any] = {
    name: getattr(_FRESH, name)
    for name in (
        "capacity",
        "step",
        "finalising",
        "kept",
        "restarts",
        "evictions",
        "unadmitted_groups",
        "hold_conflicts",
        "hold_released_at",
        "flaps",
        "not_ready_groups",
        "observed_template_hash",
    )
}


def _aborted_mark(d: Draft) -> AbortedRecord | None:
    text = d.stable.workload.metadata.annotations.get(d.keys.aborted)
    if not text:
        return None
    try:
        return AbortedRecord.model_validate(msgspec.json.decode(text))
    except (RecursionError, ValueError):
        return None


def write_hold(d: Draft, reason: str, surge: int = 0) -> Draft:
    """Holds the LWS, if it is not held, with ``surge`` surge groups; conditional on its resourceVersion."""
    body, meta = wanted_hold(d, surge), d.stable.workload.metadata
    if d.keys.held in meta.annotations:
        # The annotation of an earlier detach about the pending version is outdated.
        marks = (body or {}).get("metadata", {}).get("annotations", {})
        body = {**(body or {}), "metadata": {"annotations": {**marks, d.keys.held: None}}}
    if body is not None:
        d = d.write((Patch(d.resource, meta.namespace, meta.name, body, reason, meta.resource_version),))
    return d


def wanted_hold(d: Draft, surge: int = 0) -> dict[str, Any] | None:
    """Merge patch that holds the LWS, with ``surge`` surge groups; None if it is held."""
    return hold(d.stable.workload, d.keys, d.uid, surge, counted=d.scales_sides)


def waits_for_workload(d: Draft, state: SummaryState, waited: Facts | None = None) -> Draft:
    """Gives the verdict while LWS has not acted on an object, by default the stable one. Only outside of a release,
    which has its own deadlines.
    """
    workload = (waited or d.stable).workload
    name, namespace = workload.metadata.name, workload.metadata.namespace
    last = d.status.verdict
    since = last.since if last is not None and last.reason == Reason.WAITING_FOR_WORKLOAD else None
    until = d.yet_to_come(since, SILENCE_SECONDS) if since is not None else None
    if d.said(Reason.WORKLOAD_UNRESPONSIVE) or (since is not None and until is None):
        return d.stalled(
            Reason.WORKLOAD_UNRESPONSIVE,
            f"the {d.kind} controller has not acted on {name} for {SILENCE_SECONDS} s: is it running?"
            f" {workload.look_at_controller}. If it is, the Events of {name} say why: kubectl describe"
            f" {d.kind.lower()} {name} -n {namespace}",
        )
    d = d.wake(until).brief_until(applied_lately(d))
    message = f"waiting for the {d.kind} controller to act on {name}"
    return d.reconciling(Reason.WAITING_FOR_WORKLOAD, state, message)
