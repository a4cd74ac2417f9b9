"""Whose resets of the hold are undone, and whose are given up.

People, pipelines and jobs may apply a manifest that states a partition as often as they like: the hold is put back at
once each time. Only a tool that watches the object answers within seconds of our own write, again and again; each round
may restart a group, and it would go on for ever. So such a tool is left alone for a while, and each time for longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from rollout_lws.api import HoldConflict
from rollout_lws.rollout.backoff import doubled

#: A reset that comes within so many seconds of our putting the hold back can be an answer to it.
ANSWER_SECONDS = 10
#: So many answers in a row are a tool's.
MOST_ANSWERS = 5
#: The hold that is left as it is for the first time is tried again after so many seconds, later after twice as many
#: each time, at most PEACE_SECONDS.
FIRST_WAIT_SECONDS = 60
#: After so many seconds in which the hold has stood, the next reset is the first again.
PEACE_SECONDS = 600
#: Resets on file at most.
MOST_CONFLICTS = 20
#: From so many resets on file on, it is told for as long as they are.
REPEATED = 3


def on_file(conflicts: Sequence[HoldConflict], now: datetime) -> tuple[HoldConflict, ...]:
    """The resets that count still: all of them until the hold has stood for PEACE_SECONDS, then none."""
    if not conflicts:
        return ()
    since = conflicts[-1].put_back_at
    return () if since is not None and since + timedelta(seconds=PEACE_SECONDS) <= now else tuple(conflicts)


def is_left(conflicts: Sequence[HoldConflict]) -> bool:
    """Whether the hold is left as it was reset last."""
    return bool(conflicts) and conflicts[-1].put_back_at is None


def answers(conflicts: Sequence[HoldConflict], now: datetime, template_hash: str | None) -> int:
    """How many resets in a row, the last one at ``now``, came within ANSWER_SECONDS of our putting the hold back, all
    with the version of ``template_hash``: each version is worth a try of its own.
    """
    count, reset = 0, now
    for conflict in reversed(conflicts):
        if conflict.put_back_at is None or conflict.template_hash != template_hash:
            break
        if (reset - conflict.put_back_at).total_seconds() > ANSWER_SECONDS:
            break
        count += 1
        if conflict.at is None:
            break
        reset = conflict.at
    return count


def wait_seconds(conflicts: Sequence[HoldConflict]) -> float:
    """For how long the hold is left as it is after the last of ``conflicts``."""
    last = conflicts[-1]
    tries = answers(conflicts[:-1], last.at, last.template_hash) - MOST_ANSWERS if last.at is not None else 0
    return doubled(FIRST_WAIT_SECONDS, tries, PEACE_SECONDS)
