"""The users of the tests: that each loss is noted, once, and nothing is noted that was none."""

from __future__ import annotations

import asyncio
import io
import select
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.bench.processes import Child, child
from tests.nodes.load import Notes, Plan, Users, Wire
from tests.nodes.losses import FRESH, KEPT, RESET, STREAM, Log, Request, read, tally
from tests.nodes.test_model_server import connected, ready

_SECONDS = 10.0
#: Two of each kind, which ask fast.
USERS = ("--fresh", "2", "--kept", "2", "--streams", "2", "--stream-seconds", "0.3", "--pause", "0.002", "--ms", "2")

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Asking:
    """Users at work, whose notes are read when they have ended."""

    def __init__(self, process: Child, file: Path) -> None:
        self.process, self._file = process, file

    async def ended(self) -> Log:
        (summary,) = await self.process.rest_of("summary")
        log = read(self._file.read_text().splitlines())
        counted = {
            kind: {
                "answered": sum(each.failure is None for each in log.requests if each.kind == kind),
                "lost": sum(each.lost for each in log.requests if each.kind == kind),
                "reset": sum(each.failure == RESET for each in log.requests if each.kind == kind),
            }
            for kind in {each.kind for each in log.requests}
        }
        assert (summary, log.whole) == (counted, True)
        return log

    async def are_served(self) -> None:
        assert await self.process.told("ready", lambda _: None, _SECONDS) is True


@asynccontextmanager
async def asking(port: int, tmp_path: Path, *more: str) -> AsyncIterator[Asking]:
    file = tmp_path / "notes"
    url = f"http://127.0.0.1:{port}"
    command = ("-m", "tests.nodes.load", "--url", url, "--out", str(file), *USERS, *more)
    async with child("users", *command, logs=tmp_path) as process:
        yield Asking(process, file)
    assert (tmp_path / "users.log").read_text() == ""


@asynccontextmanager
async def answering(handler: Handler) -> AsyncIterator[int]:
    """A server by hand; its port."""
    async with await asyncio.start_server(handler, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


class Paper(io.StringIO):
    """What notes are written to in this process; ``lines`` is released for each."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = asyncio.Semaphore(0)

    def write(self, text: str) -> int:
        for _ in range(text.count("\n")):
            self.lines.release()
        return super().write(text)


async def noted(port: int, least: int, **counts: int) -> list[Request]:
    """What users of this process note who stop asking when so many requests have ended."""
    asks = {"fresh": 0, "kept": 0, "streams": 0, **counts}
    plan = Plan(f"http://127.0.0.1:{port}", {"Host": "chat.example"}, stream_seconds=0.1, pause=0.001, ms=1, **asks)
    paper, stopping = Paper(), asyncio.Event()
    users = asyncio.create_task(Users(plan, Notes(paper, set()), stopping).ask())
    for _ in range(least):
        await paper.lines.acquire()
    stopping.set()
    await users
    return list(read(paper.getvalue().splitlines()).requests)


async def test_answers_are_noted_with_who_gave_them_and_pods_that_drain_lose_nothing(tmp_path: Path) -> None:
    async with ready() as (server, port), asking(port, tmp_path) as users:
        await users.are_served()
        async with connected(port) as other:
            assert await other.asks("/drain", "Connection: close") == (200, "draining\n")
        for _ in range(20):
            # Meanwhile the users do the same.
            async with connected(port) as other:
                await other.asks("/?ms=10")
        log = await users.ended()
        server.signal(signal.SIGTERM)
        assert await server.end(_SECONDS) == 0
    assert {(each.version, each.pod, each.failure) for each in log.requests} == {("v1", "chat-0", None)}
    assert {each.kind for each in log.requests} == {FRESH, KEPT, STREAM}
    assert tally(log.requests).short > 20
    for each in log.requests:
        assert each.ended - each.started >= (0.3 if each.kind == STREAM else 0.002), each


async def test_pods_that_die_lose_what_they_answer(tmp_path: Path) -> None:
    async with ready(ON_TERM="die") as (server, port), asking(port, tmp_path, "--stream-seconds", "600") as users:
        await users.are_served()
        server.signal(signal.SIGTERM)
        assert await server.end(_SECONDS) == 143
        log = await users.ended()
    cut = next(each for each in log.requests if each.kind == STREAM)
    assert (cut.version, cut.pod, cut.lost) == ("v1", "chat-0", True)
    assert str(cut.failure).startswith("cut after ")
    count = tally(log.requests)
    assert count.lost_streams == count.streams > 0


async def test_no_server_is_a_loss_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
    requests = await noted(port, 10, fresh=1, kept=1, streams=1)
    assert {each.kind for each in requests} == {FRESH, KEPT, STREAM}
    assert all(each.lost and "Connect call failed" in str(each.failure) for each in requests)


async def test_a_refusal_is_a_loss_and_said_in_full() -> None:
    heads: list[str] = []

    async def gateway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await _head(reader):
            heads.append(head)
            writer.write(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 19\r\n\r\nno healthy upstream")
        writer.close()

    async with answering(gateway) as port:
        requests = await noted(port, 10, fresh=1, kept=1, streams=1)
    assert {(each.kind, each.failure, each.version) for each in requests} == {
        (kind, "503 no healthy upstream", None) for kind in (FRESH, KEPT, STREAM)
    }
    assert all("\r\nHost: chat.example\r\n" in head for head in heads)


@pytest.mark.parametrize("kind", [FRESH, KEPT])
async def test_a_request_that_was_read_is_sent_once_and_lost(kind: str) -> None:
    """aiohttp would send it a second time."""
    heads: list[str] = []

    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Each second one is answered, so that the others of a kept connection are not its first.
        while head := await _head(reader):
            heads.append(head)
            if len(heads) % 2 == 0:
                break
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nv1 a\n")
        writer.close()

    async with answering(server) as port:
        requests = await noted(port, 6, **{kind: 1})
    assert len(requests) == len(heads)
    disconnected = "ServerDisconnectedError: Server disconnected"
    assert [each.failure for each in requests[:4]] == [None, disconnected, None, disconnected]


async def test_a_stream_without_its_end_is_lost_though_its_answer_was_whole() -> None:
    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nv1 chat-0\ntoken\ntoken\n")
        writer.close()

    async with answering(server) as port:
        first, *_ = await noted(port, 2, streams=1)
    assert first == Request(STREAM, first.started, first.ended, "v1", "chat-0", "cut after 2 tokens: ended early")


async def test_a_request_that_the_server_has_never_read_is_a_reset() -> None:
    def closes_unread(door: socket.socket) -> None:
        connection, _ = door.accept()
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nv1 a\n")
        # The next request is there, and is not taken.
        connection.recv(1, socket.MSG_PEEK)
        connection.close()

    def serves(door: socket.socket) -> None:
        for _ in range(2):
            closes_unread(door)
        door.close()

    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
        serving = asyncio.create_task(asyncio.to_thread(serves, door))
        requests = await noted(port, 4, kept=1)
        await serving
    assert [each.failure for each in requests[:4]] == [None, RESET, None, RESET]
    assert not any(each.lost for each in requests[:4])


@pytest.mark.parametrize(
    ("answered", "reads", "never_read"),
    [
        (True, False, True),
        # It was the server's to answer what it has read.
        (True, True, False),
        # The first request of a connection that was accepted.
        (False, False, False),
    ],
)
def test_the_kernel_tells_whether_a_request_was_read(answered: bool, reads: bool, never_read: bool) -> None:
    wire = Wire()
    with socket.create_server(("127.0.0.1", 0)) as door:
        client = wire.make((socket.AF_INET, socket.SOCK_STREAM, 0, "", door.getsockname()))
        client.connect(door.getsockname())
        server, _ = door.accept()
        if answered:
            wire.answered()
        if reads:
            client.sendall(b"x" * 100)
            assert len(server.recv(1000)) == 100
        server.close()
        poll = select.poll()
        poll.register(client, select.POLLRDHUP)
        assert poll.poll(_SECONDS * 1000)
        if not reads:
            client.sendall(b"x" * 100)
            poll.modify(client, 0)
            assert poll.poll(_SECONDS * 1000)
        client.close()
        assert wire.never_read(aiohttp.ServerDisconnectedError()) is never_read
        assert wire.never_read(ConnectionResetError(104, "reset")) is answered
        assert wire.never_read(TimeoutError()) is False
    wire.close()


async def _head(reader: asyncio.StreamReader) -> str:
    """The next request; "" when the client has gone."""
    try:
        return (await reader.readuntil(b"\r\n\r\n")).decode()
    except (asyncio.IncompleteReadError, ConnectionError):
        return ""
