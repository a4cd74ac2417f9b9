"""Stories that are told side by side, each in its own namespace, by a controller that is killed once in the middle."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.e2e.place import UNROUTED, Place
from tests.e2e.world import RemoteWorld
from tests.kubectl.programs import Programs

Story = Callable[[RemoteWorld], Awaitable[None]]
#: Has the story's world at rest and tells the story.
Teller = Callable[[RemoteWorld, Story], Awaitable[None]]


async def all_told(place: Place, stories: tuple[Story, ...], prefix: str, tell: Teller) -> None:
    if place.unrouted:
        pytest.skip(f"{UNROUTED}: {place.unrouted}")
    async with asyncio.TaskGroup() as group:
        for story in stories:
            group.create_task(_told(place, story, prefix, tell))


async def _told(place: Place, story: Story, prefix: str, tell: Teller) -> None:
    programs = Programs()
    try:
        async with place.world(f"{prefix}-{story.__name__.replace('_', '-')}", programs) as world:
            await tell(world, story)
            assert world.kills == 1
    except BaseException as error:
        error.add_note("\n".join(programs.logs()))
        raise
    finally:
        await programs.close()
