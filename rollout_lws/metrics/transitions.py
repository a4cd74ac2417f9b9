"""Derives what happened to a release from two successive statuses and the current time.

Each status write is conditional on the previous status, so each transition is counted once, whichever replica wrote it
and however often controllers restart. If the write's answer is lost, it is not counted: too few rather than twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from rollout_lws.api import ConditionType, Phase
from rollout_lws.metrics.glance import Status, glance
from rollout_lws.metrics.registry import Metrics
from rollout_lws.rollout.reasons import Ending


@dataclass(frozen=True, slots=True)
class Started:
    """A release has begun."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A release has ended, after ``seconds`` (None if its beginning was never observed)."""

    outcome: str
    seconds: float | None


@dataclass(frozen=True, slots=True)
class StepChanged:
    """A step took ``seconds``; a step that was left in the pass that entered it is not counted."""

    seconds: float


@dataclass(frozen=True, slots=True)
class PersonActed:
    """A release waited in ``state`` for a user for ``seconds``."""

    state: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Became:
    """The state or its reason has changed."""

    state: str
    reason: str


Told = Started | Ended | StepChanged | PersonActed | Became


def transitions(before: Status, after: Status, now: datetime) -> Iterator[Told]:
    """What happened between two statuses of one Rollout, the later of which was written at ``now``."""
    # A release that supersedes another may begin in the pass that ends that one.
    another = after.releasing and before.releasing and _in_steps(after) and not _in_steps(before)
    if before.releasing and (another or not after.releasing):
        outcome = before.finalising.reason if before.finalising else _verdict(after)
        yield Ended(outcome, _seconds(before.since(ConditionType.PROGRESSING), now))
    if after.releasing and (another or not before.releasing):
        yield Started()
    if before.releasing and before.step is not None and _in_steps(before) and not _same_step(before, after):
        seconds = _seconds(before.step.started_at, now)
        if seconds is not None:
            yield StepChanged(seconds)
    if (before.state, before.reason) != (after.state, after.reason):
        if before.waits_for_a_person and before.state != after.state and before.summary is not None:
            seconds = _seconds(before.summary.since, now)
            if seconds is not None:
                yield PersonActed(before.state, seconds)
        yield Became(after.state, after.reason)


def tell(metrics: Metrics, before: bytes, after: bytes, now: datetime) -> None:
    """Count what happened between two versions of one Rollout's JSON."""
    was, is_now = glance(before), glance(after)
    if was is not None and is_now is not None:
        for each in transitions(was.status, is_now.status, now):
            _count(metrics, each)


def _count(metrics: Metrics, told: Told) -> None:
    if isinstance(told, Started):
        metrics.started.inc()
    elif isinstance(told, Ended):
        metrics.ended.labels(told.outcome).inc()
        if told.seconds is not None:
            metrics.release.labels(told.outcome).observe(told.seconds)
    elif isinstance(told, StepChanged):
        metrics.step.observe(told.seconds)
    elif isinstance(told, PersonActed):
        metrics.person.labels(told.state).observe(told.seconds)
    else:
        metrics.transitions.labels(told.state, told.reason).inc()


def _in_steps(status: Status) -> bool:
    return status.finalising is None


def _same_step(before: Status, after: Status) -> bool:
    same = before.step is not None and after.step is not None and before.step.started_at == after.step.started_at
    return same and after.releasing and _in_steps(after)


def _verdict(status: Status) -> str:
    """The outcome of a release that ended in the pass that began to end it."""
    if status.phase == Phase.ABORTED:
        return Ending.ABORTED
    ended = (each.reason for each in status.conditions if each.type == ConditionType.SUCCEEDED)
    return next(ended, "") or "Unknown"


def _seconds(since: datetime | None, now: datetime) -> float | None:
    return max(0.0, (now - since).total_seconds()) if since is not None else None
