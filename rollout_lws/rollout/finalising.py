"""Ending a release: promotion through windows, or the way back; what was only there for the release goes afterwards.

Each task can be repeated without harm; ``status.finalising`` says where we are.
"""

from __future__ import annotations

from rollout_lws.rollout.cleaning import clean_up
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.promoting import promote
from rollout_lws.rollout.reasons import Ending, Task
from rollout_lws.rollout.rollback import go_back, take_back


def run(d: Draft) -> bool:
    """One pass over a release that is ending, through as many tasks as the world allows; always has the last word."""
    while True:
        record = d.status.finalising
        if record is None:
            raise LookupError("no release is ending")
        if record.reason not in {*Ending} or record.task not in {*Task}:
            # Whoever may decide may write any word there: of the way back nothing is lost.
            d.set_task(Task.ROLL_BACK_STEPS if d.one_workload else Task.ROLL_BACK_PROMOTION, Ending.CONTINUOUS)
            continue
        ending, task = Ending(record.reason), Task(record.task)
        if task is Task.PROMOTE:
            if promote(d):
                return True
        elif task is Task.ROLL_BACK_STEPS:
            if take_back(d, ending):
                return True
        elif task is Task.ROLL_BACK_PROMOTION:
            if go_back(d, ending):
                return True
        else:
            return clean_up(d, ending)
