"""The guard over real TLS: to whom it answers what, and that connections go on while its certificate is replaced."""

from __future__ import annotations

import asyncio
import io
import json
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest

from rollout_lws.errors import UsageError
from rollout_lws.guard import review, server
from rollout_lws.guard.certificates import Identity, issue
from rollout_lws.guard.review import Request
from rollout_lws.guard.verdict import ALLOWED, Outcome, Rule, Verdict, denied
from rollout_lws.settings import Address
from tests.guard.test_review import review as asked_of

HOST = "127.0.0.1"


@dataclass
class Served:
    url: str
    port: int
    context: ssl.SSLContext
    door: server.Door = field(default_factory=server.Door)
    verdict: Verdict | Exception = ALLOWED
    judged: list[tuple[Rule, Request]] = field(default_factory=list)
    told: list[tuple[Rule, Outcome]] = field(default_factory=list)

    def judge(self, rule: Rule, asked: Request) -> Verdict:
        self.judged.append((rule, asked))
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return self.verdict


@asynccontextmanager
async def served(identity: Identity) -> AsyncIterator[Served]:
    context = server.context()
    server.show(context, identity)
    it = Served("", 0, context)
    async with server.served(
        Address(HOST, 0), context, it.judge, lambda rule, outcome: it.told.append((rule, outcome))
    ) as it.door:
        it.port, it.url = it.door.port, f"https://{HOST}:{it.door.port}"
        yield it


def made() -> Identity:
    return issue([HOST], datetime.now(UTC))


@asynccontextmanager
async def client(*trusted: Identity) -> AsyncIterator[aiohttp.ClientSession]:
    """Verifies, as an API server does, by what a bundle has."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting(*trusted))) as session:
        yield session


def trusting(*trusted: Identity) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=b"".join(each.authority for each in trusted).decode())


async def post(session: aiohttp.ClientSession, url: str, body: bytes) -> tuple[int, Any]:
    async with session.post(url, data=io.BytesIO(body)) as answer:
        text = await answer.text()
        return answer.status, json.loads(text) if answer.status == 200 else text


async def test_who_trusts_the_authority_of_a_bundle_gets_an_answer() -> None:
    mine = made()
    async with served(mine) as it, client(made(), mine) as session:
        for rule in Rule:
            status, said = await post(session, f"{it.url}/{rule}", asked_of())
            assert (status, said["response"]) == (200, {"uid": "1", "allowed": True})
        assert [rule for rule, _ in it.judged] == [*Rule]
        it.verdict = denied("no: do that")
        _, said = await post(session, f"{it.url}/plan", asked_of())
        assert said["response"]["status"]["message"] == "no: do that"
        assert it.told[-1] == (Rule.PLAN, Outcome.DENIED)


async def test_who_leaves_judges_on_and_is_dialled_no_more() -> None:
    mine = made()
    async with served(mine) as it, client(mine) as session:
        for leaving, kept in ((False, None), (True, "close")):
            it.door.leaving = leaving
            async with session.post(f"{it.url}/hold", data=io.BytesIO(asked_of())) as answer:
                assert (answer.status, answer.headers.get("Connection")) == (200, kept)
                assert (await answer.json())["response"]["allowed"] is True
        assert len(it.judged) == 2


async def test_nobody_else_does() -> None:
    async with served(made()) as it, client(made()) as session:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await post(session, f"{it.url}/hold", asked_of())


async def test_a_bug_of_ours_stands_in_nobodys_way(caplog: pytest.LogCaptureFixture) -> None:
    mine = made()
    async with served(mine) as it, client(mine) as session:
        it.verdict = ZeroDivisionError("a bug")
        _, said = await post(session, f"{it.url}/hold", asked_of())
    assert said["response"]["allowed"] is True
    assert said["response"]["warnings"] == [
        "the guard of rollout-lws has not judged this: a bug, which the controller's log tells of"
    ]
    assert it.told == [(Rule.HOLD, Outcome.FAILED)]
    assert "a bug" in caplog.text


async def test_what_is_no_question_is_told_in_a_line_and_judged_by_nobody() -> None:
    mine = made()
    async with served(mine) as it, client(mine) as session:
        for body, wanted, told in (
            (b"{", 400, "no AdmissionReview: "),
            (asked_of(apiVersion="admission.k8s.io/v1beta1"), 400, "AdmissionReview of admission.k8s.io/v1beta1: send"),
            (b" " * (review.LARGEST + 1), 413, ""),
        ):
            status, said = await post(session, f"{it.url}/hold", body)
            assert status == wanted
            assert said.startswith(told)
        assert (await post(session, f"{it.url}/other", asked_of()))[0] == 404
        async with session.get(f"{it.url}/hold") as answer:
            assert answer.status == 405
    assert it.judged == []


class Connected:
    """One connection, as an API server keeps it: who was shown at its handshake, and what it still answers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self.shown: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)

    async def status(self) -> int:
        return int((await self._reader.readline()).split()[1])

    async def ask(self) -> bool:
        body = asked_of()
        self.writer.write(b"POST /hold HTTP/1.1\r\nHost: guard\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        head = await self._reader.readuntil(b"\r\n\r\n")
        (length,) = re.findall(rb"content-length: (\d+)", head.lower())
        said = json.loads(await self._reader.readexactly(int(length)))
        return bool(said["response"]["allowed"])


@asynccontextmanager
async def connected(port: int, *trusted: Identity) -> AsyncIterator[Connected]:
    streams = await asyncio.open_connection(HOST, port, ssl=trusting(*trusted))
    it = Connected(*streams)
    yield it
    it.writer.close()
    await it.writer.wait_closed()


async def test_who_sends_no_end_takes_up_no_more_than_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever can reach the port: API servers say nothing of who they are."""
    monkeypatch.setattr(server, "_BODY_SECONDS", 1.0)
    mine = made()
    async with served(mine) as it, client(mine) as session, AsyncExitStack() as stack:
        slow = [await stack.enter_async_context(connected(it.port, mine)) for _ in range(server.MOST)]
        for each in slow:
            each.writer.write(b"POST /hold HTTP/1.1\r\nHost: guard\r\nContent-Length: 100\r\n\r\n{")
            await each.writer.drain()
        statuses = set()
        while 200 not in statuses:
            statuses.add((await post(session, f"{it.url}/hold", asked_of()))[0])
            if 503 not in statuses:
                # All of them have to be read first.
                statuses.discard(200)
        for each in slow:
            assert await each.status() == 408
        assert statuses == {200, 503}
        # Their places are free again.
        assert (await post(session, f"{it.url}/hold", asked_of()))[0] == 200


def der(identity: Identity) -> bytes:
    return ssl.PEM_cert_to_DER_cert(identity.certificate.decode())


async def test_a_certificate_is_replaced_while_others_are_being_served() -> None:
    first, second = made(), made()
    async with served(first) as it, connected(it.port, first) as stays:
        assert await stays.ask()
        server.show(it.context, second)
        async with connected(it.port, first, second) as later:
            assert await later.ask()
            assert (stays.shown, later.shown) == (der(first), der(second))
        with pytest.raises(ssl.SSLCertVerificationError):
            async with connected(it.port, first):
                raise AssertionError
        # What was connected before goes on.
        assert await stays.ask()


async def test_an_address_that_is_taken_is_told_with_the_flag() -> None:
    async with served(made()) as it:
        with pytest.raises(UsageError, match=rf"{HOST}:{it.port} cannot be listened on: .*--guard-bind-address"):
            async with server.served(Address(HOST, it.port), it.context, it.judge, lambda *_: None):
                raise AssertionError
