"""Whole releases on a real control plane: every capacity, with and without a route, each way to its end.

Each story has a namespace and a controller of its own, and that controller is killed once in the middle.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.e2e.place import UNROUTED, Place
from tests.e2e.staged import release
from tests.kubectl.programs import Programs
from tests.scenarios.again import AGAIN
from tests.scenarios.kinds import LWS, ON_DELETE, ORDERED, STATEFUL_SET, LeaderWorkerSets
from tests.scenarios.matrix import TRAFFIC, Moment
from tests.scenarios.matrix_acts import ACTS, BAD_VERSION, Act
from tests.scenarios.matrix_table import Told
from tests.scenarios.styles import STYLES, Style

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(600)]


Record = Callable[[str, object], None]
#: The environment variable that has the whole matrix told when it is "1".
ALL = "ROLLOUT_LWS_E2E_ALL"
#: Stories beside each other: each has a controller of its own, and one step of a release is a second or two of waiting.
AT_A_TIME = 6


#: What is told by default, of all that the matrix has, and when.
SAMPLE = {
    "finish": Moment.FIRST,
    "abort": Moment.SECOND,
    "rollback by template": Moment.FIRST,
    "delete Rollout": Moment.SECOND,
}
#: A story that is not over after so many seconds hangs; pytest's own limit would end another one's step.
STORY_SECONDS = 480
#: Seconds without progress after which a release of a version that never becomes ready stalls.
STALLED_AFTER = 60


@dataclass(frozen=True, slots=True)
class Story:
    """What happens, ``act``, at a ``moment`` of a release of ``style`` with ``traffic``, of a workload of this kind."""

    act: Act
    moment: Moment
    style: Style
    traffic: str
    kind: LeaderWorkerSets = LWS

    def __str__(self) -> str:
        told = f"{self.act}-{self.moment.name}-{self.style}-{self.traffic}"
        told += "" if self.kind is LWS else f"-{self.kind}"
        return told.replace(",", "").replace(" ", "-").replace("_", "-").lower()

    @property
    def column(self) -> str:
        """The heading of its column in the table of stories."""
        return self.style.name if self.kind is LWS else f"{self.kind}: {self.style}"

    def misses(self, place: Place) -> str:
        """Why it cannot be told there, "" when it can."""
        return place.unrouted if self.traffic != "none" else ""

    async def tell(self, place: Place) -> None:
        programs = Programs()
        try:
            # The clean-up of a place is not part of a story, and must not be cut short.
            async with place.world(str(self), programs) as world, asyncio.timeout(STORY_SECONDS):
                world.use(self.kind)
                it = release(world, self.style, self.traffic, STALLED_AFTER if self.act is BAD_VERSION else 600)
                await it.begin()
                # Less changes where a group is one pod.
                world.kill_after(random.Random(str(self)).randrange(5, 60 if self.kind is LWS else 35))
                await it.come_to(self.moment)
                await self.act.happen(it)
                assert world.kills == 1
        except BaseException as error:
            # Stories are told beside each other, so their output cannot be told apart afterwards.
            error.add_note("\n".join(programs.logs()))
            raise
        finally:
            await programs.close()


def told() -> Iterator[Story]:
    """The sample, or all of the matrix."""
    for act, style, traffic in itertools.product(ACTS, STYLES, TRAFFIC):
        if os.environ.get(ALL) == "1":
            yield from (Story(act, moment, style, traffic) for moment in act.moments)
        elif act.name in SAMPLE:
            yield Story(act, SAMPLE[act.name], style, traffic)
    yield from (Story(AGAIN, AGAIN.sample, style, "none") for style in STYLES)
    kinds = itertools.cycle((STATEFUL_SET, ORDERED, ON_DELETE))
    unspared = [each for each in STYLES if not each.spared]
    for act, style, traffic in itertools.product(ACTS, unspared, TRAFFIC):
        if os.environ.get(ALL) == "1":
            yield from (Story(act, moment, style, traffic, next(kinds)) for moment in act.moments)
        elif act.name in SAMPLE:
            yield Story(act, SAMPLE[act.name], style, traffic, next(kinds))


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


@pytest.mark.parametrize("story", [*told()], ids=str)
async def test_a_release_comes_to_its_end(
    telling: Mapping[str, asyncio.Task[None]], place: Place, story: Story, record_property: Record
) -> None:
    if why := story.misses(place):
        pytest.skip(f"{UNROUTED}: {why}")
    record_property(*Told(story.act.name, story.column, story.traffic).note())
    await telling[str(story)]
