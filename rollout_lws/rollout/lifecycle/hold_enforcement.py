"""Enforces the hold: restores it when another manager resets it, backs off from a tool that insists, and releases it
for as long as the break-glass annotation asks for it.

A manifest that states a partition rolls with the write that applies it. So the hold is restored at once, and the
manifest's values become the user's new originals. If the hold was released, the LWS first finishes the roll that has
begun: a hold in the middle would keep two versions that no user asked for.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from rollout_lws.api import HoldConflict, Phase, SummaryState
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout import write_conflicts
from rollout_lws.rollout.draft import Draft, HoldState
from rollout_lws.rollout.lifecycle.adoption import wanted_hold, write_hold
from rollout_lws.rollout.lifecycle.native_rollout import is_rolling, past_stable, rolling_words
from rollout_lws.rollout.preflight import unsafe_pending
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.rollout.state import CleaningUp, Detaching, Idle, InSteps, Promoting, RollingBack
from rollout_lws.workload.hold import (
    HOLD,
    advice,
    foreign_members,
    give_back,
    hold_record,
    is_held,
    standing_surge,
    writer_of_strategy,
)


def released_by_hand(d: Draft) -> bool:
    """True with the break-glass annotation: the user's strategy is restored and stays until the annotation goes."""
    return d.stable.workload.metadata.annotations.get(d.keys.release_hold) == "true"


def keep_hold(d: Draft) -> Draft:
    """Restores the hold if it was reset. Partition windows of a release are left to the release."""
    if not d.stable.workload.can_be_held:
        return d
    if released_by_hand(d):
        return _release(d)
    lws = d.stable.workload
    foreign = "partition" in foreign_members(lws, d.keys) or (
        hold_record(lws, d.keys) is None and lws.strategy.partition < HOLD
    )
    if foreign and d.status.hold_released_at is not None and is_rolling(d):
        return d.but(hold=HoldState.RELEASED)
    if not foreign or d.status.hold_released_at is not None:
        return _follow(d)
    conflicts = write_conflicts.on_file(d.status.hold_conflicts, d.now)
    if write_conflicts.is_left(conflicts):
        d = _left(d, conflicts)
    elif write_conflicts.answers(conflicts, d.now, d.own_version.template_hash) >= write_conflicts.MOST_ANSWERS:
        d = _leave(d, conflicts)
    else:
        manager = writer_of_strategy(lws)
        conflict = HoldConflict(at=d.now, manager=manager, put_back_at=d.now, template_hash=d.own_version.template_hash)
        d = _file(d, (*conflicts, conflict))
        d = _put_back(d, f"{manager} had reset the hold")
        d = d.event(
            EventReason.HOLD_RESET,
            f"{manager} reset the hold of {d.called}; it was put back: {advice(lws, d.keys)}",
            warning=True,
        )
    return d


def _release(d: Draft) -> Draft:
    """Restores the user's own strategy. The status records the annotation first: if a restarted controller found the
    hold missing, it would restore it as if another manager had reset it.
    """
    d = d.but(hold=HoldState.RELEASED)
    if d.status.hold_released_at is None:
        d = d.persist_first()
        d = d.set(hold_released_at=d.now)
    body = give_back(d.stable.workload, d.keys)
    if body is not None:
        meta = d.stable.workload.metadata
        patch = Patch(d.resource, meta.namespace, meta.name, body, "hold released", meta.resource_version)
        d = d.write((patch,))
        d = d.event(EventReason.HOLD_RELEASED, f"{d.called} has its own strategy back", about=d.kind)
    if d.status.hold_conflicts:
        # A deliberate release is no conflict, nor is restoring the hold once the annotation is gone.
        d = d.set(hold_conflicts=())
    return d


def _follow(d: Draft) -> Draft:
    """The hold is in place, or returns after a release: follows the other fields of the strategy."""
    lws = d.stable.workload
    closed = lws.strategy.partition >= HOLD
    returns = d.status.hold_released_at is not None and not closed
    if returns:
        d = d.confirm_leader_set(f"no roll of the {d.kind}'s own has begun")
    d = d.set(hold_released_at=None)
    # The surge of a strategy edited during a release would add groups of the old version, or remove serving ones.
    if (closed or returns or not has_windows(d)) and wanted_hold(d, _surge(d)) is not None:
        d = _put_back(d, "put the hold back")
    conflicts = d.status.hold_conflicts
    if (
        conflicts
        and is_held(lws, _surge(d))
        and (write_conflicts.is_left(conflicts) or not write_conflicts.on_file(conflicts, d.now))
    ):
        # Another manager has restored the hold, or there was no reset for long.
        d = d.set(hold_conflicts=())
    return d


def _leave(d: Draft, conflicts: tuple[HoldConflict, ...]) -> Draft:
    """Backs off: a tool answers each restore with a reset, so its reset stays."""
    manager = writer_of_strategy(d.stable.workload)
    d = _file(d, (*conflicts, HoldConflict(at=d.now, manager=manager, template_hash=d.own_version.template_hash)))
    d = d.but(hold=HoldState.RELEASED).event(
        EventReason.HOLD_CONFLICT,
        f"{manager} resets the hold of {d.called} within seconds each time that it is put back: it is left"
        f" as it is for now; {advice(d.stable.workload, d.keys)}, or have {manager} leave the partition alone",
        warning=True,
    )
    return d.wake(_tried_again_at(d))


def _left(d: Draft, conflicts: tuple[HoldConflict, ...]) -> Draft:
    """Retries a hold that was left reset: at once for another version, for the same one after the backoff, and never in
    the middle of a roll.
    """
    last = conflicts[-1]
    if d.status.stable is None or last.at is None:
        return d.but(hold=HoldState.RELEASED)
    if d.own_pending and d.own_version.template_hash != last.template_hash and not _would_split(d):
        found = {"put_back_at": d.now, "template_hash": d.own_version.template_hash}
        d = _file(d, (last.model_copy(update=found),))
        d = _put_back(d, "another version was applied")
    elif is_rolling(d):
        d = d.but(hold=HoldState.RELEASED)
    elif (until := d.yet_to_come(last.at, write_conflicts.wait_seconds(conflicts))) is not None:
        d = d.but(hold=HoldState.RELEASED).wake(until)
    else:
        d = _file(d, (*conflicts[:-1], last.model_copy(update={"put_back_at": d.now})))
        d = _put_back(d, "the hold is tried again")
    return d


def _would_split(d: Draft) -> bool:
    """True if a hold now would keep groups at a version that nothing rolls back; a release does that when it ends. A
    group that is restarting comes back at stable's version, unless the pending version would damage it.
    """
    if unsafe_pending(d) is not None:
        return is_rolling(d)
    return d.status.phase != Phase.PROGRESSING and past_stable(d)


def _put_back(d: Draft, reason: str) -> Draft:
    return write_hold(d.but(hold=HoldState.RESTORED), reason, _surge(d))


def _file(d: Draft, conflicts: tuple[HoldConflict, ...]) -> Draft:
    return d.set(hold_conflicts=conflicts[-write_conflicts.MOST_CONFLICTS :])


def _tried_again_at(d: Draft) -> datetime | None:
    conflicts = d.status.hold_conflicts
    last = conflicts[-1].at if conflicts else None
    return last + timedelta(seconds=write_conflicts.wait_seconds(conflicts)) if last is not None else None


def has_windows(d: Draft) -> bool:
    """True if a promotion, its rollback or (with one LWS) a step opens and closes partition windows."""
    match d.state:
        case Promoting() | RollingBack():
            return not d.capacity.swaps
        case InSteps():
            return d.capacity.steps_open_windows
        case Idle() | CleaningUp() | Detaching():
            return False


def _surge(d: Draft) -> int:
    """The release's surge groups, which a restored hold keeps."""
    releasing = isinstance(d.state, InSteps | Promoting | RollingBack)
    return standing_surge(d.stable.workload, d.keys) if releasing and d.capacity.surges else 0


def contested(d: Draft) -> Draft:
    """Gives the verdict while the LWS is not held and rolls natively."""
    if released_by_hand(d):
        return d.reconciling(
            Reason.HOLD_RELEASED,
            SummaryState.HOLD_RELEASED,
            f"the hold of {d.called} was released by its annotation"
            f" {d.keys.release_hold}: remove the annotation to have releases in steps again",
        )
    if d.status.hold_released_at is not None:
        return _finishes_its_roll(d)
    last = d.status.hold_conflicts[-1]
    outlook, until = "a new version would roll by itself", _tried_again_at(d)
    when = f"it is put back at {until:%H:%M:%S} UTC, at once when another version is applied" if until else ""
    if d.own_pending:
        outlook = "the new version rolls by itself now"
        when = f"it is put back once that roll is over ({rolling_words(d)})" if is_rolling(d) else when
    return d.stalled(
        Reason.HOLD_CONFLICT,
        f"{last.manager} resets the partition of {d.called} within seconds each time that the hold is put"
        f" back, so {outlook}: {advice(d.stable.workload, d.keys)}, or have {last.manager} leave it alone; {when}",
    )


def _finishes_its_roll(d: Draft) -> Draft:
    """Gives the verdict between the removal of the annotation and the end of the roll that it let begin."""
    lws = d.stable.workload
    partition = lws.strategy.partition
    if 0 < partition < lws.replicas:
        return d.stalled(
            Reason.PARTITION_IN_USE,
            f"{d.called} is rolling by itself, and its partition {partition} ends that before all groups"
            " have one version: set it to 0, or restore the template of the version before; then it is held again",
        )
    return d.reconciling(
        Reason.NATIVE_ROLLOUT,
        SummaryState.HOLD_RELEASED,
        f"{d.called} is held again as soon as the roll is over that its annotation has let begin:"
        f" {rolling_words(d)}. To go back, restore the template of the version before",
    )


def report_resets(d: Draft) -> Draft:
    """Adds repeated resets of the hold to the verdict, for as long as they are recorded: each may restart a group."""
    conflicts = write_conflicts.on_file(d.status.hold_conflicts, d.now)
    if d.verdict is None or d.hold is HoldState.RELEASED or len(conflicts) < write_conflicts.REPEATED:
        return d
    last = conflicts[-1]
    until = d.yet_to_come(last.put_back_at, write_conflicts.COOL_DOWN_SECONDS) if last.put_back_at is not None else None
    if until is None:
        return d
    message = (
        f"{last.manager} resets the hold of {d.stable.called} again and again, and each time"
        f" a group may restart: {advice(d.stable.workload, d.keys)}"
    )
    return d.wake(until).adding(message)
