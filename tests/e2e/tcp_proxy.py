"""A network between one client and the API server that can be cut, while everybody else goes on talking to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from tests.e2e.daemons import reserved_port

_HOST = "127.0.0.1"
_CHUNK = 1 << 16


class TcpProxy:
    """Passes connections to a server on; ``proxied`` makes one.

    ``port`` is its own, on loopback, and stays the same when the network is cut and fixed. TLS passes through it, so
    the server's certificate has to hold for 127.0.0.1.
    """

    def __init__(self, port: int, host: str, target: int) -> None:
        self.port = port
        self._target = host, target
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._passing: set[asyncio.Task[Any]] = set()

    async def mend(self) -> None:
        """Let connections through, from now on."""
        self._server = await asyncio.start_server(self._pass_on, _HOST, self.port, reuse_port=True)

    def cut(self) -> None:
        """End every connection, and refuse new ones until the network is fixed."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._open:
            writer.transport.abort()

    async def close(self) -> None:
        """Cut it for good, and wait for the end of every connection."""
        self.cut()
        await asyncio.gather(*self._passing)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        passing = asyncio.current_task()
        assert passing is not None
        self._passing.add(passing)
        passing.add_done_callback(self._passing.discard)
        self._open.add(writer)
        try:
            there, back = await asyncio.open_connection(*self._target)
            self._open.add(back)
            try:
                await _either(_copy(reader, back), _copy(there, writer))
            finally:
                self._open.discard(back)
                back.transport.abort()
        except OSError:
            pass  # A server that is away is told by closing, as a network would.
        finally:
            self._open.discard(writer)
            writer.transport.abort()


async def _either(*copies: Any) -> None:
    """Until one direction has ended: none of what passes here is closed by halves."""
    tasks = [asyncio.ensure_future(each) for each in copies]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(_CHUNK):
        writer.write(chunk)
        await writer.drain()


@asynccontextmanager
async def proxied(url: str) -> AsyncIterator[TcpProxy]:
    """A proxy of the server at ``url``, open from here to the end of the block."""
    to = urlsplit(url)
    assert to.hostname is not None and to.port is not None
    with reserved_port() as port:
        proxy = TcpProxy(port, to.hostname, to.port)
        await proxy.mend()
        try:
            yield proxy
        finally:
            await proxy.close()


def through(proxy: TcpProxy, kubeconfig: Path, into: Path) -> Path:
    """The user of ``kubeconfig``, who comes by way of ``proxy``; written to the path ``into``, which is restored."""
    document = yaml.safe_load(kubeconfig.read_text())
    for each in document["clusters"]:
        each["cluster"]["server"] = f"https://{_HOST}:{proxy.port}"
    into.write_text(yaml.safe_dump(document))
    return into
