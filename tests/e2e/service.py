"""What a Service is to an API server: one address, behind it whoever is ready, of which it hears a moment late."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

_HOST = "127.0.0.1"
_CHUNK = 1 << 16


class Service:
    """Leads each new connection to the next of its ``endpoints``, ports on loopback; ``serving`` makes one.

    A connection stays where it was led to, whatever becomes of the endpoints, and either side may close its half: to
    who is connected this is a network, as kube-proxy's is. ``led`` counts the connections that each port has got,
    ``lost`` are the ports that were dialled in vain.
    """

    def __init__(self) -> None:
        self.port = 0
        self.endpoints: list[int] = []
        self.led: Counter[int] = Counter()
        self.lost: list[int] = []
        self._passing: set[asyncio.Task[Any]] = set()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        passing = asyncio.current_task()
        assert passing is not None
        self._passing.add(passing)
        passing.add_done_callback(self._passing.discard)
        try:
            if self.endpoints:
                await self._lead(reader, writer)
        finally:
            # Without an endpoint a node refuses; one that is dialled in vain does so itself.
            writer.transport.abort()

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to = self.endpoints.pop(0)
        self.endpoints.append(to)
        self.led[to] += 1
        try:
            there, back = await asyncio.open_connection(_HOST, to)
        except OSError:
            self.lost.append(to)
            return
        try:
            await asyncio.gather(_copy(reader, back), _copy(there, writer))
        finally:
            back.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    # Who resets a connection does it on both sides: the other half has its own end then.
    with suppress(OSError):
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()
        return
    writer.transport.abort()


@asynccontextmanager
async def serving() -> AsyncIterator[Service]:
    """A Service without endpoints, on a port of its own, to the end of the block, and all of its connections."""
    service = Service()
    server = await asyncio.start_server(service._pass_on, _HOST, 0)
    service.port = int(server.sockets[0].getsockname()[1])
    try:
        yield service
    finally:
        server.close()
        for each in service._passing:
            each.cancel()
        await asyncio.gather(*service._passing, return_exceptions=True)
