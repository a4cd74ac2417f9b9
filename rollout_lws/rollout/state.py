"""Where a release is, as one value: derived from the status alone, and matched where it decides.

::

    Idle -> InSteps -> Promoting -> CleaningUp -> Idle
               |           |            ^
               +-----------+-> RollingBack

A release that ends is told by ``status.finalising``: why (``Ending``) and what is being done (``Task``).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from rollout_lws.api import ActionType, Phase, RolloutStatus
from rollout_lws.capacity.table import strategy_on_record
from rollout_lws.rollout.reasons import Ending, Outcome, Task


@dataclass(frozen=True, slots=True)
class Idle:
    """No release is on."""


@dataclass(frozen=True, slots=True)
class InSteps:
    """The new version gets its groups and its share step by step; stable is untouched, or comes back at once."""


@dataclass(frozen=True, slots=True)
class Promoting:
    """The stable LWS's own groups are renewed."""

    ending: Ending


@dataclass(frozen=True, slots=True)
class RollingBack:
    """Groups come back at the stable version: those that steps have renewed, or those of a ``promotion``."""

    ending: Ending
    promotion: bool


@dataclass(frozen=True, slots=True)
class CleaningUp:
    """Which version is stable is settled: what was made for the release goes."""

    ending: Ending


@dataclass(frozen=True, slots=True)
class Detaching:
    """No release is on, and the LWS is given back: the Rollout is deleted or disabled."""


#: A release that ends.
EndingState: TypeAlias = Promoting | RollingBack | CleaningUp
ReleaseState: TypeAlias = Idle | InSteps | EndingState | Detaching


def state_of(status: RolloutStatus) -> ReleaseState:
    """Where a release is by its status."""
    record = status.finalising
    if record is None:
        match status.phase:
            case Phase.PROGRESSING:
                return InSteps()
            case Phase.TERMINATING | Phase.DISABLING:
                return Detaching()
            case _:
                return Idle()
    if record.reason not in {*Ending} or record.task not in {*Task}:
        # A status may have been written by others: on the way back nothing is lost.
        return RollingBack(
            Ending.CONTINUOUS, promotion=not strategy_on_record(status.capacity, None).steps_open_windows
        )
    ending = Ending(record.reason)
    match Task(record.task):
        case Task.PROMOTE:
            return Promoting(ending)
        case Task.ROLL_BACK_STEPS:
            return RollingBack(ending, promotion=False)
        case Task.ROLL_BACK_PROMOTION:
            return RollingBack(ending, promotion=True)
        case Task.CLEAN_UP:
            return CleaningUp(ending)


def ending_of(state: ReleaseState) -> Ending | None:
    """Why a release ends; None where none does."""
    match state:
        case Promoting() | RollingBack() | CleaningUp():
            return state.ending
        case Idle() | InSteps() | Detaching():
            return None


def task_of(state: EndingState) -> Task:
    """How the status calls what is being done."""
    match state:
        case Promoting():
            return Task.PROMOTE
        case RollingBack(promotion=True):
            return Task.ROLL_BACK_PROMOTION
        case RollingBack():
            return Task.ROLL_BACK_STEPS
        case CleaningUp():
            return Task.CLEAN_UP


def forced_since(status: RolloutStatus) -> datetime | None:
    """Since when the abort that is under way does not wait for routers; None while it does."""
    last, ending = status.last_action, status.finalising
    if last is None or ending is None or ending_of(state_of(status)) is not Ending.ABORTED or ending.since is None:
        return None
    forced = (
        last.type is ActionType.ABORT and last.force and last.outcome == Outcome.DONE and last.finished_at is not None
    )
    return last.finished_at if forced and last.finished_at and last.finished_at >= ending.since else None
