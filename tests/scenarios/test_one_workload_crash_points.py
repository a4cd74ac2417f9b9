"""In place and surge with the controller killed after every single write: the same end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenarios.crashes import PARTS, kill_after_every_write
from tests.scenarios.one_workload import STYLES, Style, in_care, over, routed_in_care, step
from tests.scenarios.routed import assert_given_back
from tests.scenarios.stories import assert_clean
from tests.scenarios.world import NAME, World

pytestmark = pytest.mark.long

Given = dict[str, Any] | None


async def _finish(world: World) -> str:
    world.set_image("v2")
    for number in (1, 2):
        await step(world, number)
        world.approve()
    await over(world, "v2")
    return "v2"


async def _abort_in_steps(world: World) -> str:
    world.set_image("v2")
    await step(world, 1)
    world.approve()
    await step(world, 2)
    world.request("Abort")
    await over(world, "v1", "Aborted")
    return "v1"


async def _restore_in_mid_promotion(world: World) -> str:
    world.set_image("v2")
    for number in (1, 2):
        await step(world, number)
        world.approve()
    await world.until(lambda: (world.status.get("finalising") or {}).get("task") == "Promote", "the promotion")
    world.set_image("v1")
    await over(world, "v1")
    return "v1"


ACTS = (_finish, _abort_in_steps, _restore_in_mid_promotion)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("routed", [False, True], ids=["plain", "routed"])
@pytest.mark.parametrize("act", ACTS, ids=lambda each: each.__name__.strip("_"))
@pytest.mark.parametrize("style", STYLES, ids=str)
def test_killed_after_every_write(style: Style, act: Any, routed: bool, part: int) -> None:
    async def begin(world: World) -> Given:
        if routed:
            return await routed_in_care(world, style)
        await in_care(world, style)
        world.start_controller()
        return None

    async def tell(world: World, before: Given) -> None:
        tag = await act(world)
        if before is not None:
            assert_given_back(world, before)
            assert world.names()["leaderworkersets"] == [NAME]
        else:
            assert_clean(world, tag)

    kill_after_every_write(begin, tell, part)
