"""What an API server denies: a missing permission is told, what passes while a server comes up is not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import msgspec
import pytest

from rollout_lws.controller.apply import Next, classify
from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kube.client import Client
from rollout_lws.kube.denials import STARTING_SECONDS, is_lasting
from rollout_lws.kube.informer import Informer
from rollout_lws.objects.resources import PODS
from rollout_lws.objects.workloads import Pod
from rollout_lws.objects.writes import Patch
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.faults import Effect, Faults
from rollout_lws.sandbox.transport import DirectTransport
from tests.conformance.objects import pod

WRITE = Patch(PODS, "default", "web", {"metadata": {"labels": {"a": "b"}}}, "mark")
LONG = STARTING_SECONDS


@pytest.mark.parametrize(
    ("since", "now", "away", "expected"),
    [
        (100, 100, None, True),
        (100, 100, 100, False),
        (100, 101, 99, False),
        (100, 100 + LONG, 99, True),
        (100, 100, 100 - LONG, False),
        (100, 100, 99 - LONG, True),
    ],
    ids=["never away", "away just now", "for a second", "it lasts", "away lately", "away long ago"],
)
def test_a_denial_by_a_server_that_was_away_is_told_when_it_lasts(
    since: float, now: float, away: float | None, expected: bool
) -> None:
    assert is_lasting(since, now, away) is expected


def denied(verb: str) -> Effect:
    said = f'pods is forbidden: User "rollout-lws" cannot {verb} resource "pods" in API group "" at the cluster scope'
    return Effect(refusal=ApiError(403, "Forbidden", said))


class Wire(DirectTransport):
    """One whose watches break where they end: connections that are dropped, not answers that are complete."""

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        params: Mapping[str, str],
        timeout: float,  # noqa: ASYNC109 - as of every transport
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        async def broken(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
            async for line in lines:
                yield line
            raise Unreachable(f"watch of {path} was cut")

        async with super().stream(path, params=params, timeout=timeout) as lines:
            yield broken(lines)


class Server:
    """An API server that can go away, and deny everything for a while when it is back."""

    def __init__(self) -> None:
        self.server = ApiServer(lambda: asyncio.get_running_loop().time() + 1e9, seed=1)
        self.server.create(PODS, pod(), namespace="default")
        self.faults = Faults()
        self.client = Client(Wire(self.server, self.faults))

    def away(self) -> None:
        self.faults.restore()
        self.faults.add(Effect(lost=True), count=None)
        self.faults.cut_watches()

    def deny(self) -> None:
        self.faults.restore()
        for verb in ("list", "watch", "patch"):
            self.faults.add(denied(verb), verb, count=None)

    async def patch(self) -> ApiError | Unreachable | None:
        try:
            await self.client.send(WRITE)
        except (ApiError, Unreachable) as error:
            return error
        return None


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    yield Server()


def advised(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Lines that tell a person to give a permission."""
    return [each.getMessage() for each in caplog.records if "allow the controller" in str(vars(each).get("fields"))]


@contextmanager
def following(server: Server) -> Iterator[Informer[Any]]:
    informer = Informer(server.client, PODS, msgspec.json.Decoder(Pod).decode)
    task = asyncio.create_task(informer.run())
    try:
        yield informer
    finally:
        task.cancel()


@pytest.mark.looptime
async def test_nobody_is_advised_while_a_server_comes_up(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with following(server) as informer:
        await informer.synced()
        server.away()
        await asyncio.sleep(5)
        assert isinstance(await server.patch(), Unreachable)
        server.deny()
        for _ in range(8):
            error = await server.patch()
            assert isinstance(error, ApiError)
            failure = classify(error, WRITE)
            assert failure is not None and failure.next is Next.BACK_OFF
            await asyncio.sleep(1)
        assert server.client.denials.current == []
        server.faults.restore()
        await asyncio.sleep(60)
        assert await server.patch() is None
        assert not informer.denied
    assert advised(caplog) == []
    assert "permission is there again" not in caplog.text


@pytest.mark.looptime
async def test_what_a_server_denies_for_longer_is_told(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.away()
    assert isinstance(await server.patch(), Unreachable)
    server.deny()
    await server.patch()
    await asyncio.sleep(STARTING_SECONDS)
    error = await server.patch()
    assert isinstance(error, ApiError)
    failure = classify(error, WRITE)
    assert failure is not None and failure.next is Next.REFUSED
    assert advised(caplog) == ["permission missing"]
    assert [str(permission) for permission, _ in server.client.denials.current] == ["patch pods in namespace default"]


@pytest.mark.looptime
async def test_what_a_server_denies_that_was_never_away_is_told_at_once(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.deny()
    error = await server.patch()
    assert isinstance(error, ApiError) and not error.is_early
    assert advised(caplog) == ["permission missing"]
    server.faults.restore()
    caplog.set_level(logging.INFO)
    assert await server.patch() is None
    assert "permission is there again" in caplog.text


def bad_gateway() -> Effect:
    return Effect(refusal=ApiError(502, "", "bad gateway"))


@pytest.mark.looptime
@pytest.mark.parametrize("trouble", ["watches are cut", "a proxy drops requests"])
async def test_what_is_denied_behind_a_proxy_that_drops_connections_often_is_told(
    server: Server, caplog: pytest.LogCaptureFixture, trouble: str
) -> None:
    """What else is asked for is allowed meanwhile, so the server is not one that comes up."""
    server.faults.add(denied("patch"), "patch", count=None)
    with following(server) as informer:
        await informer.synced()
        for _ in range(15):
            await server.client.get(PODS, "default", "web")
            if trouble == "watches are cut":
                server.faults.cut_watches()
            else:
                server.faults.add(bad_gateway(), "list")
                await server.client.list(PODS)
            await asyncio.sleep(0.5)
            await server.patch()
            await asyncio.sleep(1)
        error = await server.patch()
    assert isinstance(error, ApiError) and not error.is_early
    assert advised(caplog) == ["permission missing"]


@pytest.mark.looptime
async def test_nobody_is_advised_while_a_server_comes_up_again_and_again(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with following(server) as informer:
        await informer.synced()
        for _ in range(5):
            server.away()
            assert isinstance(await server.patch(), Unreachable)
            await asyncio.sleep(3)
            server.deny()
            await server.patch()
            await asyncio.sleep(2)
            await server.patch()
    assert advised(caplog) == []
