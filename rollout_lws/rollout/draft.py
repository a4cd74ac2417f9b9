"""The context of one ``decide`` call: what was observed and what has been decided so far.

A draft is immutable: each rule takes one and returns the next. The rule that sets the verdict ends the pass. Drafts
never leave ``decide``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from functools import cached_property
from typing import Any, TypeAlias

from rollout_lws.api import (
    AbortedRecord,
    BlueGreenStatus,
    BlueGreenStrategy,
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
from rollout_lws.api.base import with_fields
from rollout_lws.api.resources import Keys
from rollout_lws.capacity import known
from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.capacity.batches import Batch, wanted_groups
from rollout_lws.capacity.replica_math import accompanied
from rollout_lws.capacity.result import CapacityResult
from rollout_lws.capacity.table import strategy_of_plan, strategy_on_record
from rollout_lws.objects.released import PodLabels
from rollout_lws.objects.resources import STATEFUL_SETS, Resource
from rollout_lws.objects.scaling import scaled, whole_number
from rollout_lws.objects.writes import Confirm, Write
from rollout_lws.rollout.commands import command
from rollout_lws.rollout.decision import BestEffort, FieldRef, GateEnd, Measurement, Refusal, ReleaseEvent, Verdict
from rollout_lws.rollout.field_limits import not_ahead
from rollout_lws.rollout.observation import Companion, Observation
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.rollout.state import (
    CleaningUp,
    EndingState,
    InSteps,
    Promoting,
    ReleaseState,
    RollingBack,
    state_of,
    task_of,
)
from rollout_lws.targets.table import TARGETS, target_type
from rollout_lws.targets.version import Version, short_hash, version_together
from rollout_lws.traffic.custom.scripts import Evaluation
from rollout_lws.workload.canary import name_of_canary
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, groups
from rollout_lws.workload.queueing import queue_of
from rollout_lws.workload.revisions import target_revision


class Persist(Enum):
    """When the status is written."""

    AFTER_WRITES = auto()
    BEFORE_WRITES = auto()
    """Before the writes: the status must record what is about to be written, because a controller that restarts in
    between would take it for a change of another writer and undo it. So in the passes that enter a step, begin a task
    of the release's end, release the hold on request, or force an abort that has begun.
    """
    MAY_WAIT = auto()
    """The status describes a transient state: it is written only if that still holds after a second."""
    NOT = auto()


class HoldState(Enum):
    """What this decision does with the hold."""

    KEPT = auto()
    RELEASED = auto()
    """The LeaderWorkerSet rolls natively: a user released the hold, or a tool keeps resetting it."""
    RESTORED = auto()
    """The hold was reset and is written again."""


@dataclass(frozen=True, slots=True)
class Abort:
    """The user wants the release aborted; ``reason`` goes into the messages."""

    reason: str


class Advance(Enum):
    """What the user wants of the current step once its groups are ready."""

    LEAVE_STEP = auto()
    PROMOTE_FULL = auto()


Intent: TypeAlias = Abort | Advance


def newest_groups(facts: Facts | None) -> tuple[Group, ...]:
    """Groups of an LWS at its newest revision; none without an LWS."""
    if facts is None:
        return ()
    return tuple(group for group in groups(facts) if group.revision == target_revision(facts))


@dataclass(frozen=True)
class Draft:
    """An immutable decision in progress."""

    o: Observation
    status: RolloutStatus
    """The status to write."""
    verdict: Verdict | None = None
    confirms: tuple[Confirm, ...] = ()
    """Preconditions: if one fails, nothing is written."""
    writes: tuple[Write, ...] = ()
    best_effort: tuple[BestEffort, ...] = ()
    events: tuple[ReleaseEvent, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    """Figures that this pass asks for, besides those of gates."""
    evaluations: tuple[Evaluation, ...] = ()
    """Results of scripts that this pass needs."""
    wake_at: datetime | None = None
    batch: Batch | None = None
    """Readiness of the new version's groups, for the BatchRelease."""
    hold: HoldState = HoldState.KEPT
    persist: Persist = Persist.AFTER_WRITES
    intent: Intent | None = None
    """The user's request, until the rule that carries it out has recorded it."""
    opened: tuple[int, ...] = ()
    """Ordinals of the stable LWS for which a partition window is opened."""
    at_rest: bool = False
    """No release is in progress and none starts."""
    was_ahead: bool = False
    """The stored status has a timestamp in the future, so that it has to be rewritten."""

    @classmethod
    def of(cls, observation: Observation) -> Draft:
        """The draft before any rule has run."""
        stored = observation.rollout.status
        status = not_ahead(stored or RolloutStatus(), observation.now)
        return cls(observation, status, was_ahead=stored is not None and status is not stored)

    # Observed

    @property
    def now(self) -> datetime:
        return self.o.now

    @property
    def keys(self) -> Keys:
        return self.o.keys

    @property
    def state(self) -> ReleaseState:
        """The release's state, derived from the status."""
        return state_of(self.status)

    @property
    def stable(self) -> Facts:
        """The stable LWS; only for rules that run after its existence was checked."""
        if self.o.stable is None:
            raise LookupError(f"{self.called} does not exist")
        return self.o.stable

    @property
    def paired(self) -> bool:
        """True if the Rollout names two workloads, whose roles change at the end of a release."""
        return self.o.rollout.spec.counterpart_ref is not None

    @property
    def swapped(self) -> bool:
        """True if the stable LWS is one that a release has made, and the other one the user's, which is parked."""
        return self.o.swapped

    @property
    def beside_users(self) -> bool:
        """True if the other LWS is the user's, and has groups only in a release: of a pair, or swapped."""
        return self.paired or self.swapped

    @property
    def scales_sides(self) -> bool:
        """True if releases scale two workloads, of which one has no groups at rest."""
        return self.o.rollout.spec.scales_sides or self.swapped or self._gives_groups

    @property
    def _gives_groups(self) -> bool:
        """True if a release has taken groups of the LWS that serves, which says so itself: whatever the plan and the
        status say by now, the others alone cannot carry all requests.
        """
        stable = self.o.stable
        if self.paired or stable is None or self.o.canary is None:
            return False
        return self.keys.replicas in stable.workload.metadata.annotations

    @property
    def edited(self) -> Facts:
        """The LWS whose template asks for a version: the user's, of a pair the inactive one, if it exists."""
        return self.o.canary if self.beside_users and self.o.canary is not None else self.stable

    @property
    def made(self) -> Facts | None:
        """The canary that the release has made; None without one, and where the other LWS is the user's."""
        return None if self.beside_users else self.o.canary

    @property
    def kind(self) -> str:
        """The kind of the released workload, for messages."""
        return self.o.rollout.spec.workload_ref.kind

    @property
    def called(self) -> str:
        """The released workload's kind and name, for messages."""
        return self.o.stable.called if self.o.stable is not None else f"{self.kind} {self.name}"

    @property
    def name(self) -> str:
        """The released workload's name; of a pair the name of the active side."""
        if self.o.stable is not None:
            return self.o.stable.name
        return self.o.active or self.o.rollout.spec.workload_ref.name

    @property
    def other_name(self) -> str:
        """Name of the other LWS, which may not exist: of a pair's inactive side, of the canary, or of the user's."""
        spec = self.o.rollout.spec
        first, second = spec.workload_ref.name, spec.counterpart_ref
        other = second.name if second is not None else name_of_canary(first)
        return other if self.name == first else first

    @property
    def new_name(self) -> str:
        """Name of the LWS that has, or gets, the new version's groups."""
        return self.capacity.of_new(self.name, self.other_name)

    @property
    def labels(self) -> PodLabels:
        """Labels of the released workload's pods. A Rollout whose kind is not known manages nothing, so that it does
        not matter which labels its pods would have.
        """
        ref = self.o.rollout.spec.workload_ref
        return (target_type(ref.api_version, ref.kind) or TARGETS[0]).labels

    @property
    def resource(self) -> Resource:
        """The released workload's kind, as writes need it; only for rules that run after its existence was checked."""
        return self.stable.workload.resource

    @property
    def strategy(self) -> StyleStrategy:
        """The release style's plan; only for rules that run after the spec was validated."""
        style = self.o.rollout.spec.strategy.style
        if style is None:
            raise LookupError("the Rollout has no strategy")
        return style

    @cached_property
    def version(self) -> Version:
        """The version in the LWS's spec, of a pair that its companions have with it."""
        others = [each.edited.workload.version if each.edited else None for each in self.o.companions]
        return version_together(self.edited.workload.version, others)

    @property
    def own_version(self) -> Version:
        """The version in the stable LWS's own spec, which is ``version`` where that is the user's."""
        if not self.beside_users:
            return self.version
        others = [each.stable.workload.version if each.stable else None for each in self.o.companions]
        return version_together(self.stable.workload.version, others)

    @property
    def own_pending(self) -> bool:
        """True if that is another version than stable; meaningful once LWS has observed it."""
        record = self.status.stable
        return record is not None and self.own_version.template_hash != record.template_hash

    @property
    def adopted(self) -> bool:
        """True if this LWS object is managed; only for rules that run after its existence was checked."""
        record = self.status.stable
        return record is not None and record.workload_uid == self.stable.workload.metadata.uid

    @property
    def pending(self) -> bool:
        """True if the LWS's spec has another version than stable; meaningful once LWS has observed it. In a pair, if
        the inactive side's spec has one that is to be released.
        """
        if self.status.stable is None or self.asks_for_stable:
            return False
        if not self.paired:
            return not self.swapped or self.o.canary is not None
        known = self.status.inactive_hash
        return bool(self.status.start_requested) or (known is not None and known != self.version.template_hash)

    @property
    def asks_for_stable(self) -> bool:
        """True if the LWS's spec has the stable version, and no person wants the user's LWS to serve with it."""
        record = self.status.stable
        if record is None or (self.swapped and self.status.start_requested):
            return False
        return self.version.template_hash == record.template_hash

    @property
    def stable_revision(self) -> str:
        """LWS's revision of the stable version; "" before the adoption."""
        return self.status.stable.revision if self.status.stable is not None else ""

    @property
    def uid(self) -> str:
        return self.o.rollout.metadata.uid

    @property
    def minimum(self) -> float:
        own = self.o.stable.workload.min_ready_seconds if self.o.stable is not None else 0
        return float(max(own, self.o.rollout.spec.strategy.min_ready_seconds or 0))

    @property
    def replicas(self) -> int:
        """Groups that the new version has at full size: as many as its workload has if its owner scales that, else as
        many as the Rollout asks for, or as the active side keeps while a smaller number waits. A number that others
        have written does not count.
        """
        if not self.scales_sides:
            return self.edited.workload.replicas
        asked, known, live = self.o.rollout.spec.replicas, self.status.scaling, self.own_size
        if asked is None:
            return live
        if known is None or known.waiting is None:
            return asked
        return max(asked, min(known.replicas or live, max(live, self.there)))

    def companion_replicas(self, companion: Companion) -> int:
        """Groups of a companion at full size. Of one that its owner scales, at least 1, since it is needed."""
        if companion.asked is None:
            return max(1, companion.edited.workload.replicas) if companion.edited is not None else 1
        return scaled(companion.asked, self.replicas) if self.replicas else 0

    @property
    def own_size(self) -> int:
        """Groups of the stable workload, before a release took some, as it says itself."""
        workload = self.stable.workload
        noted = whole_number(workload.metadata.annotations.get(self.keys.replicas) or "") if self.scales_sides else None
        return workload.replicas if noted is None else max(noted, workload.replicas)

    @property
    def shifts(self) -> bool:
        """True while a release decides how many groups each of two workloads has."""
        return self.capacity.shifts and isinstance(self.state, InSteps | Promoting | RollingBack)

    @property
    def there(self) -> int:
        """One more than the highest ordinal of a group, of a pair on either side: what no status can feign."""
        sides = (self.o.stable, self.o.canary if self.scales_sides else None)
        return max((group.ordinal + 1 for side in sides if side is not None for group in groups(side)), default=0)

    def wanted(self, index: int) -> int:
        """Groups of the new version at step ``index`` (1-based)."""
        return wanted_groups(self.strategy, index, self.replicas, bounded=self.capacity.makes_groups)

    @cached_property
    def canary_groups(self) -> tuple[Group, ...]:
        """Groups of the canary LWS at its newest revision."""
        return newest_groups(self.o.canary)

    @property
    def canary_ready(self) -> int:
        """Ready groups of the canary LWS; of a pair no more than ready groups of companions go with."""
        return min((self.ready_among(self.canary_groups), *map(self._accompanied, self.o.companions)))

    def ready_among(self, members: Iterable[Group]) -> int:
        """How many of these groups count as ready."""
        return sum(group.ready(self.now, self.minimum) for group in members)

    def _accompanied(self, companion: Companion) -> int:
        """Groups of the new version that those of a companion go with: ready ones, and ones that may fail."""
        ready, own = self.ready_among(newest_groups(companion.canary)), self.companion_replicas(companion)
        style = self.o.rollout.spec.strategy.style
        threshold = style.failure_threshold if style is not None else None
        tolerated = scaled(threshold, own) if threshold and ready else 0
        return accompanied(min(own, ready + tolerated), self.replicas, own)

    @property
    def ready_of_all(self) -> int:
        """Ready groups of the new version, and of its companions."""
        own = sum(self.ready_among(newest_groups(each.canary)) for each in self.o.companions)
        return self.ready_among(self.new_groups) + own

    @property
    def capacity(self) -> CapacityStrategy:
        """The capacity strategy of the current release; at rest, that of the next one. A promotion uses no surge groups
        if Kueue queues the LWS, because Kueue ends them.
        """
        plan = self.o.rollout.spec.strategy.style
        shifts = plan is not None and plan.shifting is not None
        if self.paired and self.scales_sides:
            return known.SHIFTED_PAIR if shifts else known.SCALED_PAIR
        if self.paired:
            return known.PAIR
        if self.swapped:
            return known.SHIFT_BACK if shifts else known.SWAP_BACK
        if self._gives_groups:
            return known.SHIFT
        if self._has_swapped_back:
            return known.SHIFT if shifts else known.SWAP
        if self.status.phase != Phase.PROGRESSING:
            return strategy_of_plan(plan) if plan is not None else known.EXTRA_WORKLOAD
        # A promotion goes on as it began, whatever has become of the plan.
        begun = plan if isinstance(plan, BlueGreenStrategy) is isinstance(self.sub, BlueGreenStatus) else None
        found = strategy_on_record(self.status.capacity, begun)
        if not isinstance(self.state, Promoting):
            return found
        return found.in_promotion(queued=self.o.stable is not None and bool(queue_of(self.o.stable.workload)))

    @property
    def _has_swapped_back(self) -> bool:
        """True if the canary has served in place of the user's LWS, and goes whatever the plan is by now."""
        made, state = self.made, self.state
        if made is None or not isinstance(state, CleaningUp):
            return False
        ends = state.keeps or self.status.phase == Phase.PROGRESSING
        return ends and made.workload.metadata.controller is None

    @property
    def home(self) -> Facts | None:
        """The LWS that has the new version's groups; None before it is created."""
        return self.capacity.of_new(self.o.stable, self.o.canary)

    @property
    def new_revision(self) -> str:
        """The new version's revision in that LWS."""
        canary = self.o.canary
        return self.capacity.of_new(self.sub.new_revision, target_revision(canary) if canary is not None else "")

    @property
    def new_groups(self) -> tuple[Group, ...]:
        """Groups of the version being released, in either LWS; empty once that version is stable."""
        if not self.capacity.one_workload:
            return self.canary_groups
        stable, revision = self.status.stable, self.sub.new_revision
        if self.o.stable is None or self.status.phase != Phase.PROGRESSING or stable is None:
            return ()
        if not self.adopted:
            # The LWS was recreated and has to be adopted first.
            return ()
        return tuple(each for each in groups(self.o.stable) if each.revision == revision != stable.revision)

    @property
    def new_ready(self) -> int:
        """Ready groups of that version; of a pair as ``canary_ready``."""
        return self.canary_ready if self.paired else self.ready_among(self.new_groups)

    @property
    def sub(self) -> SubStatus:
        """The sub-status of the style that the release began with, else of the spec's style."""
        known = self.status.sub
        if known is not None and self.status.phase == Phase.PROGRESSING:
            return known
        kind = BlueGreenStatus if self.o.rollout.spec.strategy.blue_green else CanaryStatus
        return known.of(kind) if known is not None else kind()

    @property
    def release_id(self) -> str:
        """The user's release ID (label, else annotation of the LWS), else the LWS revision; of a pair with companions,
        which may keep their revisions, a hash of the version.
        """
        given = self.given_id(self.edited)
        if given:
            return given
        return short_hash(self.version.template_hash, 10) if self.o.companions else target_revision(self.edited)

    def given_id(self, facts: Facts) -> str:
        """The user's release ID at a workload (label, else annotation); "" without one."""
        meta, key = facts.workload.metadata, self.keys.rollout_id
        return meta.labels.get(key) or meta.annotations.get(key) or ""

    def command(self, verb: str, *arguments: str) -> str:
        """The command line for ``verb``, with the namespace unless it is "default"; ``arguments`` follow the name."""
        return command(self.o.rollout.metadata, verb, *arguments)

    @property
    def paused(self) -> bool:
        return bool(self.o.rollout.spec.strategy.paused or self.status.paused)

    @property
    def on_record(self) -> bool:
        """True if the stored status already records a release, so that a restarted controller restores the objects that
        the release modified.
        """
        before = self.o.rollout.status
        return before is not None and before.phase == Phase.PROGRESSING

    @property
    def step_is_new(self) -> bool:
        """True if this decision has entered another step, which the stored status does not have yet."""
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
        """True if a rule has given the verdict."""
        return self.verdict is not None

    def confirmed_leader_set(self, reason: str, facts: Facts | None = None) -> Confirm | None:
        """A precondition that the leader StatefulSet is unchanged, by default that of the LWS whose template asks for a
        version; None if there is none.
        """
        leader_set = (facts or self.edited).leader_set
        if leader_set is None:
            return None
        meta = leader_set.metadata
        return Confirm(STATEFUL_SETS, meta.namespace, meta.name, meta.uid, meta.generation, reason)

    def said(self, reason: Reason) -> bool:
        """True if the previous verdict was Stalled for this reason."""
        last = self.status.verdict
        return last is not None and (last.condition, last.reason) == (ConditionType.STALLED, reason)

    # Decided

    def but(self, **changes: Any) -> Draft:
        """A copy with these fields."""
        after = object.__new__(Draft)
        # Cached properties are kept: no change to a draft changes what was observed.
        after.__dict__.update(vars(self), **changes)
        return after

    def supposing(self, version: Version) -> Draft:
        """A copy as if the LWS's spec had this version."""
        return self.but(version=version)

    def set(self, **changes: Any) -> Draft:
        """Sets fields of the status."""
        status = with_fields(self.status, **changes)
        return self if status is self.status else self.but(status=status)

    def set_sub(self, **changes: Any) -> Draft:
        """Sets fields of the sub-status."""
        before = self.sub
        if "new_revision" in changes:
            changes[before.revision_field] = changes.pop("new_revision")
        after = with_fields(before, **changes)
        if (
            after.current_step_state != before.current_step_state
            or after.current_step_index != before.current_step_index
        ):
            after = with_fields(after, last_update_time=self.now.replace(microsecond=0))
        return self._put_sub(after)

    def begin_sub(self, **fields: Any) -> Draft:
        """Replaces the sub-status by one with only these fields."""
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
        """Sets fields of the step's record."""
        return self.set(step=with_fields(self.status.step or StepRecord(), **changes))

    def persist_first(self) -> Draft:
        """Has the status written before all other writes."""
        return self if self.persist is Persist.NOT else self.but(persist=Persist.BEFORE_WRITES)

    def persist_later(self, *, brief: bool) -> Draft:
        """Lets the status write wait if ``brief`` (transient); no effect on a status that must be written first."""
        if self.persist in (Persist.AFTER_WRITES, Persist.MAY_WAIT):
            return self.but(persist=Persist.MAY_WAIT if brief else Persist.AFTER_WRITES)
        return self

    def brief_until(self, moment: datetime | None) -> Draft:
        """Marks the status as transient until ``moment`` and wakes then; with None, as one that may last."""
        return self.persist_later(brief=moment is not None).wake(moment)

    def write(self, writes: Iterable[Write]) -> Draft:
        """Appends writes."""
        return self.but(writes=(*self.writes, *writes))

    def write_if_possible(self, best_effort: Iterable[BestEffort]) -> Draft:
        """Appends best-effort writes, whose failure stops nothing."""
        return self.but(best_effort=(*self.best_effort, *best_effort))

    def confirm_leader_set(self, reason: str, facts: Facts | None = None) -> Draft:
        """Precondition: nothing is written unless the leader StatefulSet is unchanged.

        The StatefulSet has its own watch, so the LWS may be "observed" while the cached StatefulSet is still the old
        one.
        """
        confirm = self.confirmed_leader_set(reason, facts)
        return self.but(confirms=(*self.confirms, confirm)) if confirm is not None else self

    def wake(self, moment: datetime | None) -> Draft:
        """Decides again at this moment at the latest; None changes nothing."""
        if moment is None:
            return self
        return self.but(wake_at=moment if self.wake_at is None else min(self.wake_at, moment))

    def measure(self, measurement: Measurement) -> Draft:
        """Has the shell ask for these figures, which later decisions get."""
        return self.but(measurements=(*self.measurements, measurement))

    def take(self, result: CapacityResult) -> Draft:
        """Adds the writes and the wake-up of a capacity result."""
        return self.write(result.writes).wake(result.wake_at)

    def event(
        self,
        reason: EventReason,
        note: str,
        *,
        warning: bool = False,
        about: str = "Rollout",
        gates: Iterable[GateEnd] = (),
    ) -> Draft:
        """Adds an Event; ``gates`` are those of whose results it tells."""
        told = ReleaseEvent(reason.value, note, "Warning" if warning else "Normal", about, tuple(gates))
        return self.but(events=(*self.events, told))

    def conclude(
        self, condition: str, reason: Reason, state: SummaryState, message: str = "", *, by_spec: bool = False
    ) -> Draft:
        """Gives the verdict."""
        return self.but(verdict=Verdict(condition, reason, state, message, by_spec=by_spec))

    def ready(self, reason: Reason, state: SummaryState, message: str = "") -> Draft:
        return self.conclude("Ready", reason, state, message)

    def reconciling(self, reason: Reason, state: SummaryState, message: str = "") -> Draft:
        return self.conclude("Reconciling", reason, state, message)

    def stalled(self, reason: Reason, message: str, *, field: FieldRef | None = None, goes_on: bool = False) -> Draft:
        """Verdict Stalled: the user has to act, or at least look if it ``goes_on`` by itself. The first time an Event
        reports it. ``field`` is the one to change.
        """
        told = self if self.said(reason) else self.event(EventReason.STALLED, message, warning=True)
        return told.but(verdict=Verdict("Stalled", reason, SummaryState.STALLED, message, field, goes_on))

    def refuse(self, refusal: Refusal) -> Draft:
        """Verdict Stalled, from the refusal of a check."""
        return self.stalled(refusal.reason, refusal.message, field=refusal.field)

    def adding(self, told: str) -> Draft:
        """Appends a sentence to the verdict's message, if there is a verdict, and a sentence."""
        last = self.verdict
        if last is None or not told:
            return self
        return self.but(verdict=replace(last, message=f"{last.message}; {told}" if last.message else told))

    def record_abort(self, why: str, template_hash: str, *, revision: str, release_id: str | None) -> Draft:
        """Records this version as the one that was aborted last."""
        return self.set(
            aborted=AbortedRecord(
                template_hash=template_hash,
                revision=revision,
                release_id=release_id,
                at=self.now,
                reason=why,
                message=why,
            )
        )

    def enter(self, state: EndingState) -> Draft:
        """Ends the release, or switches to another task of its end.

        The status is written first: the controller would close a window that is not recorded there as a mistake.
        """
        record = FinalisingRecord(reason=state.ending.value, task=task_of(state).value, since=self.now)
        return self.persist_first().set(finalising=record)
