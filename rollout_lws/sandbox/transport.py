"""In-process transport to a sandbox, without sockets: tests run the real client in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from rollout_lws.errors import Unreachable
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.faults import Faults
from rollout_lws.sandbox.request_pipeline import Gate
from rollout_lws.sandbox.routes import Request, Response


class Relayed(Protocol):
    """A request for a pod, as the client's transports have it."""

    @property
    def method(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def body(self) -> bytes | None: ...
    @property
    def seconds(self) -> float: ...


class DirectTransport:
    """The client's transport to ``server``. Timeouts are in seconds of the event loop."""

    def __init__(self, server: ApiServer, faults: Faults | None = None) -> None:
        self._gate = Gate(server, faults)

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str],
        body: bytes | None,
        content_type: str,
        timeout: float,  # noqa: ASYNC109 - the interface of the client's transports
        guard: Callable[[], None] | None = None,
    ) -> Response:
        """The response, whatever its status; Unreachable when none comes within ``timeout``."""
        if guard is not None:
            guard()
        asked = Request(method, path, params, {"content-type": content_type}, body or b"")
        return await self._answered(asked, timeout)

    async def _answered(self, asked: Request, seconds: float) -> Response:
        try:
            async with asyncio.timeout(seconds):
                return await self._gate.answer(asked)
        except TimeoutError as late:
            raise Unreachable(f"{asked.method} {asked.path} got no answer in {seconds:g} s") from late

    async def relay(self, path: str, relay: Relayed, guard: Callable[[], None] | None = None) -> Response:
        """What a pod answers; the sandbox's are short."""
        if guard is not None:
            guard()
        return await self._answered(Request(relay.method, path, {}, relay.headers, relay.body or b""), relay.seconds)

    def stream(
        self, path: str, *, params: Mapping[str, str], timeout: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The lines of a watch; ApiError if the server refuses it, Unreachable after ``timeout`` seconds of silence."""
        return self._stream(Request("GET", path, {**params, "watch": "true"}), timeout)

    @asynccontextmanager
    async def _stream(self, request: Request, silence: float) -> AsyncIterator[AsyncIterator[bytes]]:
        async with self._gate.watch(request) as lines:
            yield _impatient(lines, silence, request.path)


async def _impatient(lines: AsyncIterator[bytes], silence: float, path: str) -> AsyncIterator[bytes]:
    while True:
        try:
            async with asyncio.timeout(silence):
                line = await anext(lines, None)
        except TimeoutError as late:
            raise Unreachable(f"watch of {path} was silent for {silence:g} s") from late
        if line is None:
            return
        yield line
