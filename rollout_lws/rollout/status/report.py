"""Turns the final draft into a decision: status write, BatchRelease, and what to watch next."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from rollout_lws.api import Phase, RolloutStatus, rollouts
from rollout_lws.api.base import with_fields
from rollout_lws.objects.json_patch import merge_patch
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout import history
from rollout_lws.rollout.autoscaling import autoscalers
from rollout_lws.rollout.decision import Decision, Verdict, Wanted
from rollout_lws.rollout.draft import Draft, Persist
from rollout_lws.rollout.field_limits import within_limits
from rollout_lws.rollout.groups.watch_demand import explaining_kinds
from rollout_lws.rollout.observation import Observation
from rollout_lws.rollout.reasons import Reason
from rollout_lws.rollout.routing import draining, orphaned_annotations, selector_pinning
from rollout_lws.rollout.state import Promoting, RollingBack
from rollout_lws.rollout.status import batch_release, conditions, counts, throttle
from rollout_lws.workload.canary import canary_name
from rollout_lws.workload.groups import groups


def report_refusal(observation: Observation) -> Decision | None:
    """Reports a write that the API server refused in the status, before it is retried; None if already reported.

    The rest of the status stays: what the refused decision would have recorded has not happened.
    """
    refused = observation.refused
    if refused is None:
        return None
    d = Draft.of(observation)
    advice = refused.advice or "It is tried again by itself"
    message = f"the API server refuses to {refused.what}: {refused.error.rstrip('. ')}. {advice}"
    if d.said(Reason.WRITE_REFUSED) and d.status.message == message:
        return None
    d = d.set(phase=d.status.phase or Phase.INITIAL).stalled(Reason.WRITE_REFUSED, message, goes_on=True)
    after, _ = _changed(_told(d))
    return Decision(
        writes=(_written(d, after),) if after is not None else (),
        events=d.events,
        report_only=True,
        verdict=d.verdict,
    )


def finish(d: Draft) -> Decision:
    """Turns the draft into a decision: the status write is last unless ``Persist.BEFORE_WRITES``;
    best-effort writes apart.
    """
    style = d.o.rollout.spec.strategy.style
    # Until a recreated LWS is adopted, the record is of the deleted one.
    if d.o.stable is not None and d.adopted:
        d = counts.count(d)
        if d.status.phase == Phase.PROGRESSING and style is not None:
            d = batch_release.label_pods(batch_release.follow(d))
    d, status = _status(d)
    if d.at_rest and not (d.writes or status):
        d = history.drop_needless(d)
    first = d.persist is Persist.BEFORE_WRITES
    return Decision(
        writes=(*d.confirms, *status, *d.writes) if first else (*d.confirms, *d.writes, *status),
        best_effort=d.best_effort,
        events=d.events,
        events_after=len((*d.confirms, *status)) if first and status else None,
        wake_at=d.wake_at,
        wanted=_wanted(d),
        verdict=d.verdict,
    )


def _status(d: Draft) -> tuple[Draft, tuple[Patch, ...]]:
    """The status with its verdict, and the status write if it is worth one now."""
    if d.persist is Persist.NOT:
        return d, ()
    d = _told(d)
    if throttle.can_wait(d):
        return d.wake(d.now + timedelta(seconds=throttle.LOOK_AGAIN_SECONDS)), ()
    after, due = _changed(d)
    return d.wake(due), (_written(d, after),) if after is not None else ()


def _told(d: Draft) -> Draft:
    """Adds the verdict to the status."""
    if d.verdict is None:
        return d
    told = _with_leftovers(d, d.verdict)
    return counts.summarize(conditions.tell(d, told), told)


def _with_leftovers(d: Draft, verdict: Verdict) -> Verdict:
    """Adds what is left of the canary to the verdict of a finished release: it may hold accelerators. At rest also what
    deleted Rollouts left pinned.
    """
    told = [verdict.message] if verdict.message else []
    left = counts.still_ending(d, verdict)
    if left:
        taken = counts.held_by_ending(d, verdict)
        ends = f"group {', '.join(left[:10])} of {canary_name(d.stable.workload)} still ends"
        told.append(ends + (f" and holds accelerators: {taken}" if taken else ""))
    pinned = orphaned_annotations.others_left(d) if d.at_rest else ""
    if pinned:
        told.append(pinned)
    return replace(verdict, message="; ".join(told))


def _changed(d: Draft) -> tuple[RolloutStatus | None, datetime | None]:
    """The status to write, None if it is not worth a write; and when it may be by time alone."""
    before = d.o.rollout.status or RolloutStatus()
    decided = with_fields(d.status, observed_generation=d.o.rollout.metadata.generation)
    # Mostly nothing has changed, and the stored status is within limits.
    after = decided if decided == before else within_limits(decided)
    if before == after:
        return None, None
    if d.was_ahead or throttle.projection(before) != throttle.projection(after):
        return after, None
    outdated, due = throttle.outdated(d, before, after)
    return after if outdated else None, due


def _written(d: Draft, after: RolloutStatus) -> Patch:
    before, meta = d.o.rollout.status or RolloutStatus(), d.o.rollout.metadata
    seen = before.to_json_dict()
    changes = merge_patch(seen, after.to_json_dict())
    resource = rollouts(d.keys.group)
    body, over = {"status": changes}, {"metadata": {"uid": meta.uid}, "status": seen}
    reason = d.verdict.message if d.verdict else "status"
    return Patch(resource, meta.namespace, meta.name, body, reason, meta.resource_version, "status", over=over)


def _wanted(d: Draft) -> Wanted:
    endpoints, kinds = selector_pinning.watched(d)
    return Wanted(_troubled(d), endpoints, (*kinds, *autoscalers.watched(d), *explaining_kinds(d)))


def _troubled(d: Draft) -> tuple[str, ...]:
    """LWSs whose pods to watch: pods show why a group is not ready, and what requests could still reach. These are LWSs
    with such a group, or in a release.
    """
    wanted = []
    releasing = d.status.phase == Phase.PROGRESSING
    for facts in (d.o.stable, d.o.canary):
        if facts is None:
            continue
        troubled = any(group.ready_since is None for group in groups(facts))
        promoting = isinstance(d.state, Promoting | RollingBack)
        if troubled or (releasing and (facts is d.o.canary or facts is d.home or promoting)):
            wanted.append(facts.name)
    return tuple(dict.fromkeys((*wanted, *draining.watched(d))))
