"""The list of Rollouts, kept current by one watch; the page gets rows, and of these those that have changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.dashboard.bell import Bell
from rollout_lws.cli.dashboard.rows import row
from rollout_lws.cli.dashboard.sse import event
from rollout_lws.cli.watch.cache import WatchCache
from rollout_lws.objects.resources import Resource

Object = dict[str, Any]


class ListFeed:
    """All Rollouts of a namespace, or of all namespaces (""). No more than rows of them is kept."""

    gather = 0.05

    def __init__(self, transport: Transport, rollouts: Resource, namespace: str, selector: str | None) -> None:
        self.bell = Bell()
        query = {"labelSelector": selector} if selector else {}
        path = rollouts.path(namespace)
        self._cache: WatchCache[Object] = WatchCache(transport, path, query, row, self.bell, persists=True)

    def close(self) -> None:
        """Ends the watch; blocks for a moment."""
        self._cache.stop()
        self._cache.join()

    def reader(self) -> ListReader:
        return ListReader(self)

    @property
    def trouble(self) -> Object:
        """Why the rows may be ``old``, or are not shown; an empty ``message`` while all is well."""
        return {"message": self._cache.trouble, "old": bool(self._cache.trouble)}

    def rows(self) -> dict[str, Object] | None:
        """The row of each Rollout by its UID; None before the first list."""
        found = self._cache.objects()
        return None if found is None else {each["uid"]: each for each in found}


class ListReader:
    """One page's view of the list."""

    def __init__(self, feed: ListFeed) -> None:
        self._feed = feed
        self._told: dict[str, Object] | None = None
        self._trouble = {"message": "", "old": False}

    def news(self) -> Iterator[bytes]:
        trouble, rows = self._feed.trouble, self._feed.rows()
        if trouble != self._trouble:
            self._trouble = trouble
            yield event("trouble", trouble)
        if rows is None:
            return
        first, told = self._told is None, self._told or {}
        self._told = rows
        changed = [each for uid, each in rows.items() if told.get(uid) != each]
        gone = [uid for uid in told if uid not in rows]
        if first or changed or gone:
            yield event("rows", {"all": first, "rows": changed, "gone": gone})
