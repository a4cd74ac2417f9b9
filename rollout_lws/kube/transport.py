"""The wire, as narrow as it can be: one call for an answer, one for a stream of lines.

Everything above speaks to this interface, so that the same client runs over a real API server and over the sandbox in
memory.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias


class Answer(Protocol):
    """One HTTP answer; header names are in lower case."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def body(self) -> bytes: ...


#: Called at the last moment before a body goes out; it raises to stop the request.
Guard: TypeAlias = Callable[[], None]


class Transport(Protocol):
    """Where requests go. Paths begin with "/"; timeouts are seconds and always given."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str],
        body: bytes | None,
        content_type: str,
        timeout: float,  # noqa: ASYNC109 - a property of the connection, not of the caller's scope
        guard: Guard | None = None,
    ) -> Answer:
        """Any answer, whatever its status. Unreachable when there is none in time, or the guard stopped it."""
        ...

    def stream(
        self, path: str, *, params: Mapping[str, str], timeout: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The lines of a watch. ApiError when it is refused; Unreachable after ``timeout`` seconds without a byte."""
        ...
