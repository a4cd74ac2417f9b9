"""Write conflicts: restores fields that another manager overwrote in the user's object, then backs off and names it.

A GitOps tool that does not know the release reverts it again and again; restoring at once each time would only load the
routers. So each further restore waits longer, and the release does not advance meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from rollout_lws.api import WriteConflict
from rollout_lws.objects.owners import OURS
from rollout_lws.objects.resources import ObjectRef
from rollout_lws.rollout.backoff import Wait, doubled
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import EventReason
from rollout_lws.traffic.split import Object

#: After so many seconds without a conflict the next one counts as the first again.
COOL_DOWN_SECONDS = 600
#: Backoff before the second restore; it doubles each time, up to COOL_DOWN_SECONDS.
FIRST_WAIT_SECONDS = 60
#: Limit of recorded conflicts, over all objects.
MOST_CONFLICTS = 20


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
    manager = _writer(live, managed) if live is not None else "another client"
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
    """The other field manager that wrote last, preferably one that owns a managed field; "another client" if
    managedFields names none, as after a write that only removed fields.
    """
    entries = [
        each
        for each in live["metadata"].get("managedFields") or ()
        if not (str(each.get("manager", "")).startswith(OURS) or each.get("subresource"))
    ]
    near = [each for each in entries if managed.owned(each.get("fieldsV1") or {})]
    latest = max(near or entries, key=lambda each: str(each.get("time", "")), default=None)
    return str(latest["manager"]) if latest and latest.get("manager") else "another client"
