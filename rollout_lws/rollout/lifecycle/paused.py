"""The verdict of a paused release."""

from __future__ import annotations

from rollout_lws.api import ActionType, SummaryState
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import Reason


def stays_paused(d: Draft, meanwhile: str = "") -> Draft:
    """Gives the verdict until the user ends the pause; ``meanwhile`` is the progress so far."""
    by_spec, last = bool(d.o.rollout.spec.strategy.paused), d.status.last_action
    if by_spec:
        told = "paused: nothing goes forward until spec.strategy.paused is removed or set to false"
    else:
        by = f" by {last.by}" if last is not None and last.type is ActionType.PAUSE and last.by else ""
        told = f"paused on request{by}: nothing goes forward until it is resumed: {d.command('resume')}"
    message = f"{meanwhile}; {told}" if meanwhile else told
    return d.conclude("Reconciling", Reason.PAUSED, SummaryState.PAUSED, message, by_spec=by_spec)
