"""What stories on a real control plane have found, each told again in virtual time."""

from __future__ import annotations

import pytest

from tests.scenarios.matrix import GROUPS, Moment, release
from tests.scenarios.styles import STYLES, Style
from tests.scenarios.world import World

pytestmark = pytest.mark.looptime

LONG = (Moment.LOADING, Moment.FIRST, Moment.PROMOTION, Moment.CLEAN_UP)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("moment", [Moment.SECOND, *(pytest.param(each, marks=pytest.mark.long) for each in LONG)])
@pytest.mark.parametrize("traffic", [pytest.param("none", marks=pytest.mark.long), "HTTPRoute"])
@pytest.mark.parametrize("style", STYLES, ids=str)
async def test_scaled_to_zero_and_up_again_while_no_controller_looked(
    world: World, style: Style, traffic: str, moment: Moment
) -> None:
    """LWS starts the new version in every group then: there is nothing left to release."""
    it = release(world, style, traffic)
    await it.begin()
    await it.come_to(moment)
    world.stop_controller()
    it.take_all(lambda: it.replicas(0))
    await it.until(lambda: world.groups() == {}, "empty")
    await world.rest()
    it.do(lambda: it.replicas(GROUPS))
    await world.rest()
    world.start_controller()
    await it.ends_at("v2", approve=False)
