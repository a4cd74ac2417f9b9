"""What a kind of gate is: how one is judged, and what has to be watched or measured for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias, assert_never

from rollout_lws.analysis.criterion import Verdict
from rollout_lws.api import GateRecord, GateResult, StepGate
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


def is_over(d: Draft, deadline: datetime, last: float, *, unread: bool) -> bool:
    """Whether the time of a gate with figures is over: once those up to its ``deadline`` are there (``last`` is the
    epoch second of the latest), or do not come.
    """
    late = d.now - deadline
    return late >= timedelta() and (last >= deadline.timestamp() or (unread and late >= _LATE) or late >= _LATEST)


def unanswered(d: Draft, gate: StepGate, answer: Answered | None) -> Judged:
    """That of a gate without any answer of its kind yet: the first round is on its way, or ended by a bug."""
    if not isinstance(answer, Broken):
        return Running()
    deadline = datetime.fromtimestamp(answer.began, UTC) + timedelta(seconds=gate.deadline)
    return Running(deadline, _BUG) if deadline > d.now else Ended(GateResult.ERROR, _BUG)


def looks_again(d: Draft, deadline: datetime) -> datetime:
    """When the gate's time may be over next."""
    moments = (deadline, deadline + _LATE, deadline + _LATEST)
    return next((each for each in moments if each > d.now), moments[-1])


def result_of(verdict: Verdict, *, missing: bool) -> GateResult:
    """The result of figures; without a verdict it is an Error if they are ``missing``."""
    match verdict:
        case Verdict.PASSED:
            return GateResult.PASSED
        case Verdict.FAILED:
            return GateResult.FAILED
        case Verdict.INCONCLUSIVE:
            return GateResult.ERROR if missing else GateResult.INCONCLUSIVE
        case unknown:
            assert_never(unknown)


@dataclass(frozen=True, slots=True)
class Kind:
    """``judge`` looks at a gate without a result, and may write; ``wanted`` is what the next look needs."""

    judge: Callable[[Draft, StepGate, GateRecord], tuple[Draft, Judged]]
    wanted: Callable[[Draft, StepGate, GateRecord], Wanted]
