"""Asking a Prometheus: only one that is allowed, with no Secret but one that is meant for it, and what is no answer."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from aiohttp import web

from rollout_lws.analysis.criterion import Verdict
from rollout_lws.kube.client import Client
from rollout_lws.measuring.prometheus_client import LONGEST, PrometheusClient, Unanswered
from rollout_lws.measuring.prometheus_sources import PrometheusQueries
from rollout_lws.origins import Allowed
from rollout_lws.prometheus.poll import Poll, Query
from rollout_lws.prometheus.scrapes import Prometheus, Series
from rollout_lws.rollout.decision import Endpoint, Measurement, Question
from tests.kube.fakes import FakeTransport, Reply

NOW = datetime.now(UTC)


class _Clock:
    def __init__(self, ahead: float = 0.0) -> None:
        self._ahead = timedelta(seconds=ahead)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def loop_time(self, moment: datetime) -> float:
        raise NotImplementedError


class Server:
    """A Prometheus on loopback that answers what a test says, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answer: Any = vector(1)
        self.status, self.headers = 200, {"content-type": "application/json"}
        self.asked: list[Mapping[str, str]] = []
        self.sent: list[Mapping[str, str]] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def handle(self, request: web.Request) -> web.Response:
        self.asked.append({key: str(value) for key, value in (await request.post()).items()})
        self.sent.append({key.lower(): value for key, value in request.headers.items()})
        body = self.answer if isinstance(self.answer, bytes) else json.dumps(self.answer).encode()
        return web.Response(status=self.status, body=body, headers=self.headers)


def vector(*values: Any, **more: Any) -> dict[str, Any]:
    results = [{"metric": {"n": str(number)}, "value": [1.0, str(value)]} for number, value in enumerate(values)]
    return {"status": "success", "data": {"resultType": "vector", "result": results}, **more}


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    application = web.Application()
    application.router.add_post("/api/v1/query", made.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.port = runner.addresses[0][1]
    yield made
    await runner.cleanup()


SECRET = {
    "metadata": {"labels": {"rollouts.kruise.io/gates": "true"}},
    "data": {"key": base64.b64encode(b"s3cret\n").decode()},
}


@asynccontextmanager
async def asking(
    server: Server, *, ahead: float = 0.0, secret: Any = SECRET, allowed: str | None = None
) -> AsyncIterator[PrometheusClient]:
    transport = FakeTransport(Reply(200, json.dumps(secret).encode()))
    named = Allowed.parse(allowed or server.url, "--gate-addresses")
    client = PrometheusClient(Client(transport), _Clock(ahead), [named], server.url)
    try:
        yield client
    finally:
        await client.close()


OWN = Prometheus()


async def number(server: Server, prometheus: Prometheus = OWN, **how: Any) -> float:
    async with asking(server, **how) as client:
        return await client.number("prod", prometheus, "x", NOW)


async def test_the_default_server_is_asked_at_the_moment(server: Server) -> None:
    assert await number(server) == 1.0
    assert server.asked == [{"query": "x", "time": f"{NOW.timestamp():.3f}", "timeout": "10s"}]
    assert "authorization" not in server.sent[0]


async def test_a_token_of_its_own_is_sent_where_no_secret_is_named(server: Server) -> None:
    named = [Allowed.parse(server.url, "--prometheus")]
    client = PrometheusClient(Client(FakeTransport()), _Clock(), named, server.url, "t0ken")
    try:
        await client.number("prod", Prometheus(), "x", NOW)
    finally:
        await client.close()
    assert server.sent[0]["authorization"] == "Bearer t0ken"


async def test_samples_are_read_with_their_times(server: Server) -> None:
    results = [{"metric": {"a": "b"}, "values": [[1.5, "2"], [16.5, "NaN"]]}]
    server.answer = {"status": "success", "data": {"resultType": "matrix", "result": results}}
    async with asking(server) as client:
        (found,) = await client.samples("prod", Prometheus(), "x[1m]", NOW)
    assert (found.labels, found.points[0], found.native) == ({"a": "b"}, (1.5, 2.0), False)


async def test_native_histograms_are_marked(server: Server) -> None:
    results = [{"metric": {}, "histograms": [[1.5, {"count": "1"}]]}]
    server.answer = {"status": "success", "data": {"resultType": "matrix", "result": results}}
    async with asking(server) as client:
        assert await client.samples("prod", Prometheus(), "x[1m]", NOW) == [Series({}, ((1.5, 0.0),), native=True)]


@pytest.mark.parametrize(
    ("answer", "status", "why"),
    [
        (vector(), 200, "no result"),
        (vector(1, 2), 200, "has 2 results, {n=0}, {n=1}: make it one"),
        (vector(1, warnings=["store eu is not there"]), 200, "warns: store eu is not there"),
        ({"status": "error", "errorType": "bad_data", "error": "parse error"}, 400, "answered 400: parse error"),
        ({"status": "success", "data": {"resultType": "matrix", "result": []}}, 200, "is a matrix"),
        ({"status": "success", "data": {"resultType": "string", "result": [1, "x"]}}, 200, "is a string"),
        ({"status": "success"}, 200, "no data"),
        ({"status": "success", "data": {"resultType": "vector", "result": [{"value": "x"}]}}, 200, "unknown form"),
        (b"<html>", 502, "answered 502, and not as Prometheus does"),
        (b"\xff", 200, "not as Prometheus does"),
        (b" " * (LONGEST + 1), 200, "more than 4 MiB"),
    ],
)
async def test_what_is_no_answer(server: Server, answer: Any, status: int, why: str) -> None:
    server.answer, server.status = answer, status
    with pytest.raises(Unanswered, match=r".") as raised:
        await number(server)
    assert why in str(raised.value)


async def test_a_scalar_is_a_number(server: Server) -> None:
    server.answer = {"status": "success", "data": {"resultType": "scalar", "result": [1.0, "2.5"]}}
    assert await number(server) == 2.5


async def test_a_redirect_is_not_followed(server: Server) -> None:
    server.status, server.headers = 302, {"location": f"{server.url}/elsewhere"}
    with pytest.raises(Unanswered, match="answered 302"):
        await number(server)
    assert len(server.asked) == 1


async def test_nothing_is_unpacked(server: Server) -> None:
    server.headers = {"content-encoding": "gzip"}
    with pytest.raises(Unanswered, match="compressed"):
        await number(server)


@pytest.mark.parametrize(("ahead", "word"), [(-120.0, "ahead of"), (120.0, "behind")])
async def test_another_time_is_no_answer(server: Server, ahead: float, word: str) -> None:
    server.headers = {"date": format_datetime(datetime.now(UTC), usegmt=True)}
    with pytest.raises(Unanswered, match=f"s {word} ours"):
        await number(server, ahead=ahead)


@pytest.mark.parametrize(("ahead", "told"), [(-20.0, (20.0, 22.0)), (20.0, (0.0, 0.0))])
async def test_how_far_its_clock_is_ahead_is_known_once_it_has_answered(
    server: Server, ahead: float, told: tuple[float, float]
) -> None:
    server.headers = {"date": format_datetime(datetime.now(UTC), usegmt=True)}
    async with asking(server, ahead=ahead) as client:
        assert client.ahead(Prometheus()) == 0.0
        await client.number("prod", Prometheus(), "x", NOW)
        assert told[0] <= client.ahead(Prometheus()) <= told[1]


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "ALL_PROXY"])
async def test_proxies_of_the_environment_are_not_used(
    server: Server, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "http://127.0.0.1:9")
    assert await number(server) == 1.0


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:1",
        "https://127.0.0.1:{port}",
        "http://localhost:{port}",
        "http://169.254.169.254",
        "http://kubernetes.default.svc",
        "http://127.0.0.1.:1",
        "http://user@127.0.0.1:{port}",
        "http://127.0.0.1:{port}?x",
        "file:///etc/passwd",
    ],
)
async def test_a_server_that_nothing_allows_is_not_asked(server: Server, address: str) -> None:
    """Though a Rollout names it; an entry is a scheme, a host and a port, and its name is not looked up for it."""
    with pytest.raises(Unanswered, match="none of the controller's --gate-addresses"):
        await number(server, Prometheus(address=address.format(port=server.port)))
    assert not server.asked


async def test_without_a_default_an_address_is_asked_for(server: Server) -> None:
    async with asking(server) as client:
        client._default = ""
        with pytest.raises(Unanswered, match=r"set spec\.strategy\.analysis\.prometheus\.address"):
            await client.number("prod", Prometheus(), "x", NOW)


TOKEN = Prometheus(secret="prom", key="key")


async def test_a_token_is_sent_as_it_is_in_the_secret(server: Server) -> None:
    assert await number(server, TOKEN) == 1.0
    assert server.sent[0]["authorization"] == "Bearer s3cret"


@pytest.mark.parametrize(
    ("secret", "why"),
    [
        ({"data": SECRET["data"]}, "is not labelled"),
        ({**SECRET, "metadata": {"labels": {"rollouts.kruise.io/gates": "false"}}}, "is not labelled"),
        ({**SECRET, "data": {}}, "has no key key"),
        ({**SECRET, "data": {"key": "%"}}, "is no token"),
        ({**SECRET, "data": {"key": base64.b64encode(b"a\r\nhost: b").decode()}}, "is no token"),
        ({**SECRET, "data": {"key": base64.b64encode("ü".encode()).decode()}}, "is no token"),
        ({**SECRET, "data": {"key": ""}}, "is no token"),
    ],
)
async def test_a_secret_that_is_not_meant_for_it_is_not_sent(server: Server, secret: Any, why: str) -> None:
    with pytest.raises(Unanswered, match=r"secret prom.*" + why):
        await number(server, TOKEN, secret=secret)
    assert not server.asked


async def test_no_secret_is_read_for_a_server_that_is_not_allowed(server: Server) -> None:
    async with asking(server, allowed="http://prometheus:9090") as client:
        with pytest.raises(Unanswered, match="gate-addresses"):
            await client.number("prod", TOKEN, "x", NOW)
        transport = client._client._transport
        assert isinstance(transport, FakeTransport)
        assert not transport.requests


def measurement(query: Query, *pods: str) -> Measurement:
    endpoints = tuple(Endpoint(f"uid-{pod}", pod, "10.0.0.7", 8000, "/metrics", NOW) for pod in pods)
    return Measurement(Question("g", NOW - timedelta(seconds=600), query), endpoints)


async def polled(server: Server, query: Query, *pods: str, confine: bool = True) -> Poll:
    async with asking(server) as client:
        source = PrometheusQueries(client, _Clock(), 15.0, confine=confine)
        asked = measurement(query, *pods)
        folds = await source.round("prod", (asked,), {})
        answer = folds[asked.question](None, NOW.timestamp())
    assert isinstance(answer, Poll)
    return answer


async def test_a_query_is_asked_of_the_new_pods_in_the_namespace(server: Server) -> None:
    query = Query(Prometheus(matchers=(("cluster", "eu"),)), "sum(x{{{new}}})", limit=2.0)
    poll = await polled(server, query, "llama-0", "llama-1")
    assert poll.verdict is Verdict.PASSED
    assert server.asked[0]["query"] == 'sum(x{cluster="eu",namespace="prod",namespace="prod",pod=~"llama-0|llama-1"})'


async def test_what_is_watched_is_asked_of_pods_that_were_ready_when_the_window_began(server: Server) -> None:
    """The other's name had a pod of the stable version a minute ago, whose errors are not the new version's."""
    query = Query(Prometheus(), "sum(increase(x{{{new}}}[{{window}}]))", limit=2.0, window=300.0, watched=True)
    now = datetime.now(UTC)
    since = now - timedelta(seconds=750)
    pods = (
        Endpoint("a", "llama-0", "10.0.0.7", 8000, "/metrics", since),
        Endpoint("b", "llama-3", "10.0.0.8", 8000, "/metrics", now - timedelta(seconds=60)),
    )
    async with asking(server) as client:
        asked = Measurement(Question("g", since, query), pods)
        folds = await PrometheusQueries(client, _Clock(), 15.0, confine=True).round("prod", (asked,), {})
        poll = folds[asked.question](None, now.timestamp())
    assert isinstance(poll, Poll)
    assert poll.windows == 2
    # Some seconds may pass meanwhile.
    asked_of, _, length = server.asked[0]["query"].partition("[")
    assert asked_of == 'sum(increase(x{namespace="prod",namespace="prod",pod=~"llama-0"}'
    assert length.startswith("2m3")


async def test_queries_may_be_let_out_of_the_namespace(server: Server) -> None:
    await polled(server, Query(Prometheus(), "x", limit=2.0), "llama-0", confine=False)
    assert server.asked[0]["query"] == "x"


async def test_other_tenants_are_not_read(server: Server) -> None:
    await polled(server, Query(Prometheus(), 'x{namespace="other"} or y', limit=2.0), "llama-0")
    assert server.asked[0]["query"] == 'x{namespace="other",namespace="prod"} or y{namespace="prod"}'


@pytest.mark.parametrize(
    ("query", "pods", "why"),
    [
        ("x", (), "the new version has no ready group"),
        ("x{{{stable}}}", ("llama-0",), "the stable version has no ready group"),
        ("x{{{neww}}}", ("llama-0",), "there is no placeholder"),
    ],
)
async def test_what_cannot_be_asked_is_no_verdict(server: Server, query: str, pods: tuple[str, ...], why: str) -> None:
    poll = await polled(server, Query(Prometheus(), query, limit=2.0), *pods)
    assert poll.verdict is None
    assert why in poll.trouble
    assert not server.asked
