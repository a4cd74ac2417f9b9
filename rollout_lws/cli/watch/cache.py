"""A collection that a background thread keeps current by list and watch, for readers in other threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import click

from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.view import plain
from rollout_lws.cli.watch.stream import RECONNECT, SHORTEST_WATCH, passes
from rollout_lws.errors import ApiError, RolloutLwsError, Unreachable

_Kind = TypeVar("_Kind")
#: Seconds between attempts that are refused: the user may get a right while a page is open.
_REFUSED = 30.0
#: Objects in each page of a list: a process that runs for days keeps the memory that its largest one took.
_PAGE = 100
#: Seconds that join waits for the thread to end.
_FAREWELL = 0.5


class Signal(Protocol):
    """What a cache sets for each change, from its own thread: a ``threading.Event``, or what wakes an event loop."""

    def set(self) -> None: ...


class WatchCache(Generic[_Kind]):
    """Objects under ``path`` that match ``query``, each converted by ``decode``; those that it makes None are left out.

    With ``version``, a resourceVersion, only what changes after it, until a watch that broke needs a new list.
    ``changed`` is set for every change: of an object, of ``trouble`` (why the objects may be stale, "" while they are
    current), or of ``failure``, a permanent error. With ``persists`` such an error is trouble, too, that ``refused``
    tells from what passes by itself, and it is tried again after a while.
    """

    def __init__(
        self,
        transport: Transport,
        path: str,
        query: dict[str, str],
        decode: Callable[[Object], _Kind | None],
        changed: Signal,
        version: str = "",
        *,
        persists: bool = False,
    ) -> None:
        self.trouble = self._reported = ""
        self.failure: RolloutLwsError | None = None
        self.refused = False
        self._persists = persists
        self._transport = transport.twin()
        self._path, self._query, self._decode = path, query, decode
        self._changed = changed
        self._objects: dict[str, _Kind] | None = {} if version else None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._keep, args=(version,), name=f"watch {path}", daemon=True)
        self._thread.start()

    def objects(self) -> list[_Kind] | None:
        """All objects, None before the first list."""
        found = self._objects
        return None if found is None else list(found.values())

    def report(self) -> None:
        """Raise the permanent error, if there is one; print new trouble on standard error."""
        if self.failure is not None:
            raise self.failure
        if self.trouble and self.trouble != self._reported:
            click.echo(f"rollout-lws: {plain(self.trouble)}; trying again", err=True)
        self._reported = self.trouble

    def stop(self) -> None:
        self._stopped.set()
        self._transport.hang_up()

    def join(self) -> None:
        """Give the thread a moment to end; a thread that is blocked on an answer ends with the process."""
        self._thread.join(_FAREWELL)

    def _keep(self, version: str) -> None:
        try:
            self._keep_current(version)
        finally:
            # By the thread itself, which may end only after the others have ceased to wait for it.
            self._transport.close()

    def _keep_current(self, version: str) -> None:
        while not self._stopped.is_set():
            try:
                version = self._turn(version)
            except Exception as error:
                if not isinstance(error, RolloutLwsError):
                    # A thread has no caller to raise to, so the reader raises it.
                    error = RolloutLwsError(f"the watch on {self._path} failed: {error!r}")
                if not self._persists:
                    self.failure = error
                    self._changed.set()
                    return
                self.refused, version = True, ""
                self._tell(str(error))
                self._stopped.wait(_REFUSED)

    def _turn(self, version: str) -> str:
        """List if needed, then watch until the watch ends; returns the resourceVersion to resume from, "" to relist."""
        began = time.monotonic()
        try:
            version = self._watch(version or self._list())
            if time.monotonic() - began < SHORTEST_WATCH:
                self._stopped.wait(RECONNECT)
            return version
        except (ApiError, Unreachable) as error:
            if self._stopped.is_set():
                return ""
            if isinstance(error, ApiError) and error.code == 410:
                return ""
            if not passes(error):
                raise
            self.refused = False
            self._tell(str(error))
            self._stopped.wait(RECONNECT)
            return ""

    def _list(self) -> str:
        found, version = dict[str, _Kind](), ""
        for page in self._transport.pages(self._path, _PAGE, **self._query):
            version = version or str(page["metadata"]["resourceVersion"])
            decoded = ((each["metadata"]["uid"], self._decode(each)) for each in page.get("items") or ())
            found |= {uid: each for uid, each in decoded if each is not None}
        self._objects = found
        self.trouble, self.refused = "", False
        self._changed.set()
        return version

    def _watch(self, version: str) -> str:
        for event in self._transport.watch(self._path, version, None, **self._query):
            meta = event["object"]["metadata"]
            version = meta["resourceVersion"]
            if event["type"] == "BOOKMARK":
                continue
            found = None if event["type"] == "DELETED" else self._decode(event["object"])
            if found is None and meta["uid"] not in (self._objects or {}):
                continue
            # Each change makes a new dict, so that readers of the old one are not disturbed.
            objects = dict(self._objects or {})
            if found is None:
                del objects[meta["uid"]]
            else:
                objects[meta["uid"]] = found
            self._objects = objects
            self._changed.set()
        return version

    def _tell(self, trouble: str) -> None:
        self.trouble = trouble
        self._changed.set()
