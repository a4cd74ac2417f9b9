"""Requests to real receivers on loopback: verified there, bounded here, and no secret in what is said of them."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from standardwebhooks import Webhook

from rollout_lws.clock import WallClock
from rollout_lws.notifications.delivery import Answered, Reply, Unanswered
from rollout_lws.notifications.destination import Destination, Format
from rollout_lws.notifications.post import HttpPost
from rollout_lws.notifications.signing import headers, key
from tests.notifications.receiver import KEY

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
PATH = "/services/verysecret"
BODY = '{"specversion": "1.0", "message": "ü"}'.encode()


@asynccontextmanager
async def served(handler: Handler, trust: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """The URL of a receiver."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=trust)
    await site.start()
    _, port = runner.addresses[0][:2]
    try:
        yield f"{'https' if trust else 'http'}://127.0.0.1:{port}{PATH}"
    finally:
        await runner.cleanup()


async def sent(url: str, format: Format = Format.CLOUDEVENTS, seconds: float = 5.0, **changes: object) -> Reply:
    """What became of one request."""
    to = replace(Destination("hook", format, url, keys=(key(KEY),)), **changes)  # type: ignore[arg-type]
    post = HttpPost(WallClock(), seconds)
    signed = headers(to.keys, "id-1", datetime.now(UTC), BODY) | {"content-type": to.content_type}
    try:
        return await post.send(to, signed, BODY)
    finally:
        await post.close()


async def test_a_receiver_verifies_what_it_gets() -> None:
    got: list[web.Request] = []

    async def verify(request: web.Request) -> web.Response:
        Webhook(KEY).verify(await request.read(), dict(request.headers))
        got.append(request)
        return web.Response(status=204)

    async with served(verify) as url:
        assert await sent(f"{url}?tenant=a", headers=(("Authorization", "Bearer abc"),)) == Answered(204)
    (request,) = got
    assert (request.method, request.path, request.query_string) == ("POST", PATH, "tenant=a")
    assert request.headers["Content-Type"] == "application/cloudevents+json"
    assert request.headers["Authorization"] == "Bearer abc"
    assert request.headers["User-Agent"] == "rollout-lws"
    assert "Cookie" not in request.headers


async def test_retry_after_and_the_status_come_back() -> None:
    async def busy(_: web.Request) -> web.Response:
        return web.Response(status=429, headers={"Retry-After": "17"})

    async with served(busy) as url:
        assert await sent(url) == Answered(429, 17.0)


@pytest.mark.parametrize(
    ("said", "format", "word"),
    [
        ("channel_is_archived", Format.SLACK, "channel_is_archived"),
        ("channel_is_archived", Format.CLOUDEVENTS, ""),
        ("your token T0/verysecret is wrong", Format.SLACK, ""),
        ("x" * 5000, Format.SLACK, ""),
        ("", Format.SLACK, ""),
    ],
)
async def test_of_an_answer_only_a_word_of_slack_is_kept(said: str, format: Format, word: str) -> None:
    async def refuse(_: web.Request) -> web.Response:
        return web.Response(status=403, text=said)

    async with served(refuse) as url:
        assert await sent(url, format) == Answered(403, None, word)


async def test_a_redirect_leads_nowhere() -> None:
    paths: list[str] = []

    async def lead(request: web.Request) -> web.Response:
        paths.append(request.path)
        return web.Response(status=307, headers={"Location": "/elsewhere"})

    async with served(lead) as url:
        assert await sent(url) == Answered(307)
    assert paths == [PATH]


async def test_the_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    async def take(_: web.Request) -> web.Response:
        return web.Response()

    async with served(take) as url:
        assert await sent(url) == Answered(200)


async def test_a_receiver_that_hangs_costs_its_time_and_no_more() -> None:
    free = asyncio.Event()

    async def hang(_: web.Request) -> web.Response:
        await free.wait()
        return web.Response()

    async with served(hang) as url:
        assert await sent(url, seconds=0.05) == Unanswered("gave no answer in 0.05 s")
        free.set()


async def test_an_answer_without_end_is_not_read_to_it() -> None:
    async def flood(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=200)
        await response.prepare(request)
        while True:
            await response.write(b"x" * 65536)

    async with served(flood) as url:
        assert await sent(url) == Answered(200)
        assert await sent(url, Format.SLACK) == Answered(200)


async def test_what_cannot_be_reached_is_told_without_the_url(unused_tcp_port: int) -> None:
    refused = await sent(f"http://127.0.0.1:{unused_tcp_port}{PATH}")
    assert isinstance(refused, Unanswered)
    assert "refused" in refused.why
    nowhere = await sent(f"http://nowhere.invalid{PATH}")
    assert isinstance(nowhere, Unanswered)
    assert "verysecret" not in refused.why + nowhere.why


def authority(path: Path) -> tuple[ssl.SSLContext, str]:
    """A server's context for 127.0.0.1, and the CA to be trusted."""
    private = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "receiver")]), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(True, None), True)
        .sign(private, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    format, encryption = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (path / "tls.crt").write_bytes(pem)
    (path / "tls.key").write_bytes(private.private_bytes(serialization.Encoding.PEM, format, encryption))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(path / "tls.crt", path / "tls.key")
    return context, pem.decode()


async def test_tls_is_verified_by_the_cas_that_are_given(tmp_path: Path) -> None:
    context, ca = authority(tmp_path)

    async def take(_: web.Request) -> web.Response:
        return web.Response()

    async with served(take, context) as url:
        assert await sent(url, ca=ca) == Answered(200)
        untrusted = await sent(url)
        assert isinstance(untrusted, Unanswered)
        assert "certificate" in untrusted.why
        misnamed = await sent(url.replace("127.0.0.1", "localhost"), ca=ca)
        assert isinstance(misnamed, Unanswered)
        assert "certificate" in misnamed.why
        assert "verysecret" not in untrusted.why + misnamed.why
