"""A decision under way: what is known, and what has been decided so far.

A draft never changes. A rule takes one and answers with the next, which says more; the rule that has the last word
gives the verdict. Nothing outside of one call of ``decide`` ever sees a draft.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from functools import cached_property
from typing import Any, TypeAlias

from rollout_lws.api import (
    BlueGreenStatus,
    CanaryStatus,
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
from rollout_lws.capacity import known
from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.capacity.batches import Batch
from rollout_lws.capacity.result import CapacityResult
from rollout_lws.capacity.table import strategy_of_plan, strategy_on_record
from rollout_lws.objects.resources import STATEFUL_SETS
from rollout_lws.objects.writes import Confirm, Write
from rollout_lws.rollout.decision import Chore, Notice, Verdict
from rollout_lws.rollout.field_limits import not_ahead
from rollout_lws.rollout.observation import Observation
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.rollout.refusal import FieldRef, Refusal
from rollout_lws.rollout.state import EndingState, Promoting, ReleaseState, state_of, task_of
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


Intent: TypeAlias = Abort | Advance


@dataclass(frozen=True)
class Draft:
    """One decision in the making."""

    o: Observation
    status: RolloutStatus
    """The status as it shall be."""
    verdict: Verdict | None = None
    confirms: tuple[Confirm, ...] = ()
    """What has to be as it was seen, or nothing is written."""
    writes: tuple[Write, ...] = ()
    chores: tuple[Chore, ...] = ()
    notices: tuple[Notice, ...] = ()
    wake_at: datetime | None = None
    batch: Batch | None = None
    """How far the groups of the new version are, for the BatchRelease."""
    hold: HoldState = HoldState.KEPT
    persist: Persist = Persist.AFTER_WRITES
    intent: Intent | None = None
    """What a person asked for, until the rule that carries it out has filed it."""
    opened: tuple[int, ...] = ()
    """Ordinals of the stable LWS for which a window is opened."""
    at_rest: bool = False
    """No release is on, and none begins."""

    @classmethod
    def of(cls, observation: Observation) -> Draft:
        """Nothing is decided yet."""
        return cls(observation, not_ahead(observation.rollout.status or RolloutStatus(), observation.now))

    # What is known

    @property
    def now(self) -> datetime:
        return self.o.now

    @property
    def keys(self) -> Keys:
        return self.o.keys

    @property
    def state(self) -> ReleaseState:
        """Where the release is."""
        return state_of(self.status)

    @property
    def was_ahead(self) -> bool:
        """Whether the status as stored has a moment that is still to come, so that it has to be written anew."""
        known = self.o.rollout.status
        return known is not None and not_ahead(known, self.now) is not known

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
    def capacity(self) -> CapacityStrategy:
        """How the release that is on makes its groups; at rest, how the next one would. A promotion has no surge groups
        where Kueue, which ends them, queues the LWS.
        """
        plan = self.o.rollout.spec.strategy.style
        if self.status.phase != Phase.PROGRESSING:
            return strategy_of_plan(plan) if plan is not None else known.EXTRA_WORKLOAD
        found = strategy_on_record(self.status.capacity, plan)
        if not isinstance(self.state, Promoting):
            return found
        return found.in_promotion(queued=self.o.stable is not None and bool(queue_of(self.o.stable.lws)))

    @property
    def home(self) -> Facts | None:
        """The LWS that has the groups of the new version; None before it is made."""
        return self.capacity.of_new(self.o.stable, self.o.canary)

    @property
    def new_revision(self) -> str:
        """What that LWS calls the new version."""
        canary = self.o.canary
        return self.capacity.of_new(self.sub.new_revision, target_revision(canary) if canary is not None else "")

    @property
    def new_groups(self) -> tuple[Group, ...]:
        """Groups of the version that is being released, wherever they stand; none once that is stable."""
        if not self.capacity.one_workload:
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

    @property
    def step_is_new(self) -> bool:
        """Whether this very decision has gone to another step, which is not on record yet."""
        before = self.o.rollout.status
        if before is None or before.sub is None or not self.on_record:
            return False
        moments = tuple(each.started_at if each is not None else None for each in (before.step, self.status.step))
        return before.sub.current_step_index != self.sub.current_step_index or moments[0] != moments[1]

    def yet_to_come(self, since: datetime, seconds: float) -> datetime | None:
        """The moment ``seconds`` after ``since``; None once it has passed."""
        moment = since + timedelta(seconds=seconds)
        return moment if moment > self.now else None

    @property
    def concluded(self) -> bool:
        """Whether a rule has given the last word."""
        return self.verdict is not None

    def confirmed_leader_set(self, reason: str) -> Confirm | None:
        """What fails unless the leader StatefulSet still is as seen; None where there is none."""
        leader_set = self.stable.leader_set
        if leader_set is None:
            return None
        meta = leader_set.metadata
        return Confirm(STATEFUL_SETS, meta.namespace, meta.name, meta.uid, meta.generation, reason)

    def said(self, reason: Reason) -> bool:
        """Whether the last word before was that the Rollout is stalled for this reason."""
        last = self.status.verdict
        return last is not None and (last.condition, last.reason) == (ConditionType.STALLED, reason)

    # What is decided

    def but(self, **changes: Any) -> Draft:
        """The same with these fields of its own."""
        after = object.__new__(Draft)
        # With what was found out already: no change of a draft changes what is observed.
        after.__dict__.update(vars(self), **changes)
        return after

    def supposing(self, version: Version) -> Draft:
        """The same as if the LWS's spec asked for this version."""
        return self.but(version=version)

    def set(self, **changes: Any) -> Draft:
        """With these fields of the status."""
        return self.but(status=self.status.model_copy(update=changes))

    def set_sub(self, **changes: Any) -> Draft:
        """With these fields of the sub-status."""
        before = self.sub
        if "new_revision" in changes:
            changes[before.revision_field] = changes.pop("new_revision")
        after = before.model_copy(update=changes)
        if (
            after.current_step_state != before.current_step_state
            or after.current_step_index != before.current_step_index
        ):
            after = after.model_copy(update={"last_update_time": self.now.replace(microsecond=0)})
        return self._put_sub(after)

    def begin_sub(self, **fields: Any) -> Draft:
        """With a sub-status that has these fields and nothing else."""
        kind = type(self.sub)
        if "new_revision" in fields:
            fields[kind.revision_field] = fields.pop("new_revision")
        return self._put_sub(kind(**fields))

    def _put_sub(self, sub: SubStatus) -> Draft:
        return self.set(
            canary_status=sub if isinstance(sub, CanaryStatus) else None,
            blue_green_status=sub if isinstance(sub, BlueGreenStatus) else None,
        )

    def set_step(self, **changes: Any) -> Draft:
        """With these fields of the record of the step."""
        return self.set(step=(self.status.step or StepRecord()).model_copy(update=changes))

    def persist_first(self) -> Draft:
        """The status is on record before anything is written."""
        return self if self.persist is Persist.NOT else self.but(persist=Persist.BEFORE_WRITES)

    def persist_later(self, *, brief: bool) -> Draft:
        """Whether the status tells of what is over in a moment; it does not wait where it is to be on record first."""
        if self.persist in (Persist.AFTER_WRITES, Persist.MAY_WAIT):
            return self.but(persist=Persist.MAY_WAIT if brief else Persist.AFTER_WRITES)
        return self

    def brief_until(self, moment: datetime | None) -> Draft:
        """The status tells of what is over at this moment; of what may last where there is none."""
        return self.persist_later(brief=moment is not None).wake(moment)

    def write(self, writes: Iterable[Write]) -> Draft:
        """With these writes after those before."""
        return self.but(writes=(*self.writes, *writes))

    def write_if_possible(self, chores: Iterable[Chore]) -> Draft:
        """With these writes at the end, whose failure stops nothing."""
        return self.but(chores=(*self.chores, *chores))

    def confirm_leader_set(self, reason: str) -> Draft:
        """What is decided is written only if the leader StatefulSet still is as seen.

        It comes by another watch than the LWS, so the LWS may say "observed" while the cached StatefulSet is the one
        before.
        """
        confirm = self.confirmed_leader_set(reason)
        return self.but(confirms=(*self.confirms, confirm)) if confirm is not None else self

    def wake(self, moment: datetime | None) -> Draft:
        """It is looked again at this moment at the latest; None asks for nothing."""
        if moment is None:
            return self
        return self.but(wake_at=moment if self.wake_at is None else min(self.wake_at, moment))

    def take(self, result: CapacityResult) -> Draft:
        """With what a piece of capacity work writes."""
        return self.write(result.writes).wake(result.wake_at)

    def notice(self, reason: EventReason, note: str, *, warning: bool = False, about: str = "Rollout") -> Draft:
        """With an Event."""
        told = Notice(reason.value, note, "Warning" if warning else "Normal", about)
        return self.but(notices=(*self.notices, told))

    def conclude(
        self, condition: str, reason: Reason, state: SummaryState, message: str = "", *, by_spec: bool = False
    ) -> Draft:
        """With the last word."""
        return self.but(verdict=Verdict(condition, reason, state, message, by_spec=by_spec))

    def ready(self, reason: Reason, state: SummaryState, message: str = "") -> Draft:
        return self.conclude("Ready", reason, state, message)

    def reconciling(self, reason: Reason, state: SummaryState, message: str = "") -> Draft:
        return self.conclude("Reconciling", reason, state, message)

    def stalled(self, reason: Reason, message: str, *, field: FieldRef | None = None, goes_on: bool = False) -> Draft:
        """Something needs a person, or at least a person's eye where it ``goes_on`` by itself; an Event tells it the
        first time. ``field`` is what a person would change.
        """
        told = self if self.said(reason) else self.notice(EventReason.STALLED, message, warning=True)
        return told.but(verdict=Verdict("Stalled", reason, SummaryState.STALLED, message, field, goes_on))

    def refuse(self, refusal: Refusal) -> Draft:
        """The same with what a check has found."""
        return self.stalled(refusal.reason, refusal.message, field=refusal.field)

    def adding(self, told: str) -> Draft:
        """With one more sentence in the last word, if there is one."""
        last = self.verdict
        if last is None:
            return self
        return self.but(verdict=replace(last, message=f"{last.message}; {told}" if last.message else told))

    def enter(self, state: EndingState) -> Draft:
        """End the release, or go on with another task of its end.

        It is on record before its first write: a window that is not on record would be closed as a mistake.
        """
        record = FinalisingRecord(reason=state.ending.value, task=task_of(state).value, since=self.now)
        return self.persist_first().set(finalising=record)
