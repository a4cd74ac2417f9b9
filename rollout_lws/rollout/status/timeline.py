"""The timeline of a release: what it did since when, for a page that is opened long after its begin.

A status that is written anyway gets an entry if its step, its state or its weights are others than those of the last
entry. When the timeline is full, entries are merged into the one before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from rollout_lws.api import RolloutStatus, StepState, TimelineEntry, TrafficWeight
from rollout_lws.api.structural import ITEMS_LIMIT
from rollout_lws.rollout.reasons import Task
from rollout_lws.rollout.state import CleaningUp, Detaching, Idle, InSteps, Promoting, ReleaseState, state_of

_STEP_STATES, _TASKS = frozenset(StepState), frozenset(Task)


def continued(before: RolloutStatus, after: RolloutStatus, now: datetime) -> tuple[TimelineEntry, ...]:
    """The timeline of ``after``, which is written ``now``, from that of ``before``, into which anyone may have written
    anything.
    """
    moment = now.replace(microsecond=0)
    known = _in_order(before.timeline, moment)
    if _begins(before, after, known):
        known = ()
    entry = _entry(after, moment, ended=bool(known))
    if entry is None or (known and _told(known[-1]) == _told(entry)):
        return merged(known)
    return merged((*known, entry))


def merged(entries: Sequence[TimelineEntry], most: int = ITEMS_LIMIT) -> tuple[TimelineEntry, ...]:
    """At most so many of these entries, with the first and the last: those that go are the oldest that neither begin a
    step nor change a weight, then the oldest that change weights only, then the begins of steps.
    """
    kept = list(entries)
    while len(kept) > most:
        goes = min(range(1, len(kept) - 1), key=lambda place: (_worth(kept[place - 1], kept[place]), place))
        del kept[goes]
        if _told(kept[goes - 1]) == _told(kept[goes]):
            del kept[goes]
    return tuple(kept)


def _worth(former: TimelineEntry, entry: TimelineEntry) -> int:
    """How much is lost with an entry that follows on ``former``."""
    if former.step != entry.step:
        return 2
    return 1 if (former.desired, former.applied) != (entry.desired, entry.applied) else 0


def _told(entry: TimelineEntry) -> tuple[int | None, str, int | None, int | None]:
    """What has to differ between two entries in a row; counts of groups change far more often."""
    return entry.step, entry.state, entry.desired, entry.applied


def _begins(before: RolloutStatus, after: RolloutStatus, known: Sequence[TimelineEntry]) -> bool:
    """True if ``after`` is of another release than the timeline."""
    was, now = state_of(before), state_of(after)
    match now:
        case InSteps():
            same = isinstance(was, InSteps) and before.observed_template_hash == after.observed_template_hash
            return not same or bool(known and known[-1].step is None)
        case Promoting():
            # Groups that were kept get the requests back without steps.
            return _is_over(was)
        case _:
            return False


def _is_over(state: ReleaseState) -> bool:
    return isinstance(state, Idle | Detaching) or (isinstance(state, CleaningUp) and state.keeps)


def _entry(status: RolloutStatus, moment: datetime, *, ended: bool) -> TimelineEntry | None:
    """What a status tells; None if it tells of no release, or in words that are not the controller's. ``ended``: there
    was a release, which is over if none is on.
    """
    state, record, sub = state_of(status), status.finalising, status.sub
    step = sub.current_step_index if isinstance(state, InSteps) and sub is not None else None
    desired, applied = (status.traffic.desired, status.traffic.applied) if status.traffic is not None else (None, None)
    if _is_over(state):
        word = StepState.COMPLETED.value if ended else ""
        desired = applied = None
    else:
        word = record.task if record is not None else sub.current_step_state if sub is not None else ""
    counts = status.groups
    entry = TimelineEntry(
        at=moment,
        step=step,
        state=word,
        desired=_percent(desired),
        applied=_percent(applied),
        new=counts.new.ready if counts is not None and counts.new is not None else None,
        stable=counts.stable.ready if counts is not None and counts.stable is not None else None,
    )
    return entry if _is_sound(entry) else None


def _percent(weight: TrafficWeight | None) -> int | None:
    return weight.weight if weight is not None else None


def _is_sound(entry: TimelineEntry) -> bool:
    """True if a controller could have written the entry."""
    if entry.step is None:
        return entry.state in _TASKS or entry.state == StepState.COMPLETED
    return entry.step > 0 and entry.state in _STEP_STATES


def _in_order(entries: Iterable[TimelineEntry], moment: datetime) -> tuple[TimelineEntry, ...]:
    """The entries that a controller could have written. Those of a clock that was ahead are of this moment."""
    kept: list[TimelineEntry] = []
    for each in entries:
        entry = each if each.at <= moment else each.model_copy(update={"at": moment})
        follows = not kept or (kept[-1].at <= entry.at and _told(kept[-1]) != _told(entry))
        if follows and _is_sound(entry):
            kept.append(entry)
    return tuple(kept)
