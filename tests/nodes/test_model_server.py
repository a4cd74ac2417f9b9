"""The model server of the tests: what it answers, how it begins, and above all how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.kubectl.programs import Program

#: Quick, and with names that tests know.
_SETTINGS = {"PORT": "0", "VERSION": "v1", "HOSTNAME": "chat-0", "TOKEN_SECONDS": "0.01"}
SERVER = str(Path(__file__).with_name("model_server.py"))


@asynccontextmanager
async def serving(**environment: str) -> AsyncIterator[tuple[Program, int]]:
    """A server that listens, and its port. What it printed must not be a traceback, whatever the test did to it."""
    settings = {
        "PORT": "0",
        "VERSION": "v1",
        "HOSTNAME": "chat-0",
        "TOKEN_SECONDS": "0.01",
        "QUIET_SECONDS": "0.1",
        **environment,
    }
    # Isolated, as in a container: it may find nothing of ours.
    server = await Program.start(sys.executable, "-I", SERVER, environment=settings)
    try:
        line = await server.says("listens on")
        yield server, int(line.rpartition(" ")[2])
    finally:
        await server.kill()
    assert "Traceback" not in server.output and "Exception" not in server.output


@asynccontextmanager
async def ready(**environment: str) -> AsyncIterator[tuple[Program, int]]:
    async with serving(**environment) as (server, port):
        await server.says("ready after")
        yield server, port


class Client:
    """A connection, by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, path: str, *headers: str, method: str = "GET", body: str = "") -> None:
        lines = [f"{method} {path} HTTP/1.1", "Host: chat.example", *headers]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        self.writer.write("\r\n".join([*lines, "", body]).encode())

    async def head(self) -> tuple[int, dict[str, str]]:
        first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        return int(first.split()[1]), dict(line.lower().split(": ", 1) for line in lines)

    async def answer(self) -> tuple[int, dict[str, str], str]:
        """Status, headers and body of the next answer."""
        status, headers = await self.head()
        body = b""
        if "content-length" in headers:
            body = await self.reader.readexactly(int(headers["content-length"]))
        while headers.get("transfer-encoding") == "chunked":
            size = int(await self.reader.readline(), 16)
            body += (await self.reader.readexactly(size + 2))[:-2]
            if not size:
                break
        return status, headers, body.decode()

    async def asks(self, path: str, *headers: str, method: str = "GET", body: str = "") -> tuple[int, str]:
        self.send(path, *headers, method=method, body=body)
        status, _, text = await self.answer()
        return status, text


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


async def metrics(port: int) -> dict[str, Any]:
    """Families by name, as Prometheus's own parser reads them."""
    async with connected(port) as client:
        return {each.name: each for each in text_string_to_metric_families((await client.asks("/metrics"))[1])}


def value(families: dict[str, Any], sample: str, **labels: str) -> float:
    found = [
        each.value
        for family in families.values()
        for each in family.samples
        if each.name == sample and labels.items() <= each.labels.items()
    ]
    assert len(found) == 1, (sample, labels, found)
    return float(found[0])


async def test_requests_and_refusals_on_one_connection() -> None:
    async with ready() as (server, port), connected(port) as client:
        assert await client.asks("/?ms=1") == (200, "v1 chat-0\n")
        assert await client.asks("/health") == (200, "")
        assert await client.asks("/join?who=chat-0-1") == (200, "v1 chat-0\n")
        await server.says("joined by chat-0-1")
        for path, status in (
            ("/nope", 404),
            ("/?ms=x", 400),
            ("/?ms=-1", 400),
            ("/?ms=nan", 400),
            ("/stream?s=1e9", 400),
        ):
            assert (await client.asks(path))[0] == status, path
        assert (await client.asks("/", method="POST", body="{}"))[0] == 405
        for body in ("", "no JSON", "[]", '{"max_tokens": 0}', '{"max_tokens": "many"}'):
            assert (await client.asks("/v1/completions", method="POST", body=body))[0] == 400, body
        client.send("/stream?s=9", method="HEAD")
        assert (await client.head())[1]["transfer-encoding"] == "chunked"
        client.send("/", method="HEAD")
        assert (await client.head())[1]["content-length"] == "10"
        # One after another, though they come at once.
        client.send("/?ms=20")
        client.send("/health")
        assert [(await client.answer())[2] for _ in range(2)] == ["v1 chat-0\n", ""]
        client.send("/", "Connection: close")
        assert (await client.answer())[1]["connection"] == "close"
        assert await client.reader.read() == b""


async def test_what_cannot_be_read_is_refused_and_its_connection_closed() -> None:
    completion = b"POST /v1/completions HTTP/1.1\r\n"
    async with ready() as (_, port):
        for sent, status in (
            (b"nonsense\r\n\r\n", 400),
            (b"GET / HTTP/2.0\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nno header\r\n\r\n", 400),
            (completion + b"Content-Length: -1\r\n\r\n", 400),
            (completion + b"Content-Length: 99999999\r\n\r\n" + b"x" * 100_000, 413),
            (completion + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 411),
        ):
            async with connected(port) as client:
                client.writer.write(sent)
                assert (await client.answer())[0] == status, sent
                assert await client.reader.read() == b""


async def test_streams_completions_and_what_prometheus_is_told() -> None:
    async with ready(FIRST_TOKEN_SECONDS="0.02", MODEL="llama") as (_, port), connected(port) as client:
        assert await client.asks("/stream?s=0.05") == (200, "v1 chat-0\n" + 5 * "token\n" + "done\n")
        told = json.loads((await client.asks("/v1/completions", method="POST", body='{"max_tokens": 3}'))[1])
        assert (told["choices"][0]["text"], told["choices"][0]["finish_reason"]) == (" token token token", "length")
        assert (told["usage"]["completion_tokens"], told["system_fingerprint"]) == (3, "v1 chat-0")
        text = (await client.asks("/v1/completions", method="POST", body='{"max_tokens": 2, "stream": true}'))[1]
        *parts, last = re.findall(r"data: (.*)\n\n", text)
        assert [json.loads(part)["choices"][0]["finish_reason"] for part in parts] == [None, "length"]
        assert last == "[DONE]"
        assert json.loads((await client.asks("/v1/models"))[1])["data"][0]["id"] == "llama"

        client.send("/?ms=60000")
        async with connected(port) as other:
            # The answer to a later request on another connection: the first has been begun by then.
            await other.asks("/health")
        during = await metrics(port)
    assert value(during, "vllm:num_requests_running", model_name="llama") == 1
    assert value(during, "vllm:num_requests_waiting", model_name="llama") == 0
    finished = {each.labels["finished_reason"]: each.value for each in during["vllm:request_success"].samples}
    assert finished == {"stop": 1, "length": 2, "abort": 0, "error": 0, "repetition": 0}
    kinds = {name: family.type for name, family in during.items()}
    assert kinds == {
        "vllm:num_requests_running": "gauge",
        "vllm:num_requests_waiting": "gauge",
        "vllm:request_success": "counter",
        "vllm:time_to_first_token_seconds": "histogram",
        "vllm:inter_token_latency_seconds": "histogram",
        "vllm:e2e_request_latency_seconds": "histogram",
    }
    for name, count in (("time_to_first_token", 3), ("inter_token_latency", 4 + 2 + 1), ("e2e_request_latency", 3)):
        assert value(during, f"vllm:{name}_seconds_count", model_name="llama") == count, name
        assert value(during, f"vllm:{name}_seconds_bucket", le="+Inf") == count, name
    assert value(during, "vllm:time_to_first_token_seconds_bucket", le="0.005") == 0
    assert value(during, "vllm:e2e_request_latency_seconds_sum") > 0.05 + 0.04 + 0.03


async def test_a_client_that_goes_away_is_an_aborted_request_and_nothing_else() -> None:
    async with ready() as (server, port):
        for path in ("/?ms=60000", "/stream?s=600"):
            async with connected(port) as client:
                client.send(path)
                if "stream" in path:
                    await client.head()
        async with connected(port) as client:
            client.writer.write(b"GET /unfinished")
        server.signal(signal.SIGTERM)
        # It would wait for what runs.
        assert await server.end(5) == 0
        assert server.lines[-1] == "ended, 0 running"


async def test_until_it_is_loaded_all_is_refused() -> None:
    async with serving(LOAD_SECONDS="600") as (server, port):
        async with connected(port) as client:
            for path in ("/health", "/", "/metrics", "/join?who=chat-0-1"):
                assert await client.asks(path) == (503, "loading\n")
        server.signal(signal.SIGTERM)
        assert await server.end(5) == 0


async def test_a_worker_is_healthy_when_its_leader_has_answered() -> None:
    asked: list[str] = []
    loaded = asyncio.Event()

    async def leader(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readline()).decode())
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" if loaded.is_set() else b"HTTP/1.1 503 Service Unavailable\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(leader, "127.0.0.1", 0) as door:
        address = f"localhost:{door.sockets[0].getsockname()[1]}"
        worker = {"LWS_WORKER_INDEX": "1", "LWS_LEADER_ADDRESS": address, "HOSTNAME": "chat-0-1"}
        async with serving(**worker) as (server, port), connected(port) as client:
            assert (await server.says("waits for")).endswith("HTTP/1.1 503 Service Unavailable")
            assert await client.asks("/health") == (503, "loading\n")
            loaded.set()
            await server.says("ready after")
            assert await client.asks("/health") == (200, "")
    assert len(asked) > 1 and set(asked) == {"GET /join?who=chat-0-1 HTTP/1.1\r\n"}


async def test_drained_it_goes_on_and_says_good_bye() -> None:
    async with ready(QUIET_SECONDS="600") as (server, port), connected(port) as used, connected(port) as busy:
        assert (await used.asks("/health"))[0] == 200
        busy.send("/stream?s=0.2")
        assert (await busy.head())[1]["connection"] == "keep-alive"
        hook = await Program.start(
            sys.executable, "-I", SERVER, "drain", "0", environment={"PATH": os.environ["PATH"], "PORT": str(port)}
        )
        assert (await hook.end(5), hook.output) == (0, "")
        await server.says("drains, ")
        used.send("/?ms=1")
        status, headers, _ = await used.answer()
        assert (status, headers["connection"], await used.reader.read()) == (200, "close", b"")
        async with connected(port) as fresh:
            fresh.send("/")
            status, headers, _ = await fresh.answer()
        assert (status, headers["connection"]) == (200, "close")
        assert (await busy.reader.readuntil(b"0\r\n\r\n")).count(b"token") == 20


async def test_drained_it_closes_what_is_not_used() -> None:
    async with ready(QUIET_SECONDS="0.02") as (_, port), connected(port) as idle, connected(port) as new:
        await idle.asks("/health")
        async with connected(port) as other:
            assert await other.asks("/drain") == (200, "draining\n")
        assert (await idle.reader.read(), await new.reader.read()) == (b"", b"")


async def test_a_drain_without_a_server_does_not_fail() -> None:
    hook = await Program.start(
        sys.executable, "-I", SERVER, "drain", "0", environment={"PATH": os.environ["PATH"], "PORT": "1"}
    )
    assert await hook.end(5) == 0
    assert "refused" in hook.output


async def test_ended_it_answers_what_runs_and_accepts_nothing() -> None:
    async with ready() as (server, port), connected(port) as stream, connected(port) as short, connected(port) as idle:
        await idle.asks("/health")
        stream.send("/stream?s=0.3")
        assert (await stream.head())[0] == 200
        short.send("/?ms=200")
        async with connected(port) as other:
            await other.asks("/health")
        server.signal(signal.SIGTERM)
        await server.says("ends, 2 running")
        assert await idle.reader.read() == b""
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        status, headers, _ = await short.answer()
        assert (status, headers["connection"]) == (200, "close")
        assert (await stream.reader.read()).endswith(b"done\n\r\n0\r\n\r\n")
        assert await server.end(5) == 0


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [({"DRAIN_SECONDS": "0.05"}, 0, "ended, 1 running"), ({"ON_TERM": "die"}, 143, "dies, 1 running")],
)
async def test_what_runs_is_cut_at_the_limit_of_a_drain_or_at_once(
    settings: dict[str, str], code: int, words: str
) -> None:
    async with ready(**settings) as (server, port), connected(port) as client:
        client.send("/stream?s=600")
        await client.head()
        server.signal(signal.SIGTERM)
        assert (await server.end(5), server.lines[-1]) == (code, words)
        assert not (await client.reader.read()).endswith(b"0\r\n\r\n")


async def test_settings_that_mean_nothing_are_told() -> None:
    server = await Program.start(
        sys.executable, "-I", SERVER, environment={"PATH": os.environ["PATH"], "ON_TERM": "linger"}
    )
    assert await server.end(5) == 1
    assert "ON_TERM is 'linger', neither drain nor die" in server.output
