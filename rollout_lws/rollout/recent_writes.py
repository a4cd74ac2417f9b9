"""Writes of the last moments, from metadata.managedFields: their effect may not have arrived yet."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from rollout_lws.objects.owners import OURS
from rollout_lws.rollout.draft import Draft
from rollout_lws.targets.target import Target
from rollout_lws.traffic.split import Object

#: Seconds for which a write counts as recent; managedFields has whole seconds.
LATELY_SECONDS = 2


def written_lately(d: Draft, live: Object | None) -> datetime | None:
    """Until when our own last write to the object counts as recent, by the API server's clock; None if it does not."""
    entries = live["metadata"].get("managedFields") or () if live is not None else ()
    ours = (str(each.get("time", "")) for each in entries if str(each.get("manager", "")).startswith(OURS))
    try:
        return _lately(d, [datetime.fromisoformat(each) for each in ours])
    except ValueError:
        return None


def scaled_lately(d: Draft, lws: Target) -> datetime | None:
    """The same for a LeaderWorkerSet of ours."""
    entries = lws.metadata.managed_fields
    return _lately(d, [each.time for each in entries if each.time and each.manager.startswith(OURS)])


def applied_lately(d: Draft) -> datetime | None:
    """The same for any manager's last write to the template that asks for a version."""
    workload = d.edited.workload
    template, entries = f"f:{workload.template}".encode(), workload.metadata.managed_fields
    return _lately(d, [each.time for each in entries if each.time and template in bytes(each.fields)])


def _lately(d: Draft, times: Iterable[datetime]) -> datetime | None:
    written = max(times, default=None)
    return d.yet_to_come(written, LATELY_SECONDS) if written is not None and written <= d.now else None
