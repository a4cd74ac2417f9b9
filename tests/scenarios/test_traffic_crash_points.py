"""Killed after any single write, a release with traffic gives everything back and loses no request on the way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.scenarios.crashes import PARTS, kill_after_every_write
from tests.scenarios.invariants import always_serving, at_most_down, share_only_for_who_serves
from tests.scenarios.routed import assert_given_back, routed_at_rest
from tests.scenarios.stories import waiting_for_approval
from tests.scenarios.world import World

STEPS = {"replicas": 1, "traffic": "20%", "pause": {}}, {"replicas": 2, "traffic": "50%", "pause": {"duration": 1}}


async def at_rest(world: World) -> dict[str, Any]:
    before = await routed_at_rest(world, *STEPS, replicas=4, gracePeriodSeconds=1, drainSeconds=2)
    world.checks += [at_most_down(1), always_serving, share_only_for_who_serves()]
    return before


async def finished(world: World, before: dict[str, Any]) -> None:
    await waiting_for_approval(world)
    world.approve()
    await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {"v2"})
    await world.rest()
    assert_given_back(world, before)


async def aborted(world: World, before: dict[str, Any]) -> None:
    await waiting_for_approval(world)
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert_given_back(world, before)


async def aborted_in_mid_promotion(world: World, before: dict[str, Any]) -> None:
    await waiting_for_approval(world)
    world.approve()
    await world.until(lambda: any(told.startswith("v2") for told in world.groups().values()), "a renewed group")
    world.request("Abort")
    await world.until(lambda: world.state in ("Aborted", "Healthy"))
    await world.rest()
    assert_given_back(world, before)


Story = Callable[[World, dict[str, Any]], Awaitable[None]]


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, PARTS))])
@pytest.mark.parametrize("story", [finished, aborted, aborted_in_mid_promotion], ids=lambda each: each.__name__)
def test_a_controller_killed_after_any_write_gives_everything_back(story: Story, part: int) -> None:
    kill_after_every_write(at_rest, story, part)
