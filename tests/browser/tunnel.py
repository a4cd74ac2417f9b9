"""A way from one loopback port to another, as of ssh, that can be cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Tunnel:
    def __init__(self, port: int, to: int) -> None:
        self._port, self._to = port, to
        self._server: asyncio.Server | None = None
        self._ways: set[asyncio.StreamWriter] = set()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._through, "127.0.0.1", self._port)

    async def cut(self) -> None:
        """Connections end, and there are no further ones."""
        assert self._server is not None
        self._server.close()
        for each in tuple(self._ways):
            each.transport.abort()
        await self._server.wait_closed()

    async def _through(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        self._ways |= {writer, back}
        try:
            await asyncio.gather(self._copy(reader, back), self._copy(there, writer))
        finally:
            self._ways -= {writer, back}

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def tunnel(port: int, to: int) -> AsyncIterator[Tunnel]:
    way = Tunnel(port, to)
    await way.open()
    try:
        yield way
    finally:
        await way.cut()
