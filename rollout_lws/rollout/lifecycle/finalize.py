"""Ends a release: promotion through partition windows, or rollback, then clean-up of what the release created.

Each task is idempotent; ``status.finalising`` records the current one.
"""

from __future__ import annotations

from typing import assert_never

from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.lifecycle.cleanup import clean_up
from rollout_lws.rollout.lifecycle.promote import promote
from rollout_lws.rollout.lifecycle.rollback import roll_back
from rollout_lws.rollout.state import CleaningUp, Detaching, Idle, InSteps, Promoting, RollingBack, task_of


def run(d: Draft) -> Draft:
    """One pass over an ending release, through as many tasks as the cluster's state allows; always gives a verdict.

    A task that returns without a verdict has entered another task.
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
    """If other writers put unknown words into the status, replaces them by the state that they are read as."""
    record = d.status.finalising
    known = record is not None and (record.reason, record.task) == (state.ending.value, task_of(state).value)
    return d if known else d.enter(state)
