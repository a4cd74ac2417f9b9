"""Killed after any single write and started again, a release comes to the same end; there are never two canaries."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from tests.scenarios import stories
from tests.scenarios.crashes import PARTS, kill_after_every_write
from tests.scenarios.invariants import always_serving, at_most_down
from tests.scenarios.stories import assert_clean, mid_promotion, waiting_for_approval
from tests.scenarios.world import World

Story = Callable[[World, None], Awaitable[None]]


async def at_rest(world: World) -> None:
    await stories.at_rest(world)
    world.checks += [at_most_down(1), always_serving]


async def happy(world: World, _: None) -> None:
    await waiting_for_approval(world)
    world.approve()
    await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {"v2"})
    await world.rest()
    assert_clean(world, "v2")


async def aborted(world: World, _: None) -> None:
    await waiting_for_approval(world)
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert_clean(world, "v1")


async def third_template_in_mid_promotion(world: World, _: None) -> None:
    await mid_promotion(world)
    world.set_image("v3")
    await world.until(lambda: world.state == "AwaitingApproval" and world.status["currentStepIndex"] == 2)
    assert world.groups() == dict.fromkeys(range(4), "v1")
    world.approve()
    await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {"v3"})
    await world.rest()
    assert_clean(world, "v3")


def dealt() -> Iterator[Any]:
    """Both stories at all moments; the default run tells a part of the shorter one."""
    for story, part in itertools.product((happy, aborted), range(PARTS)):
        told = (story, part) == (aborted, 0)
        yield pytest.param(story, part, marks=[] if told else [pytest.mark.long], id=f"{story.__name__}-{part}")


@pytest.mark.parametrize(("story", "part"), [*dealt()])
def test_a_controller_killed_after_any_write_reaches_the_same_end(story: Story, part: int) -> None:
    kill_after_every_write(at_rest, story, part)


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_one_killed_while_it_goes_back_in_mid_promotion_does_too(part: int) -> None:
    kill_after_every_write(at_rest, third_template_in_mid_promotion, part)
