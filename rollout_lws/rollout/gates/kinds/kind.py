"""What a kind of gate is: how one is judged, and what has to be watched or measured for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias, assert_never

from rollout_lws.analysis.criterion import Verdict
from rollout_lws.api import GateRecord, GateResult, PlannedGate
from rollout_lws.rollout.decision import Answered, Broken, Wanted
from rollout_lws.rollout.draft import Draft


@dataclass(frozen=True, slots=True)
class Ended:
    """The gate has a result: ``message`` says why, ``shown`` are further fields of its record."""

    result: GateResult
    message: str
    shown: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Running:
    """The gate has no result yet. ``until`` is its deadline, or when time alone may decide; None before anything was
    measured. ``trouble`` says what keeps it from one, "" if nothing does; ``shown`` are further fields of its record.
    """

    until: datetime | None = None
    trouble: str = ""
    shown: Mapping[str, Any] = field(default_factory=dict)


Judged: TypeAlias = Ended | Running

#: What a gate says that a bug keeps from its figures.
_BUG = "the controller cannot measure it, which is a bug: its log says more (round of measurements failed)"
#: Seconds after a deadline in which figures up to it come in: at most so many where some do not come, and in any case.
_LATE, _LATEST = timedelta(seconds=60), timedelta(seconds=600)


def deadline_of(began: datetime, seconds: int, record: GateRecord) -> datetime:
    """When so many seconds of a gate are over, without those for which the release was paused."""
    return began + timedelta(seconds=seconds + (record.halted or 0))


@dataclass(frozen=True, slots=True)
class Time:
    """The time that a gate with figures has; ``deadline`` is None of one that is watched."""

    deadline: datetime | None

    @classmethod
    def of(cls, gate: PlannedGate, record: GateRecord, began: float) -> Time:
        """That of a gate whose figures ``began`` at that epoch second."""
        if gate.deadline is None:
            return cls(None)
        return cls(deadline_of(datetime.fromtimestamp(began, UTC), gate.deadline, record))

    def is_over(self, d: Draft, last: float, *, unread: bool) -> bool:
        """Whether it is over: once figures up to the deadline are there (``last`` is the epoch second of the latest),
        or do not come.
        """
        if self.deadline is None:
            return False
        late = d.now - self.deadline
        there = last >= self.deadline.timestamp()
        return late >= timedelta() and (there or (unread and late >= _LATE) or late >= _LATEST)

    def looks_again(self, d: Draft) -> datetime | None:
        """When it may be over next; None if it never is."""
        if self.deadline is None:
            return None
        moments = (self.deadline, self.deadline + _LATE, self.deadline + _LATEST)
        return next((each for each in moments if each > d.now), moments[-1])


def not_answered(d: Draft, gate: PlannedGate, record: GateRecord, answer: Answered | None) -> Judged:
    """That of a gate without any answer of its kind yet: the first round is on its way, or ended by a bug."""
    if not isinstance(answer, Broken):
        return Running()
    deadline = Time.of(gate, record, answer.began).deadline
    if deadline is None or deadline > d.now:
        return Running(deadline, _BUG)
    return Ended(GateResult.ERROR, _BUG)


def result_of(verdict: Verdict | None, *, missing: bool) -> GateResult:
    """The result of figures when their time is over; without a verdict it is an Error if they are ``missing``."""
    match verdict:
        case Verdict.PASSED:
            return GateResult.PASSED
        case Verdict.FAILED:
            return GateResult.FAILED
        case Verdict.INCONCLUSIVE | None:
            return GateResult.ERROR if missing else GateResult.INCONCLUSIVE
        case unknown:
            assert_never(unknown)


@dataclass(frozen=True, slots=True)
class Kind:
    """``judge`` looks at a gate of the kind without a result, and may write; ``wanted`` is what the next look needs.
    Those of kinds that only steps have take a StepGate.
    """

    judge: Callable[[Draft, Any, GateRecord], tuple[Draft, Judged]]
    wanted: Callable[[Draft, Any, GateRecord], Wanted]
