"""The feeds of all releases that pages show now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.dashboard.release_feed import ReleaseFeed
from rollout_lws.cli.get.caller import Caller
from rollout_lws.objects.resources import Resource

#: Seconds that the end of the process waits for watches to end.
_FAREWELL = 1.0


class Feeds:
    """Each feed is shared by all pages that show its release, and closed when the last one goes."""

    def __init__(self, transport: Transport, rollouts: Resource, caller: Callable[[str], Caller]) -> None:
        self._transport, self._rollouts, self._caller = transport, rollouts, caller
        self._open: dict[tuple[str, str], ReleaseFeed] = {}
        self._pages: dict[tuple[str, str], int] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def enter(self, namespace: str, name: str) -> ReleaseFeed:
        """The feed of a Rollout, for one page more."""
        key = (namespace, name)
        if key not in self._open:
            transport = self._transport.within(namespace)
            self._open[key] = ReleaseFeed(transport, self._rollouts, name, self._caller(namespace))
        self._pages[key] = self._pages.get(key, 0) + 1
        return self._open[key]

    def leave(self, namespace: str, name: str) -> None:
        """One page less; the last one closes the feed, in a task of its own, since that of a page may be cancelled."""
        key = (namespace, name)
        self._pages[key] -= 1
        if not self._pages[key]:
            del self._pages[key]
            feed = self._open.pop(key, None)
            if feed is not None:
                self._end(feed)

    async def close(self) -> None:
        """Close all feeds; a server that does not answer is not waited for."""
        while self._open:
            self._end(self._open.popitem()[1])
        if self._closing:
            await asyncio.wait(self._closing, timeout=_FAREWELL)

    def _end(self, feed: ReleaseFeed) -> None:
        task = asyncio.create_task(feed.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
