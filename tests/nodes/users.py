"""Users of a release by one way, in a process of their own: how many have been answered so far, and what was noted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from tests.bench.processes import Child, child
from tests.nodes import losses

_PATIENCE = 120.0


class Users:
    """Those that go by ``way``, ``at_once`` short requests and streams, so many of the former on connections that are
    ``kept``; ``asking`` makes them. ``short`` requests and ``streams`` have been answered so far; ``noted`` is complete
    after the end of that block.
    """

    def __init__(self, way: str, at_once: tuple[int, int], kept: int, running: Child, notes: Path) -> None:
        self.way = way
        self.at_once = at_once
        self.kept = kept
        self._running = running
        self._notes = notes
        self.short = self.streams = 0
        self._more = asyncio.Condition()

    async def answered(self, short: int, streams: int = 0) -> None:
        """Until so many short requests and streams more than now have been answered."""
        async with asyncio.timeout(_PATIENCE), self._more:
            # They are told each second: what was answered in the second before is none of it.
            await self._more.wait()
            short, streams = short + self.short, streams + self.streams
            await self._more.wait_for(lambda: self.short >= short and self.streams >= streams)

    def noted(self) -> tuple[losses.Request, ...]:
        """All that they have asked."""
        with self._notes.open() as lines:
            log = losses.read(lines)
        assert log.whole, f"the users by {self.way} were killed"
        return log.requests

    async def _count(self) -> None:
        while True:
            told = await self._running.told("answered", lambda _: None, _PATIENCE)
            async with self._more:
                self.short, self.streams = told["short"], told["streams"]
                self._more.notify_all()


@asynccontextmanager
async def asking(
    way: str,
    url: str,
    headers: Mapping[str, str],
    notes: Path,
    *,
    short: int = 20,
    streams: int = 10,
    seconds: float = 3.0,
    pause: float = 0.02,
) -> AsyncIterator[Users]:
    """Users who ask at ``url`` with these ``headers``, from the first good answer of each kind to the end of the block,
    which their last answers belong to.

    ``short`` of them make short requests, half of them on a connection that they keep, each ``pause`` seconds after an
    answer; ``streams`` read streams of so many ``seconds``.
    """
    half = short // 2
    arguments = {
        "--url": url,
        "--fresh": str(short - half),
        "--kept": str(half),
        "--streams": str(streams),
        "--stream-seconds": str(seconds),
        "--pause": str(pause),
        "--out": str(notes),
    }
    given = [word for pair in arguments.items() for word in pair]
    given += [word for header in headers.items() for word in ("--header", ": ".join(header))]
    async with child(f"users-{way}", "-m", "tests.nodes.load", *given, logs=notes.parent) as running:
        await running.told("ready", lambda _: None, _PATIENCE)
        users = Users(way, (short, streams), half, running, notes)
        counting = asyncio.create_task(users._count())
        try:
            yield users
        finally:
            counting.cancel()
            await asyncio.wait([counting])
        await running.rest_of("summary")
        await running.process.wait()
