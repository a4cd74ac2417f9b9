"""A collection as it is now, kept by list and watch in a thread of its own, for whoever looks at it from another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.watch.stream import RECONNECT, SHORTEST_WATCH, passes
from rollout_lws.errors import ApiError, RolloutLwsError, Unreachable

_Kind = TypeVar("_Kind")
#: Seconds that somebody who has seen enough waits for a thread.
_FAREWELL = 0.5


class WatchCache(Generic[_Kind]):
    """Objects under ``path`` that ``query`` chooses, each as ``decode`` reads it.

    ``changed`` is set whenever there is something new to see: an object, ``trouble`` (why what is seen may be old, ""
    while it is not), or ``failure``, an error that will not pass.
    """

    def __init__(
        self,
        transport: Transport,
        path: str,
        query: dict[str, str],
        decode: Callable[[Object], _Kind],
        changed: threading.Event,
    ) -> None:
        self.trouble = ""
        self.failure: RolloutLwsError | None = None
        self._transport = transport.twin()
        self._path, self._query, self._decode = path, query, decode
        self._changed = changed
        self._objects: dict[str, _Kind] | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"watch {path}", daemon=True)
        self._thread.start()

    def objects(self) -> list[_Kind] | None:
        """All of them, None before they were listed for the first time."""
        found = self._objects
        return None if found is None else list(found.values())

    def stop(self) -> None:
        self._stopped.set()
        self._transport.hang_up()

    def join(self) -> None:
        """Give the thread a moment to end; one that waits for an answer ends with the process."""
        self._thread.join(_FAREWELL)
        if not self._thread.is_alive():
            self._transport.close()

    def _keep(self) -> None:
        try:
            version = ""
            while not self._stopped.is_set():
                version = self._turn(version)
        except Exception as error:
            if not isinstance(error, RolloutLwsError):
                # A thread has nobody to raise to; whoever looks does.
                error = RolloutLwsError(f"the watch on {self._path} failed: {error!r}")
            self.failure = error
            self._changed.set()

    def _turn(self, version: str) -> str:
        """List where nothing is known, then watch until that ends; the answer is from where to go on, "" for a list."""
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
            self._tell(str(error))
            self._stopped.wait(RECONNECT)
            return ""

    def _list(self) -> str:
        answer = self._transport.get(self._path, **self._query)
        items = answer.get("items") or ()
        self._objects = {each["metadata"]["uid"]: self._decode(each) for each in items}
        self.trouble = ""
        self._changed.set()
        return str(answer["metadata"]["resourceVersion"])

    def _watch(self, version: str) -> str:
        for event in self._transport.watch(self._path, version, None, **self._query):
            meta = event["object"]["metadata"]
            version = meta["resourceVersion"]
            if event["type"] == "BOOKMARK":
                continue
            # A new dict for each change: who looks at the old one meanwhile is not disturbed.
            objects = dict(self._objects or {})
            if event["type"] == "DELETED":
                objects.pop(meta["uid"], None)
            else:
                objects[meta["uid"]] = self._decode(event["object"])
            self._objects = objects
            self._changed.set()
        return version

    def _tell(self, trouble: str) -> None:
        self.trouble = trouble
        self._changed.set()
