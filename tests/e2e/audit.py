"""What somebody asked of the API server, by the server's own account: its audit log as typed entries.

A client that counts its own requests proves nothing; the log of the server does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from rollout_lws.objects.resources import LEADER_WORKER_SETS, Resource
from tests.json_patch import as_merge

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


class Unaudited(Exception):
    """An audit log that is not one; the text says which line."""


class Entry(msgspec.Struct, frozen=True):
    """One request, as it was answered (a watch: as it was begun, until it ends).

    ``resource`` is ``plural.group`` as ``str(Resource)`` gives it, and empty for paths that are no object's, such as
    ``/readyz``; ``subresource``, ``namespace`` and ``name`` are empty where the URL has none (a create names nothing
    there); ``code`` is the HTTP status, and ``said`` the message of one that is no success. ``body`` and ``answer`` are
    the request's and the response's, where the policy has them written down. ``is_open`` for a watch that has not
    ended.
    """

    at: datetime
    user: str
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    said: str = ""
    body: Mapping[str, Any] = {}
    answer: Mapping[str, Any] = {}
    is_open: bool = False

    @property
    def is_write(self) -> bool:
        return self.verb in WRITES

    @property
    def was_refused(self) -> bool:
        return self.code >= 400


class _User(msgspec.Struct, frozen=True):
    username: str = ""


class _Reference(msgspec.Struct, frozen=True, rename="camel"):
    resource: str = ""
    api_group: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class _Answer(msgspec.Struct, frozen=True):
    code: int = 0
    message: str = ""


class _Event(msgspec.Struct, frozen=True, rename="camel"):
    audit_id: str = msgspec.field(name="auditID")
    stage: str
    verb: str
    user: _User
    request_received_timestamp: datetime
    object_ref: _Reference = _Reference()
    response_status: _Answer = _Answer()
    request_object: dict[str, Any] | list[Any] | None = None
    response_object: dict[str, Any] | None = None


_decoder = msgspec.json.Decoder(_Event)


def policy(users: Iterable[str], in_full: Iterable[Resource] = ()) -> dict[str, object]:
    """An audit policy: each request of ``users`` with its metadata, what they want of LeaderWorkerSets with its body,
    and everybody's writes of objects ``in_full`` with body and answer. Nothing of anybody else's.
    """
    named = sorted(users)
    # Nothing but its body tells a write that opens a window from one that does something else.
    bodies = {"level": "Request", "users": named, "verbs": sorted(WRITES), "resources": _reached([LEADER_WORKER_SETS])}
    # A rule without users, or without resources, would be a rule for all of them.
    theirs = [bodies, {"level": "Metadata", "users": named}] if named else []
    wanted = _reached(in_full)
    everybodys = [{"level": "RequestResponse", "verbs": sorted(WRITES), "resources": wanted}] if wanted else []
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [*everybodys, *theirs, {"level": "None"}],
    }


def _reached(resources: Iterable[Resource]) -> list[dict[str, object]]:
    return [{"group": each.group, "resources": [each.plural, f"{each.plural}/status"]} for each in resources]


def read(log: Path) -> list[Entry]:
    """The requests in the order in which they came in. Unaudited for a line that is no event.

    A line that the server is still writing is not there yet.
    """
    # A watch is told of when it begins and when it ends.
    events = {event.audit_id: event for _, event in _events(log)}
    return sorted(map(_entry, events.values()), key=lambda entry: entry.at)


def lines(log: Path, namespace: str) -> list[bytes]:
    """What the log says of requests in ``namespace``, word for word. Unaudited for a line that is no event."""
    return [line + b"\n" for line, event in _events(log) if event.object_ref.namespace == namespace]


def _events(log: Path) -> Iterator[tuple[bytes, _Event]]:
    *lines, _unfinished = log.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        try:
            yield line, _decoder.decode(line)
        except msgspec.DecodeError as error:
            raise Unaudited(f"{log}:{number} is no audit event ({error})") from error


def _entry(event: _Event) -> Entry:
    of = event.object_ref
    return Entry(
        at=event.request_received_timestamp,
        user=event.user.username,
        verb=event.verb,
        resource=f"{of.resource}.{of.api_group}" if of.api_group else of.resource,
        subresource=of.subresource,
        namespace=of.namespace,
        name=of.name,
        code=event.response_status.code,
        said=event.response_status.message,
        body=as_merge(event.request_object),
        answer=event.response_object or {},
        is_open=event.stage == "ResponseStarted",
    )
