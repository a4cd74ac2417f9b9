"""The story matrix with StatefulSets: pods made in parallel or one after the other, and a strategy of type OnDelete."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.scenarios.crashes import PARTS, kill_after_every_write
from tests.scenarios.kinds import ON_DELETE, ORDERED, STATEFUL_SET, LeaderWorkerSets
from tests.scenarios.matrix import TRAFFIC, Moment, Release, release
from tests.scenarios.matrix_acts import ACTS, Act
from tests.scenarios.matrix_table import Told
from tests.scenarios.styles import STYLES, Style
from tests.scenarios.test_matrix import KILLED, Killed, aborted_in_a_step, aborted_in_mid_promotion, finished
from tests.scenarios.world import World

Record = Callable[[str, object], None]
KINDS = (STATEFUL_SET, ORDERED, ON_DELETE)
#: Those that need no surge groups.
IN_USE = tuple(each for each in STYLES if not each.spared)


def everything() -> Iterator[Any]:
    for kind, style, traffic, act in itertools.product(KINDS, IN_USE, TRAFFIC, ACTS):
        for moment in act.moments:
            name = f"{kind}-{style}-{traffic}-{act}-{moment.name.lower()}"
            yield pytest.param(kind, style, traffic, act, moment, id=name)


def sample() -> Iterator[Any]:
    """Each act once, kinds, styles and traffic by turns."""
    for number, act in enumerate(ACTS):
        kind, style = KINDS[number % len(KINDS)], IN_USE[number // len(KINDS) % len(IN_USE)]
        traffic = TRAFFIC[number % len(TRAFFIC)]
        yield pytest.param(kind, style, traffic, act, act.sample, id=f"{kind}-{style}-{traffic}-{act}")


async def tell(world: World, kind: LeaderWorkerSets, style: Style, traffic: str, act: Act, moment: Moment) -> None:
    world.kind = kind
    it = release(world, style, traffic, 1)
    await it.begin()
    await it.come_to(moment)
    await act.happen(it)


@pytest.mark.one_in(2, of="act")
@pytest.mark.looptime
@pytest.mark.parametrize(("kind", "style", "traffic", "act", "moment"), [*sample()])
async def test_a_release_comes_to_a_legal_end(
    world: World,
    kind: LeaderWorkerSets,
    style: Style,
    traffic: str,
    act: Act,
    moment: Moment,
    record_property: Record,
) -> None:
    record_property(*Told(act.name, f"{kind}: {style}", traffic).note())
    await tell(world, kind, style, traffic, act, moment)


@pytest.mark.each_change
@pytest.mark.long
@pytest.mark.looptime
@pytest.mark.parametrize(("kind", "style", "traffic", "act", "moment"), [*everything()])
async def test_a_release_comes_to_a_legal_end_whenever_it_happens(
    world: World,
    kind: LeaderWorkerSets,
    style: Style,
    traffic: str,
    act: Act,
    moment: Moment,
    record_property: Record,
) -> None:
    record_property(*Told(act.name, f"{kind}: {style}", traffic).note())
    await tell(world, kind, style, traffic, act, moment)


def killings() -> Iterator[Any]:
    stories = (finished, aborted_in_a_step, aborted_in_mid_promotion)
    for style, traffic, story, part in itertools.product(IN_USE, TRAFFIC, stories, range(PARTS)):
        yield pytest.param(style, traffic, story, part, id=f"{style}-{traffic}-{story.__name__}-{part}")


@pytest.mark.long
@pytest.mark.parametrize(("style", "traffic", "story", "part"), [*killings()])
def test_one_whose_controller_is_killed_after_any_write_does_too(
    style: Style, traffic: str, story: Killed, part: int, record_property: Record
) -> None:
    async def begin(world: World) -> Release:
        world.kind = STATEFUL_SET
        it = release(world, style, traffic, 1)
        await it.begin()
        return it

    tried = 0
    try:
        tried = kill_after_every_write(begin, story, part, PARTS)
    finally:
        record_property(*Told(KILLED, f"{STATEFUL_SET}: {style}", traffic, max(tried, 1)).note())
