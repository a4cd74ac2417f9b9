"""A decision under way: what is known, and what has been decided so far.

Rules read the observation and add to the draft; nothing outside of one call of ``decide`` ever sees it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from functools import cached_property
from typing import Any

from rollout_lws.api import (
    BlueGreenStatus,
    CanaryStatus,
    Capacity,
    ConditionType,
    FinalisingRecord,
    Phase,
    RolloutStatus,
    StepRecord,
    StyleStrategy,
    SubStatus,
    SummaryState,
)
from rollout_lws.api.resources import Keys
from rollout_lws.capacity.batches import Batch
from rollout_lws.capacity.result import Turn
from rollout_lws.capacity.table import strategy_of
from rollout_lws.objects.resources import STATEFUL_SETS
from rollout_lws.objects.writes import Confirm, Write
from rollout_lws.rollout.decision import Chore, Notice, Verdict
from rollout_lws.rollout.limits import not_ahead
from rollout_lws.rollout.observation import Observation
from rollout_lws.rollout.reasons import Ending, EventReason, Reason, Task
from rollout_lws.rollout.refusal import FieldRef, Refusal
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, groups
from rollout_lws.workload.queueing import queue_of
from rollout_lws.workload.revisions import target_revision
from rollout_lws.workload.template import Version, version_of


class Persist(Enum):
    """When the status is written."""

    AFTER_WRITES = auto()
    BEFORE_WRITES = auto()
    """What is about to be written must be on record first."""
    MAY_WAIT = auto()
    """It tells of what is over in a moment: it is written only if it still says so in a second."""
    NOT = auto()


class HoldState(Enum):
    """What becomes of the hold in this decision."""

    KEPT = auto()
    RELEASED = auto()
    """The LeaderWorkerSet rolls by itself: a person released it, or a tool resets it again and again."""
    RESTORED = auto()
    """It was reset and is written again."""


@dataclass(frozen=True, slots=True)
class Abort:
    """A person wants the release aborted; ``reason`` is told with it."""

    reason: str


class Advance(Enum):
    """What a person wants of the step that is on, once its groups are ready."""

    LEAVE_STEP = auto()
    PROMOTE_FULL = auto()


class Draft:
    """One decision in the making."""

    def __init__(self, observation: Observation) -> None:
        self.o = observation
        self.now: datetime = observation.now
        self.keys: Keys = observation.keys
        known = observation.rollout.status or RolloutStatus()
        self.status: RolloutStatus = not_ahead(known, observation.now)
        #: Whether the status as stored has a moment that is still to come, so that it has to be written anew.
        self.was_ahead = self.status is not known
        self.verdict: Verdict | None = None
        self.confirms: list[Write] = []
        self.writes: list[Write] = []
        self.chores: list[Chore] = []
        self.notices: list[Notice] = []
        self.wake_at: datetime | None = None
        self.batch: Batch | None = None
        self.hold = HoldState.KEPT
        self.persist = Persist.AFTER_WRITES
        self.intent: Abort | Advance | None = None
        self.step_entered = False
        self.settled = False
        self.prepared = False
        self.opening: tuple[int, ...] = ()

    # What is known

    @property
    def stable(self) -> Facts:
        """The LWS; only rules that run once it is known to exist may ask."""
        if self.o.stable is None:
            raise LookupError("the LeaderWorkerSet does not exist")
        return self.o.stable

    @property
    def strategy(self) -> StyleStrategy:
        """How the version is released; only rules that run once the spec was found valid may ask."""
        style = self.o.rollout.spec.strategy.style
        if style is None:
            raise LookupError("the Rollout has no strategy")
        return style

    @cached_property
    def version(self) -> Version:
        """The version that the LWS's spec asks for."""
        return version_of(self.stable.lws.spec)

    @property
    def uid(self) -> str:
        return self.o.rollout.metadata.uid

    @property
    def minimum(self) -> float:
        return float(self.o.rollout.spec.strategy.min_ready_seconds or 0)

    @property
    def replicas(self) -> int:
        return self.stable.lws.spec.replicas

    @cached_property
    def canary_groups(self) -> tuple[Group, ...]:
        """Groups of the canary LWS at its newest revision."""
        canary = self.o.canary
        if canary is None:
            return ()
        return tuple(group for group in groups(canary) if group.revision == target_revision(canary))

    @property
    def canary_ready(self) -> int:
        return sum(group.ready(self.now, self.minimum) for group in self.canary_groups)

    @property
    def capacity(self) -> Capacity:
        """How the release that is on makes its groups; at rest, how the next one would. A promotion has no surge groups
        where Kueue, which ends them, queues the LWS.
        """
        if self.status.phase == Phase.PROGRESSING:
            known, ending = self.status.capacity or Capacity.EXTRA_WORKLOAD, self.status.finalising
            promotes = ending is not None and ending.task == Task.PROMOTE
            if known is Capacity.SURGE and promotes and self.o.stable is not None and queue_of(self.o.stable.lws):
                return Capacity.IN_PLACE
            return known
        style = self.o.rollout.spec.strategy.style
        return style.made_by if style is not None else Capacity.EXTRA_WORKLOAD

    @property
    def one_workload(self) -> bool:
        """Whether one LWS holds groups of both versions."""
        return strategy_of(self.capacity).one_workload

    @property
    def new_groups(self) -> tuple[Group, ...]:
        """Groups of the version that is being released, wherever they stand; none once that is stable."""
        if not self.one_workload:
            return self.canary_groups
        stable, revision = self.status.stable, self.sub.new_revision
        if self.o.stable is None or self.status.phase != Phase.PROGRESSING or stable is None:
            return ()
        if stable.workload_uid != self.o.stable.lws.metadata.uid:
            # The LWS was made anew and is adopted first.
            return ()
        return tuple(each for each in groups(self.o.stable) if each.revision == revision != stable.revision)

    @property
    def new_ready(self) -> int:
        return sum(group.ready(self.now, self.minimum) for group in self.new_groups)

    @property
    def sub(self) -> SubStatus:
        """The sub-status, in the words of the style that a release has begun with, else of the spec's."""
        known = self.status.sub
        if known is not None and self.status.phase == Phase.PROGRESSING:
            return known
        kind = BlueGreenStatus if self.o.rollout.spec.strategy.blue_green else CanaryStatus
        return known.of(kind) if known is not None else kind()

    @property
    def release_id(self) -> str:
        """The user's id of the release (label, else annotation of the LWS), else the revision that LWS gave it."""
        meta = self.stable.lws.metadata
        key = self.keys.rollout_id
        return meta.labels.get(key) or meta.annotations.get(key) or target_revision(self.stable)

    def command(self, verb: str) -> str:
        """What a person types to do it; the namespace is named where kubectl would not take it by itself."""
        meta = self.o.rollout.metadata
        place = "" if meta.namespace == "default" else f" -n {meta.namespace}"
        return f"kubectl rollout-lws {verb} {meta.name}{place}"

    @property
    def paused(self) -> bool:
        return bool(self.o.rollout.spec.strategy.paused or self.status.paused)

    @property
    def on_record(self) -> bool:
        """Whether the status says already that a release is on: who is started after a crash knows of it, and gives
        back what it has borrowed.
        """
        before = self.o.rollout.status
        return before is not None and before.phase == Phase.PROGRESSING

    # What is decided

    def set(self, **changes: Any) -> None:
        self.status = self.status.model_copy(update=changes)

    def set_sub(self, **changes: Any) -> None:
        before = self.sub
        if "new_revision" in changes:
            changes[before.revision_field] = changes.pop("new_revision")
        after = before.model_copy(update=changes)
        if (
            after.current_step_state != before.current_step_state
            or after.current_step_index != before.current_step_index
        ):
            after = after.model_copy(update={"last_update_time": self.now.replace(microsecond=0)})
        self._put_sub(after)

    def begin_sub(self, **fields: Any) -> None:
        """Start the sub-status anew, with these fields and nothing else."""
        kind = type(self.sub)
        if "new_revision" in fields:
            fields[kind.revision_field] = fields.pop("new_revision")
        self._put_sub(kind(**fields))

    def _put_sub(self, sub: SubStatus) -> None:
        self.set(
            canary_status=sub if isinstance(sub, CanaryStatus) else None,
            blue_green_status=sub if isinstance(sub, BlueGreenStatus) else None,
        )

    def set_step(self, **changes: Any) -> None:
        self.set(step=(self.status.step or StepRecord()).model_copy(update=changes))

    def persist_first(self) -> None:
        """Have the status on record before anything is written."""
        if self.persist is not Persist.NOT:
            self.persist = Persist.BEFORE_WRITES

    def persist_later(self, *, brief: bool) -> None:
        """Whether the status tells of what is over in a moment; it does not wait where it is to be on record first."""
        if self.persist in (Persist.AFTER_WRITES, Persist.MAY_WAIT):
            self.persist = Persist.MAY_WAIT if brief else Persist.AFTER_WRITES

    def write(self, writes: Iterable[Write]) -> None:
        self.writes.extend(writes)

    def confirm_leader_set(self, reason: str) -> None:
        """Have what follows written only if the leader StatefulSet still is as seen.

        It comes by another watch than the LWS, so the LWS may say "observed" while the cached StatefulSet is the one
        before.
        """
        confirm = self.confirmed_leader_set(reason)
        if confirm is not None:
            self.confirms.append(confirm)

    def confirmed_leader_set(self, reason: str) -> Confirm | None:
        """What fails unless the leader StatefulSet still is as seen; None where there is none."""
        leader_set = self.stable.leader_set
        if leader_set is None:
            return None
        meta = leader_set.metadata
        return Confirm(STATEFUL_SETS, meta.namespace, meta.name, meta.uid, meta.generation, reason)

    def wake(self, moment: datetime | None) -> None:
        if moment is not None:
            self.wake_at = moment if self.wake_at is None else min(self.wake_at, moment)

    def wake_in(self, since: datetime, seconds: float) -> bool:
        """Whether ``seconds`` after ``since`` have passed; if not, the draft will wake at that moment."""
        moment = since + timedelta(seconds=seconds)
        if moment <= self.now:
            return True
        self.wake(moment)
        return False

    def take(self, turn: Turn) -> Turn:
        self.write(turn.writes)
        self.wake(turn.wake_at)
        return turn

    def notice(self, reason: EventReason, note: str, *, warning: bool = False, about: str = "Rollout") -> None:
        self.notices.append(Notice(reason.value, note, "Warning" if warning else "Normal", about))

    def conclude(
        self, condition: str, reason: Reason, state: SummaryState, message: str = "", *, by_spec: bool = False
    ) -> bool:
        """Give the last word; returns True so that a rule can end with it."""
        self.verdict = Verdict(condition, reason, state, message, by_spec=by_spec)
        return True

    def ready(self, reason: Reason, state: SummaryState, message: str = "") -> bool:
        return self.conclude("Ready", reason, state, message)

    def reconciling(self, reason: Reason, state: SummaryState, message: str = "") -> bool:
        return self.conclude("Reconciling", reason, state, message)

    def stalled(self, reason: Reason, message: str, *, field: FieldRef | None = None, goes_on: bool = False) -> bool:
        """Something needs a person, or at least a person's eye where it ``goes_on`` by itself; an Event tells it the
        first time. ``field`` is what a person would change.
        """
        if not self.said(reason):
            self.notice(EventReason.STALLED, message, warning=True)
        self.verdict = Verdict("Stalled", reason, SummaryState.STALLED, message, field, goes_on)
        return True

    def refuse(self, refusal: Refusal) -> bool:
        """The same with what a check has found."""
        return self.stalled(refusal.reason, refusal.message, field=refusal.field)

    def said(self, reason: Reason) -> bool:
        """Whether the last word before was that the Rollout is stalled for this reason."""
        last = self.status.verdict
        return last is not None and (last.condition, last.reason) == (ConditionType.STALLED, reason)

    def begin_finalising(self, ending: Ending, task: Task) -> None:
        """Enter a task.

        It is on record before its first write: a window nobody knows of would be closed as a mistake.
        """
        self.persist_first()
        self.set(
            finalising=FinalisingRecord(reason=ending.value, task=task.value, since=self.now), phase=Phase.PROGRESSING
        )

    def set_task(self, task: Task, ending: Ending | None = None) -> None:
        self.persist_first()
        current = self.status.finalising
        reason = ending.value if ending else (current.reason if current else Ending.SUCCESS.value)
        self.set(finalising=FinalisingRecord(reason=reason, task=task.value, since=self.now))
