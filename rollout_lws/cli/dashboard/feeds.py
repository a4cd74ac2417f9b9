"""What open pages are told: the list of Rollouts, and each release that some page shows, from one watch a kind.

Watches run in threads of their own; what they find is turned into one text for all pages that show the same.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.dashboard.bell import Bell
from rollout_lws.cli.dashboard.release_view import view
from rollout_lws.cli.dashboard.rows import row
from rollout_lws.cli.get.live import Live
from rollout_lws.cli.rollouts import fetch_rollout
from rollout_lws.cli.watch.cache import WatchCache
from rollout_lws.errors import RolloutLwsError
from rollout_lws.objects.resources import Resource

Object = dict[str, Any]
#: Seconds to collect changes before pages are told, since a group that starts up causes many.
_GATHER = 0.05


class ListFeed:
    """All Rollouts of a namespace, or of all namespaces (""). To be used as a context manager."""

    def __init__(self, transport: Transport, rollouts: Resource, namespace: str, selector: str | None) -> None:
        self.bell = Bell()
        query = {"labelSelector": selector} if selector else {}
        self._cache: WatchCache[Object] = WatchCache(transport, rollouts.path(namespace), query, _keyed, self.bell)

    def __enter__(self) -> ListFeed:
        return self

    def __exit__(self, *_: object) -> None:
        self._cache.stop()
        self._cache.join()

    @property
    def trouble(self) -> str:
        """Why the rows may be old, "" while they are current."""
        return str(self._cache.failure or self._cache.trouble)

    def rows(self) -> dict[str, Object] | None:
        """The row of each Rollout by its UID; None before the first list."""
        found = self._cache.objects()
        return None if found is None else {each["uid"]: each for each in found}

    async def messages(self) -> AsyncIterator[tuple[str, Object]]:
        """Rows at first, then those that have changed, and the UIDs of those that are gone; and trouble as it comes and
        goes.
        """
        told, trouble = dict[str, Object](), ""
        first = True
        while True:
            rung = self.bell.next
            if trouble != self.trouble:
                trouble = self.trouble
                yield "trouble", {"message": trouble}
            rows = self.rows()
            if rows is not None:
                changed = [each for uid, each in rows.items() if told.get(uid) is not each]
                gone = [uid for uid in told if uid not in rows]
                if changed or gone or first:
                    yield "rows", {"all": first, "rows": changed, "gone": gone}
                    first = False
                told = rows
            await rung
            await asyncio.sleep(_GATHER)


def _keyed(rollout: Object) -> Object:
    return {"uid": rollout["metadata"]["uid"], **row(rollout)}


class ReleaseFeed:
    """One release, kept current as long as a page shows it."""

    def __init__(self, transport: Transport, rollouts: Resource, rollout: Object) -> None:
        self.bell = Bell()
        self.told: tuple[str, Object] = ("wait", {})
        self._seen = Bell()
        self._live = Live(transport, rollouts, rollout, self._seen)
        self._task = asyncio.create_task(self._keep())

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await asyncio.to_thread(self._live.__exit__)

    async def messages(self) -> AsyncIterator[tuple[str, Object]]:
        """The whole release at first and after each change; and trouble as it comes and goes."""
        told: tuple[str, Object] = ("wait", {})
        trouble = ""
        while True:
            rung = self.bell.next
            if trouble != self._live.trouble:
                trouble = self._live.trouble
                yield "trouble", {"message": trouble}
            if self.told is not told and self.told[0] != "wait":
                told = self.told
                yield told
            await rung

    async def _keep(self) -> None:
        """Looks again after each change; looking may ask the API server for the version before."""
        while True:
            rung = self._seen.next
            try:
                shown = await asyncio.to_thread(self._live.look)
            except RolloutLwsError as error:
                self.told = "gone", {"message": str(error)}
                self.bell.set()
                return
            if shown is not None:
                found = view(shown, datetime.now(UTC))
                if found != self.told[1]:
                    self.told = "release", found
            self.bell.set()
            await rung
            await asyncio.sleep(_GATHER)


class Feeds:
    """The feeds of the releases that pages show now, each shared by all pages that show it."""

    def __init__(self, transport: Transport, rollouts: Resource) -> None:
        self._transport, self._rollouts = transport, rollouts
        self._open: dict[tuple[str, str], tuple[ReleaseFeed, int]] = {}
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def of(self, namespace: str, name: str) -> AsyncIterator[ReleaseFeed]:
        """The feed of a Rollout. UsageError when it does not exist; errors of the API server are raised unchanged."""
        key = (namespace, name)
        async with self._lock:
            feed, pages = self._open.get(key, (None, 0))
            if feed is None:
                transport = self._transport.within(namespace)
                rollout = await asyncio.to_thread(fetch_rollout, transport, self._rollouts, name)
                feed = ReleaseFeed(transport, self._rollouts, rollout)
            self._open[key] = feed, pages + 1
        try:
            yield feed
        finally:
            feed, pages = self._open[key]
            self._open[key] = feed, pages - 1
            if pages == 1:
                del self._open[key]
                await feed.close()


def event(kind: str, value: Object) -> bytes:
    """A server-sent event."""
    return f"event: {kind}\ndata: {json.dumps(value, separators=(',', ':'))}\n\n".encode()
