"""Which resets of the hold the controller undoes, and from which it backs off.

Users, pipelines and jobs may apply a manifest with a partition as often as they like: the controller restores the hold
at once each time. Only a tool that watches the object resets it within seconds of our write, again and again; each
round may restart a group, and it would never end. The controller backs off from such a tool, each time for longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from rollout_lws.api import HoldConflict
from rollout_lws.rollout.backoff import doubled

#: A reset within so many seconds after our restore may be a tool's answer to it.
ANSWER_SECONDS = 10
#: So many answers in a row come from a tool.
MOST_ANSWERS = 5
#: The first backoff before the hold is retried, in seconds; it doubles each time, up to COOL_DOWN_SECONDS.
FIRST_WAIT_SECONDS = 60
#: After so many seconds with the hold in place the next reset counts as the first again.
COOL_DOWN_SECONDS = 600
#: Limit of recorded resets.
MOST_CONFLICTS = 20
#: From so many recorded resets on, the verdict reports them.
REPEATED = 3


def on_file(conflicts: Sequence[HoldConflict], now: datetime) -> tuple[HoldConflict, ...]:
    """The resets that still count: all of them until the hold has stood for COOL_DOWN_SECONDS, then none."""
    if not conflicts:
        return ()
    since = conflicts[-1].put_back_at
    return () if since is not None and since + timedelta(seconds=COOL_DOWN_SECONDS) <= now else tuple(conflicts)


def is_left(conflicts: Sequence[HoldConflict]) -> bool:
    """True if the last reset was not undone."""
    return bool(conflicts) and conflicts[-1].put_back_at is None


def answers(conflicts: Sequence[HoldConflict], now: datetime, template_hash: str | None) -> int:
    """How many resets in a row, the last one at ``now``, came within ANSWER_SECONDS after our restore, all with the
    version of ``template_hash``: each version gets tries of its own.
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
    """How long the controller leaves the hold reset after the last of ``conflicts``."""
    last = conflicts[-1]
    tries = answers(conflicts[:-1], last.at, last.template_hash) - MOST_ANSWERS if last.at is not None else 0
    return doubled(FIRST_WAIT_SECONDS, tries, COOL_DOWN_SECONDS)
