"""Records Events (events.k8s.io/v1) best-effort: queued, counted into series, rate-limited, dropped when too many.

Recording an Event never waits, never fails, and never blocks a release.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kube.client import Client
from rollout_lws.kube.store import Metadata
from rollout_lws.objects.resources import EVENTS, Resource
from rollout_lws.objects.writes import Create, Patch

log = logging.getLogger(__name__)

#: The same note on the same object within this time is counted, not repeated.
_SERIES = timedelta(minutes=10)
_QUEUE = 1000
_REMEMBERED = 4096
#: An object may cause this many new Events immediately, then one more every so many seconds.
_BURST, _REFILL_SECONDS = 25.0, 12.0
#: Limits of events.k8s.io: bytes of a note, characters of a reason; and of an object's name before our suffix.
_NOTE, _REASON, _NAME = 1024, 128, 230
#: How long shutdown waits for unsent Events.
_FAREWELL_SECONDS = 1.0


@dataclass(slots=True)
class _Series:
    name: str
    namespace: str
    count: int
    last: datetime


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled: datetime


class EventRecorder:
    """``controller`` is the reporting controller's name, ``instance`` this process; ``now`` gives aware datetimes."""

    def __init__(self, client: Client, controller: str, instance: str, now: Callable[[], datetime]) -> None:
        self.dropped = 0
        self._client = client
        self._controller = controller
        self._instance = instance
        self._now = now
        self._queue: deque[Create | Patch] = deque()
        self._series: OrderedDict[tuple[str, ...], _Series] = OrderedDict()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._sender: asyncio.Task[None] | None = None
        self._silent: set[int] = set()
        self._number = 0

    def record(
        self, resource: Resource, about: Metadata, *, type: str, reason: str, note: str, action: str = ""
    ) -> bool:
        """Queue an Event of ``type`` Normal or Warning about the object with this metadata; returns immediately.

        True if it is news: neither the same again, which is counted, nor more than an object may cause. What is news
        may be dropped all the same, where the API server takes no Events.
        """
        now = self._now()
        key = (about.uid, type, reason, note)
        series = self._series.get(key)
        if series is not None and now - series.last < _SERIES:
            series.count += 1
            series.last = now
            # The next one's count includes one that may not be sent now.
            if self._allowed(about.uid, now):
                self._enqueue(_counted(series))
            return False
        news = self._allowed(about.uid, now)
        if not news or len(self._queue) >= _QUEUE:
            self.dropped += 1
            return news
        create = self._event(resource, about, type, reason[:_REASON], _cut(note, _NOTE), action or reason, now)
        self._series[key] = _Series(create.name, create.namespace, 1, now)
        self._series.move_to_end(key)
        while len(self._series) > _REMEMBERED:
            self._series.popitem(last=False)
        self._enqueue(create)
        return True

    async def close(self) -> None:
        """Send queued Events, for a moment at most, and end."""
        sender, self._sender = self._sender, None
        try:
            if sender is not None:
                await asyncio.wait({sender}, timeout=_FAREWELL_SECONDS)
        finally:
            if sender is not None:
                sender.cancel()
            # After a restart of the recorder, old Events must not be sent as new, nor counts continue from unsent ones.
            self.dropped += len(self._queue)
            self._queue.clear()
            self._series.clear()

    def _enqueue(self, write: Create | Patch) -> None:
        if isinstance(write, Patch):
            # Only the newest count of a series is worth sending.
            kept = [each for each in self._queue if not (isinstance(each, Patch) and each.name == write.name)]
            self._queue = deque(kept)
        self._queue.append(write)
        if self._sender is None or self._sender.done():
            self._sender = asyncio.get_running_loop().create_task(self._send(), name="events")

    async def _send(self) -> None:
        while self._queue:
            write = self._queue.popleft()
            try:
                await self._client.send(write)
            except ApiError as error:
                # A 404 to a patch: the Event has expired; to a create: the API or the namespace does not exist.
                missing = error.code == 404 and isinstance(write, Create)
                if error.code not in self._silent and (error.code in (401, 403) or missing):
                    self._silent.add(error.code)
                    log.warning("events cannot be recorded", extra={"fields": {"error": error.message}})
                self._lost(write)
            except Unreachable:
                self._lost(write)

    def _lost(self, write: Create | Patch) -> None:
        """A lost Event cannot be counted further: the next of its kind begins a new Event."""
        self.dropped += 1
        for key, series in self._series.items():
            if (series.namespace, series.name) == (write.namespace, write.name):
                del self._series[key]
                return

    def _allowed(self, uid: str, now: datetime) -> bool:
        bucket = self._buckets.setdefault(uid, _Bucket(_BURST, now))
        self._buckets.move_to_end(uid)
        while len(self._buckets) > _REMEMBERED:
            self._buckets.popitem(last=False)
        gained = (now - bucket.filled).total_seconds() / _REFILL_SECONDS
        bucket.tokens, bucket.filled = min(_BURST, bucket.tokens + gained), now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True

    def _event(
        self, resource: Resource, about: Metadata, type: str, reason: str, note: str, action: str, now: datetime
    ) -> Create:
        self._number += 1
        moment = int(now.timestamp() * 1_000_000) + self._number
        namespace = about.namespace or "default"
        name = about.name[:_NAME].rstrip("-.")
        body: dict[str, Any] = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": f"{name}.{moment:x}", "namespace": namespace},
            "eventTime": _micro(now),
            "type": type,
            "reason": reason,
            "note": note,
            "action": action[:_REASON],
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "regarding": {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
                "resourceVersion": about.resource_version,
            },
        }
        return Create(EVENTS, body, reason)


def _counted(series: _Series) -> Patch:
    # A series begins with the second Event of its kind (events.k8s.io counts from there).
    body = {"series": {"count": series.count, "lastObservedTime": _micro(series.last)}}
    return Patch(EVENTS, series.namespace, series.name, body, "the same again")


def _cut(text: str, limit: int) -> str:
    """At most ``limit`` bytes, without cutting a character."""
    return text.encode()[:limit].decode("utf-8", "ignore")


def _micro(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
