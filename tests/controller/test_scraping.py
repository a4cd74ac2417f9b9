"""What a pod may answer to a scrape, and what is made of it: one sentence that says why it was not read."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from aiohttp import web

from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kube.transport import Relay, TooLong
from rollout_lws.measuring import scraping
from rollout_lws.measuring.scraping import LONGEST, PodScraper, ProxyScraper, Unread
from rollout_lws.rollout.decision import Endpoint
from tests.kube.fakes import Reply

POD = Endpoint("uid", "llama-0", "10.0.0.7", 8000, "/metrics")
TEXT = "text/plain"

#: Some kilobytes, which unpack to 40 MiB.
ENDLESS = gzip.compress(b"a 1\n" * (10 * 2**20))
PACKED = {"content-type": "text/plain", "content-encoding": "gzip"}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def served(handler: Handler, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[PodScraper, Endpoint]]:
    """A scraper that reaches a server on this machine, as if it were a pod."""
    application = web.Application()
    application.router.add_get("/{path:.*}", handler)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    monkeypatch.setattr(scraping, "_dialled", lambda *_: "127.0.0.1")
    scraper = PodScraper()
    try:
        yield scraper, replace(POD, port=runner.addresses[0][1])
    finally:
        await scraper.close()
        await runner.cleanup()


def answering(response: Callable[[], web.Response]) -> Handler:
    async def handler(_: web.Request) -> web.StreamResponse:
        return response()

    return handler


async def test_metrics_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(answering(lambda: web.Response(text="a 1\n", content_type=TEXT)), monkeypatch) as (scraper, pod):
        assert await scraper.metrics("default", pod) == "a 1\n"


@pytest.mark.parametrize(
    ("response", "why"),
    [
        (lambda: web.Response(status=404, text="no"), "/metrics answered 404"),
        (lambda: web.Response(status=500, text="a 1\n"), "/metrics answered 500"),
        (lambda: web.Response(text="<html>", content_type="text/html"), "answered text/html, not Prometheus' text"),
        (lambda: web.Response(text="{}", content_type="application/json"), "answered application/json"),
        (lambda: web.Response(status=302, headers={"location": "/other"}), "/metrics answered 302: name in spec"),
        (lambda: web.Response(body=ENDLESS, headers=PACKED), "/metrics answered gzip, which was not asked for"),
        (lambda: web.Response(body=b"\xff\xfe", content_type=TEXT), "is no text"),
        (lambda: web.Response(body=b"a 1\n" * (LONGEST // 4 + 1), content_type=TEXT), "more than 4 MiB"),
    ],
)
async def test_other_answers(response: Callable[[], web.Response], why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(answering(response), monkeypatch) as (scraper, pod):
        with pytest.raises(Unread, match=why):
            await scraper.metrics("default", pod)


async def test_a_redirect_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def handler(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.Response(status=302, headers={"location": "/secret"})

    async with served(handler, monkeypatch) as (scraper, pod):
        with pytest.raises(Unread):
            await scraper.metrics("default", pod)
    assert asked == ["/metrics"]


async def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with served(answering(lambda: web.Response(text="a 1\n", content_type=TEXT)), monkeypatch) as (scraper, pod):
        assert await scraper.metrics("default", pod) == "a 1\n"


async def test_a_pod_that_hangs_is_left_after_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scraping, "SECONDS", 0.2)
    ended = asyncio.Event()

    async def handler(_: web.Request) -> web.StreamResponse:
        await ended.wait()
        return web.Response()

    async with served(handler, monkeypatch) as (scraper, pod):
        try:
            with pytest.raises(Unread, match=r"no answer in 0\.2 s"):
                await scraper.metrics("default", pod)
        finally:
            ended.set()


async def test_a_port_on_which_nothing_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scraping, "_dialled", lambda *_: "127.0.0.1")
    scraper = PodScraper()
    with pytest.raises(Unread, match="/metrics on port 1"):
        await scraper.metrics("default", replace(POD, port=1))
    await scraper.close()


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("", "it has no address yet"),
        ("127.0.0.1", "is not a pod's address"),
        ("::1", "is not a pod's address"),
        ("169.254.169.254", "is not a pod's address"),
        ("fe80::1", "is not a pod's address"),
        ("0.0.0.0", "is not a pod's address"),
        ("224.0.0.1", "is not a pod's address"),
        ("::ffff:127.0.0.1", "is not a pod's address"),
        ("::ffff:169.254.169.254", "is not a pod's address"),
        ("metadata.internal", "is no address"),
        ("10.0.0.7@evil", "is no address"),
    ],
)
async def test_addresses_that_are_never_dialled(address: str, why: str) -> None:
    with pytest.raises(Unread, match=why):
        await PodScraper().metrics("default", replace(POD, address=address))


async def test_a_port_that_no_container_declares_is_not_asked() -> None:
    for scraper in (PodScraper(), ProxyScraper(_Client(b""))):  # type: ignore[arg-type]
        with pytest.raises(Unread, match=r"spec\.strategy\.analysis\.pods\.port"):
            await scraper.metrics("default", replace(POD, port=0))


@pytest.mark.parametrize("port", [10250, 10255, 10256, 2379, 6443])
async def test_a_port_of_a_node_is_not_asked_though_a_container_declares_it(port: int) -> None:
    """A pod with hostNetwork has its node's address."""
    for scraper in (PodScraper(), ProxyScraper(_Client(b""))):  # type: ignore[arg-type]
        with pytest.raises(Unread, match=f"port {port} is a node's own"):
            await scraper.metrics("default", replace(POD, port=port))


@pytest.mark.parametrize(("server", "address"), [("10.96.0.1", "10.96.0.1"), ("fd00::1", "fd00:0:0::1")])
async def test_a_status_that_names_the_api_server_is_not_believed(server: str, address: str) -> None:
    with pytest.raises(Unread, match="is the API server's address"):
        await PodScraper(server).metrics("default", replace(POD, address=address, port=443))


@pytest.mark.parametrize("path", ["/../../x", "/a/../../x", "/./x", "x", "/%2e%2e/x", "/x?y", "/x#y"])
async def test_a_path_that_would_lead_elsewhere_is_not_asked(path: str) -> None:
    for scraper in (PodScraper(), ProxyScraper(_Client(b""))):  # type: ignore[arg-type]
        with pytest.raises(Unread, match="is no path of metrics"):
            await scraper.metrics("default", replace(POD, path=path))


class _Client:
    """An API server that answers so, or fails so."""

    def __init__(self, answer: bytes | Exception | Reply) -> None:
        self._answer = answer

    async def relayed(self, namespace: str, pod: str, path: str, relay: Relay) -> Reply:
        assert (namespace, pod, path, relay.method) == ("prod", "llama-0:8000", "/metrics", "GET")
        assert (relay.headers["accept-encoding"], relay.seconds, relay.longest) == ("identity", 5.0, LONGEST)
        if isinstance(self._answer, Exception):
            raise self._answer
        answer = self._answer if isinstance(self._answer, Reply) else Reply(200, self._answer, {"content-type": TEXT})
        if len(answer.body) > relay.longest:
            raise TooLong("more than 4 MiB")
        return answer


DENIED = ApiError(403, "Forbidden", 'User "x" cannot get resource "pods/proxy" in API group "" in the namespace "prod"')


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Reply(404, b"the page"), "/metrics answered 404"),
        (Reply(503, b"error trying to reach pod"), "/metrics answered 503"),
        (DENIED, "allow the controller's account to get pods/proxy in namespace prod"),
        (Unreachable("no"), "no answer in 5 s"),
        (b"a 1\n" * (LONGEST // 4 + 1), "more than 4 MiB"),
        (b"\xff", "is no text"),
        (Reply(302, b"", {"location": "https://elsewhere"}), "/metrics answered 302: name in spec"),
        (Reply(204, b""), "/metrics answered 204"),
        (Reply(200, b"<html>", {"content-type": "text/html"}), "/metrics answered text/html"),
        (Reply(200, ENDLESS, PACKED), "/metrics answered gzip, which was not asked for"),
    ],
)
async def test_answers_through_the_api_server(answer: bytes | Exception | Reply, why: str) -> None:
    with pytest.raises(Unread, match=why):
        await ProxyScraper(_Client(answer)).metrics("prod", POD)  # type: ignore[arg-type]


async def test_metrics_through_the_api_server() -> None:
    assert await ProxyScraper(_Client(b"a 1\n")).metrics("prod", POD) == "a 1\n"  # type: ignore[arg-type]
