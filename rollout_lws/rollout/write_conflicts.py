"""Somebody writes over what a release has written in an object of theirs: put back once, then told with a name.

A GitOps tool that knows nothing of the release reverts it again and again; answering each time at once would be a race
that nobody wins and every router pays for. So each further answer waits longer, and nothing goes forward meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from rollout_lws.api import WriteConflict
from rollout_lws.objects.owners import OURS
from rollout_lws.objects.resources import ObjectRef
from rollout_lws.rollout.backoff import doubled
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import EventReason
from rollout_lws.rollout.wait import Wait
from rollout_lws.traffic.split import Object

#: After so many seconds without a foreign write the next one is the first again.
PEACE_SECONDS = 600
#: The second answer waits this many seconds, each further one twice as long, at most PEACE_SECONDS.
FIRST_WAIT_SECONDS = 60
#: Foreign writes on file at most, of all objects together.
MOST_CONFLICTS = 20


@dataclass(frozen=True, slots=True)
class Managed:
    """What a release writes of an object: members of its spec, and annotations that begin so."""

    members: tuple[str, ...]
    annotations: tuple[str, ...] = ()

    def owned(self, fields: Mapping[str, Any]) -> bool:
        """Whether an entry of managedFields has a part of it."""
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
    """With ``known`` conflicts on file and an object that was written over, or deleted (``live`` is None then): those
    to keep on file, and what putting it back waits for, None when it is to be put back now. The first one is an event.
    """
    since = d.now - timedelta(seconds=PEACE_SECONDS)
    conflicts = tuple(each for each in known if each.at is not None and each.at > since)
    # A tool that reverts all it knows of at once has reverted each once.
    recent = tuple(each for each in conflicts if (each.kind, each.name) == (ref.kind, ref.name))
    manager = _writer(live, managed) if live is not None else "somebody"
    if recent:
        last = max(each.at for each in recent if each.at is not None)
        until = d.yet_to_come(last, doubled(FIRST_WAIT_SECONDS, len(recent) - 1, PEACE_SECONDS))
        if until is not None:
            told = f"{manager} keeps writing over {ref}: {advice}; it is put back at {until:%H:%M:%S} UTC"
            return d.wake(until), known, Wait(told, until)
    else:
        d = d.notice(told_as, f"{manager} wrote over {ref}; it was put back: {advice}", warning=True)
    conflict = WriteConflict(at=d.now, manager=manager, kind=ref.kind, name=ref.name)
    return d, (*conflicts, conflict)[-MOST_CONFLICTS:], None


def _writer(live: Object, managed: Managed) -> str:
    """The manager that wrote it last besides us, as metadata.managedFields tells, best one that owns a part of what we
    write; "somebody" when it does not tell, as after a write that has only removed something.
    """
    entries = [
        each
        for each in live["metadata"].get("managedFields") or ()
        if not (str(each.get("manager", "")).startswith(OURS) or each.get("subresource"))
    ]
    near = [each for each in entries if managed.owned(each.get("fieldsV1") or {})]
    latest = max(near or entries, key=lambda each: str(each.get("time", "")), default=None)
    return str(latest["manager"]) if latest and latest.get("manager") else "somebody"
