"""Whole releases on a real control plane: every capacity, with and without a route, each way to its end.

Each story has a namespace and a controller of its own, and that controller is killed once in the middle.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.e2e.place import UNROUTED, Place
from tests.e2e.staged import release
from tests.kubectl.programs import Programs
from tests.scenarios import matrix_acts
from tests.scenarios.matrix import TRAFFIC, Moment
from tests.scenarios.styles import STYLES, Style

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(600)]


#: Stories beside each other: each has a controller of its own, and one step of a release is a second or two of waiting.
AT_A_TIME = 6


STORIES = {
    "finish": (matrix_acts.finish, Moment.FIRST),
    "abort": (matrix_acts.abort, Moment.SECOND),
    "rollback": (matrix_acts.rollback_by_template, Moment.FIRST),
    "delete": (matrix_acts.delete_rollout, Moment.SECOND),
}


@dataclass(frozen=True, slots=True)
class Story:
    """``name`` of what happens, in a release of ``style`` with ``traffic``."""

    name: str
    style: Style
    traffic: str

    def __str__(self) -> str:
        return f"{self.name}-{self.style}-{self.traffic}".replace(" ", "-").lower()

    def misses(self, place: Place) -> str:
        """Why it cannot be told there, "" when it can."""
        return place.unrouted if self.traffic != "none" else ""

    async def tell(self, place: Place) -> None:
        happen, moment = STORIES[self.name]
        programs = Programs()
        try:
            async with place.world(str(self), programs) as world:
                it = release(world, self.style, self.traffic)
                await it.begin()
                world.kill_after(random.Random(str(self)).randrange(5, 60))
                await it.come_to(moment)
                await happen(it)
                assert world.kills == 1
        except BaseException as error:
            # Stories are told beside each other, so their output cannot be told apart afterwards.
            error.add_note("\n".join(programs.logs()))
            raise
        finally:
            await programs.close()


EVERY = [Story(*chosen) for chosen in itertools.product(STORIES, STYLES, TRAFFIC)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def telling(request: pytest.FixtureRequest, place: Place) -> AsyncIterator[Mapping[str, asyncio.Task[None]]]:
    """All stories that are asked for, told beside each other; each test waits for its own."""
    room = asyncio.Semaphore(AT_A_TIME)

    async def tell(story: Story) -> None:
        async with room:
            await story.tell(place)

    asked = [each.callspec.params["story"] for each in request.session.items if "story" in _parameters(each)]
    tasks = {str(story): asyncio.create_task(tell(story)) for story in asked if not story.misses(place)}
    yield tasks
    for task in tasks.values():
        task.cancel()
    await asyncio.gather(*tasks.values(), return_exceptions=True)


def _parameters(item: Any) -> Mapping[str, Any]:
    found: Mapping[str, Any] = item.callspec.params if item.path == Path(__file__) else {}
    return found


@pytest.mark.parametrize("story", EVERY, ids=str)
async def test_a_release_comes_to_its_end(
    telling: Mapping[str, asyncio.Task[None]], place: Place, story: Story
) -> None:
    if why := story.misses(place):
        pytest.skip(f"{UNROUTED}: {why}")
    await telling[str(story)]
