"""Manages autoscalers of an LWS: holds their bounds during a release and restores them afterwards.

Level-triggered: it runs after all other rules, whichever gave the verdict, and checks whether a release is in progress.
The status records a possible hold before the first write, so that a restarted controller restores it. The hold protects
serving groups; a manager that resets it is named, but the release continues.
"""

from __future__ import annotations

from rollout_lws.api import AutoscalersRecord, Phase, SummaryState, rollouts
from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS, ObjectRef, Resource
from rollout_lws.objects.writes import Write
from rollout_lws.rollout.autoscaling import hpa_bounds
from rollout_lws.rollout.decision import FieldRef, Refusal
from rollout_lws.rollout.draft import Draft, Persist
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.rollout.write_conflicts import Managed, judged
from rollout_lws.traffic import marks
from rollout_lws.traffic.router import patched
from rollout_lws.traffic.split import Object
from rollout_lws.workload.hold import hold_record

_MANAGED = Managed((hpa_bounds.MINIMUM, hpa_bounds.MAXIMUM))
_ADVICE = (
    "what it wrote counts after the release, and a tool that writes again and again must ignore minReplicas and"
    " maxReplicas"
)


def watched(d: Draft) -> tuple[Resource, ...]:
    """The kind to watch while a version is pending, a release is in progress, or something may still be held."""
    if d.scales_sides:
        # At rest, too, the groups of both sides are written.
        return (HORIZONTAL_POD_AUTOSCALERS,)
    if d.paired:
        # Their workloads are scaled by others, before, in and after a release.
        return ()
    if _version_waits(d) or d.status.phase == Phase.PROGRESSING or d.status.autoscalers is not None:
        return (HORIZONTAL_POD_AUTOSCALERS,)
    return ()


def _version_waits(d: Draft) -> bool:
    return d.o.stable is not None and d.pending


def await_list(d: Draft) -> Draft:
    """Gives the verdict until the autoscalers that could work against a release are listed."""
    facts, before = d.o.autoscalers, d.o.rollout.status
    # The list mostly arrives before a user could read this status, and its arrival or failure wakes this Rollout.
    same = before is not None and before.phase == d.status.phase
    if same and not (facts.trouble or d.writes or d.events):
        d = d.but(persist=Persist.NOT)
    return d.reconciling(Reason.PREPARING, SummaryState.LOADING, _unknown(d))


def cannot_hold(d: Draft) -> Refusal | None:
    """Refuses an autoscaler whose owner would undo a hold."""
    for live in d.o.autoscalers.objects:
        owner = hpa_bounds.scaled_object(live)
        if owner and _scales(d, live):
            namespace = d.o.rollout.metadata.namespace
            return Refusal(
                Reason.AUTOSCALER_PROBLEM,
                f"{_ref(live)} is written by ScaledObject {owner} of KEDA, which would undo a hold of it: pause it"
                f" until the release is over (kubectl annotate scaledobject {owner} -n {namespace}"
                f" autoscaling.keda.sh/paused=true), or let a HorizontalPodAutoscaler of your own scale the {d.kind}",
                FieldRef("spec.scaleTargetRef", HORIZONTAL_POD_AUTOSCALERS.kind, str(live["metadata"]["name"])),
            )
    return None


def scales_a_side(d: Draft) -> Refusal | None:
    """Refuses an autoscaler of one workload of a pair whose groups a release counts."""
    names = {*d.o.rollout.spec.workloads, d.name, d.other_name}
    for live in d.o.autoscalers.objects:
        scaled, owner = hpa_bounds.scaled_workload(live), hpa_bounds.scaled_object(live)
        if scaled in names:
            api, rollout = rollouts(d.keys.group), d.o.rollout.metadata.name
            of = f", of ScaledObject {owner}," if owner else ""
            return Refusal(
                Reason.AUTOSCALER_PROBLEM,
                f"{_ref(live)}{of} scales {d.kind} {scaled}, whose groups are the Rollout's to count: have it scale the"
                f" Rollout, with scaleTargetRef {api.api_version}, {api.kind}, {rollout}",
                FieldRef("spec.scaleTargetRef", HORIZONTAL_POD_AUTOSCALERS.kind, str(live["metadata"]["name"])),
            )
    return None


def expect_leftovers(d: Draft) -> Draft:
    """Expects held autoscalers on an LWS adopted from another Rollout, which may have left them behind."""
    mark = hold_record(d.stable.workload, d.keys)
    if mark is not None and mark.by != d.uid:
        d = d.set(autoscalers=d.status.autoscalers or AutoscalersRecord(since=d.now))
    return d


def follow(d: Draft) -> Draft:
    """Holds autoscalers during a release at the current number of groups; restores them if none is on or pending."""
    if d.paired or (d.scales_sides and d.status.phase == Phase.PROGRESSING):
        return d
    if d.status.phase != Phase.PROGRESSING:
        # No group must be removed between two consecutive releases either.
        if not (_version_waits(d) and d.verdict is not None and d.verdict.condition != "Stalled"):
            d, _ = restore(d)
    elif d.o.stable is not None and d.o.autoscalers.synced:
        d = _hold(d)
    return d


def restore(d: Draft) -> tuple[Draft, bool]:
    """Restores everything that carries our annotation, whatever the status says; True if nothing is left to do. A
    deleted autoscaler counts as restored.
    """
    if not d.o.autoscalers.synced:
        return d, d.status.autoscalers is None
    before = len(d.writes)
    for live in d.o.autoscalers.objects:
        d, writes = _patch(d, live, _users(d, live), "restored")
        d = d.write(writes)
    nothing_left = len(d.writes) == before
    if d.persist is not Persist.BEFORE_WRITES and d.status.autoscalers is not None:
        # The status is written only after all these writes.
        d = d.set(autoscalers=None)
    return d, nothing_left


def waits_for(d: Draft) -> str:
    """What the restore waits for."""
    return _unknown(d) if not d.o.autoscalers.synced else "giving autoscalers back"


def _unknown(d: Draft) -> str:
    return d.o.autoscalers.trouble or "HorizontalPodAutoscalers are being listed"


def _hold(d: Draft) -> Draft:
    before = d.o.rollout.status.autoscalers if d.o.rollout.status else None
    if d.status.autoscalers is None and d.o.autoscalers.objects:
        d = d.set(autoscalers=AutoscalersRecord(since=d.now))
    if before is None or d.status.autoscalers is None:
        return d
    writes: list[Write] = []
    held: list[str] = []
    for live in d.o.autoscalers.objects:
        after = _wanted(d, live)
        d, waits = _fought(d, before, live, after)
        if waits:
            d = d.adding(waits)
        else:
            d, own = _patch(d, live, after, f"{d.replicas} groups are released")
            writes += own
        if hpa_bounds.is_held(after, d.uid, d.keys):
            held.append(live["metadata"]["name"])
    # Before any group of the new version takes load off stable.
    d = d.but(writes=(*writes, *d.writes))
    if d.status.autoscalers is None or (writes and d.step_is_new):
        # If they were recorded now and a write failed, that would look like a write conflict.
        return d
    return d.set(autoscalers=d.status.autoscalers.model_copy(update={"held": tuple(held)}))


def _wanted(d: Draft, live: Object) -> Object:
    if hpa_bounds.scaled_object(live) or not _scales(d, live):
        # It cannot be held, or it scales another object by now.
        return _users(d, live)
    clean = hpa_bounds.all_given_back(live, _gone(d, live), d.keys)
    return hpa_bounds.held(clean, d.uid, d.keys, d.replicas, pinned=d.capacity.pins_replicas)


def _users(d: Draft, live: Object) -> Object:
    return hpa_bounds.all_given_back(live, (*_gone(d, live), d.uid), d.keys)


def _fought(d: Draft, before: AutoscalersRecord, live: Object, after: Object) -> tuple[Draft, str]:
    """Why overwritten bounds are not restored yet; "" if they are to be, or nothing was overwritten."""
    vanished = live["metadata"]["name"] in before.held and not hpa_bounds.is_held(live, d.uid, d.keys)
    foreign = vanished or hpa_bounds.drifted(live, d.uid, d.keys)
    record = d.status.autoscalers
    if record is None or not foreign or hpa_bounds.bounds(after) == hpa_bounds.bounds(live):
        return d, ""
    d, conflicts, wait = judged(d, record.conflicts, live, _ref(live), _MANAGED, _ADVICE, EventReason.AUTOSCALER_RESET)
    d = d.set(autoscalers=record.model_copy(update={"conflicts": conflicts}))
    return d, wait.message if wait is not None else ""


def _scales(d: Draft, live: Object) -> bool:
    return hpa_bounds.scaled_workload(live) == d.o.rollout.spec.workload_ref.name


def _ref(live: Object) -> ObjectRef:
    return ObjectRef(HORIZONTAL_POD_AUTOSCALERS.kind, live["metadata"]["name"])


def _gone(d: Draft, live: Object) -> tuple[str, ...]:
    """UIDs of deleted Rollouts whose annotations are still on it."""
    return tuple(uid for uid in marks.others(live, d.uid, d.keys) if uid not in d.o.autoscalers.living)


def _patch(d: Draft, live: Object, after: Object, reason: str) -> tuple[Draft, tuple[Write, ...]]:
    """At most one write per object and decision, with an Event if a deleted Rollout's bounds are restored."""
    name = live["metadata"]["name"]
    if any((each.resource, each.name) == (HORIZONTAL_POD_AUTOSCALERS, name) for each in d.writes):
        return d, ()
    writes = patched(HORIZONTAL_POD_AUTOSCALERS, live, after, reason)
    left = _gone(d, live)
    if writes and left:
        d = d.event(
            EventReason.RESTORED,
            f"{_ref(live)} carried what a deleted Rollout (UID {', '.join(left)}) had written; it is restored",
            warning=True,
        )
    return d, writes
