"""A page as a browser has it: cookies, headers that browsers send, and streams of events."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.dashboard.server import Page
from rollout_lws.cli.dashboard.serving import Place, serving
from rollout_lws.cli.get.caller import Caller
from rollout_lws.kubeconfig.target import Target
from tests.cli.conftest import World

Object = dict[str, Any]
#: Seconds in which a change has to be told; a busy machine needs some.
PATIENCE = 20.0


async def eventually(holds: Callable[[], bool]) -> None:
    """Wait for what threads do in their own time."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


class Stream:
    """The events of one stream, read as they come."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.answer = answer

    async def next(self) -> tuple[str, Object]:
        kind = value = ""
        while True:
            line = (await asyncio.wait_for(self.answer.content.readline(), PATIENCE)).decode()
            assert line, "the stream has ended"
            name, _, text = line.rstrip("\n").partition(": ")
            if name == "event":
                kind = text
            elif name == "data":
                value = text
            elif kind:
                return kind, json.loads(value)

    async def until(self, kind: str, holds: Callable[[Object], bool] = lambda _: True) -> Object:
        """The next event of this kind for which it holds."""
        while True:
            told, value = await self.next()
            if told == kind and holds(value):
                return value

    async def settles(self, holds: Callable[[dict[str, Object]], bool]) -> dict[str, Object]:
        """The newest value of each kind, once it holds for all of them together."""
        known: dict[str, Object] = {}
        while not holds(known):
            kind, value = await self.next()
            known[kind] = value
        return known


class Browser:
    """One browser that was let in."""

    def __init__(self, base: str, url: str, session: aiohttp.ClientSession) -> None:
        self.base, self.url, self.session = base, url, session

    async def get(self, path: str, **headers: str) -> tuple[int, Any]:
        async with self.session.get(self.base + path, headers=headers) as answer:
            return answer.status, await _content(answer)

    async def act(self, action: str, *, rollout: str = "default/llama", **asked: Any) -> tuple[int, Object]:
        """What the page posts for a button."""
        body = {"action": action, "release": "r7", "step": 2, **asked}
        async with self.session.post(
            f"{self.base}/-/actions/{rollout}", json=body, headers={"Origin": self.base}
        ) as answer:
            return answer.status, await answer.json()

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncIterator[Stream]:
        async with self.session.get(self.base + path) as answer:
            assert answer.status == 200, await answer.text()
            yield Stream(answer)

    @asynccontextmanager
    async def release(self, rollout: str = "default/llama") -> AsyncIterator[Stream]:
        async with self.stream(f"/-/stream/release/{rollout}") as stream:
            yield stream


async def _content(answer: aiohttp.ClientResponse) -> Any:
    return await answer.json() if answer.content_type == "application/json" else await answer.text()


def page_of(world: World, *, namespace: str = "", read_only: bool = False) -> Page:
    transport = Transport.to(Target(kubeconfig=str(world.kubeconfig)))
    return Page(
        transport, world.rollouts, namespace, None, read_only, lambda where: Caller(flags=("--namespace", where))
    )


@asynccontextmanager
async def dashboard(world: World, **given: Any) -> AsyncIterator[Browser]:
    """A dashboard of the cluster, and a browser that was let in."""
    async with serving(page_of(world, **given), Place()) as served, browser(served.url) as found:
        yield found


@asynccontextmanager
async def browser(url: str) -> AsyncIterator[Browser]:
    """A browser that opens this address."""
    parts = urlsplit(url)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        found = Browser(f"{parts.scheme}://{parts.netloc}", url, session)
        async with session.get(url) as answer:
            assert answer.status == 200, await answer.text()
        yield found
