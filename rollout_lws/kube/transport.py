"""The HTTP transport's interface: one call for an answer, one for a stream of lines.

The client uses only this interface, so that it runs over a real API server and over the in-memory sandbox.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, TypeAlias


class Answer(Protocol):
    """One HTTP answer; header names are in lower case."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def body(self) -> bytes: ...


#: Called immediately before a body is sent; raises to stop the request.
Guard: TypeAlias = Callable[[], None]


class TooLong(Exception):
    """An answer of more bytes than were asked for; its text is how many those are."""


@dataclass(frozen=True, slots=True)
class Relay:
    """A request that the API server passes on to a pod. ``headers`` are the pod's, never in place of credentials;
    ``seconds`` is for all of it, and of the answer at most ``longest`` bytes are read. A redirect is an answer.
    """

    method: str
    headers: Mapping[str, str]
    body: bytes | None
    seconds: float
    longest: int


class Transport(Protocol):
    """Sends requests. Paths begin with "/"; timeouts are in seconds and always given."""

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
        """The answer, whatever its status. Unreachable without one in time, or when the guard stopped the request."""
        ...

    async def relay(self, path: str, relay: Relay, guard: Guard | None = None) -> Answer:
        """What a pod answers behind ``path``. Unreachable as with ``request``, TooLong for more than was asked for."""
        ...

    def stream(
        self, path: str, *, params: Mapping[str, str], timeout: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The lines of a watch. ApiError when it is rejected; Unreachable after ``timeout`` seconds without a byte."""
        ...
