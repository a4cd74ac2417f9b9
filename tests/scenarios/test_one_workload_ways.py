"""In place and surge, whatever happens in mid-step and in mid-promotion: the table of acts, with or without a route."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from rollout_lws.objects.resources import PODS
from tests.scenarios.one_workload import STYLES, Style, in_care, over, routed_in_care, step
from tests.scenarios.routed import assert_given_back
from tests.scenarios.stories import assert_clean
from tests.scenarios.world import NAME, World

# The matrix tells of each act once; here it is all of them at each moment.
pytestmark = [pytest.mark.looptime, pytest.mark.long]


async def half_new(world: World, style: Style, tag: str = "v2", old: str = "v1") -> None:
    world.set_image(tag)
    await step(world, 1)
    assert world.groups() == style.new(1, old=old, tag=tag)
    world.approve()
    await step(world, 2)
    assert world.groups() == style.new(2, old=old, tag=tag)


async def mid_promotion(world: World, style: Style) -> None:
    """A group that the promotion makes is on its way."""
    await half_new(world, style)
    world.approve()
    await world.until(
        lambda: (
            (world.status.get("finalising") or {}).get("task") == "Promote"
            and any(
                told.startswith("v2")
                for ordinal, told in world.groups().items()
                if ordinal < 2 or (style.extra and ordinal < 4)
            )
        ),
        "a group renewed by the promotion",
    )


async def finish(world: World, _: Style) -> str:
    await world.rest()
    if world.state == "AwaitingApproval":
        world.approve()
    await over(world, "v2")
    return "v2"


async def restored(world: World, _: Style) -> str:
    world.set_image("v1")
    await over(world, "v1")
    return "v1"


async def aborted_and_tried_again(world: World, style: Style) -> str:
    world.request("Abort")
    await over(world, "v1", "Aborted")
    world.request("Retry")
    await step(world, 1)
    world.approve()
    await step(world, 2)
    return await finish(world, style)


async def overtaken(world: World, style: Style) -> str:
    await half_new(world, style, "v3")
    world.approve()
    await over(world, "v3")
    return "v3"


async def a_group_lost(world: World, style: Style) -> str:
    new = max(ordinal for ordinal, told in world.groups().items() if told.startswith("v2"))
    world.checks.clear()
    world.delete(PODS, f"{NAME}-{new}")
    await world.until(lambda: world.groups().get(new) != "v2", "the loss")
    await world.rest()
    return await finish(world, style)


async def disabled(world: World, _: Style) -> str:
    tag = "v2" if (world.status.get("finalising") or {}).get("task") == "Promote" else "v1"
    world.patch_rollout({"disabled": True})
    await world.until(lambda: world.status.get("phase") == "Disabled", "disabled", 1200)
    await world.rest()
    assert set(world.groups().values()) == {tag}
    world.patch_rollout({"disabled": False})
    await world.rest()
    if tag == "v1":
        world.approve()
        await step(world, 2)
        world.approve()
    await over(world, "v2")
    return "v2"


async def restarted(world: World, style: Style) -> str:
    world.stop_controller()
    await world.sleep(60)
    world.start_controller()
    return await finish(world, style)


Act = Callable[[World, Style], Awaitable[str]]
ACTS: tuple[Act, ...] = (finish, restored, aborted_and_tried_again, overtaken, a_group_lost, disabled, restarted)


@pytest.mark.parametrize("style", STYLES, ids=str)
@pytest.mark.parametrize("act", ACTS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("moment", [half_new, mid_promotion], ids=lambda each: each.__name__)
async def test_without_routing(world: World, moment: Act, act: Act, style: Style) -> None:
    await in_care(world, style)
    await moment(world, style)
    assert_clean(world, await act(world, style))


@pytest.mark.parametrize("style", STYLES, ids=str)
@pytest.mark.parametrize("act", ACTS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("moment", [half_new, mid_promotion], ids=lambda each: each.__name__)
async def test_with_a_route(world: World, moment: Act, act: Act, style: Style) -> None:
    before = await routed_in_care(world, style)
    await moment(world, style)
    await act(world, style)
    assert_given_back(world, before)
    assert world.names()["leaderworkersets"] == [NAME]
