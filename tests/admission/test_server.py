"""The guard over real TLS: to whom it answers what, and that connections go on while its certificate is replaced."""

from __future__ import annotations

import asyncio
import io
import json
import re
import socket
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest

from rollout_lws import inbound
from rollout_lws.admission import desk, review, server
from rollout_lws.admission.certificates import Identity, issue
from rollout_lws.admission.review import ALLOWED, Outcome, Request, Response, Rule, denied
from rollout_lws.errors import UsageError
from rollout_lws.settings import Address
from tests.admission.test_review import review as asked_of

HOST = "127.0.0.1"


@dataclass
class Served:
    url: str
    port: int
    context: ssl.SSLContext
    state: server.ServerState = field(default_factory=server.ServerState)
    response: Response | Exception = ALLOWED
    judged: list[tuple[Rule, Request]] = field(default_factory=list)
    told: list[tuple[Rule, Outcome]] = field(default_factory=list)
    may_decide: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.may_decide.set()

    def judge(self, rule: Rule, asked: Request) -> server.Look:
        self.judged.append((rule, asked))
        return lambda: self.decide

    def decide(self) -> Response:
        self.may_decide.wait(5)
        if isinstance(self.response, Exception):
            raise self.response
        return self.response


@asynccontextmanager
async def served(identity: Identity) -> AsyncIterator[Served]:
    context = server.context()
    server.show(context, identity)
    it = Served("", 0, context)
    async with server.served(
        Address(HOST, 0), context, it.judge, lambda rule, outcome: it.told.append((rule, outcome))
    ) as it.state:
        it.port, it.url = it.state.port, f"https://{HOST}:{it.state.port}"
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
        it.response = denied("no: do that")
        _, said = await post(session, f"{it.url}/plan", asked_of())
        assert said["response"]["status"]["message"] == "no: do that"
        assert it.told[-1] == (Rule.PLAN, Outcome.DENIED)


async def test_who_leaves_judges_on_and_is_dialled_no_more() -> None:
    mine = made()
    async with served(mine) as it, client(mine) as session:
        for leaving, kept in ((False, None), (True, "close")):
            it.state.leaving = leaving
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
        it.response = ZeroDivisionError("a bug")
        _, said = await post(session, f"{it.url}/hold", asked_of())
    assert said["response"]["allowed"] is True
    assert said["response"]["warnings"] == [
        "the guard of rollout-lws has not judged this: a bug; see the controller's log"
    ]
    assert it.told == [(Rule.HOLD, Outcome.FAILED)]
    assert "a bug" in caplog.text


async def test_whatever_an_api_server_can_store_is_judged() -> None:
    """Of a custom resource 1.5 MiB, which a review has twice; whoever writes less must not be stopped by its size."""
    mine = made()
    annotated = {"metadata": {"name": "m", "managedFields": [{"manager": "x" * (3 * 2**19 - 100)}]}}
    async with served(mine) as it, client(mine) as session:
        for rule in Rule:
            status, said = await post(session, f"{it.url}/{rule}", asked_of(object=annotated, oldObject=annotated))
            assert (status, said["response"]["allowed"]) == (200, True)
        assert [rule for rule, _ in it.judged] == [*Rule]


async def test_what_is_no_question_is_told_in_a_line_and_judged_by_nobody() -> None:
    mine = made()
    async with served(mine) as it, client(mine) as session:
        for body, wanted, told in (
            (b"{", 400, "no AdmissionReview: "),
            (asked_of(apiVersion="admission.k8s.io/v1beta1"), 400, "AdmissionReview of admission.k8s.io/v1beta1: send"),
            (b" " * (review.LARGEST + 1), 413, "a review of at most 3407872 bytes is read"),
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

    async def ended(self) -> None:
        """Until the other side has closed it."""
        async with asyncio.timeout(5):
            with suppress(ConnectionError):
                assert await self._reader.read() == b""

    async def ask(self) -> bool:
        body = asked_of()
        self.writer.write(b"POST /hold HTTP/1.1\r\nHost: guard\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        head = await self._reader.readuntil(b"\r\n\r\n")
        (length,) = re.findall(rb"content-length: (\d+)", head.lower())
        said = json.loads(await self._reader.readexactly(int(length)))
        return bool(said["response"]["allowed"])


@asynccontextmanager
async def connected(port: int, *trusted: Identity, local: str = HOST) -> AsyncIterator[Connected]:
    streams = await asyncio.open_connection(HOST, port, ssl=trusting(*trusted), local_addr=(local, 0))
    it = Connected(*streams)
    yield it
    it.writer.close()
    with suppress(ConnectionError):
        await it.writer.wait_closed()


async def slow(stack: AsyncExitStack, it: Served, mine: Identity, head: bytes) -> Connected:
    found = await stack.enter_async_context(connected(it.port, mine))
    found.writer.write(head)
    await found.writer.drain()
    return found


async def test_who_sends_no_end_of_a_review_is_told_and_shown_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever can reach the port: API servers say nothing of who they are."""
    monkeypatch.setattr(desk, "SECONDS", 0.2)
    mine = made()
    async with served(mine) as it, client(mine) as session, AsyncExitStack() as stack:
        body = b"POST /hold HTTP/1.1\r\nHost: guard\r\nContent-Length: 100\r\n\r\n{"
        slows = [await slow(stack, it, mine, body) for _ in range(20)]
        assert (await post(session, f"{it.url}/hold", asked_of()))[0] == 200
        for each in slows:
            assert await each.status() == 408
    assert len(it.judged) == 1


async def test_strangers_that_hold_all_connections_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbound, "MOST", 4)
    mine = made()
    async with served(mine) as it, AsyncExitStack() as stack:
        keeps = await stack.enter_async_context(connected(it.port, mine, local="127.0.0.2"))
        assert await keeps.ask()
        slows = [await slow(stack, it, mine, b"POST /hold HTTP/1.1\r\nX-A: ") for _ in range(9)]
        # The API server that has asked before them stays, and one that comes after them gets in.
        assert await keeps.ask()
        for local in ("127.0.0.3", HOST):
            async with connected(it.port, mine, local=local) as comes:
                assert await comes.ask()
        for each in slows[:6]:
            await each.ended()


async def test_strangers_whose_reviews_wait_for_their_turn_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbound, "MOST", 4)
    complete, there = inbound.Room.complete, asyncio.Queue[None]()

    def heard(*given: Any) -> None:
        complete(*given)
        there.put_nowait(None)

    monkeypatch.setattr(inbound.Room, "complete", heard)
    mine, body = made(), asked_of()
    whole = b"POST /hold HTTP/1.1\r\nHost: guard\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    async with served(mine) as it, AsyncExitStack() as stack:
        keeps = await stack.enter_async_context(connected(it.port, mine, local="127.0.0.2"))
        assert await keeps.ask()
        await there.get()
        it.may_decide.clear()
        strangers = []
        for _ in range(5):
            strangers.append(await slow(stack, it, mine, whole))
            await there.get()
        # Another API server gets in while the first of these is judged, and the one that was there stays.
        comes = await stack.enter_async_context(connected(it.port, mine, local="127.0.0.3"))
        for each in strangers[1:4]:
            await each.ended()
        it.may_decide.set()
        assert await keeps.ask()
        assert await comes.ask()
        assert await strangers[0].status() == 200
        assert await strangers[4].status() == 200
    # Nothing is judged for those that are gone.
    assert len(it.judged) == 5


async def test_a_connection_that_says_nothing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbound, "ARRIVAL_SECONDS", 0.3)
    mine = made()
    async with served(mine) as it, AsyncExitStack() as stack:
        keeps = await stack.enter_async_context(connected(it.port, mine))
        assert await keeps.ask()
        silent = await slow(stack, it, mine, b"")
        begins = await slow(stack, it, mine, b"POST /hold HTTP/1.1\r\nX-A: ")
        await silent.ended()
        await begins.ended()
        # One that has asked may take its time until it asks again, and no more until it has.
        assert await keeps.ask()
        keeps.writer.write(b"POST /hold HTTP/1.1\r\n")
        await keeps.ended()


async def test_reviews_are_read_and_judged_beside_the_event_loop_and_the_world_is_seen_in_it() -> None:
    mine, threads = made(), []
    here = threading.get_ident()

    def judge(_rule: Rule, _asked: Request) -> server.Look:
        threads.append(threading.get_ident() == here)
        return look

    def look() -> server.Decide:
        threads.append(threading.get_ident() == here)
        return decide

    def decide() -> Response:
        threads.append(threading.get_ident() == here)
        return ALLOWED

    context = server.context()
    server.show(context, mine)
    async with (
        server.served(Address(HOST, 0), context, judge, lambda *_: None) as state,
        client(mine) as session,
    ):
        assert (await post(session, f"https://{HOST}:{state.port}/hold", asked_of()))[0] == 200
    assert threads == [False, True, False]


async def test_more_than_a_definition_allows_is_not_judged_and_stands_in_nobodys_way() -> None:
    mine = made()
    async with served(mine) as it, client(mine) as session:
        steps = asked_of(request={"object": {"spec": {"steps": [0] * 20_000}}})
        _, said = await post(session, f"{it.url}/plan", steps)
        assert said["response"]["allowed"] is True
        assert said["response"]["warnings"] == [
            "the guard of rollout-lws has not judged this: it has more than 10,000 values"
        ]
        # A LeaderWorkerSet may have more.
        _, said = await post(session, f"{it.url}/hold", steps)
        assert "warnings" not in said["response"]
    assert [rule for rule, _ in it.judged] == [Rule.HOLD]
    assert it.told == [(Rule.PLAN, Outcome.FAILED), (Rule.HOLD, Outcome.ALLOWED)]


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


async def test_a_port_that_is_taken_at_one_of_two_addresses_is_told() -> None:
    it = Served("", 0, server.context())
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f":{port} cannot be listened on: Address already in use"):
            async with server.served(Address("", port), it.context, it.judge, lambda *_: None):
                raise AssertionError


async def test_an_address_that_is_taken_is_told_with_the_flag() -> None:
    async with served(made()) as it:
        with pytest.raises(UsageError, match=rf"{HOST}:{it.port} cannot be listened on: .*--guard-bind-address"):
            async with server.served(Address(HOST, it.port), it.context, it.judge, lambda *_: None):
                raise AssertionError
