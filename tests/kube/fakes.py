"""A scripted API server for the edge's tests: answers in order, watches that the test speaks through."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kube.transport import Guard


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it was seen; ``at`` is the loop's time."""

    method: str
    path: str
    params: Mapping[str, str]
    body: Any
    content_type: str
    at: float


class Watch:
    """One open watch: the test sends lines, ends it, or breaks it."""

    def __init__(self, params: Mapping[str, str]) -> None:
        self.params = params
        self.closed = False
        self._lines: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()

    def send(self, type: str, obj: Mapping[str, Any]) -> None:
        self._lines.put_nowait(json.dumps({"type": type, "object": obj}).encode())

    def send_line(self, line: bytes) -> None:
        self._lines.put_nowait(line)

    def end(self) -> None:
        self._lines.put_nowait(None)

    def fail(self, error: Exception) -> None:
        self._lines.put_nowait(error)

    async def lines(self, silence: float) -> AsyncIterator[bytes]:
        while True:
            try:
                async with asyncio.timeout(silence):
                    line = await self._lines.get()
            except TimeoutError as late:
                raise Unreachable("silent") from late
            if line is None:
                return
            if isinstance(line, Exception):
                raise line
            yield line


class FakeTransport:
    """Answers requests from ``replies`` in order; opens a Watch for each stream unless ``refusals`` has an error."""

    def __init__(self, *replies: Reply | Exception) -> None:
        self.replies: deque[Reply | Exception] = deque(replies)
        self.refusals: deque[Exception] = deque()
        self.requests: list[Asked] = []
        self.watches: list[Watch] = []
        self.opened: list[float] = []

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str],
        body: bytes | None,
        content_type: str,
        timeout: float,  # noqa: ASYNC109
        guard: Guard | None = None,
    ) -> Reply:
        assert timeout > 0
        if guard is not None:
            guard()
        now = asyncio.get_running_loop().time()
        self.requests.append(Asked(method, path, dict(params), json.loads(body) if body else None, content_type, now))
        await asyncio.sleep(0)
        if not self.replies:
            raise AssertionError(f"no answer was scripted for {method} {path}")
        reply = self.replies.popleft()
        if isinstance(reply, Exception):
            raise reply
        return reply

    def stream(
        self, path: str, *, params: Mapping[str, str], timeout: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._stream(params, timeout)

    @asynccontextmanager
    async def _stream(self, params: Mapping[str, str], silence: float) -> AsyncIterator[AsyncIterator[bytes]]:
        self.opened.append(asyncio.get_running_loop().time())
        if self.refusals:
            raise self.refusals.popleft()
        watch = Watch(dict(params))
        self.watches.append(watch)
        try:
            yield watch.lines(silence)
        finally:
            watch.closed = True


def ok(obj: Mapping[str, Any], status: int = 200) -> Reply:
    return Reply(status, json.dumps(obj).encode())


def refusal(code: int, reason: str, message: str = "refused", headers: Mapping[str, str] | None = None) -> Reply:
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return Reply(code, json.dumps(body).encode(), headers or {})


def page(version: str, *items: Mapping[str, Any], token: str = "") -> Reply:
    metadata = {"resourceVersion": version} | ({"continue": token} if token else {})
    return ok({"kind": "PodList", "metadata": metadata, "items": items})


def pod(
    name: str, version: int | str, *, uid: str = "", phase: str = "", labels: Mapping[str, str] | None = None
) -> Any:
    """A pod of namespace ``ns``; its uid is ``uid-<name>`` unless given."""
    metadata = {
        "name": name,
        "namespace": "ns",
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version),
        "labels": dict(labels or {}),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": phase}}


def bookmark(version: int) -> Any:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"resourceVersion": str(version)}}


def expired() -> ApiError:
    return ApiError(410, "Expired", "too old resource version")
