"""The event stream of one watch: it resumes from a resourceVersion, sends bookmarks, and ends at its timeout."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Any

from rollout_lws.errors import ApiError
from rollout_lws.sandbox import codec
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.index import Object
from rollout_lws.sandbox.printing import tables
from rollout_lws.sandbox.routes import Request, Target
from rollout_lws.sandbox.store import Event
from rollout_lws.sandbox.wire import api_errors, selectors
from rollout_lws.sandbox.wire.api_errors import bad_request

#: Seconds between bookmarks, if requested, and the timeout of a watch without timeoutSeconds.
BOOKMARK_SECONDS = 60.0
LONGEST_SECONDS = 1800.0

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Watch:
    """One client's watch, subscribed from construction until ``close``; ``lines`` is read once."""

    def __init__(self, server: ApiServer, request: Request, target: Target) -> None:
        self._server = server
        self._request = request
        self._target = target
        self._pending: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self._cut = False
        self._headed = False
        self._selects = self._selector()
        self._bookmarks = request.flag("allowWatchBookmarks")
        try:
            self._life = float(request.params.get("timeoutSeconds") or LONGEST_SECONDS)
        except ValueError as failure:
            raise bad_request("timeoutSeconds is a number of seconds") from failure
        self._failed = not self._begin()
        self._unsubscribe: Callable[[], None] = server.store.subscribe(self._receive)

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """One JSON event a line, until the timeout or until the watch is cut."""
        now = asyncio.get_running_loop().time()
        end, bookmark = now + self._life, now + BOOKMARK_SECONDS
        while True:
            while self._pending:
                yield self._pending.popleft()
            if self._cut or self._failed:
                return
            # A timer may fire slightly early; the code counts it as due, else it would set it again.
            deadline = min(end, bookmark) if self._bookmarks else end
            if await self._woken_before(deadline):
                continue
            if self._bookmarks:
                yield self._bookmark()
                bookmark = deadline + BOOKMARK_SECONDS
            if deadline == end:
                return

    async def _woken_before(self, deadline: float) -> bool:
        self._wake.clear()
        try:
            async with asyncio.timeout_at(deadline):
                await self._wake.wait()
        except TimeoutError:
            # A bookmark after a change that its watch has not told would hide this change from who resumes there.
            return bool(self._pending)
        return True

    def cut(self) -> None:
        """End the stream after the pending events."""
        self._cut = True
        self._wake.set()

    def close(self) -> None:
        self._unsubscribe()
        self.cut()

    def _begin(self) -> bool:
        """Queue the initial list, or the changes since the resourceVersion; False if these are no longer kept."""
        params, store = self._request.params, self._server.store
        version = params.get("resourceVersion", "")
        if version and not version.isdigit():
            raise ApiError(500, "", api_errors.no_version(version))
        if int(version or 0) > store.version:
            error = ApiError(504, "Timeout", f"Too large resource version: {version}, current: {store.version}", 1.0)
            self._put("ERROR", codec.status_of(error))
            return False
        initial = params.get("sendInitialEvents", "")
        if initial and params.get("resourceVersionMatch") != "NotOlderThan":
            why = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            raise api_errors.invalid_options("ListOptions", f"resourceVersionMatch: {why}")
        if initial.lower() == "true" or (not initial and version in ("", "0")):
            served = self._target.served
            for obj in self._server.list(served.resource, self._target.namespace):
                if self._selects(obj):
                    self._put("ADDED", obj)
            if initial:
                self._pending.append(self._bookmark(initial_end=True))
            return True
        try:
            missed = store.since(self._target.served.storage, int(version or store.version))
        except ApiError as error:
            self._put("ERROR", codec.status_of(error))
            return False
        for event in missed:
            self._receive(event)
        return True

    def _selector(self) -> Callable[[Object], bool]:
        params = self._request.params
        labels = selectors.parse_labels(params.get("labelSelector", ""))
        fields = selectors.parse_fields(params.get("fieldSelector", ""), self._target.served.fields)
        return lambda obj: labels.matches(obj["metadata"].get("labels") or {}) and fields(obj)

    def _receive(self, event: Event) -> None:
        """Queue a change; an object that leaves the selection becomes DELETED, in its previous state."""
        served = self._target.served
        if event.resource != served.storage:
            return
        if self._target.namespace and event.object["metadata"].get("namespace") != self._target.namespace:
            return
        obj = served.shown(event.object)
        previous = None if event.previous is None else served.shown(event.previous)
        before = previous is not None and self._selects(previous)
        if event.type == "DELETED":
            if before:
                self._put("DELETED", obj)
        elif self._selects(obj):
            self._put("MODIFIED" if before else "ADDED", obj)
        elif previous is not None and before:
            version = obj["metadata"]["resourceVersion"]
            self._put("DELETED", {**previous, "metadata": {**previous["metadata"], "resourceVersion": version}})

    def _put(self, kind: str, obj: Object) -> None:
        form = tables.form_of(self._request) if kind != "ERROR" else ""
        if form == "Table":
            version = obj["metadata"]["resourceVersion"]
            now = self._server.clock()
            headed, self._headed = not self._headed, True
            obj = tables.table(self._target.served, self._request, [obj], now, version=version, headed=headed)
        elif form:
            obj = tables.shown(self._target.served, self._request, obj, self._server.clock())
        self._pending.append(codec.encoded({"type": kind, "object": obj}) + b"\n")
        self._wake.set()

    def _bookmark(self, *, initial_end: bool = False) -> bytes:
        resource = self._target.served.resource
        metadata: dict[str, Any] = {"resourceVersion": str(self._server.store.version)}
        if initial_end:
            metadata["annotations"] = {_INITIAL_EVENTS_END: "true"}
        obj: Object = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
        if tables.form_of(self._request) == "Table":
            obj = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "rows": []}
        return codec.encoded({"type": "BOOKMARK", "object": obj}) + b"\n"
