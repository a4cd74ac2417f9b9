"""Counts of each version's groups, ready groups and accelerators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rollout_lws.api import CanaryStatus, CompanionStatus, GroupCount, GroupCounts, Phase, Summary
from rollout_lws.api.base import tallied
from rollout_lws.capacity import extra_workload
from rollout_lws.rollout import history
from rollout_lws.rollout.companions import wanted_of
from rollout_lws.rollout.decision import Verdict
from rollout_lws.rollout.draft import Draft, newest_groups
from rollout_lws.rollout.groups import kueue_admission
from rollout_lws.rollout.groups.health import name_troubles
from rollout_lws.rollout.reasons import Ending, Reason
from rollout_lws.rollout.state import CleaningUp, Detaching, Idle, InSteps, Promoting, RollingBack
from rollout_lws.workload.accelerators import held, held_to_the_end
from rollout_lws.workload.canary import canary_name
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, groups, moment_ready
from rollout_lws.workload.hold import hold_record
from rollout_lws.workload.revisions import target_revision


def groups_released(d: Draft) -> list[Group]:
    if d.capacity.one_workload:
        return [*d.new_groups]
    revision = d.sub.new_revision
    of_one = is_releasing(d) and not d.capacity.swaps
    regular = [group for group in groups(d.stable) if group.revision == revision] if of_one else []
    return [*d.canary_groups, *regular]


def is_releasing(d: Draft) -> bool:
    stable = d.status.stable
    if d.status.phase != Phase.PROGRESSING or stable is None:
        return False
    if d.swapped:
        # The user's workload may get the requests back without another version.
        return d.state != CleaningUp(Ending.SUCCESS)
    if d.paired:
        # With companions a version may be another one whose revision of the first workload is the same.
        return d.status.observed_template_hash != stable.template_hash
    return d.sub.new_revision != stable.revision


def count(d: Draft) -> Draft:
    stable_groups = groups(d.stable)
    new = groups_released(d)
    everything = [*stable_groups, *d.canary_groups]
    accompanying = [group for each in d.o.companions for facts in each.both for group in groups(facts)]
    for group in (*everything, *accompanying):
        d = d.wake(moment_ready(group, d.minimum, d.now))
    if isinstance(d.sub, CanaryStatus):
        d = d.set_sub(canary_replicas=len(d.new_groups), canary_ready_replicas=d.new_ready)
    going = _going(d, stable_groups)
    d = d.set_sub(
        replicas=len(everything),
        ready_replicas=sum(group.ready(d.now, d.minimum) for group in everything if group.uid not in going),
        updated_replicas=len(new) if is_releasing(d) else len(stable_groups),
        updated_ready_replicas=sum(
            group.ready(d.now, d.minimum) for group in (new if is_releasing(d) else stable_groups)
        ),
    )
    d = kueue_admission.name_stable(_name_troubles(d))
    loads = [
        (group.ready_since - group.leader.metadata.creation_timestamp).total_seconds()
        for group in (*new, *(one for each in d.o.companions for one in newest_groups(each.canary)))
        if group.ready_since is not None and group.leader.metadata.creation_timestamp is not None
    ]
    longest = tallied(round(max([*loads, d.status.longest_startup_seconds or 0])))
    if longest:
        d = d.set(longest_startup_seconds=longest)
    return d


def _name_troubles(d: Draft) -> Draft:
    match d.state:
        case InSteps() if d.home is not None:
            return name_troubles(d, d.home, d.new_revision, (each.canary for each in d.o.companions))
        case Promoting() if d.capacity.swaps:
            return name_troubles(d, d.home, d.new_revision, (each.canary for each in d.o.companions))
        case Promoting():
            return name_troubles(d, d.stable, d.sub.new_revision)
        case RollingBack():
            return name_troubles(d, d.stable, d.stable_revision)
        case CleaningUp() if d.o.canary is not None:
            return name_troubles(d, d.o.canary, target_revision(d.o.canary))
        case InSteps() | CleaningUp() | Idle() | Detaching():
            return d.set(not_ready_groups=()) if d.status.not_ready_groups else d


def summarize(d: Draft, verdict: Verdict) -> Draft:
    before = d.status.summary
    stable = d.o.stable
    releasing = d.status.phase == Phase.PROGRESSING
    style = d.o.rollout.spec.strategy.style
    applied = d.status.traffic.applied if d.status.traffic is not None else None
    step = f"{d.sub.current_step_index}/{len(style.steps)}" if releasing and style else None
    regular = groups(stable) if stable is not None else ()
    # The roles of a pair change before its release is over: what was released is stable from then on.
    counted = releasing and not (d.capacity.swaps and d.state == CleaningUp(Ending.SUCCESS))
    new = groups_released(d) if stable is not None and counted else []
    beside = new or (groups(d.o.canary) if d.capacity.swaps and d.o.canary is not None else ())
    taken = _held(d, regular, beside, held_by_ending(d, verdict)) if stable is not None else None
    # Groups beyond the replicas are terminating: surge groups at the end of a release, or groups scaled away. A batch
    # stops counting as stable when its window opens: its deletion a moment later is not reported.
    gone = {each.uid for each in new} | _going(d, regular)
    standing = stable.workload.replicas if stable is not None else 0
    old = [group for group in regular if group.uid not in gone and group.ordinal < standing]
    counts = GroupCounts(
        stable=_counted(d, old) if stable is not None else None,
        new=_counted(d, new, d.batch.wanted if d.batch is not None else 0) if counted else None,
    )
    summary = Summary(
        state=verdict.state.value,
        step=step,
        traffic=applied.text if releasing and applied is not None else None,
        new=counts.new.text if counts.new is not None else None,
        stable=counts.stable.text if counts.stable is not None else None,
        accelerators=taken[0] if taken is not None else None,
        new_accelerators=taken[1] if taken is not None and counted else None,
        since=before.since if before is not None and before.state == verdict.state.value else d.now,
    )
    return d.set(groups=counts, summary=summary, companions=_companions(d, counted=counted))


def _companions(d: Draft, *, counted: bool) -> tuple[CompanionStatus, ...]:
    """The groups of companions; those of the inactive ones while a release is on."""
    found = []
    for each in d.o.companions:
        old = groups(each.stable) if each.stable is not None else ()
        new = newest_groups(each.canary)
        wanted = wanted_of(d, each, d.batch.wanted) if d.batch is not None else 0
        counts = GroupCounts(
            stable=_counted(d, old) if each.stable is not None else None,
            new=_counted(d, new, wanted) if counted else None,
        )
        found.append(CompanionStatus(active=each.name, inactive=each.other_name, groups=counts))
    return tuple(found)


def _counted(d: Draft, members: Sequence[Group], wanted: int = 0) -> GroupCount:
    """Counts at least ``wanted`` groups: a step may be reported before they are created."""
    ready = sum(group.ready(d.now, d.minimum) for group in members)
    return GroupCount(ready=ready, total=max(len(members), wanted))


def _going(d: Draft, regular: Sequence[Group]) -> frozenset[str]:
    """UIDs of the groups of the stable LWS that an open window, or one opened now, is about to replace."""
    if not regular:
        return frozenset()
    lws, mark = d.stable.workload, hold_record(d.stable.workload, d.keys)
    partition = lws.strategy.partition
    ours = is_releasing(d) and mark is not None and mark.written.get("partition") == partition
    return frozenset(
        group.uid
        for group in regular
        if group.ordinal in d.opened or (ours and partition <= group.ordinal and group.revision != d.sub.new_revision)
    )


def _held(d: Draft, regular: Iterable[Group], new: Iterable[Group], ending: int) -> tuple[int, int] | None:
    """Accelerators that all groups hold, including ``ending`` ones, and those of the new version; None if no version
    asks for any.
    """
    ours = {group.uid for group in new}
    old = [group for group in regular if group.uid not in ours]
    before = (history.stable_version(d) if old and d.pending else None) or d.stable.workload.version
    of_old = sum(sum(held(d.stable, group, before).values()) for group in old)
    of_new = 0
    for group in new:
        facts = d.o.canary if d.o.canary is not None and group.leader in d.o.canary.leaders else d.stable
        of_new += sum(held(facts, group, d.version).values())
    of_old += sum(_held_by(each.stable) for each in d.o.companions)
    of_new += sum(_held_by(each.canary) for each in d.o.companions)
    some = any(facts.workload.version.accelerators for each in d.o.companions for facts in each.both)
    if not (of_old or of_new or ending or before.accelerators or d.version.accelerators or some):
        return None
    return of_old + of_new + ending, of_new


def _held_by(facts: Facts | None) -> int:
    """Accelerators that all groups of a companion hold, whose versions differ in what they run, mostly not in these."""
    if facts is None:
        return 0
    return sum(sum(held(facts, group, facts.workload.version).values()) for group in groups(facts))


def still_ending(d: Draft, verdict: Verdict) -> tuple[str, ...]:
    """Groups of the canary that are still terminating after its release, by index."""
    over = verdict.reason in (Reason.HEALTHY, Reason.ABORTED) and not d.on_record
    if not over or d.o.stable is None or d.o.canary is not None or d.beside_users:
        return ()
    return extra_workload.still_ending(d.o.stable.workload, d.o.remains)


def held_by_ending(d: Draft, verdict: Verdict) -> int:
    """Accelerators that these groups hold."""
    left = still_ending(d, verdict)
    known = bool(left) and canary_name(d.stable.workload) not in d.o.unknown_pods
    return held_to_the_end(left, d.o.pods_left, d.version, known=known)
