"""The queues of notifications, one a destination: sent in order, retried, bounded, dropped when too many.

Telling never waits and never fails. One is sent at a time, so that what follows does not arrive before it; a receiver
that is not there holds up its own queue alone.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from rollout_lws.clock import Clock
from rollout_lws.errors import UsageError
from rollout_lws.logs import fields
from rollout_lws.metrics.registry import Fate
from rollout_lws.notifications import signing
from rollout_lws.notifications.data import Notification
from rollout_lws.notifications.delivery import Again, Delivered, GivenUp, Tries, outcome
from rollout_lws.notifications.destination import Destination, read
from rollout_lws.notifications.post import Post
from rollout_lws.notifications.transition import Transition, notification
from rollout_lws.tasks import end

log = logging.getLogger(__name__)

#: Notifications that wait for one receiver: some hours of a large fleet's, at 2 KiB each.
MOST = 1000
#: Seconds for which the files of a destination count as read.
FRESH_SECONDS = 5.0
#: How long shutdown waits for unsent ones, as for Events.
FAREWELL_SECONDS = 1.0


#: Counts what became of one for a destination.
Count = Callable[[str, Fate], None]


@dataclass(frozen=True, slots=True)
class _Item:
    """``since`` is the loop's time when it was queued."""

    told: Notification
    since: float


class Outbox:
    """The queue of the destination in ``directory``, whose files are read again as it goes."""

    def __init__(self, directory: str, post: Post, clock: Clock, chance: random.Random, count: Count) -> None:
        self._directory = directory
        self._last = read(directory)
        self.name = self._last.name
        self._post = post
        self._clock = clock
        self._chance = chance
        self._count = count
        self._queue: deque[_Item] = deque()
        self._now: _Item | None = None
        self._sender: asyncio.Task[None] | None = None
        self._read_at = -math.inf
        self._unreadable = self._failing = self._full = False

    @property
    def destination(self) -> Destination:
        """As it was read last."""
        return self._last

    @property
    def waiting(self) -> int:
        """How many are not delivered yet."""
        return len(self._queue) + (self._now is not None)

    @property
    def oldest_seconds(self) -> float:
        """How long the first of them has waited."""
        first = self._now or (self._queue[0] if self._queue else None)
        return asyncio.get_running_loop().time() - first.since if first is not None else 0.0

    def put(self, told: Notification) -> None:
        """Queue one; the oldest that is not on its way gives way when there are too many."""
        loop = asyncio.get_running_loop()
        if not self._read().wants(told):
            return
        if self.waiting >= MOST:
            dropped = self._queue.popleft()
            self._count(self.name, Fate.DROPPED)
            if not self._full:
                self._full = True
                log.warning("notifications dropped", extra=fields(destination=self.name, first=dropped.told.id))
        self._queue.append(_Item(told, loop.time()))
        if self._sender is None or self._sender.done():
            self._sender = loop.create_task(self._send(), name=f"notifications {self.name}")

    async def close(self) -> None:
        """Send what is queued, for a moment at most, and end."""
        sender, self._sender = self._sender, None
        if sender is not None:
            try:
                await asyncio.wait({sender}, timeout=FAREWELL_SECONDS)
            finally:
                await end((sender,))
        for _ in range(self.waiting):
            self._count(self.name, Fate.DROPPED)
        if self.waiting:
            log.warning("notifications left unsent", extra=fields(destination=self.name, count=self.waiting))
        self._queue.clear()
        self._now = None

    async def _send(self) -> None:
        while self._queue:
            self._now = self._queue.popleft()
            try:
                delivered = await self._delivered(self._now)
            except Exception:
                delivered = False
                log.exception("notification failed", extra=fields(destination=self.name, id=self._now.told.id))
            self._now = None
            self._full = self._full and bool(self._queue)
            self._count(self.name, Fate.SENT if delivered else Fate.FAILED)

    async def _delivered(self, item: _Item) -> bool:
        """Try until it is there or given up."""
        loop, tries, told = asyncio.get_running_loop(), Tries(), item.told
        while True:
            to = self._read()
            body = to.body(told)
            headers = signing.headers(to.keys, told.id, self._clock.now(), body) | {"content-type": to.content_type}
            reply = await self._post.send(to, headers, body)
            tries = replace(tries, age=loop.time() - item.since).plus(reply)
            match outcome(reply, tries, self._chance.random()):
                case Delivered():
                    if self._failing:
                        self._failing = False
                        log.info("notifications are delivered again", extra=fields(destination=self.name, host=to.host))
                    return True
                case GivenUp(why):
                    shown = {"destination": self.name, "host": to.host, "id": told.id, "error": why}
                    log.error("notification not delivered", extra=fields(**shown, tries=tries.total))
                    return False
                case Again(seconds, why):
                    if not self._failing:
                        self._failing = True
                        shown = {"destination": self.name, "host": to.host, "error": why}
                        log.warning("notification not delivered, trying again", extra=fields(**shown))
                    await asyncio.sleep(seconds)

    def _read(self) -> Destination:
        """The destination as its files say now, or a moment ago; as they said last, while they cannot be read."""
        now = asyncio.get_running_loop().time()
        if now - self._read_at < FRESH_SECONDS:
            return self._last
        self._read_at = now
        try:
            self._last = read(self._directory)
            self._unreadable = False
        except UsageError as error:
            if not self._unreadable:
                self._unreadable = True
                log.warning("notification settings unreadable", extra=fields(destination=self.name, error=error))
        return self._last


class Notifications:
    """All destinations of one controller. ``cluster`` is its name, "" for none."""

    def __init__(self, outboxes: Sequence[Outbox], post: Post, cluster: str = "") -> None:
        self.outboxes = tuple(outboxes)
        self.cluster = cluster
        self._post = post

    @classmethod
    def of(
        cls, directories: Sequence[str], cluster: str, post: Post, clock: Clock, chance: random.Random, count: Count
    ) -> Notifications:
        """Those of the directories; UsageError for one that cannot be read."""
        return cls([Outbox(each, post, clock, chance, count) for each in directories], post, cluster)

    def __iter__(self) -> Iterator[Outbox]:
        return iter(self.outboxes)

    def tell(self, transition: Transition) -> None:
        """Queue the notification of a transition for each destination."""
        told = notification(transition)
        for each in self.outboxes:
            each.put(told)

    async def close(self) -> None:
        """Send what is queued, for a moment at most, and end; told again, they begin anew."""
        try:
            await asyncio.gather(*(each.close() for each in self.outboxes))
        finally:
            await self._post.close()
