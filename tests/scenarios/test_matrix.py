"""Every style, with and without a route, through everything that may happen to it, wherever it is.

The default run tells a sample, each act for one of two styles; without ``-m`` pytest tells all. A run prints the table.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.scenarios.crashes import PARTS, kill_after_every_write
from tests.scenarios.matrix import TRAFFIC, Moment, Release, release
from tests.scenarios.matrix_acts import ACTS, Act
from tests.scenarios.matrix_table import Told, table, told_by
from tests.scenarios.styles import IN_PLACE, STYLES, Style
from tests.scenarios.world import World

Record = Callable[[str, object], None]
KILLED = "controller killed at every write"


def everything() -> Iterator[Any]:
    for style, traffic, act in itertools.product(STYLES, TRAFFIC, ACTS):
        for moment in act.moments:
            yield pytest.param(style, traffic, act, moment, id=f"{style}-{traffic}-{act}-{moment.name.lower()}")


def sample() -> Iterator[Any]:
    """Each act for two styles by turns, with a route and without one."""
    for number, act in enumerate(ACTS):
        for traffic, other in zip(TRAFFIC, (0, 2), strict=True):
            style = STYLES[(number + other) % len(STYLES)]
            yield pytest.param(style, traffic, act, act.sample, id=f"{style}-{traffic}-{act}")


async def tell(world: World, style: Style, traffic: str, act: Act, moment: Moment, size: int) -> None:
    it = release(world, style, traffic, size)
    await it.begin()
    await it.come_to(moment)
    await act.happen(it)


@pytest.mark.one_in(2, of="act")
@pytest.mark.looptime
@pytest.mark.parametrize(("style", "traffic", "act", "moment"), [*sample()])
async def test_a_release_comes_to_a_legal_end(
    world: World, style: Style, traffic: str, act: Act, moment: Moment, record_property: Record
) -> None:
    record_property(*Told(act.name, style.name, traffic).note())
    # Groups of one pod are told in half the time.
    await tell(world, style, traffic, act, moment, 1)


@pytest.mark.each_change
@pytest.mark.long
@pytest.mark.looptime
@pytest.mark.parametrize(("style", "traffic", "act", "moment"), [*everything()])
async def test_a_release_comes_to_a_legal_end_whenever_it_happens(
    world: World, style: Style, traffic: str, act: Act, moment: Moment, record_property: Record
) -> None:
    record_property(*Told(act.name, style.name, traffic).note())
    await tell(world, style, traffic, act, moment, 2)


async def finished(_: World, it: Release) -> None:
    await it.come_to(Moment.FIRST)
    await it.ends_at("v2")


async def aborted_in_mid_promotion(_: World, it: Release) -> None:
    await it.come_to(Moment.PROMOTION)
    it.do(lambda: it.ask("Abort"))
    # A kill may take so long that there is no way back any more.
    await it.until(lambda: it.world.state in ("Aborted", "Healthy"), "ended")
    # Workers of surge groups end after their leaders.
    await it.world.rest()
    await it.ends_at(it.running_version(), it.world.state)


async def aborted_in_a_step(_: World, it: Release) -> None:
    await it.come_to(Moment.SECOND)
    it.do(lambda: it.ask("Abort"))
    await it.ends_at("v1", "Aborted")


Killed = Callable[[World, Release], Any]


def killed(style: Style, traffic: str, story: Killed, part: int, parts: int, record: Record) -> None:
    async def begin(world: World) -> Release:
        it = release(world, style, traffic)
        await it.begin()
        return it

    tried = 0
    try:
        tried = kill_after_every_write(begin, story, part, parts)
    finally:
        record(*Told(KILLED, style.name, traffic, max(tried, 1)).note())


def killings() -> Iterator[Any]:
    """Every story with a kill in it, dealt into parts; the default run tells one part of one."""
    stories = (finished, aborted_in_a_step, aborted_in_mid_promotion)
    for style, traffic, story, part in itertools.product(STYLES, TRAFFIC, stories, range(PARTS)):
        told = (style, traffic, story, part) == (IN_PLACE, "none", finished, 0)
        name = f"{style}-{traffic}-{story.__name__}-{part}"
        yield pytest.param(style, traffic, story, part, marks=[] if told else [pytest.mark.long], id=name)


@pytest.mark.parametrize(("style", "traffic", "story", "part"), [*killings()])
def test_one_whose_controller_is_killed_after_any_write_does_too(
    style: Style, traffic: str, story: Killed, part: int, record_property: Record
) -> None:
    killed(style, traffic, story, part, PARTS, record_property)


def test_the_table_tells_what_passed_what_failed_and_what_nobody_asked() -> None:
    notes = [
        told_by([Told("abort", "canary", "none", 2).note(), ("another", 1)], passed=True),
        told_by([Told("abort", "canary", "none").note()], passed=False),
        told_by([Told("retry", "canary", "HTTPRoute").note()], passed=True),
    ]
    assert table([each for note in notes for each in note]) == [
        "story matrix: 4 stories",
        "       canary     canary",
        "       HTTPRoute  none",
        "abort  -          FAILED 1 of 3",
        "retry  ok 1       -",
    ]
    assert table([]) == []
