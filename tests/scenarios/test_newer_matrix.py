"""The story matrix with the newer LeaderWorkerSet, which makes a group again once and no more."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.scenarios.kinds import LIMITED
from tests.scenarios.matrix import TRAFFIC, Moment, release
from tests.scenarios.matrix_acts import ACTS, Act
from tests.scenarios.matrix_table import Told
from tests.scenarios.styles import STYLES, Style
from tests.scenarios.world import World

Record = Callable[[str, object], None]


def everything() -> Iterator[Any]:
    for style, traffic, act in itertools.product(STYLES, TRAFFIC, ACTS):
        for moment in act.moments:
            yield pytest.param(style, traffic, act, moment, id=f"{style}-{traffic}-{act}-{moment.name.lower()}")


def sample() -> Iterator[Any]:
    """Each act once, styles and traffic by turns."""
    for number, act in enumerate(ACTS):
        style, traffic = STYLES[(number + 1) % len(STYLES)], TRAFFIC[(number + 1) % len(TRAFFIC)]
        yield pytest.param(style, traffic, act, act.sample, id=f"{style}-{traffic}-{act}")


async def tell(world: World, style: Style, traffic: str, act: Act, moment: Moment, size: int) -> None:
    world.release(LIMITED)
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
    record_property(*Told(act.name, f"{LIMITED}: {style}", traffic).note())
    await tell(world, style, traffic, act, moment, 2)


@pytest.mark.each_change
@pytest.mark.long
@pytest.mark.looptime
@pytest.mark.parametrize(("style", "traffic", "act", "moment"), [*everything()])
async def test_a_release_comes_to_a_legal_end_whenever_it_happens(
    world: World, style: Style, traffic: str, act: Act, moment: Moment, record_property: Record
) -> None:
    record_property(*Told(act.name, f"{LIMITED}: {style}", traffic).note())
    await tell(world, style, traffic, act, moment, 2)
