"""Server-sent events: each page gets what is new since what it was sent last, as fast as it reads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Protocol

from aiohttp import web

from rollout_lws.cli.dashboard.bell import Bell
from rollout_lws.cli.dashboard.protection import HEADERS

#: Seconds between two readings of the clock, by which a page notices a server that is gone.
_CLOCK = 15.0
STREAM_HEADERS = {**HEADERS, "Content-Type": "text/event-stream; charset=utf-8"}


class Reader(Protocol):
    """What one page has been sent; a page that reads slowly gets the newest state later, never a queue of states."""

    def news(self) -> Iterator[bytes]:
        """Events that bring the page from what it was sent to what is known now."""


class Feed(Protocol):
    """What pages are told of; ``bell`` rings when there is something new."""

    bell: Bell
    #: Seconds to collect changes after the bell before pages are told.
    gather: float

    def reader(self) -> Reader: ...


def event(kind: str, value: Any) -> bytes:
    """A server-sent event. JSON has no line ends, so a text cannot begin an event of its own."""
    return f"event: {kind}\ndata: {json.dumps(value, separators=(',', ':'))}\n\n".encode()


async def send(
    request: web.Request, feed: Feed, hello: dict[str, Any], now: Callable[[], str], every: float = _CLOCK
) -> web.StreamResponse:
    """Send the feed to a page until it goes; ``now`` is the time of the cluster's clock."""
    stream, loop = web.StreamResponse(headers=STREAM_HEADERS), asyncio.get_running_loop()
    # A page may go at any time; that is no error.
    with suppress(ConnectionError):
        await stream.prepare(request)
        await stream.write(event("hello", {**hello, "now": now()}))
        reader, due = feed.reader(), loop.time() + every
        while True:
            rung = feed.bell.next
            for each in reader.news():
                await stream.write(each)
            if loop.time() >= due:
                await stream.write(event("clock", {"now": now()}))
                due = loop.time() + every
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await rung.wait()
                    await asyncio.sleep(feed.gather)
    return stream
