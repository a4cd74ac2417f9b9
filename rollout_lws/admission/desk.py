"""The queue of reviews: limits their total bytes, and decides which one is judged next.

A thread judges one review at a time, so that the event loop, which runs the releases, goes on. After each review the
thread pauses for as long as it took. The smallest review comes first: one of a few KiB does not wait for megabytes of
others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import TypeVar

_T = TypeVar("_T")

#: Bytes of all reviews that are being read or queued: three of the largest.
MOST_BYTES = 10 * 2**20
#: Time for a review to arrive and get its turn: API servers wait no longer.
SECONDS = 3.0
#: Longest pause after one review.
_LONGEST_REST = 0.25


class NoRoom(Exception):
    """The review was dropped to make room for others."""


@dataclass(eq=False, slots=True)
class Paper:
    """A review, as far as it has been read."""

    until: asyncio.Timeout
    chunks: list[bytes] = field(default_factory=list)
    size: int = 0
    has_turn: bool = False
    gives_way: bool = False

    def taken(self) -> bytes:
        """The whole body; it is not kept here any longer."""
        body = b"".join(self.chunks)
        self.chunks.clear()
        return body


class Desk:
    """The queue of one guard's reviews."""

    def __init__(self, judges: ThreadPoolExecutor) -> None:
        self._judges = judges
        self._papers: set[Paper] = set()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = count()
        self._taken = False

    @asynccontextmanager
    async def paper(self) -> AsyncIterator[Paper]:
        """A review being read. TimeoutError when its turn does not come in time, NoRoom when it is dropped."""
        paper: Paper | None = None
        try:
            async with asyncio.timeout(SECONDS) as until:
                paper = Paper(until)
                self._papers.add(paper)
                yield paper
        except TimeoutError:
            if paper is not None and paper.gives_way:
                raise NoRoom from None
            raise
        finally:
            if paper is not None:
                self._papers.discard(paper)

    def add(self, paper: Paper, chunk: bytes) -> None:
        """Add a ``chunk`` to ``paper``. If all reviews together are too large, the largest waiting one is dropped:
        NoRoom if it is this one.
        """
        paper.chunks.append(chunk)
        paper.size += len(chunk)
        while sum(each.size for each in self._papers) > MOST_BYTES:
            largest = max((each for each in self._papers if not each.has_turn), key=lambda each: each.size)
            self._give_way(largest)
            if largest is paper:
                raise NoRoom

    def leave(self, paper: Paper) -> None:
        """Drop ``paper``, as its client is gone, unless it is being judged or has been."""
        if paper in self._papers and not paper.has_turn:
            self._give_way(paper)

    @asynccontextmanager
    async def turn(self, paper: Paper) -> AsyncIterator[None]:
        """Encloses the judging of ``paper``; no other review is judged meanwhile."""
        await self._my_turn(paper)
        if paper.gives_way:
            self._next()
            raise NoRoom
        loop = asyncio.get_running_loop()
        began = loop.time()
        # From now on only its size limits its time, not the timeout.
        paper.has_turn = True
        paper.until.reschedule(None)
        try:
            yield
        finally:
            loop.call_later(min(_LONGEST_REST, loop.time() - began), self._next)

    async def aside(self, work: Callable[[], _T]) -> _T:
        """The result of ``work``, run in the thread."""
        return await asyncio.get_running_loop().run_in_executor(self._judges, work)

    def _give_way(self, paper: Paper) -> None:
        self._papers.discard(paper)
        paper.gives_way = True
        paper.chunks.clear()
        if not paper.until.expired():
            paper.until.reschedule(asyncio.get_running_loop().time())

    async def _my_turn(self, paper: Paper) -> None:
        if not self._taken:
            self._taken = True
            return
        mine = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (paper.size, next(self._order), mine))
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._next()
            raise

    def _next(self) -> None:
        while self._waiting:
            _, _, mine = heappop(self._waiting)
            if not mine.done():
                mine.set_result(None)
                return
        self._taken = False
