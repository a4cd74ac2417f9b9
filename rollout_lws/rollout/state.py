"""The state of a release as one value, derived from the status alone and matched exhaustively.

::

    Idle -> InSteps -> Promoting -> CleaningUp -> Idle
               |           |            ^
               +-----------+-> RollingBack

``status.finalising`` records how a release ends: why (``Ending``) and the current task (``Task``).
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
    """No release is in progress."""


@dataclass(frozen=True, slots=True)
class InSteps:
    """The new version gets groups and traffic step by step; stable is untouched, or can be restored at once."""


@dataclass(frozen=True, slots=True)
class Promoting:
    """The stable LWS's regular groups are updated."""

    ending: Ending


@dataclass(frozen=True, slots=True)
class RollingBack:
    """Groups return to the stable version: those that steps updated, or with ``promotion`` those it updated."""

    ending: Ending
    promotion: bool


@dataclass(frozen=True, slots=True)
class CleaningUp:
    """It is settled which version is stable: the controller removes what the release created.

    ``keeps``: the release is over for everyone, and the groups that gave up the requests stay for a while.
    """

    ending: Ending
    keeps: bool = False


@dataclass(frozen=True, slots=True)
class Detaching:
    """No release is in progress and the LWS is detached: the Rollout is deleted or disabled."""


_ENDINGS, _TASKS = frozenset(Ending), frozenset(Task)
#: A release that is ending.
EndingState: TypeAlias = Promoting | RollingBack | CleaningUp
ReleaseState: TypeAlias = Idle | InSteps | EndingState | Detaching


def state_of(status: RolloutStatus) -> ReleaseState:
    """The state that a status records."""
    record = status.finalising
    if record is None:
        match status.phase:
            case Phase.PROGRESSING:
                return InSteps()
            case Phase.TERMINATING | Phase.DISABLING:
                return Detaching()
            case _:
                return Idle()
    if record.reason not in _ENDINGS or record.task not in _TASKS:
        # Another writer changed the status: rolling back is the safe choice.
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
            keeps = status.kept is not None and status.kept.since is not None and status.phase is Phase.HEALTHY
            return CleaningUp(ending, keeps=ending is Ending.SUCCESS and keeps)


def ending_of(state: ReleaseState) -> Ending | None:
    """Why a release ends; None if none does."""
    match state:
        case Promoting() | RollingBack() | CleaningUp():
            return state.ending
        case Idle() | InSteps() | Detaching():
            return None


def task_of(state: EndingState) -> Task:
    """The status's name for the state's task."""
    match state:
        case Promoting():
            return Task.PROMOTE
        case RollingBack(promotion=True):
            return Task.ROLL_BACK_PROMOTION
        case RollingBack():
            return Task.ROLL_BACK_STEPS
        case CleaningUp():
            return Task.CLEAN_UP


#: Ends of a release in which all requests may be sent back at once, whatever routers and old groups do.
FORCEABLE = (Ending.ABORTED, Ending.ROLLBACK, Ending.DELETED, Ending.DISABLED)


def forced_since(status: RolloutStatus) -> datetime | None:
    """Since when the way back no longer waits for routers, as a forced abort asked; None while it does."""
    last, ending = status.last_action, status.finalising
    if last is None or ending is None or ending_of(state_of(status)) not in FORCEABLE or ending.since is None:
        return None
    forced = (
        last.type is ActionType.ABORT and last.force and last.outcome == Outcome.DONE and last.finished_at is not None
    )
    return last.finished_at if forced and last.finished_at and last.finished_at >= ending.since else None
