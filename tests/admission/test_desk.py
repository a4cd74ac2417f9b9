"""Reviews that wait for their verdict: whose turn it is, and who gives way when there are too many bytes of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from rollout_lws.admission import desk
from rollout_lws.admission.desk import Desk, NoRoom


@pytest.fixture
async def made() -> AsyncIterator[Desk]:
    with ThreadPoolExecutor(1) as thread:
        yield Desk(thread)


class Author:
    """Sends a review in one piece of ``size`` bytes, and says what became of it."""

    def __init__(self, desk: Desk, size: int, order: list[int] | None = None) -> None:
        self.desk, self.size = desk, size
        self.order = order if order is not None else []
        self.there, self.may_end = asyncio.Event(), asyncio.Event()

    async def send(self) -> str:
        try:
            async with self.desk.paper() as paper:
                self.desk.add(paper, b"x" * self.size)
                self.there.set()
                async with self.desk.turn(paper):
                    self.order.append(await self.desk.aside(lambda: len(paper.taken())))
                    await self.may_end.wait()
        except NoRoom:
            return "no room"
        except TimeoutError:
            return "late"
        return "judged"


async def test_the_smallest_that_waits_is_judged_next(made: Desk) -> None:
    order: list[int] = []
    first, *others = [Author(made, size, order) for size in (500, 900, 10, 300)]
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(first.send())
        await first.there.wait()
        for each in others:
            each.may_end.set()
            tasks.create_task(each.send())
            await each.there.wait()
        first.may_end.set()
    assert order == [500, 10, 300, 900]


async def test_the_largest_that_waits_gives_way(made: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "MOST_BYTES", 1000)
    judged, large, small, last = (Author(made, size) for size in (600, 300, 50, 200))
    async with asyncio.TaskGroup() as tasks:
        ends = []
        for each in (judged, large, small, last):
            ends.append(tasks.create_task(each.send()))
            await each.there.wait()
        assert await ends[1] == "no room"
        too_large = Author(made, 400)
        assert await too_large.send() == "no room"
        for each in (judged, small, last):
            each.may_end.set()
    # The largest of all is being judged: it stays.
    assert [each.result() for each in ends] == ["judged", "no room", "judged", "judged"]


async def test_who_does_not_get_a_turn_in_time_is_told_and_keeps_nobody_up(
    made: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "SECONDS", 0.05)
    judged, waits = Author(made, 1), Author(made, 2)
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(judged.send())
        await judged.there.wait()
        assert await waits.send() == "late"
        judged.may_end.set()
        assert await first == "judged"
    monkeypatch.undo()
    waits.may_end.set()
    assert await waits.send() == "judged"
