"""Ending a release: promotion through windows, or the way back; what was only there for the release goes afterwards.

Each task can be repeated without harm; ``status.finalising`` says which is on.
"""

from __future__ import annotations

from typing import assert_never

from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.lifecycle.cleanup import clean_up
from rollout_lws.rollout.lifecycle.promote import promote
from rollout_lws.rollout.lifecycle.rollback import roll_back
from rollout_lws.rollout.state import CleaningUp, Detaching, Idle, InSteps, Promoting, RollingBack, task_of


def run(d: Draft) -> Draft:
    """One pass over a release that is ending, through as many tasks as the world allows; with the last word.

    A task without the last word has entered another one.
    """
    d = d.but(verdict=None)
    while not d.concluded:
        match d.state:
            case Promoting():
                d = promote(d)
            case RollingBack() as state:
                d = roll_back(_on_record(d, state), state)
            case CleaningUp(ending):
                d = clean_up(d, ending)
            case Idle() | InSteps() | Detaching():
                raise LookupError("no release is ending")
            case unknown:
                assert_never(unknown)
    return d


def _on_record(d: Draft, state: RollingBack) -> Draft:
    """Where others have written words into the status that mean no task, it says now what they are taken for."""
    record = d.status.finalising
    known = record is not None and (record.reason, record.task) == (state.ending.value, task_of(state).value)
    return d if known else d.enter(state)
