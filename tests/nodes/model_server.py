"""A model server without a model, for pods of the tests: the standard library of Python 3.11, one file.

``python model_server.py`` serves until SIGTERM or SIGINT; what it is told stands in its environment (``Settings``).
``python model_server.py drain SECONDS`` is for a preStop hook: it tells the server of this pod to drain, and ends after
so many seconds.

* ``GET /?ms=30``: ``VERSION POD`` after so many milliseconds.
* ``GET /stream?s=10``: a line ``VERSION POD`` at once, a line ``token`` each 100 ms for ``s`` seconds, a line ``done``.
* ``/v1/completions``: OpenAI's completions, whole or as a stream, of ``max_tokens`` tokens that mean nothing.
* ``/v1/models``: the one model.
* ``/health``: 200 as soon as it is loaded (a worker: and has joined its leader), 503 before.
* ``/join?who=POD``: what a worker asks its leader.
* ``/metrics``: vLLM's names, for Prometheus.
* ``/drain``, from this pod only: answers say ``Connection: close`` from now on; new connections are served as before.

All else is 404, and 503 while it loads. A request whose client goes away is an aborted one.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time

if __name__ == "__main__":
    # A quarter of the memory would be a library for TLS, which asyncio can do without.
    sys.modules["ssl"] = None  # type: ignore[assignment]

import asyncio
import json
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass

#: Longest head and longest body of a request, in bytes.
_LIMIT = 1 << 20
#: Between two attempts of a worker to reach its leader, and the longest that one may take.
_JOIN_SECONDS, _JOIN_TIMEOUT_SECONDS = 0.2, 5.0
_LONGEST_SECONDS = 3600.0
_LAST_CHUNK = b"0\r\n\r\n"
_TEXT, _JSON, _EVENTS = "text/plain; charset=utf-8", "application/json", "text/event-stream"
_METRICS = "text/plain; version=0.0.4; charset=utf-8"
_REASONS = {
    200: "OK", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
    411: "Length Required", 413: "Content Too Large", 503: "Service Unavailable",
}  # fmt: skip
#: Why a request has ended, in vLLM's words; each has a series from the beginning.
_FINISHED = ("stop", "length", "abort", "error", "repetition")
#: Upper bounds of vLLM's histograms, in seconds.
_FIRST_TOKEN_BOUNDS = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
    1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
)  # fmt: skip
_BETWEEN_BOUNDS = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
_LATENCY_BOUNDS = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0,
    120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0,
)  # fmt: skip


class Bad(Exception):
    """A request that gets no answer but a refusal: the status, and what is wrong with it."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says, by names in capitals; times are seconds."""

    version: str
    pod: str  # HOSTNAME
    port: int  # 0: any free one
    load_seconds: float
    on_term: str  # drain: end what runs; die: exit at once
    drain_seconds: float  # the longest end
    quiet_seconds: float  # a connection may be unused for so long in a drain; at the end only one that never asked
    worker: bool  # LWS_WORKER_INDEX is neither empty nor 0
    leader: str  # LWS_LEADER_ADDRESS; without a port it listens where we do
    model: str
    first_token_seconds: float  # of completions
    token_seconds: float  # of all others, and of streams

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Settings:
        """ValueError when one is no number, or ON_TERM is unknown."""
        get = environment.get
        if (on_term := get("ON_TERM", "drain")) not in ("drain", "die"):
            raise ValueError(f"ON_TERM is {on_term!r}, neither drain nor die")
        return cls(
            version=get("VERSION", "v0"),
            pod=get("HOSTNAME") or socket.gethostname(),
            port=int(get("PORT", "8000")),
            load_seconds=float(get("LOAD_SECONDS", "0")),
            on_term=on_term,
            drain_seconds=float(get("DRAIN_SECONDS", "60")),
            quiet_seconds=float(get("QUIET_SECONDS", "1")),
            worker=get("LWS_WORKER_INDEX", "0") not in ("", "0"),
            leader=get("LWS_LEADER_ADDRESS", ""),
            model=get("MODEL", "model"),
            first_token_seconds=float(get("FIRST_TOKEN_SECONDS", "0.03")),
            token_seconds=float(get("TOKEN_SECONDS", "0.1")),
        )


class Histogram:
    def __init__(self, name: str, text: str, bounds: tuple[float, ...]) -> None:
        self.name, self.text, self.bounds = name, text, bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.sum += seconds

    def lines(self, labels: str) -> list[str]:
        told, below = [f"# HELP {self.name} {self.text}", f"# TYPE {self.name} histogram"], 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            below += count
            told.append(f'{self.name}_bucket{{le="{bound}",{labels}}} {below}')
        return [*told, f"{self.name}_count{{{labels}}} {below}", f"{self.name}_sum{{{labels}}} {self.sum!r}"]


class Metrics:
    """Counts since the start. A request is one for tokens: probes, scrapes and refusals are none."""

    def __init__(self, model: str) -> None:
        self._labels = f'engine="0",model_name="{model}"'
        self.running = 0
        self.finished = dict.fromkeys(_FINISHED, 0)
        self.first = Histogram(
            "vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.", _FIRST_TOKEN_BOUNDS
        )
        self.between = Histogram(
            "vllm:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", _BETWEEN_BOUNDS
        )
        self.latency = Histogram(
            "vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", _LATENCY_BOUNDS
        )

    def text(self) -> str:
        labels = self._labels
        lines = [
            "# HELP vllm:num_requests_running Number of requests in model execution batches.",
            "# TYPE vllm:num_requests_running gauge",
            f"vllm:num_requests_running{{{labels}}} {self.running}",
            "# HELP vllm:num_requests_waiting Number of requests waiting to be processed.",
            "# TYPE vllm:num_requests_waiting gauge",
            f"vllm:num_requests_waiting{{{labels}}} 0",
            "# HELP vllm:request_success_total Count of successfully processed requests.",
            "# TYPE vllm:request_success_total counter",
        ]
        for reason, count in self.finished.items():
            lines.append(f'vllm:request_success_total{{{labels},finished_reason="{reason}"}} {count}')
        for histogram in (self.first, self.between, self.latency):
            lines += histogram.lines(labels)
        return "\n".join([*lines, ""])


class Work:
    """A request that runs: ``tokens`` of them, the first after ``first`` seconds and the others each ``between``.
    ``told`` is called at each, and ``ended`` after the last.
    """

    __slots__ = (
        "_between",
        "_ended",
        "_first",
        "_last",
        "_loop",
        "_made",
        "_metrics",
        "_reason",
        "_started",
        "_timer",
        "_tokens",
        "_told",
    )  # fmt: skip

    def __init__(
        self,
        metrics: Metrics,
        tokens: int,
        first: float,
        between: float,
        reason: str,
        ended: Callable[[], None],
        told: Callable[[int], None] | None = None,
    ) -> None:
        self._metrics, self._tokens, self._first, self._between = metrics, tokens, first, between
        self._reason, self._ended, self._told = reason, ended, told
        self._loop = asyncio.get_running_loop()
        self._started = self._last = self._loop.time()
        self._made = 0
        metrics.running += 1
        self._timer = self._loop.call_at(self._started + first, self._token)

    def _token(self) -> None:
        now = self._loop.time()
        (self._metrics.between if self._made else self._metrics.first).observe(now - self._last)
        self._last = now
        self._made += 1
        if self._told is not None:
            self._told(self._made)
        if self._made < self._tokens:
            # Counted from the start, so that a late one does not make all others late.
            self._timer = self._loop.call_at(self._started + self._first + self._made * self._between, self._token)
            return
        self._metrics.latency.observe(now - self._started)
        self._over(self._reason)
        self._ended()

    def cancel(self) -> None:
        """The client has gone away."""
        self._timer.cancel()
        self._over("abort")

    def _over(self, reason: str) -> None:
        self._metrics.running -= 1
        self._metrics.finished[reason] += 1


@dataclass(slots=True)
class Asked:
    """A request as it came; names of headers in lower case."""

    method: str
    path: str
    query: dict[str, str]
    http11: bool
    headers: dict[str, str]
    body: bytes = b""

    @classmethod
    def parsed(cls, head: bytes) -> Asked:
        """The head of a request without its empty line. Bad, when it is none."""
        first, *rest = head.decode("latin-1").split("\r\n")
        parts = first.split(" ")
        if len(parts) != 3 or parts[2] not in ("HTTP/1.1", "HTTP/1.0") or not parts[1].startswith("/"):
            raise Bad(400, "no request line of HTTP/1.1")
        headers = {}
        for line in rest:
            name, colon, value = line.partition(":")
            if not colon or not name or name != name.strip():
                raise Bad(400, "a header without a name")
            headers[name.lower()] = value.strip()
        path, _, query = parts[1].partition("?")
        pairs = (pair.partition("=") for pair in query.split("&")) if query else ()
        return cls(parts[0], path, {key: value for key, _, value in pairs}, parts[2] == "HTTP/1.1", headers)

    @property
    def length(self) -> int:
        """Bytes of the body. Bad, when they are not told or too many."""
        if "transfer-encoding" in self.headers:
            raise Bad(411, "a body needs a Content-Length")
        told = self.headers.get("content-length", "0")
        if not (told.isascii() and told.isdigit()):
            raise Bad(400, "Content-Length is no number")
        if int(told) > _LIMIT:
            raise Bad(413, f"more than {_LIMIT} bytes")
        return int(told)

    @property
    def keeps(self) -> bool:
        """The client wants to use its connection again."""
        words = {word.strip() for word in self.headers.get("connection", "").lower().split(",")}
        return "close" not in words if self.http11 else "keep-alive" in words

    def number(self, name: str, per_second: float) -> float:
        """Seconds that the query tells as ``name``; 0 without it. Bad, when that is no time."""
        try:
            seconds = float(self.query.get(name, "0")) / per_second
        except ValueError:
            raise Bad(400, f"{name} is no number") from None
        if not 0 <= seconds <= _LONGEST_SECONDS:
            raise Bad(400, f"{name} is out of range")
        return seconds


class Connection(asyncio.Protocol):
    """One client: a request after another, each answered before the next is looked at."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.transport: asyncio.Transport
        self.work: Work | None = None
        self.quiet_since = server.loop.time()
        self.used = False  # has sent a request
        self._buffer = b""
        self._asked: Asked | None = None  # whose body is still to come, or which is answered
        self._answering = False
        self._keep = True
        self._chunked = False
        self._closing = False

    @property
    def quiet(self) -> bool:
        return not (self._answering or self._asked or self._buffer or self._closing)

    @property
    def local(self) -> bool:
        return str(self.transport.get_extra_info("peername", ("",))[0]).startswith("127.")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self.server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        if self.work is not None:
            self.work.cancel()
            self.work = None
        self.server.left(self)

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        self._buffer = self._buffer + data if self._buffer else data
        if not self._answering:
            self._go_on()
        elif len(self._buffer) > 2 * _LIMIT:
            self.transport.abort()

    def _go_on(self) -> None:
        try:
            while not self._closing and not self._answering and self._next():
                pass
        except Bad as bad:
            self._refuse(bad)

    def _next(self) -> bool:
        """Take the next request from what has come and begin to answer it; False when more of it has to come."""
        if self._asked is None:
            self._buffer = self._buffer.lstrip(b"\r\n")
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > _LIMIT:
                    raise Bad(400, "the head has no end")
                return False
            self._asked = Asked.parsed(self._buffer[:end])
            self._buffer = self._buffer[end + 4 :]
            if len(self._buffer) < self._asked.length and "100-continue" in self._asked.headers.get("expect", ""):
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        length = self._asked.length
        if len(self._buffer) < length:
            return False
        self._asked.body, self._buffer = self._buffer[:length], self._buffer[length:]
        self._answering = self.used = True
        self.server.answer(self, self._asked)
        return True

    def _refuse(self, bad: Bad) -> None:
        """Nothing that follows can be read as a request: the answer, and the end of what we say. What the client still
        sends is read, since the kernel throws the answer away with a connection that is closed before.
        """
        self._asked, self._keep, self._answering = None, False, True
        self._write_head(bad.status, _TEXT, len(bad.text) + 1)
        self.transport.write(f"{bad.text}\n".encode())
        self._closing, self._buffer = True, b""
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.server.loop.call_later(self.server.settings.quiet_seconds, self.transport.close)

    def reply(self, status: int, text: str, kind: str = _TEXT) -> None:
        """A whole answer, and the end of the request."""
        if not self._closing:
            body = text.encode()
            self._write_head(status, kind, len(body), b"" if self._head_only else body)
            self._done()

    def begin(self, kind: str) -> bool:
        """The head of a stream. False when the client wanted no more than that, and the request has ended."""
        # Clients of HTTP/1.0 do not know chunks: the end of the connection is the end of the answer.
        self._chunked = self._asked is not None and self._asked.http11
        self._write_head(200, kind, None)
        if self._head_only:
            self._done()
            return False
        return True

    def part(self, text: str, *, last: bool = False) -> None:
        """More of a stream; the ``last`` ends the request."""
        if self._closing:
            return
        data = text.encode()
        if self._chunked:
            data = b"%x\r\n%b\r\n%b" % (len(data), data, _LAST_CHUNK if last else b"")
        self.transport.write(data)
        if last:
            self._done()

    @property
    def _head_only(self) -> bool:
        return self._asked is not None and self._asked.method == "HEAD"

    def _write_head(self, status: int, kind: str, length: int | None, body: bytes = b"") -> None:
        """``length`` is None for a stream."""
        if length is None:
            framing = "Transfer-Encoding: chunked\r\n" if self._chunked else ""
        else:
            framing = f"Content-Length: {length}\r\n"
        asked = self._asked
        # At the latest moment at which it can be said.
        self._keep = asked is not None and asked.keeps and not self.server.draining and not (
            length is None and not self._chunked
        )  # fmt: skip
        last = "keep-alive" if self._keep else "close"
        head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\n{framing}Connection: {last}\r\n\r\n"
        self.transport.write(head.encode() + body)

    def _done(self) -> None:
        self.work, self._asked, self._answering = None, None, False
        self.quiet_since = self.server.loop.time()
        if not self._keep or self.server.ending:
            self.close()
        elif self._buffer:
            self.server.loop.call_soon(self._go_on)

    def close(self) -> None:
        self._closing = True
        self.transport.close()


class Server:
    """All connections, and what they are answered. ``ended`` is set when the process may exit."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.loop = asyncio.get_running_loop()
        self.metrics = Metrics(settings.model)
        self.connections: set[Connection] = set()
        self.ready = False
        self.draining = False  # answers say so, all else goes on
        self.ending = False  # nothing new is accepted
        self.ended = asyncio.Event()
        self._name = f"{settings.version} {settings.pod}\n"
        self._completions = 0
        self._door: asyncio.Server | None = None
        self._routes: dict[str, tuple[str, Callable[[Connection, Asked], None]]] = {
            "/": ("GET", self._short),
            "/stream": ("GET", self._stream),
            "/v1/completions": ("POST", self._completion),
            "/v1/models": ("GET", self._models),
            "/health": ("GET", self._health),
            "/join": ("GET", self._join),
            "/metrics": ("GET", lambda connection, _: connection.reply(200, self.metrics.text(), _METRICS)),
            "/drain": ("GET", self._drain),
        }

    async def open(self) -> int:
        """Accept connections; the port. OSError when it is taken."""
        self._door = await self.loop.create_server(
            lambda: Connection(self), "0.0.0.0", self.settings.port, backlog=1024
        )
        return int(self._door.sockets[0].getsockname()[1])

    def answer(self, connection: Connection, asked: Asked) -> None:
        """Begin to answer. What is wrong with a request that was read as a whole does not end its connection."""
        method, handler = self._routes.get(asked.path, ("", None))
        try:
            if not self.ready and asked.path != "/drain":
                raise Bad(503, "loading")
            if handler is None:
                raise Bad(404, f"there is no {asked.path}")
            if (asked.method if asked.method != "HEAD" else "GET") != method:
                raise Bad(405, f"{asked.path} takes {method}")
            handler(connection, asked)
        except Bad as bad:
            connection.reply(bad.status, f"{bad.text}\n")

    def _short(self, connection: Connection, asked: Asked) -> None:
        seconds = asked.number("ms", per_second=1000)
        connection.work = Work(self.metrics, 1, seconds, 0, "stop", lambda: connection.reply(200, self._name))

    def _stream(self, connection: Connection, asked: Asked) -> None:
        each = self.settings.token_seconds
        tokens = max(1, round(asked.number("s", per_second=1) / each))
        if connection.begin(_TEXT):
            connection.part(self._name)
            connection.work = Work(
                self.metrics, tokens, each, each, "stop",
                lambda: connection.part("done\n", last=True), lambda _: connection.part("token\n"),
            )  # fmt: skip

    def _completion(self, connection: Connection, asked: Asked) -> None:
        try:
            wanted = json.loads(asked.body)
            tokens, streamed = wanted.get("max_tokens", 16), wanted.get("stream", False)
        except (ValueError, AttributeError):
            raise Bad(400, "the body is no JSON object") from None
        if type(tokens) is not int or not 1 <= tokens <= _LIMIT:
            raise Bad(400, f"max_tokens is not from 1 to {_LIMIT}")
        self._completions += 1
        shape = {
            "id": f"cmpl-{self._completions}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": self.settings.model,
            "system_fingerprint": self._name.strip(),
        }

        def said(text: str, finished: bool) -> dict[str, object]:
            choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": "length" if finished else None}
            return {**shape, "choices": [choice]}

        def told(made: int) -> None:
            connection.part(f"data: {json.dumps(said(' token', made == tokens))}\n\n")

        def ended() -> None:
            usage = {"prompt_tokens": 1, "completion_tokens": tokens, "total_tokens": tokens + 1}
            connection.reply(200, json.dumps({**said(" token" * tokens, True), "usage": usage}), _JSON)

        if streamed:
            connection.begin(_EVENTS)
        connection.work = Work(
            self.metrics, tokens, self.settings.first_token_seconds, self.settings.token_seconds, "length",
            (lambda: connection.part("data: [DONE]\n\n", last=True)) if streamed else ended, told if streamed else None,
        )  # fmt: skip

    def _models(self, connection: Connection, _: Asked) -> None:
        model = {"id": self.settings.model, "object": "model", "created": 0, "owned_by": "vllm"}
        connection.reply(200, json.dumps({"object": "list", "data": [model]}), _JSON)

    def _health(self, connection: Connection, _: Asked) -> None:
        connection.reply(200, "")

    def _join(self, connection: Connection, asked: Asked) -> None:
        tell(f"joined by {asked.query.get('who', 'a worker without a name')}")
        connection.reply(200, self._name)

    def _drain(self, connection: Connection, _: Asked) -> None:
        if not connection.local:
            raise Bad(403, "only this pod may say so")
        if not self.draining:
            tell(f"drains, {self.metrics.running} running")
            self.draining = True
            self._sweep()
        connection.reply(200, "draining\n")

    def _sweep(self) -> None:
        """Close connections that are quiet, again and again. One that is in use is told with its next answer: a client
        that is just about to ask again would lose its request.
        """
        before = self.loop.time() - self.settings.quiet_seconds
        for connection in list(self.connections):
            if connection.quiet and (connection.quiet_since <= before or (self.ending and connection.used)):
                connection.close()
        self._end_if_empty()
        if not self.ended.is_set():
            self.loop.call_later(self.settings.quiet_seconds, self._sweep)

    def end(self, number: int) -> None:
        """What a signal asks for."""
        if self.settings.on_term == "die":
            tell(f"dies, {self.metrics.running} running")
            os._exit(128 + number)
        if self.ending:
            return
        tell(f"ends, {self.metrics.running} running")
        self.draining = self.ending = True
        if self._door is not None:
            self._door.close()
        self.loop.call_later(self.settings.drain_seconds, self.ended.set)
        self._sweep()

    def left(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self._end_if_empty()

    def _end_if_empty(self) -> None:
        if self.ending and not self.connections:
            self.ended.set()

    async def load(self) -> None:
        """Become ready: after the time that loading takes, and for a worker when its leader has answered."""
        began = self.loop.time()
        await asyncio.sleep(self.settings.load_seconds)
        if self.settings.worker:
            await self._reach_leader()
        self.ready = True
        tell(f"ready after {self.loop.time() - began:.3f} s")

    async def _reach_leader(self) -> None:
        host, _, port = self.settings.leader.partition(":")
        said = ""
        while True:
            try:
                async with asyncio.timeout(_JOIN_TIMEOUT_SECONDS):
                    told = await _asked(host, int(port or self.settings.port), f"/join?who={self.settings.pod}")
            except (OSError, TimeoutError, UnicodeError) as error:
                told = str(error) or "no answer"
            if told.startswith("HTTP/1.1 200"):
                tell(f"joined {self.settings.leader}")
                return
            if told != said:
                tell(f"waits for {self.settings.leader}: {told}")
            said = told
            await asyncio.sleep(_JOIN_SECONDS)


async def _asked(host: str, port: int, path: str) -> str:
    """The first line of an answer; "" when the connection was closed before. OSError when there is none."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        return (await reader.readline()).decode("latin-1").strip()
    finally:
        writer.close()


def tell(text: str) -> None:
    print(text, flush=True)


async def serve(settings: Settings) -> None:
    """Serve until a signal has been obeyed. OSError when the port is taken."""
    server = Server(settings)
    for number in (signal.SIGTERM, signal.SIGINT):
        # Nothing ends the first process of a container by itself.
        server.loop.add_signal_handler(number, server.end, number)
    port = await server.open()
    tell(f"{settings.version} {settings.pod} listens on {port}")
    loading = asyncio.create_task(server.load())
    await server.ended.wait()
    loading.cancel()
    tell(f"ended, {server.metrics.running} running")
    # An orderly end would wait for a look-up of a leader's name that is under way.
    os._exit(0)


def drain(port: int, seconds: float) -> None:
    """For a preStop hook, which must not fail: a server that does not answer any more needs no drain."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(b"GET /drain HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            connection.recv(1024)
    except OSError as error:
        print(f"drain: {error}", file=sys.stderr)
    # Routers take their time to hear that this pod ends.
    time.sleep(seconds)


def main(arguments: list[str]) -> None:
    settings = Settings.of(os.environ)
    if arguments[:1] == ["drain"]:
        drain(settings.port, float(arguments[1]))
    else:
        asyncio.run(serve(settings))


if __name__ == "__main__":
    main(sys.argv[1:])
