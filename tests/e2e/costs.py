"""What a release asks of the API server, by its audit log, in the words in which `make bench` counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rollout_lws.objects.resources import HTTP_ROUTES, LEADER_WORKER_SETS, PODS, STATEFUL_SETS
from tests.bench.journal import RELEASE, Moments, Write, pods_wanted
from tests.bench.journal import Entry as Moment
from tests.e2e.audit import Entry

#: What the moments of a journal are read from.
FOLLOWED = (LEADER_WORKER_SETS, PODS, STATEFUL_SETS, HTTP_ROUTES)


def written(entry: Entry) -> Write:
    """A write of the audit log as the benchmark knows it, as of its arrival."""
    return Write(
        entry.at.timestamp(),
        entry.verb,
        entry.resource.partition(".")[0],
        entry.namespace,
        entry.name,
        entry.subresource,
        entry.code,
        entry.body,
    )


def steering(entries: Iterable[Entry]) -> list[Entry]:
    """Writes that were accepted, without Events, leaders' labels and what opens and closes windows."""
    return [each for each in entries if each.is_write and not each.was_refused and written(each).purpose == RELEASE]


def journal(entries: Iterable[Entry], user: str) -> dict[str, list[Moment]]:
    """By namespace, the writes of ``user`` and the moments at which others had done what a release waits for.

    The audit log must have FOLLOWED in full. A moment is that of the arrival of the write
    that brought it about, so a wait includes the server's own handling of that.
    """
    found: dict[str, list[Moment]] = {}
    wanted: dict[tuple[str, str], int] = {}

    def add(moment: Moment) -> None:
        found.setdefault(moment.namespace, []).append(moment)

    moments = Moments(add, lambda namespace, lws: wanted.get((namespace, lws), -1))
    for each in entries:
        if not each.is_write:
            continue
        if each.user == user:
            add(written(each))
        if not each.was_refused:
            _stored(each, moments, wanted)
    return found


def _stored(entry: Entry, moments: Moments, wanted: dict[tuple[str, str], int]) -> None:
    """Tell ``moments`` of the object that a write has left behind."""
    obj, at = entry.answer, entry.at.timestamp()
    if "spec" not in obj:
        return
    meta: dict[str, Any] = obj["metadata"]
    if entry.resource == str(STATEFUL_SETS):
        moments.set_stored(at, obj, gone=entry.verb == "delete")
    if entry.resource == str(LEADER_WORKER_SETS):
        wanted[meta["namespace"], meta["name"]] = pods_wanted(obj)
    if entry.resource == str(PODS):
        moments.pod_stored(at, obj, gone=entry.verb == "delete")
    if entry.resource == str(HTTP_ROUTES):
        moments.route_stored(at, obj)
