"""Keeping the hold: repaired when somebody resets it, given up when somebody insists.

A manifest that states a partition rolls in the very write that applies it, so the hold is put back at once and the
written values become the user's new originals. Twice within a minute is a contest nobody can win: we write no third
time.
"""

from __future__ import annotations

from datetime import timedelta

from rollout_lws.api import HoldFight, SummaryState
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout.adoption import write_hold
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import EventReason, Reason, Task
from rollout_lws.workload.hold import HOLD, borrowed, foreign_members, give_back, hold, is_held, writer_of_strategy

#: Two foreign resets within this many seconds are a contest.
CONTEST_SECONDS = 60


def released_by_hand(d: Draft) -> bool:
    """The break-glass annotation: the user's own values are back and nothing is fought until it is removed."""
    return d.stable.lws.metadata.annotations.get(d.keys.release_hold) == "true"


def keep_hold(d: Draft) -> None:
    """Repair the hold or find it contested; sets ``d.contested``. Windows of a promotion are left to it."""
    lws = d.stable.lws
    if released_by_hand(d):
        d.contested = True
        body = give_back(lws, d.keys)
        if body is not None:
            meta = lws.metadata
            patch = Patch(LEADER_WORKER_SETS, meta.namespace, meta.name, body, "hold released", meta.resource_version)
            d.write((patch,))
            d.notice(
                EventReason.HOLD_RELEASED,
                f"LeaderWorkerSet {meta.name} has its own strategy back",
                about="LeaderWorkerSet",
            )
        if d.status.hold_fights:
            # What a person opens on purpose is no contest, nor is what we put back once the annotation is gone.
            d.set(hold_fights=())
        return
    foreign = "partition" in foreign_members(lws, d.keys) or (
        borrowed(lws, d.keys) is None and lws.spec.rollout_strategy.rolling_update_configuration.partition < HOLD
    )
    if not foreign:
        if not _promoting(d) and hold(lws, d.keys, d.uid) is not None:
            write_hold(d, "put the hold back")
        if is_held(lws) and d.status.hold_fights and not _recent(d):
            d.set(hold_fights=())
        return
    manager = writer_of_strategy(lws)
    fights = _recent(d)
    if len(fights) >= 2:
        d.contested = True
        return
    d.set(hold_fights=(*fights, HoldFight(at=d.now, manager=manager)))
    if fights:
        d.contested = True
        d.notice(
            EventReason.HOLD_CONTESTED,
            f"{manager} resets the hold of LeaderWorkerSet {lws.metadata.name} again and again: it is left as it is;"
            " remove"
            " rollingUpdateConfiguration.partition from the manifest",
            warning=True,
        )
        return
    write_hold(d, f"{manager} had reset the hold")
    d.notice(
        EventReason.HOLD_RESET,
        f"{manager} reset the hold of LeaderWorkerSet {lws.metadata.name}; it was put back: remove"
        " rollingUpdateConfiguration.partition from the manifest",
        warning=True,
    )


def _recent(d: Draft) -> tuple[HoldFight, ...]:
    fights = tuple(d.status.hold_fights or ())
    if len(fights) >= 2:
        # A contest lasts for as long as the hold is not back.
        return () if is_held(d.stable.lws) else fights
    since = d.now - timedelta(seconds=CONTEST_SECONDS)
    return tuple(fight for fight in fights if fight.at is not None and fight.at > since)


def _promoting(d: Draft) -> bool:
    return d.status.finalising is not None and d.status.finalising.task == Task.PROMOTE.value


def contested(d: Draft) -> bool:
    """The last word where the hold is given up and the LWS rolls by itself."""
    if released_by_hand(d):
        return d.reconciling(
            Reason.HOLD_RELEASED,
            SummaryState.HELD,
            f"the hold was released by annotation {d.keys.release_hold}: remove it to have releases again",
        )
    last = (d.status.hold_fights or ())[-1:]
    manager = last[0].manager if last else "somebody"
    return d.stalled(
        Reason.HOLD_CONTESTED,
        f"{manager} keeps resetting the partition of LeaderWorkerSet {d.stable.lws.metadata.name}, which rolls by"
        " itself now:"
        " remove rollingUpdateConfiguration.partition from its manifest",
    )
