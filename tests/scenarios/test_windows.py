"""The LWS is open in windows only: how many, for how long, and what an edit or a lost leader does at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import PODS
from rollout_lws.objects.writes import Write
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from rollout_lws.sandbox.behaviours.statefulset import Variant
from tests import virtual_time
from tests.scenarios.matrix import Release, release
from tests.scenarios.matrix_table import WINDOWS
from tests.scenarios.one_workload import Windows
from tests.scenarios.stories import PROMOTED_STEPS, assert_clean, at_rest
from tests.scenarios.styles import BLUE_GREEN, CANARY_STYLE, IN_PLACE, STYLES, SURGE, Style
from tests.scenarios.world import NAME, World

#: Seconds in which a leader ends and another one exists in its place; a load takes much longer.
ENDS, LOADS = 0.2, 30.0

#: One story of each so many tells of an edit after a write of a release; together they tell of all writes.
STRIDE = 16
#: Windows of a release of four groups by steps of one, two and all of them, with maxUnavailable 1.
NUMBER = {each.name: 4 for each in (CANARY_STYLE, BLUE_GREEN, IN_PLACE, SURGE)}


def slow(variant: Variant) -> World:
    """A world whose groups load for long."""
    return World(Options(timing=Timing(ready_after=LOADS, terminate_after=ENDS), stateful_sets=variant))


async def released(world: World, style: Style) -> Windows:
    """From rest to the end, with every window on record."""
    await at_rest(world, *PROMOTED_STEPS, **{style.key: dict(style.words)})
    windows = Windows(world)
    world.checks[:] = [windows]
    world.set_image("v2")
    while world.state != "Healthy" or set(world.groups().values()) != {"v2"}:
        if world.state == "AwaitingApproval":
            world.approve()
        await world._change(600)
    await world.rest()
    return windows


@pytest.mark.one_in(8)
@pytest.mark.parametrize("variant", ["legacy", "max_unavailable"])
@pytest.mark.parametrize("style", STYLES, ids=str)
def test_windows_are_few_and_as_short_as_a_leader_takes_to_end(
    style: Style, variant: Variant, record_property: Any
) -> None:
    async def story() -> Windows:
        world = slow(variant)
        try:
            windows = await released(world, style)
            assert_clean(world, "v2")
            return windows
        finally:
            world.close()

    windows = virtual_time.run(story())
    record_property(WINDOWS, [style.name, variant, windows.lengths])
    assert len(windows.lengths) == NUMBER[style.name]
    assert not windows.is_open
    assert max(windows.lengths) < ENDS + 0.3 < LOADS


def moments() -> Iterator[Any]:
    """After which of the controller's writes the template is edited: all of them in the longer lane."""
    for style in STYLES:
        for first in range(STRIDE):
            marks = [] if first == 0 and style in (IN_PLACE, CANARY_STYLE) else [pytest.mark.long]
            yield pytest.param(style, first, marks=marks, id=f"{style}-{first}")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("style", "first"), [*moments()])
def test_an_edit_at_any_moment_restarts_nothing_outside_a_window(style: Style, first: int) -> None:
    """The judge looks at every group that comes up; in the end the newest version runs everywhere."""
    at, tried = first + 1, 0
    while virtual_time.run(edited_after(style, at)):
        at, tried = at + STRIDE, tried + 1
    assert tried >= 1


async def edited_after(style: Style, writes: int) -> bool:
    """Apply v3 after so many writes of the release of v2; False when that needed fewer."""
    world = World()
    it, done = release(world, style, "none", size=1), 0
    try:
        await it.begin()
        send = world.refuse

        def count(write: Write) -> ApiError | None:
            nonlocal done
            done += 1
            if done == writes:
                asyncio.get_running_loop().call_soon(lambda: it.do(lambda: it.apply("v3")))
            return send(write)

        world.refuse = count
        it.do(lambda: it.apply("v2"))
        await it.until(lambda: done >= writes or _is_over(it), "edited or over", approve=True)
        if done < writes:
            return False
        await it.ends_at("v3")
        return True
    finally:
        world.close()


def _is_over(it: Release) -> bool:
    return it.world.state == "Healthy" and it.ready("v2")


@pytest.mark.one_in(4)
@pytest.mark.looptime
@pytest.mark.parametrize("style", STYLES, ids=str)
async def test_a_leader_lost_right_after_the_promotion_comes_back_new(style: Style) -> None:
    world = slow("legacy")
    try:
        await at_rest(world, *PROMOTED_STEPS, **{style.key: dict(style.words)})
        world.checks.clear()
        world.set_image("v2")
        while (world.status.get("finalising") or {}).get("task") != "CleanUp":
            if world.state == "AwaitingApproval":
                world.approve()
            await world._change(600)
        world.delete(PODS, f"{NAME}-0")
        await world.until(lambda: world.groups().get(0) == "v2!", "made again")
        await world.until(lambda: world.state == "Healthy" and "!" not in "".join(world.groups().values()), "healthy")
        await world.rest()
        assert_clean(world, "v2")
    finally:
        world.close()


@pytest.mark.one_in(2)
@pytest.mark.looptime
@pytest.mark.parametrize("style", [CANARY_STYLE, IN_PLACE], ids=str)
async def test_a_leader_lost_before_the_set_knows_the_new_version_comes_back_old_and_is_renewed(style: Style) -> None:
    world = slow("legacy")
    try:
        await at_rest(world, *PROMOTED_STEPS, **{style.key: dict(style.words)})
        world.checks.clear()
        world.set_image("v2")
        windows = Windows(world)
        world.checks.append(windows)
        while world.groups().get(0) != "v2!" or windows.is_open:
            if world.state == "AwaitingApproval":
                world.approve()
            await world._change(600)
        world.delete(PODS, f"{NAME}-3")
        await world.until(lambda: world.groups().get(3) == "v1!", "back at the old version")
        await world.until_state("Healthy", 1200)
        await world.rest()
        assert_clean(world, "v2")
    finally:
        world.close()
