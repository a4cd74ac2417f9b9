"""Killed after any single write, a blue-green release comes to the same end, and gives everything back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.scenarios.crashes import PARTS, kill_after_every_write
from tests.scenarios.invariants import always_serving, share_only_for_who_serves
from tests.scenarios.routed import assert_given_back, routed_at_rest
from tests.scenarios.world import World

STEPS = {"replicas": "50%", "traffic": "0%", "pause": {}}, {"replicas": "100%", "traffic": "100%", "pause": {}}


async def at_rest(world: World) -> dict[str, Any]:
    before = await routed_at_rest(world, *STEPS, replicas=3, style="blueGreen", gracePeriodSeconds=1, drainSeconds=2)
    world.checks += [always_serving, share_only_for_who_serves()]
    return before


async def promoting(world: World) -> None:
    world.set_image("v2")
    for number in (1, 2):
        await world.until(
            lambda at=number: world.state == "AwaitingApproval" and world.status["currentStepIndex"] == at  # type: ignore[misc]
        )
        world.approve()


async def finished(world: World, before: dict[str, Any]) -> None:
    await promoting(world)
    await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {"v2"})
    await world.rest()
    assert_given_back(world, before)


async def aborted_in_mid_promotion(world: World, before: dict[str, Any]) -> None:
    await promoting(world)
    await world.until(lambda: any(told.startswith("v2") for told in world.groups().values()), "a renewed group")
    world.request("Abort")
    await world.until(lambda: world.state in ("Aborted", "Healthy"))
    await world.rest()
    assert_given_back(world, before)
    assert len(set(world.groups().values())) == 1


Story = Callable[[World, dict[str, Any]], Awaitable[None]]


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, PARTS))])
@pytest.mark.parametrize(
    "story", [finished, pytest.param(aborted_in_mid_promotion, marks=pytest.mark.long)], ids=lambda each: each.__name__
)
def test_a_controller_killed_after_any_write_comes_to_the_same_end(story: Story, part: int) -> None:
    kill_after_every_write(at_rest, story, part)
