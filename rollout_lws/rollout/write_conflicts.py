"""Write conflicts: restores fields that another manager overwrote in the user's object, then backs off and names it.

A GitOps tool that does not know the release reverts it again and again; restoring at once each time would only load the
routers. So each further restore waits longer, and the release does not advance meanwhile.

The hold has a rule of its own. Users, pipelines and jobs may apply a manifest with a partition as often as they like:
the controller restores the hold at once each time. Only a tool that watches the object resets it within seconds of our
write, again and again; each round may restart a group, and it would never end. The controller backs off from such a
tool, each time for longer.

A write that the API server refuses is not a conflict: ``controller.apply`` stops there and retries with a new decision,
and ``status.report`` makes the Rollout Stalled with the server's message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rollout_lws.api import HoldConflict, WriteConflict
from rollout_lws.objects.owners import OURS
from rollout_lws.objects.resources import ObjectRef
from rollout_lws.rollout.backoff import Wait, doubled
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import EventReason
from rollout_lws.traffic.split import Object

#: After so many seconds without a conflict the next one counts as the first again.
COOL_DOWN_SECONDS = 600
#: Backoff before the second restore, and before a hold that was left reset is retried; it doubles each time, up to
#: COOL_DOWN_SECONDS.
FIRST_WAIT_SECONDS = 60
#: Limit of recorded conflicts, over all objects; and of recorded resets of the hold.
MOST_CONFLICTS = 20
#: Of each companion, of which there are up to four.
MOST_OF_ONE = 16
#: A reset of the hold within so many seconds after our restore may be a tool's answer to it.
ANSWER_SECONDS = 10
#: So many answers in a row come from a tool.
MOST_ANSWERS = 5
#: Who wrote, where managedFields do not say.
UNKNOWN_WRITER = "another client"
#: From so many recorded resets on, the verdict reports them.
REPEATED = 3


@dataclass(frozen=True, slots=True)
class Managed:
    """The fields that a release manages in an object: members of its spec, and annotations with these prefixes."""

    members: tuple[str, ...]
    annotations: tuple[str, ...] = ()

    def owned(self, fields: Mapping[str, Any]) -> bool:
        """True if a managedFields entry owns one of them."""
        spec, annotations = fields.get("f:spec", {}), fields.get("f:metadata", {}).get("f:annotations", {})
        return any(f"f:{each}" in spec for each in self.members) or any(
            each.startswith(f"f:{prefix}") for each in annotations for prefix in self.annotations
        )


def judged(
    d: Draft,
    known: tuple[WriteConflict, ...],
    live: Object | None,
    ref: ObjectRef,
    managed: Managed,
    advice: str,
    told_as: EventReason,
) -> tuple[Draft, tuple[WriteConflict, ...], Wait | None]:
    """Records a conflict on an object that another manager overwrote or deleted (``live`` is None then). Returns the
    conflicts to keep, and what the restore waits for: None to restore now. The first conflict is reported as an Event.
    """
    since = d.now - timedelta(seconds=COOL_DOWN_SECONDS)
    conflicts = tuple(each for each in known if each.at is not None and each.at > since)
    # A tool that reverts several objects at once has reverted each one once.
    recent = tuple(each for each in conflicts if (each.kind, each.name) == (ref.kind, ref.name))
    manager = _writer(live, managed) if live is not None else UNKNOWN_WRITER
    if recent:
        last = max(each.at for each in recent if each.at is not None)
        until = d.yet_to_come(last, doubled(FIRST_WAIT_SECONDS, len(recent) - 1, COOL_DOWN_SECONDS))
        if until is not None:
            message = f"{manager} keeps writing over {ref}: {advice}; it is put back at {until:%H:%M:%S} UTC"
            return d.wake(until), known, Wait(message, until)
    else:
        d = d.event(told_as, f"{manager} wrote over {ref}; it was put back: {advice}", warning=True)
    conflict = WriteConflict(at=d.now, manager=manager, kind=ref.kind, name=ref.name)
    return d, (*conflicts, conflict)[-MOST_CONFLICTS:], None


def _writer(live: Object, managed: Managed) -> str:
    """The other field manager that wrote last, preferably one that owns a managed field; UNKNOWN_WRITER if
    managedFields names none, as after a write that only removed fields.
    """
    entries = [
        each
        for each in live["metadata"].get("managedFields") or ()
        if not (str(each.get("manager", "")).startswith(OURS) or each.get("subresource"))
    ]
    near = [each for each in entries if managed.owned(each.get("fieldsV1") or {})]
    latest = max(near or entries, key=lambda each: str(each.get("time", "")), default=None)
    return str(latest["manager"]) if latest and latest.get("manager") else UNKNOWN_WRITER


# The hold


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
