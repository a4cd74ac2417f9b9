"""Health of a release: its groups' problems, progress deadlines, and waits for accelerators or quota."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain
from typing import TypeAlias

from rollout_lws.api import ConditionType, NotReadyGroup, StepRecord, SummaryState
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.groups.crash_loops import last_failed
from rollout_lws.rollout.groups.evictions import evicted_before
from rollout_lws.rollout.reasons import Reason
from rollout_lws.rollout.state import Promoting, RollingBack
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.queueing import judged_at
from rollout_lws.workload.revisions import target_revision
from rollout_lws.workload.trouble import (
    CAPACITY_REASONS,
    EXHAUSTED,
    LOADING,
    QUOTA_REASONS,
    Trouble,
    shortened,
    troubles,
)

#: Verdicts under which a deadline's clock runs: pauses, approvals, waits for capacity and refusals do not count.
COUNTED = frozenset(
    {
        Reason.LOADING,
        Reason.ROUTING,
        Reason.PROMOTING,
        Reason.ROLLING_BACK,
        Reason.WAITING_FOR_STABLE,
        Reason.TERMINATING,
        Reason.DISABLED,
        Reason.DEADLINE,
        Reason.CHURN,
        Reason.RESTARTS_EXHAUSTED,
        Reason.WRITE_REFUSED,
    }
)
#: Waits for accelerators or quota: the step's record has their start.
_WAITS = frozenset({Reason.WAITING_FOR_ACCELERATORS, Reason.WAITING_FOR_QUOTA, Reason.CAPACITY_DEADLINE})
#: Shorter waits for accelerators or quota do not stop the clock: each recreated group has such moments.
SHORTEST_WAIT = timedelta(seconds=5)
#: A wait for accelerators or quota, as arguments of a Reconciling verdict.
CapacityWait: TypeAlias = tuple[Reason, SummaryState, str]
#: Groups named in the status, worst first.
NAMED_GROUPS = 10


def _worst(d: Draft) -> tuple[Trouble, ...]:
    """The problems of the groups that the release waits for now."""
    stable, promotes = d.status.stable, isinstance(d.state, Promoting)
    if d.paired and isinstance(d.state, RollingBack) and d.o.stable is not None and stable is not None:
        return _troubles(d, d.o.stable, stable.revision)
    if d.o.companions and d.home is not None:
        return _of_all(d, d.home, d.new_revision, (each.canary for each in d.o.companions))
    if d.status.finalising is not None and not d.capacity.swaps and d.o.stable is not None and stable is not None:
        found = _troubles(d, d.o.stable, d.sub.new_revision if promotes else stable.revision)
        if found or not promotes or not d.capacity.full_set:
            return found
        # Before it updates the first group, the promotion waits for the full green set.
    return _troubles(d, d.home, d.new_revision) if d.home is not None else ()


def _troubles(d: Draft, facts: Facts, revision: str) -> tuple[Trouble, ...]:
    found = troubles(facts, revision, d.now, d.minimum, evicted_before(d))
    return tuple(_after_failure(d, each) for each in found)


def _of_all(d: Draft, facts: Facts, revision: str, companions: Iterable[Facts | None]) -> tuple[Trouble, ...]:
    """Those of a workload's groups and of companions' groups, worst first."""
    further = (_troubles(d, each, target_revision(each)) for each in companions if each is not None)
    return tuple(sorted(chain(_troubles(d, facts, revision), *further), key=lambda each: -each.severity))


def _after_failure(d: Draft, trouble: Trouble) -> Trouble:
    """Adds the last failure to a group that is being recreated: its new pods do not show why they were created."""
    failed = last_failed(d, trouble.group, trouble.workload) if trouble.severity == 1 else None
    if failed is None or not failed.message:
        return trouble
    told = failed.message if trouble.reason == "Terminating" else f"{failed.message}; {trouble.message}"
    pod, container = failed.pod or trouble.pod, failed.container or trouble.container
    return replace(trouble, message=shortened(told), pod=pod, container=container, previous=False)


def waits_for_capacity(d: Draft) -> CapacityWait | None:
    """The wait if only accelerators or quota are missing, which is reported as waiting, not as failure; else None."""
    found = [trouble for trouble in _worst(d) if trouble.severity > 0 and trouble.reason != "NotObserved"]
    if found and all(trouble.reason in QUOTA_REASONS for trouble in found):
        return Reason.WAITING_FOR_QUOTA, SummaryState.WAITING_FOR_QUOTA, f"waiting for quota: {found[0].message}"
    room = next((trouble.message for trouble in found if trouble.reason in CAPACITY_REASONS), None)
    if room is not None and found[0].severity <= 2:
        state = SummaryState.WAITING_FOR_ACCELERATORS
        return Reason.WAITING_FOR_ACCELERATORS, state, f"waiting for accelerators: {room}"
    return None


def await_capacity(d: Draft) -> Draft:
    """Wakes when ``waits_for_capacity`` may change by time alone: a StatefulSet that cannot create its pods does not
    report its last change as observed either.
    """
    for facts in d.o.workloads:
        d = d.wake(judged_at(facts, d.now))
    return d


def loading_words(d: Draft) -> str:
    """The worst problem that waiting will hardly fix, to be appended to the number of ready groups."""
    return next((f": {trouble.message}" for trouble in _worst(d) if trouble.severity > LOADING), "")


def used_up(d: Draft, facts: Facts | None = None) -> list[str]:
    """Messages about the groups that have used up their restarts: those of ``facts`` at its newest revision, by default
    those that the release waits for now.
    """
    found = _worst(d) if facts is None else _troubles(d, facts, target_revision(facts))
    return [each.message for each in found if each.reason == EXHAUSTED]


def waits_only_for_used_up(d: Draft) -> str:
    """The message about the first of them, if no other group that the release waits for now may still become ready."""
    found = used_up(d)
    return found[0] if found and len(found) == sum(each.severity > 0 for each in _worst(d)) else ""


def keep_clock(d: Draft, capacity: CapacityWait | None) -> Draft:
    """Advances the clock of the step, or of the task that ends the release, and wakes at its deadline."""
    step = d.status.step
    if step is None or step.started_at is None:
        return d
    kept = _kept(d, step, capacity)
    if kept != step:
        d = d.set(step=kept)
    ends = _ends(d, kept, capacity)
    return d.wake(ends if ends is not None and ends > d.now else None)


def deadline_passed(d: Draft, capacity: CapacityWait | None) -> tuple[Reason, str] | None:
    """The reason and message if the deadline of the step, or of the task that ends the release, has passed."""
    step = d.status.step
    if step is None or step.started_at is None:
        return None
    ends = _ends(d, _kept(d, step, capacity), capacity)
    if ends is None or ends > d.now:
        return None
    strategy = d.o.rollout.spec.strategy
    if capacity is not None:
        limit = strategy.capacity_deadline_seconds
        return Reason.CAPACITY_DEADLINE, f"{capacity[2].rstrip('.')}, for more than {limit} s"
    why = next((trouble.message for trouble in _worst(d) if trouble.message), "")
    message = f"no further group became ready within {deadline_seconds(d):g} s"
    return Reason.DEADLINE, f"{message}: {why}" if why else message


def _kept(d: Draft, step: StepRecord, capacity: CapacityWait | None) -> StepRecord:
    """The record with its clock advanced to now. The clock restarts when more groups are ready than ever before in the
    step, and after a pause or a lasting wait for accelerators or quota.
    """
    counted = _counted(d)
    waiting = step.waiting_since if counted else None
    if capacity is not None:
        return step.model_copy(update={"waiting_since": waiting or d.now})
    restarts = _begun(d, step) < d.now and (not counted or _waited(d, waiting))
    return step.model_copy(update={"waiting_since": None, "best_ready_at": d.now if restarts else step.best_ready_at})


def _ends(d: Draft, kept: StepRecord, capacity: CapacityWait | None) -> datetime | None:
    """The deadline by a record with an advanced clock; None if none runs."""
    if capacity is None:
        return _begun(d, kept) + timedelta(seconds=deadline_seconds(d))
    limit = d.o.rollout.spec.strategy.capacity_deadline_seconds
    return (kept.waiting_since or d.now) + timedelta(seconds=limit) if limit is not None else None


def _begun(d: Draft, step: StepRecord) -> datetime:
    ending = d.status.finalising
    moments = [step.started_at, step.best_ready_at]
    if ending is not None:
        moments += [ending.since, ending.best_ready_at]
    return max(moment for moment in moments if moment is not None)


def deadline_seconds(d: Draft) -> float:
    """Seconds without progress after which a step is reported as failed."""
    versions = (d.version, *(each.edited.workload.version for each in d.o.companions if each.edited is not None))
    longest = max(each.progress_deadline_seconds for each in versions)
    return d.o.rollout.spec.strategy.progress_deadline_seconds or longest


def further_ready(d: Draft, ready: int) -> Draft:
    """Has the deadline of the task that ends the release begin again if more groups are ready than ever in it."""
    ending = d.status.finalising
    if ending is None or ready <= (ending.best_ready or 0):
        return d
    return d.set(finalising=ending.model_copy(update={"best_ready": ready, "best_ready_at": d.now}))


def _waited(d: Draft, since: datetime | None) -> bool:
    return since is not None and d.now - since >= SHORTEST_WAIT


def _counted(d: Draft) -> bool:
    """True if the last pass also waited only for groups, or for their accelerators or quota."""
    last = d.status.verdict
    return last is None or last.condition == ConditionType.READY or last.reason in COUNTED | _WAITS


def name_troubles(d: Draft, facts: Facts | None, revision: str, companions: Iterable[Facts | None] = ()) -> Draft:
    """Sets the status's groups that are not ready, worst first; of ``companions`` those of the newest revision."""
    found = _of_all(d, facts, revision, companions) if facts is not None else ()
    return d.set(not_ready_groups=tuple(not_ready_group(each) for each in found[:NAMED_GROUPS]))


def not_ready_group(trouble: Trouble) -> NotReadyGroup:
    """The group's entry in the status."""
    return NotReadyGroup(
        workload=trouble.workload,
        group=trouble.group,
        pod=trouble.pod or None,
        container=trouble.container or None,
        previous_logs=trouble.previous or None,
        reason=trouble.reason,
        message=trouble.message,
    )
