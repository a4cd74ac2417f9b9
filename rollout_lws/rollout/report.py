"""Telling the truth: conditions, summary, counts, and the BatchRelease, from what was decided."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rollout_lws.api import (
    BatchReleasePhase,
    CanaryStatus,
    Capacity,
    Condition,
    ConditionType,
    GroupCount,
    GroupCounts,
    Phase,
    ProgressingReason,
    RolloutStatus,
    Summary,
    VerdictRecord,
    rollouts,
)
from rollout_lws.api.base import tallied
from rollout_lws.capacity import batch_release
from rollout_lws.capacity.batches import wanted_groups
from rollout_lws.capacity.canary import still_ending
from rollout_lws.objects.merge import merge_patch
from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS
from rollout_lws.objects.writes import Patch, Write
from rollout_lws.rollout import autoscalers, borrowing, brevity, history, left_behind, lingering, queued, significance
from rollout_lws.rollout.decision import Chore, Decision, Verdict, Wanted
from rollout_lws.rollout.diagnosis import explaining_kinds
from rollout_lws.rollout.draft import Draft, HoldState, Persist
from rollout_lws.rollout.health import name_troubles
from rollout_lws.rollout.limits import within_limits
from rollout_lws.rollout.reasons import Ending, Reason, Task
from rollout_lws.workload.accelerators import held, held_to_the_end
from rollout_lws.workload.canary import canary_name
from rollout_lws.workload.groups import Group, groups, moment_ready
from rollout_lws.workload.hold import borrowed, is_held
from rollout_lws.workload.revisions import target_revision

_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def finish(d: Draft) -> Decision:
    """Turn the draft into a decision: the status write last (first where a task begins), chores apart."""
    releasing = d.status.phase == Phase.PROGRESSING
    stable = d.status.stable
    # Until an LWS that was made anew is adopted, the record is of one that is no more.
    if d.o.stable is not None and stable is not None and stable.workload_uid == d.stable.lws.metadata.uid:
        _count(d)
        if releasing and d.o.rollout.spec.strategy.style is not None:
            _record(d)
            _label(d)
    if d.verdict is not None and d.persist is not Persist.NOT:
        told = _with_leftovers(d, d.verdict)
        _verdict(d, told)
        _conditions(d, told)
        _summary(d, told)
    status = () if d.persist is Persist.NOT or brevity.can_wait(d) else tuple(_status_write(d))
    if d.settled and not (d.writes or status):
        history.drop_needless(d)
    first = d.persist is Persist.BEFORE_WRITES
    return Decision(
        writes=(*d.confirms, *status, *d.writes) if first else (*d.confirms, *d.writes, *status),
        chores=tuple(d.chores),
        notices=tuple(d.notices),
        told_after=len((*d.confirms, *status)) if first and status else None,
        wake_at=d.wake_at,
        wanted=_wanted(d),
        verdict=d.verdict,
    )


def _with_leftovers(d: Draft, verdict: Verdict) -> Verdict:
    """The verdict of a release that is over, with what still ends of its canary: that may hold accelerators. At rest
    also what Rollouts that are gone have left pinned.
    """
    told = [verdict.message] if verdict.message else []
    left = _still_ending(d, verdict)
    if left:
        taken = _held_to_the_end(d, verdict)
        ends = f"group {', '.join(left[:10])} of {canary_name(d.stable.lws)} still ends"
        told.append(ends + (f" and holds accelerators: {taken}" if taken else ""))
    pinned = left_behind.others_left(d) if d.settled else ""
    if pinned:
        told.append(pinned)
    return replace(verdict, message="; ".join(told))


def _still_ending(d: Draft, verdict: Verdict) -> tuple[str, ...]:
    """Groups of the canary of a release that is over, by index."""
    over = verdict.reason in (Reason.HEALTHY, Reason.ABORTED) and not d.on_record
    if not over or d.o.stable is None or d.o.canary is not None:
        return ()
    return still_ending(d.o.stable.lws, d.o.remains)


def _held_to_the_end(d: Draft, verdict: Verdict) -> int:
    left = _still_ending(d, verdict)
    known = bool(left) and canary_name(d.stable.lws) not in d.o.unknown_pods
    return held_to_the_end(left, d.o.pods_left, d.version, known=known)


def tell_refusal(d: Draft) -> Decision | None:
    """Put a write that the API server refuses into the status, before it is tried again; None when it is told already.

    Nothing else of the status is touched: what the refused decision would have recorded has not happened.
    """
    refused = d.o.refused
    if refused is None:
        return None
    advice = refused.advice or "It is tried again by itself"
    message = f"the API server refuses to {refused.what}: {refused.error.rstrip('. ')}. {advice}"
    if d.said(Reason.WRITE_REFUSED) and d.status.message == message:
        return None
    d.set(phase=d.status.phase or Phase.INITIAL)
    d.stalled(Reason.WRITE_REFUSED, message, goes_on=True)
    if d.verdict is not None:
        _verdict(d, d.verdict)
        _conditions(d, d.verdict)
        _summary(d, d.verdict)
    return Decision(writes=tuple(_status_write(d)), notices=tuple(d.notices), only_tells=True, verdict=d.verdict)


def _status_write(d: Draft) -> Iterable[Write]:
    before = d.o.rollout.status or RolloutStatus()
    decided = d.status.model_copy(update={"observed_generation": d.o.rollout.metadata.generation})
    # Mostly nothing has changed, and what was read is within limits.
    after = decided if decided == before else within_limits(decided)
    if before == after:
        return ()
    same = significance.of_rollout(before) == significance.of_rollout(after)
    if same and not d.was_ahead and not brevity.outdated(d, before, after):
        return ()
    seen = before.to_json_dict()
    changes = merge_patch(seen, after.to_json_dict())
    meta = d.o.rollout.metadata
    resource = rollouts(d.keys.group)
    body, over = {"status": changes}, {"metadata": {"uid": meta.uid}, "status": seen}
    reason = d.verdict.message if d.verdict else "status"
    return (Patch(resource, meta.namespace, meta.name, body, reason, meta.resource_version, "status", over=over),)


def _wanted(d: Draft) -> Wanted:
    endpoints, kinds = borrowing.watched(d)
    return Wanted(_troubled(d), endpoints, (*kinds, *autoscalers.watched(d), *explaining_kinds(d)))


def _troubled(d: Draft) -> tuple[str, ...]:
    """Pods tell why a group is not ready, and what requests could still reach; they are wanted for the LWS that has
    such a group, or takes part in a release.
    """
    wanted = []
    releasing = d.status.phase == Phase.PROGRESSING
    for facts in (d.o.stable, d.o.canary):
        if facts is None:
            continue
        troubled = any(group.ready_since is None for group in groups(facts))
        promoting = d.status.finalising is not None and d.status.finalising.task != Task.CLEAN_UP.value
        if troubled or (releasing and (facts is d.o.canary or promoting or d.one_workload)):
            wanted.append(facts.lws.metadata.name)
    return tuple(dict.fromkeys((*wanted, *lingering.watched(d))))


def _new_groups(d: Draft) -> list[Group]:
    if d.one_workload:
        return [*d.new_groups]
    revision = d.sub.new_revision
    regular = [group for group in groups(d.stable) if group.revision == revision] if _is_releasing(d) else []
    return [*d.canary_groups, *regular]


def _is_releasing(d: Draft) -> bool:
    stable = d.status.stable
    return d.status.phase == Phase.PROGRESSING and stable is not None and d.sub.new_revision != stable.revision


def _count(d: Draft) -> None:
    stable_groups = groups(d.stable)
    new = _new_groups(d)
    everything = [*stable_groups, *d.canary_groups]
    for group in everything:
        d.wake(moment_ready(group, d.minimum, d.now))
    if isinstance(d.sub, CanaryStatus):
        d.set_sub(canary_replicas=len(d.new_groups), canary_ready_replicas=d.new_ready)
    going = _going(d, stable_groups)
    d.set_sub(
        replicas=len(everything),
        ready_replicas=sum(group.ready(d.now, d.minimum) for group in everything if group.uid not in going),
        updated_replicas=len(new) if _is_releasing(d) else len(stable_groups),
        updated_ready_replicas=sum(
            group.ready(d.now, d.minimum) for group in (new if _is_releasing(d) else stable_groups)
        ),
    )
    ending = d.status.finalising
    promoting = ending is not None and ending.task != Task.CLEAN_UP.value
    if d.status.phase == Phase.PROGRESSING and ending is None and d.one_workload:
        name_troubles(d, d.stable, d.sub.new_revision)
    elif d.status.phase == Phase.PROGRESSING and not promoting and d.o.canary is not None:
        name_troubles(d, d.o.canary, target_revision(d.o.canary))
    elif promoting and ending is not None:
        revision = (
            d.sub.new_revision if ending.task == Task.PROMOTE.value else (d.status.stable and d.status.stable.revision)
        )
        name_troubles(d, d.stable, revision or "")
    elif d.status.not_ready_groups:
        d.set(not_ready_groups=())
    queued.name_stable(d)
    loads = [
        (group.ready_since - group.leader.metadata.creation_timestamp).total_seconds()
        for group in new
        if group.ready_since is not None and group.leader.metadata.creation_timestamp is not None
    ]
    longest = tallied(round(max([*loads, d.status.longest_startup_seconds or 0])))
    if longest:
        d.set(longest_startup_seconds=longest)


def _record(d: Draft) -> None:
    """Make or update the BatchRelease; it is dismissed by the task that cleans up."""
    ending = d.status.finalising
    if ending is not None and ending.task == Task.CLEAN_UP.value:
        return
    stable = d.status.stable
    wanted = batch_release.Wanted(
        partition=None
        if ending is not None and ending.reason == Ending.SUCCESS.value
        else max(0, d.sub.current_step_index - 1),
        rollout_id=d.status.observed_rollout_id or "",
        stable_revision=stable.revision if stable else "",
        update_revision=d.sub.new_revision,
        phase=_phase_of_record(d),
        replicas=d.replicas,
    )
    record, meta = d.o.batch_release, d.o.rollout
    if record is None:
        if ending is None and d.prepared and d.on_record and d.o.rollout.metadata.deletion_timestamp is None:
            resource = rollouts(d.keys.group)
            owner = batch_release.owner_reference(meta, resource.kind, resource.api_version)
            d.write((batch_release.create(meta, wanted, d.keys, owner),))
        return
    if record.metadata.deletion_timestamp is not None:
        return
    spec = batch_release.update_spec(record, meta, wanted, d.keys)
    # After a patch of the spec its answer starts the next reconcile, which then tells the status of that generation.
    d.write(spec or batch_release.update_status(record, meta, wanted, d.batch, d.keys, d.now))


def _phase_of_record(d: Draft) -> BatchReleasePhase:
    """Where the BatchRelease is, from where the Rollout is."""
    return BatchReleasePhase.PROGRESSING if d.status.finalising is None else BatchReleasePhase.FINALIZING


def _label(d: Draft) -> None:
    """Live leader pods of the new version carry the release's id and their batch, again after a recreation."""
    ending = d.status.finalising
    if ending is not None and ending.task != Task.PROMOTE.value:
        return
    steps, release = d.strategy.steps, d.status.observed_rollout_id or ""
    for group in _new_groups(d):
        if group.terminating:
            continue
        number, place = len(steps), _place(d, group)
        if place is not None:
            asked = (i for i in range(1, len(steps) + 1) if wanted_groups(d.strategy, i, d.replicas) > place)
            number = next(asked, len(steps))
        labels = {d.keys.rollout_batch_id: str(number)}
        # An id that comes from an annotation may be any text; the API server would refuse both labels for it.
        if _LABEL_VALUE.fullmatch(release):
            labels[d.keys.rollout_id] = release
        meta = group.leader.metadata
        if any(meta.labels.get(key) != value for key, value in labels.items()):
            body = {"metadata": {"labels": labels}}
            d.chores.append(Chore(Patch(PODS, meta.namespace, meta.name, body, "which batch it is of")))


def _place(d: Draft, group: Group) -> int | None:
    """How many groups of the new version steps make before this one; None for one that only the promotion makes."""
    if d.capacity is Capacity.IN_PLACE:
        return d.replicas - 1 - group.ordinal
    if d.capacity is Capacity.SURGE:
        return group.ordinal - d.replicas if group.ordinal >= d.replicas else None
    return group.ordinal if group.uid in {each.uid for each in d.canary_groups} else None


def _verdict(d: Draft, verdict: Verdict) -> None:
    before, reason = d.status.verdict, verdict.reason.value
    same = before is not None and (before.condition, before.reason) == (verdict.condition, reason)
    d.set(
        verdict=VerdictRecord(
            condition=verdict.condition,
            reason=reason,
            since=before.since or d.now if before is not None and same else d.now,
            goes_on=verdict.goes_on or None,
            field=verdict.field.record if verdict.field is not None else None,
        )
    )


def _conditions(d: Draft, verdict: Verdict) -> None:
    ending = d.status.finalising
    wanted: dict[ConditionType, tuple[bool, str, str]] = {
        each: (each.value == verdict.condition, verdict.reason.value, verdict.message)
        for each in (ConditionType.READY, ConditionType.RECONCILING, ConditionType.STALLED)
    }
    stable = d.o.stable
    if stable is not None:
        # A window of ours is part of the hold: nothing but the groups it names can start.
        held = is_held(stable.lws) or any(
            isinstance(write, Patch)
            and (write.resource, write.name) == (LEADER_WORKER_SETS, stable.lws.metadata.name)
            and "spec" in write.body
            for write in d.writes
        )
        windows = d.one_workload if ending is None else ending.task == Task.PROMOTE.value
        held = held or (d.status.phase == Phase.PROGRESSING and windows)
        wanted[ConditionType.HELD] = (
            held and d.hold is not HoldState.RELEASED,
            "Held" if held and d.hold is not HoldState.RELEASED else verdict.reason.value,
            "a changed template starts nothing by itself" if held and d.hold is not HoldState.RELEASED else "",
        )
    wanted[ConditionType.PAUSED] = (d.paused, "Paused" if d.paused else "NotPaused", "")
    known = {each.type: each for each in d.status.conditions}
    if d.status.phase == Phase.PROGRESSING:
        reason = ProgressingReason.IN_ROLLING
        if ending is not None:
            success = ending.reason in (Ending.SUCCESS.value, Ending.ROLLED_OUT_NATIVELY.value)
            reason = ProgressingReason.FINALISING if success else ProgressingReason.CANCELLING
        elif d.paused:
            reason = ProgressingReason.PAUSED
        wanted[ConditionType.PROGRESSING] = (True, reason.value, verdict.message)
        known.pop(ConditionType.SUCCEEDED.value, None)
    elif ConditionType.PROGRESSING.value in known and d.status.phase in (Phase.HEALTHY, Phase.ABORTED):
        wanted[ConditionType.PROGRESSING] = (False, ProgressingReason.COMPLETED.value, "")
        if known[ConditionType.PROGRESSING.value].status == "True":
            before = d.o.rollout.status.finalising if d.o.rollout.status else None
            success = before is not None and before.reason in (Ending.SUCCESS.value, Ending.ROLLED_OUT_NATIVELY.value)
            how = before.reason if before is not None else ProgressingReason.COMPLETED.value
            wanted[ConditionType.SUCCEEDED] = (success, how, "")
    if d.o.rollout.metadata.deletion_timestamp is not None:
        wanted[ConditionType.TERMINATING] = (True, "InTerminating", verdict.message)
    for kind, (truth, word, message) in wanted.items():
        known[kind.value] = _condition(d, known.get(kind.value), kind.value, truth, word, message)
    order = [each.value for each in ConditionType]
    d.set(
        conditions=tuple(sorted(known.values(), key=lambda each: order.index(each.type) if each.type in order else 99)),
        message=verdict.message or None,
        current_step_index=d.sub.current_step_index,
        current_step_state=d.sub.current_step_state,
    )
    if d.sub.message != verdict.message and d.status.sub is not None:
        d.set_sub(message=verdict.message or None)


def _condition(d: Draft, before: Condition | None, kind: str, truth: bool, reason: str, message: str) -> Condition:
    status = "True" if truth else "False"
    moment = d.now.replace(microsecond=0)
    after = Condition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        observed_generation=d.o.rollout.metadata.generation,
        last_transition_time=before.last_transition_time if before and before.status == status else moment,
        last_update_time=moment,
    )
    if before is not None and after == before.model_copy(update={"last_update_time": moment}):
        return before
    return after


def _summary(d: Draft, verdict: Verdict) -> None:
    before = d.status.summary
    stable = d.o.stable
    releasing = d.status.phase == Phase.PROGRESSING
    style = d.o.rollout.spec.strategy.style
    applied = d.status.traffic.applied if d.status.traffic is not None else None
    step = f"{d.sub.current_step_index}/{len(style.steps)}" if releasing and style else None
    regular = groups(stable) if stable is not None else ()
    new = _new_groups(d) if stable is not None and releasing else []
    taken = _held(d, regular, new, _held_to_the_end(d, verdict)) if stable is not None else None
    # What is beyond the replicas is on its way out: surge groups at the end of a release, or groups scaled away.
    # A portion is no longer stable's from the moment its window opens: it goes in a moment that is not told.
    gone = {each.uid for each in new} | _going(d, regular)
    old = [group for group in regular if group.uid not in gone and group.ordinal < d.replicas]
    counts = GroupCounts(
        stable=_counted(d, old) if stable is not None else None,
        new=_counted(d, new, d.batch.wanted if d.batch is not None else 0) if releasing else None,
    )
    summary = Summary(
        state=verdict.state.value,
        step=step,
        traffic=applied.text if releasing and applied is not None else None,
        new=counts.new.text if counts.new is not None else None,
        stable=counts.stable.text if counts.stable is not None else None,
        accelerators=taken[0] if taken is not None else None,
        new_accelerators=taken[1] if taken is not None and releasing else None,
        since=before.since if before is not None and before.state == verdict.state.value else d.now,
    )
    d.set(groups=counts, summary=summary)


def _counted(d: Draft, members: Sequence[Group], wanted: int = 0) -> GroupCount:
    """``wanted`` groups count as there: a step may be told before they are made."""
    ready = sum(group.ready(d.now, d.minimum) for group in members)
    return GroupCount(ready=ready, total=max(len(members), wanted))


def _going(d: Draft, regular: Sequence[Group]) -> frozenset[str]:
    """UIDs of the groups of the stable LWS that a window of ours, or one that opens now, is about to replace."""
    if not regular:
        return frozenset()
    lws, mark = d.stable.lws, borrowed(d.stable.lws, d.keys)
    partition = lws.spec.rollout_strategy.rolling_update_configuration.partition
    ours = _is_releasing(d) and mark is not None and mark.written.get("partition") == partition
    return frozenset(
        group.uid
        for group in regular
        if group.ordinal in d.opening or (ours and partition <= group.ordinal and group.revision != d.sub.new_revision)
    )


def _held(d: Draft, regular: Iterable[Group], new: Iterable[Group], ending: int) -> tuple[int, int] | None:
    """Accelerators that all groups hold, ``ending`` ones with them, and those of the new version; None where no
    version asks for any.
    """
    ours = {group.uid for group in new}
    old = [group for group in regular if group.uid not in ours]
    stable = d.status.stable
    changed = stable is not None and stable.template_hash != d.version.template_hash
    before = (history.stable_version(d) if old and changed else None) or d.version
    of_old = sum(sum(held(d.stable, group, before).values()) for group in old)
    of_new = 0
    for group in new:
        facts = d.o.canary if d.o.canary is not None and group.leader in d.o.canary.leaders else d.stable
        of_new += sum(held(facts, group, d.version).values())
    if not (of_old or of_new or ending or before.accelerators or d.version.accelerators):
        return None
    return of_old + of_new + ending, of_new
