"""Keeping the hold: repaired when somebody resets it, given up when somebody insists.

A manifest that states a partition rolls in the very write that applies it, so the hold is put back at once and the
written values become the user's new originals. Twice within a minute is a contest nobody can win: we write no third
time, until the pending version has rolled by itself or, with nothing pending, for ten minutes.
"""

from __future__ import annotations

from datetime import timedelta

from rollout_lws.api import Capacity, ConditionType, HoldFight, Phase, SummaryState
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout.adoption import write_hold
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import EventReason, Reason, Task
from rollout_lws.workload.hold import (
    HOLD,
    borrowed,
    foreign_members,
    give_back,
    hold,
    is_held,
    standing_surge,
    writer_of_strategy,
)

#: Two foreign resets within this many seconds are a contest.
CONTEST_SECONDS = 60
#: With nothing pending, a contested hold is tried again this many seconds after the last reset.
TRUCE_SECONDS = 600


def released_by_hand(d: Draft) -> bool:
    """The break-glass annotation: the user's own values are back and nothing is fought until it is removed."""
    return d.stable.lws.metadata.annotations.get(d.keys.release_hold) == "true"


def keep_hold(d: Draft) -> None:
    """Repair the hold or find it contested; sets ``d.contested``. Windows of a release are left to it."""
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
    if not foreign or _was_released(d):
        # Surge groups of a strategy edited in mid-release would be of the old version, or go while they serve.
        closed = lws.spec.rollout_strategy.rolling_update_configuration.partition >= HOLD
        if (closed or not has_windows(d)) and hold(lws, d.keys, d.uid, _surge(d)) is not None:
            d.hold_put_back = True
            write_hold(d, "put the hold back", _surge(d))
        if is_held(lws, _surge(d)) and d.status.hold_fights and not _recent(d):
            d.set(hold_fights=())
        return
    manager = writer_of_strategy(lws)
    fights = _recent(d)
    if len(fights) >= 2 and not _truce(d, fights):
        d.contested = True
        return
    if len(fights) >= 2:
        fights = ()
    d.set(hold_fights=(*fights, HoldFight(at=d.now, manager=manager)))
    if fights:
        d.contested = True
        d.notice(
            EventReason.HOLD_CONTESTED,
            f"{manager} resets the hold of LeaderWorkerSet {lws.metadata.name} again and again: it is left as it is;"
            " remove rollingUpdateConfiguration.partition from the manifest",
            warning=True,
        )
        return
    d.hold_put_back = True
    write_hold(d, f"{manager} had reset the hold", _surge(d))
    d.notice(
        EventReason.HOLD_RESET,
        f"{manager} reset the hold of LeaderWorkerSet {lws.metadata.name}; it was put back: remove"
        " rollingUpdateConfiguration.partition from the manifest",
        warning=True,
    )


def _was_released(d: Draft) -> bool:
    """Whether the hold is away because the annotation asked for it until now: then nobody has reset it."""
    return any(each.type == ConditionType.HELD and each.reason == Reason.HOLD_RELEASED for each in d.status.conditions)


def _recent(d: Draft) -> tuple[HoldFight, ...]:
    fights = tuple(d.status.hold_fights or ())
    if len(fights) >= 2:
        # A contest lasts for as long as the hold is not back.
        return () if is_held(d.stable.lws, _surge(d)) else fights
    since = d.now - timedelta(seconds=CONTEST_SECONDS)
    return tuple(fight for fight in fights if fight.at is not None and fight.at > since)


def _truce(d: Draft, fights: tuple[HoldFight, ...]) -> bool:
    """Whether a contest is old enough for another try: a hold that is given up for good would be a silent danger."""
    stable, last = d.status.stable, fights[-1].at
    if stable is None or d.status.phase == Phase.PROGRESSING or d.version.template_hash != stable.template_hash:
        return False
    return last is None or d.wake_in(last, TRUCE_SECONDS)


def has_windows(d: Draft) -> bool:
    """Whether somebody opens windows and closes them: a promotion and its way back, or, with one LWS, a step."""
    ending = d.status.finalising
    if ending is not None:
        return ending.task != Task.CLEAN_UP
    return d.status.phase == Phase.PROGRESSING and d.one_workload


def _surge(d: Draft) -> int:
    """Surge groups that belong to the release, so that a hold that is put back keeps them."""
    ending = d.status.finalising
    releasing = d.status.phase == Phase.PROGRESSING and (ending is None or ending.task != Task.CLEAN_UP)
    return standing_surge(d.stable.lws, d.keys) if releasing and d.capacity is Capacity.SURGE else 0


def contested(d: Draft) -> bool:
    """The last word where the hold is given up and the LWS rolls by itself."""
    if released_by_hand(d):
        return d.reconciling(
            Reason.HOLD_RELEASED,
            SummaryState.HOLD_RELEASED,
            f"the hold of LeaderWorkerSet {d.stable.lws.metadata.name} was released by its annotation"
            f" {d.keys.release_hold}: remove the annotation to have releases in steps again",
        )
    last = d.status.hold_fights[-1] if d.status.hold_fights else HoldFight(manager="somebody")
    stable, name = d.status.stable, d.stable.lws.metadata.name
    if stable is not None and d.version.template_hash != stable.template_hash:
        effect, outlook = "so the new version rolls by itself now", ""
    else:
        effect, outlook = (
            "so a new version would roll by itself",
            "; the hold is tried again after ten minutes of peace",
        )
    return d.stalled(
        Reason.HOLD_CONTESTED,
        f"{last.manager} keeps resetting the partition of LeaderWorkerSet {name}, {effect}: remove"
        f" rollingUpdateConfiguration.partition from its manifest{outlook}",
    )
