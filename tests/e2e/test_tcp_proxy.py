"""A network that is cut and fixed: what a client sees of it, and a server that knows nothing of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.tcp_proxy import TcpProxy, proxied, through

#: What a reader sees of a connection that has ended, politely or not.
ENDED = ConnectionResetError, asyncio.IncompleteReadError


@asynccontextmanager
async def echo() -> AsyncIterator[str]:
    """A server that says again what it is told, line by line; gives its URL."""

    talks: list[asyncio.Task[Any]] = []

    async def again(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.current_task()
        assert talk is not None
        talks.append(talk)
        with suppress(ConnectionResetError):
            while line := await reader.readline():
                writer.write(line)
        await closed(writer)

    server = await asyncio.start_server(again, "127.0.0.1", 0)
    async with server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    await asyncio.gather(*talks)


async def connected(proxy: TcpProxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(b"hello\n")
    assert await reader.readline() == b"hello\n"
    return reader, writer


async def closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(ConnectionResetError):
        await writer.wait_closed()


async def test_a_cut_ends_connections_and_refuses_new_ones_until_it_is_fixed() -> None:
    async with echo() as url, proxied(url) as proxy:
        port = proxy.port
        reader, writer = await connected(proxy)
        proxy.cut()
        with pytest.raises(ENDED):
            await reader.readexactly(1)
        await closed(writer)
        with pytest.raises(ConnectionRefusedError):
            await connected(proxy)
        await proxy.mend()
        assert proxy.port == port
        _, writer = await connected(proxy)
        await closed(writer)


async def test_a_server_that_is_away_ends_the_connection() -> None:
    async with echo() as url:
        pass
    async with proxied(url) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        with pytest.raises(ENDED):
            await reader.readexactly(1)
        await closed(writer)


async def test_a_user_comes_by_way_of_the_proxy(tmp_path: Path) -> None:
    direct = {"clusters": [{"name": "e2e", "cluster": {"server": "https://127.0.0.1:1", "insecure": True}}]}
    path = tmp_path / "direct"
    path.write_text(yaml.safe_dump({**direct, "users": ["me"]}))
    async with echo() as url, proxied(url) as proxy:
        document = yaml.safe_load(through(proxy, path, tmp_path / "through").read_text())
        assert document["clusters"][0]["cluster"] == {"server": f"https://127.0.0.1:{proxy.port}", "insecure": True}
        assert document["users"] == ["me"]
