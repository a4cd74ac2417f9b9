"""Killed after any single write and started again, a release comes to the same end; there are never two canaries."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable

import looptime
import pytest

from tests.scenarios.invariants import always_serving, at_most_down
from tests.scenarios.stories import assert_clean, at_rest, mid_promotion, waiting_for_approval
from tests.scenarios.world import World

#: Into how many tests the writes of a story are dealt.
PARTS = 4

Story = Callable[[World], Awaitable[None]]


async def happy(world: World) -> None:
    await waiting_for_approval(world)
    world.approve()
    await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {"v2"})
    await world.rest()
    assert_clean(world, "v2")


async def aborted(world: World) -> None:
    await waiting_for_approval(world)
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert_clean(world, "v1")


async def third_template_in_mid_promotion(world: World) -> None:
    await mid_promotion(world)
    world.set_image("v3")
    await world.until(lambda: world.state == "AwaitingApproval" and world.status["currentStepIndex"] == 2)
    assert world.groups() == dict.fromkeys(range(4), "v1")
    world.approve()
    await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {"v3"})
    await world.rest()
    assert_clean(world, "v3")


async def killed_after(story: Story, writes: int) -> bool:
    """Tell the story with one kill; False when the release needed fewer writes than that."""
    world = World()
    await at_rest(world)
    world.checks += [at_most_down(1), always_serving]
    world.budget, restarted = writes, False

    async def restart() -> None:
        nonlocal restarted
        await world.until(lambda: not world.running, seconds=10_000)
        await asyncio.sleep(0.7)
        restarted = True
        world.start_controller()

    task = asyncio.create_task(restart())
    try:
        await story(world)
    finally:
        task.cancel()
        world.close()
    return restarted


def in_virtual_time(work: Awaitable[bool]) -> bool:
    loop = looptime.patch_event_loop(asyncio.new_event_loop())
    loop.setup_looptime()
    try:
        return bool(loop.run_until_complete(work))
    finally:
        loop.close()


def kill_after_every_write(story: Story, part: int) -> None:
    """Every write is tried: each part takes its share of them, so that several cores can work."""
    tried = 0
    for writes in itertools.count(part, PARTS):
        try:
            restarted = in_virtual_time(killed_after(story, writes))
        except AssertionError as error:
            raise AssertionError(f"killed after write {writes}: {error}") from error
        if not restarted:
            break
        tried += 1
    assert tried >= 4, f"only {tried} writes were tried"


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("story", [happy, aborted], ids=lambda each: each.__name__)
def test_a_controller_killed_after_any_write_reaches_the_same_end(story: Story, part: int) -> None:
    kill_after_every_write(story, part)


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, PARTS))])
def test_one_killed_while_it_goes_back_in_mid_promotion_does_too(part: int) -> None:
    kill_after_every_write(third_template_in_mid_promotion, part)
