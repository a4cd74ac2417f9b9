"""Users of a model server: ``python -m tests.nodes.load --url URL --out FILE`` asks until SIGTERM and notes what ends.

Three kinds: ``fresh`` makes a connection for each request, ``kept`` has one for all of its own, ``stream`` reads one
stream after another. A request that ends is a line of FILE,

    [kind, started, ended, version or null, failure or null, pod or null]

with seconds since the epoch, and ``{"end": true}`` is its last line. Standard output has ``{"ready": true}`` when each
kind has had its first good answer, ``{"answered": {"short": n, "streams": n}}`` each second, and at the end
``{"summary": {kind: {"answered": n, "lost": n, "reset": n}}}``.

Nothing is sent twice. A request that an HTTP client would repeat by itself, since it was sent on a connection which the
server had closed and has never been read (RFC 9110, 9.2.2), is noted as ``RESET`` and is for the reader to judge.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import json
import signal
import socket
import struct
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import aiohttp
from yarl import URL

from tests.bench.lines import tell
from tests.nodes.losses import FRESH, KEPT, RESET, STREAM

#: The longest that a short answer, a connection, or the next line of a stream may take.
_PATIENCE_SECONDS = 10.0
#: After a stream that failed. The next would fail as fast, and there would be nothing to compare its losses with.
_AFTER_FAILURE_SECONDS = 0.2
_FLUSH_SECONDS = 1.0
#: Of what a server says with a refusal.
_LONGEST_TEXT = 160
#: Where the kernel's ``struct tcp_info`` has tcpi_bytes_acked and tcpi_bytes_sent, and how long it is up to there.
_ACKNOWLEDGED, _SENT, _INFO_BYTES = 120, 200, 208
#: The kernel counts the beginning and the end of a connection as a byte each.
_FRAMING_BYTES = 2


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked: ``url`` without a path, with which ``headers``, how many ask in each way, seconds of a
    stream, seconds between an answer and the next request, and milliseconds that a short answer takes.
    """

    url: str
    headers: Mapping[str, str]
    fresh: int
    kept: int
    streams: int
    stream_seconds: float
    pause: float
    ms: float


@dataclass(slots=True)
class Notes:
    """What has ended, in a file that is written each second."""

    file: TextIO
    wanted: set[str]  # kinds without a good answer
    counts: dict[str, dict[str, int]] = field(default_factory=dict)

    def note(self, kind: str, started: float, name: list[str], failure: str | None) -> None:
        """``name`` is version and pod, as far as they are known."""
        version, pod = name if len(name) == 2 else (None, None)
        json.dump([kind, started, time.time(), version, failure, pod], self.file, separators=(",", ":"))
        self.file.write("\n")
        count = self.counts.setdefault(kind, {"answered": 0, "lost": 0, "reset": 0})
        count["answered" if failure is None else "reset" if failure == RESET else "lost"] += 1
        if failure is None:
            self.good(kind)

    def good(self, kind: str) -> None:
        if kind in self.wanted:
            self.wanted.remove(kind)
            if not self.wanted:
                tell(ready=True)

    async def flush(self) -> None:
        while True:
            await asyncio.sleep(_FLUSH_SECONDS)
            self.file.flush()
            answered = {kind: self.counts[kind]["answered"] for kind in self.counts}
            streams = answered.pop(STREAM, 0)
            tell(answered={"short": sum(answered.values()), "streams": streams})


class Wire:
    """The one connection of a client that keeps it. A second handle on the socket outlives the client's, so that the
    kernel can be asked what became of the bytes.
    """

    def __init__(self) -> None:
        self._twin: socket.socket | None = None
        self._answers = 0

    def make(self, address: tuple[Any, ...]) -> socket.socket:
        """A socket for a new connection, as aiohttp wants it from its ``socket_factory``."""
        self.close()
        family, kind, protocol = address[:3]
        made = socket.socket(family, kind, protocol)
        self._twin = made.dup()
        return made

    def answered(self) -> None:
        self._answers += 1

    def never_read(self, error: Exception) -> bool:
        """The request that ended with ``error`` was not the first on its connection, and the server has not read it.

        A server that had closed the connection before, or closes it with our bytes still unread, resets it, and its
        kernel has not acknowledged them as a rule. One that has read them has acknowledged them, at the latest together
        with its end of the connection, which is no error.
        """
        if self._twin is None or not self._answers:
            return False
        if isinstance(error, OSError) and error.errno in (errno.ECONNRESET, errno.EPIPE):
            return True
        # The client sees the server's end of the connection before it hears that the request was refused.
        info = self._twin.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
        if not isinstance(error, aiohttp.ServerDisconnectedError) or len(info) < _INFO_BYTES:
            return False
        (acknowledged,), (sent,) = (struct.unpack_from("=Q", info, at) for at in (_ACKNOWLEDGED, _SENT))
        return bool(sent - acknowledged > _FRAMING_BYTES)

    def close(self) -> None:
        if self._twin is not None:
            self._twin.close()
        self._twin, self._answers = None, 0


class Users:
    """All that ask, until ``stopping`` is set; what runs then is waited for."""

    def __init__(self, plan: Plan, notes: Notes, stopping: asyncio.Event) -> None:
        self._plan, self._notes, self._stopping = plan, notes, stopping
        self._short = URL(f"{plan.url}/?ms={plan.ms:g}")
        self._long = URL(f"{plan.url}/stream?s={plan.stream_seconds:g}")

    async def ask(self) -> None:
        plan = self._plan
        async with asyncio.TaskGroup() as group:
            for _ in range(plan.fresh):
                group.create_task(self._ask_short(FRESH))
            for _ in range(plan.kept):
                group.create_task(self._ask_short(KEPT))
            for number in range(plan.streams):
                # So that they do not all end, and begin, in the same moment.
                group.create_task(self._read_streams(plan.stream_seconds * number / plan.streams))

    async def _ask_short(self, kind: str) -> None:
        wire = Wire()
        connector = (
            aiohttp.TCPConnector(force_close=True)
            if kind == FRESH
            else aiohttp.TCPConnector(limit=1, keepalive_timeout=3600, socket_factory=wire.make)
        )
        try:
            async with self._session(connector, aiohttp.ClientTimeout(total=_PATIENCE_SECONDS)) as session:
                while not self._stopping.is_set():
                    await self._one_short(kind, session, wire)
                    await asyncio.sleep(self._plan.pause)
        finally:
            wire.close()

    async def _one_short(self, kind: str, session: aiohttp.ClientSession, wire: Wire) -> None:
        started, failure = time.time(), None
        name: list[str] = []
        try:
            async with session.get(self._short) as response:
                text = (await response.read()).decode(errors="replace")
            wire.answered()
            if response.status == 200:
                name = text.split()
            if len(name) != 2:
                failure = _refusal(response.status, text)
        except (aiohttp.ClientError, TimeoutError) as error:
            failure = RESET if wire.never_read(error) else _words(error)
        self._notes.note(kind, started, name, failure)

    async def _read_streams(self, delay: float) -> None:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_PATIENCE_SECONDS, sock_read=_PATIENCE_SECONDS)
        await self._rest(delay)
        async with self._session(aiohttp.TCPConnector(force_close=True), timeout) as session:
            while not self._stopping.is_set():
                if not await self._one_stream(session):
                    await self._rest(_AFTER_FAILURE_SECONDS)

    async def _one_stream(self, session: aiohttp.ClientSession) -> bool:
        started, failure, read = time.time(), None, b""
        name: list[str] = []
        try:
            async with session.get(self._long) as response:
                while part := await response.content.readany():
                    read += part
                    if not name and response.status == 200 and b"\n" in read:
                        name = read.split(b"\n", 1)[0].decode(errors="replace").split()
                        self._notes.good(STREAM)
            if response.status != 200:
                failure = _refusal(response.status, read.decode(errors="replace"))
            elif not read.endswith(b"\ndone\n"):
                failure = _cut(read, "ended early")
        except (aiohttp.ClientError, TimeoutError) as error:
            failure = _cut(read, _words(error)) if read else _words(error)
        self._notes.note(STREAM, started, name, failure)
        return failure is None

    async def _rest(self, seconds: float) -> None:
        """So many seconds, or until the end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    def _session(self, connector: aiohttp.TCPConnector, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientSession:
        session = aiohttp.ClientSession(
            connector=connector,
            timeout=timeout,
            headers=self._plan.headers,
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )
        # aiohttp would send a GET again whose connection was closed, used before or not, and there is no other switch.
        assert session._retry_connection
        session._retry_connection = False
        return session


def _refusal(status: int, text: str) -> str:
    return f"{status} {text.strip()[:_LONGEST_TEXT]}".rstrip()


def _cut(read: bytes, why: str) -> str:
    return f"cut after {read.count(b'token')} tokens: {why}"


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"nothing for {_PATIENCE_SECONDS:g} s"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "ended early"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"no connection: {error.os_error}"
    return f"{type(error).__name__}: {error}"[:_LONGEST_TEXT]


async def run(plan: Plan, path: Path) -> None:
    """Ask until SIGTERM or SIGINT. OSError when ``path`` cannot be written."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    asking = ((FRESH, plan.fresh), (KEPT, plan.kept), (STREAM, plan.streams))
    with path.open("w", buffering=1 << 20) as file:
        notes = Notes(file, {kind for kind, count in asking if count})
        flushing = asyncio.create_task(notes.flush())
        await Users(plan, notes, stopping).ask()
        flushing.cancel()
        file.write('{"end":true}\n')
    tell(summary=notes.counts)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.nodes.load", description="Ask a model server until SIGTERM.")
    parser.add_argument("--url", required=True, help="http://ADDRESS[:PORT]")
    parser.add_argument("--header", action="append", default=[], help="NAME: VALUE, Host where it is not that of --url")
    parser.add_argument("--fresh", type=int, default=4, help="users with a new connection for each request")
    parser.add_argument("--kept", type=int, default=4, help="users that keep a connection")
    parser.add_argument("--streams", type=int, default=10, help="users that read streams")
    parser.add_argument("--stream-seconds", type=float, default=10.0)
    parser.add_argument("--pause", type=float, default=0.02, help="seconds from an answer to the next request")
    parser.add_argument("--ms", type=float, default=30.0, help="milliseconds that a short answer takes")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    plan = Plan(
        url=given.url.rstrip("/"),
        headers=dict(each.split(": ", 1) for each in given.header),
        fresh=given.fresh,
        kept=given.kept,
        streams=given.streams,
        stream_seconds=given.stream_seconds,
        pause=given.pause,
        ms=given.ms,
    )
    asyncio.run(run(plan, given.out))


if __name__ == "__main__":
    main()
