"""Crash points: a story told as often as its release has writes, with the controller killed after another one each
time.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tests import virtual_time
from tests.scenarios.world import World

#: Into how many tests the writes of a story are dealt.
PARTS = 8

_Begun = TypeVar("_Begun")
Begin = Callable[[World], Awaitable[_Begun]]
Tell = Callable[[World, _Begun], Awaitable[None]]


async def killed_after(
    begin: Begin[_Begun], tell: Tell[_Begun], writes: int, make: Callable[[], World] = World
) -> bool:
    """Tell the story with one kill; False when the release needed fewer writes than that."""
    world = make()
    begun = await begin(world)
    world.budget, restarted = writes, False

    async def restart() -> None:
        nonlocal restarted
        await world.until(lambda: not world.running, seconds=10_000)
        await asyncio.sleep(0.7)
        restarted = True
        world.start_controller()

    task = asyncio.create_task(restart())
    try:
        await tell(world, begun)
    finally:
        task.cancel()
        world.close()
    return restarted


def kill_after_every_write(
    begin: Begin[_Begun],
    tell: Tell[_Begun],
    part: int,
    parts: int = PARTS,
    make: Callable[[], World] = World,
) -> int:
    """Every write is tried: each part takes its share of them, so that several cores can work. Gives the number of
    stories.
    """
    tried = 0
    for writes in itertools.count(part, parts):
        try:
            restarted = virtual_time.run(killed_after(begin, tell, writes, make))
        except AssertionError as error:
            raise AssertionError(f"killed after write {writes}: {error}") from error
        if not restarted:
            break
        tried += 1
    assert tried >= max(1, 12 // parts), f"only {tried} writes were tried"
    return tried
