"""Limits of accepted connections of this process's servers: number, time, and which one is dropped for a new one.

Any client that reaches a port can hold connections open, and a TLS connection costs about 300 KiB. So their number is
limited, and at the limit a new connection is still accepted; otherwise one client holding all of them would lock the
API server out. Instead one connection of the address with the most connections, in any state, is dropped: the one that
has waited longest for a request or, if each has sent its request, the one that has waited longest for its turn. Only
the connection whose request is being judged stays. An API server needs some milliseconds to send a request.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial

from aiohttp import web

from rollout_lws.settings import Address

log = logging.getLogger(__name__)

#: Limit of concurrent connections of each server; more than one.
MOST = 64
#: Time for the handshake and the headers of the first request, and from the first byte of a later request to the end of
#: its headers.
ARRIVAL_SECONDS = 5.0
#: Idle time before the next request: clients in Go close their connections after 90 s, and should do so first.
IDLE_SECONDS = 100.0
#: Time for answers in progress when the server shuts down; an API server waits no longer either.
GRACE_SECONDS = 5.0
#: The rest of a rejected request is read for this time, or its sender would not see the answer.
_LINGERING_SECONDS = 1.0
#: Minimum time between two log lines about dropped connections.
_TOLD_SECONDS = 60.0
#: Time until the next attempt to accept a connection when the system has no resources for one.
_AGAIN_SECONDS = 1.0
#: Connections that the system queues until they are accepted. Beyond that, a client retries after a second.
_BACKLOG = 1024
#: Errors of creating a socket on a system without addresses of its family.
_NO_FAMILY = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def served(
    application: web.Application, address: Address, shown: ssl.SSLContext | None = None
) -> AsyncIterator[Room]:
    """Serves ``application`` at ``address``, over TLS if ``shown`` is given, until the block ends. OSError when it
    cannot listen there.
    """
    room = Room()
    application.middlewares.append(room.middleware)
    runner = web.AppRunner(
        application, access_log=None, shutdown_timeout=GRACE_SECONDS, lingering_time=_LINGERING_SECONDS
    )
    await runner.setup()
    try:
        if runner.server is None:
            raise RuntimeError("a runner that is set up has a server")
        listeners = await _listeners(address)
        room.port = int(listeners[0].getsockname()[1])
        accepting = [asyncio.create_task(_accept(each, room, runner.server, shown)) for each in listeners]
        try:
            yield room
        finally:
            for task in accepting:
                task.cancel()
            await asyncio.gather(*accepting, return_exceptions=True)
            for each in listeners:
                each.close()
    finally:
        await runner.cleanup()
        for visit in [*room.visits.values()]:
            visit.drop()


@dataclass(eq=False, slots=True)
class _Visit(asyncio.Protocol):
    """One connection to ``inner``, which serves it. ``since`` is when it began to wait for a request, for the rest of
    one or, once ``leave`` is set, for our answer; ``leave`` is called if the connection ends before that.
    """

    room: Room
    inner: asyncio.Protocol
    address: str
    since: float
    leave: Callable[[], None] | None = None
    transport: asyncio.Transport | None = None
    greeting: asyncio.Task[None] | None = None
    _idle: bool = False
    _timer: asyncio.TimerHandle | None = None

    def wait(self, seconds: float) -> None:
        """Drop it after ``seconds``, unless it becomes active."""
        self.stay()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.drop)

    def stay(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def answered(self) -> None:
        self.leave, self._idle = None, True
        self.since = asyncio.get_running_loop().time()
        self.wait(IDLE_SECONDS)

    def drop(self) -> None:
        self.left()
        if self.transport is not None:
            self.transport.abort()
        elif self.greeting is not None:
            self.greeting.cancel()

    def left(self) -> None:
        self.stay()
        self.room.visits.pop(self.inner, None)
        if self.leave is not None:
            self.leave()
            self.leave = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not isinstance(transport, asyncio.Transport):
            raise TypeError(f"a connection that is read and written, not {transport!r}")
        self.transport = transport
        self.inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._idle:
            self._idle = False
            self.wait(ARRIVAL_SECONDS)
        self.inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self.inner.eof_received()

    def pause_writing(self) -> None:
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        self.inner.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self.left()
        self.transport = None
        self.inner.connection_lost(error)


@dataclass(slots=True)
class Room:
    """The connections of one server, by the protocol that serves them, and the ``port`` at which it listens."""

    port: int = 0
    visits: dict[asyncio.Protocol, _Visit] = field(default_factory=dict)
    _judged: _Visit | None = None
    _dropped: int = 0
    _told: float = float("-inf")

    @property
    def addresses(self) -> Counter[str]:
        """How many connections there are from each address."""
        return Counter(each.address for each in self.visits.values())

    def complete(self, request: web.Request, leave: Callable[[], None]) -> None:
        """``request`` has been read. ``leave`` is called if its connection ends, or has ended, before its answer."""
        visit = self._visit(request)
        if visit is None:
            leave()
        else:
            visit.leave, visit.since = leave, asyncio.get_running_loop().time()

    @contextmanager
    def judging(self, request: web.Request) -> Iterator[None]:
        """Protects the connection of ``request``, one at a time, from being dropped until the block ends."""
        self._judged = self._visit(request)
        try:
            yield
        finally:
            self._judged = None

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        visit = self._visit(request)
        if visit is None:
            # The connection was dropped before its request arrived here.
            return await handler(request)
        visit.stay()
        try:
            return await handler(request)
        finally:
            if request.protocol in self.visits:
                visit.answered()

    def make(self) -> None:
        """Make room for a new connection: at the limit, drop a waiting one."""
        if len(self.visits) < MOST:
            return
        counts = self.addresses
        waiting = [each for each in self.visits.values() if each is not self._judged]
        given = max(waiting, key=lambda each: (counts[each.address], each.leave is None, -each.since))
        given.drop()
        self._tell(given.address)

    def _visit(self, request: web.Request) -> _Visit | None:
        return self.visits.get(request.protocol)

    def _tell(self, address: str) -> None:
        self._dropped += 1
        now = asyncio.get_running_loop().time()
        if now - self._told >= _TOLD_SECONDS:
            told = {"port": self.port, "most": MOST, "dropped": self._dropped, "last": address}
            log.warning("connections dropped to make room for new ones", extra={"fields": told})
            self._told, self._dropped = now, 0


async def _listeners(address: Address) -> list[socket.socket]:
    infos = await asyncio.get_running_loop().getaddrinfo(
        address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    found: list[socket.socket] = []
    absent: OSError | None = None
    for family, _, _, _, where in infos:
        try:
            found.append(socket.create_server(where, family=family, backlog=_BACKLOG))
        except OSError as error:
            # All interfaces means two addresses, and a system may have only one family. An address taken by another
            # process is different: that process would receive our requests.
            if error.errno not in _NO_FAMILY:
                for each in found:
                    each.close()
                raise
            absent = error
    if absent is not None and not found:
        raise absent
    for each in found:
        each.setblocking(False)
    return found


async def _accept(listener: socket.socket, room: Room, serve: web.Server, shown: ssl.SSLContext | None) -> None:
    loop = asyncio.get_running_loop()
    while True:
        try:
            connection, peer = await loop.sock_accept(listener)
        except ConnectionAbortedError:
            continue
        except OSError as error:
            log.warning("no connection can be accepted", extra={"fields": {"error": error.strerror}})
            await asyncio.sleep(_AGAIN_SECONDS)
            continue
        room.make()
        visit = _Visit(room, serve(), peer[0], loop.time())
        room.visits[visit.inner] = visit
        visit.wait(ARRIVAL_SECONDS)
        visit.greeting = loop.create_task(_greet(visit, connection, shown))
        visit.greeting.add_done_callback(partial(_greeted, visit, connection))
        # A permanently non-empty queue of connections must not starve the event loop.
        await asyncio.sleep(0)


async def _greet(visit: _Visit, connection: socket.socket, shown: ssl.SSLContext | None) -> None:
    loop, seconds = asyncio.get_running_loop(), None if shown is None else ARRIVAL_SECONDS
    try:
        await loop.connect_accepted_socket(
            lambda: visit, connection, ssl=shown, ssl_handshake_timeout=seconds, ssl_shutdown_timeout=seconds
        )
    except OSError as error:
        # A failed handshake needs no report. The error refers to the connection and, by its traceback, to itself:
        # thousands would stay in memory until garbage collection.
        error.__traceback__ = error.__context__ = None
        visit.left()


def _greeted(visit: _Visit, connection: socket.socket, greeting: asyncio.Task[None]) -> None:
    visit.greeting = None
    if greeting.cancelled():
        # Possibly before it has started.
        connection.close()
