"""A version that is neither stable nor the one released runs in every group: it was applied in an open window while the
controller could not write. Groups restart with it, so it is stable, whatever the template asks for by then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.rollout.reasons import EventReason
from rollout_lws.workload.hold import HOLD
from tests.scenarios.count import partition
from tests.scenarios.failures import apply
from tests.scenarios.stories import assert_clean, at_rest
from tests.scenarios.styles import BLUE_GREEN, CANARY_STYLE, IN_PLACE, STYLES, SURGE, Style
from tests.scenarios.world import KEYS, NAME, World

pytestmark = pytest.mark.looptime

#: The way there takes some seconds of a processor, so most of the styles are for the longer lane.
STYLES_AND_LANES = [
    IN_PLACE,
    *(pytest.param(style, marks=pytest.mark.long) for style in (CANARY_STYLE, BLUE_GREEN, SURGE)),
]


#: A version whose groups become ready, and crash after a while.
CRASHES: Mapping[str, str | None] = {"crash-after": "120s"}


async def overrun(world: World, style: Style, faults: Mapping[str, str | None] | None = None) -> None:
    """In the promotion of v2 all groups go over to v3; the controller is back and has closed the window."""
    await at_rest(
        world,
        {"replicas": 1, "pause": {"duration": 1}},
        {"replicas": "100%", "pause": {"duration": 1}},
        replicas=3,
        **{style.key: dict(style.words)},
    )
    world.checks.clear()
    world.set_image("v2")
    while (world.status.get("finalising") or {}).get("task") != "Promote" or partition(world.lws):
        if world.state == "AwaitingApproval":
            world.approve()
        await world._change(60)
    world.refuse = lambda _: ApiError(500, "Injected", "trouble")
    apply(world, "v3", faults=faults)
    await world.until(lambda: set(world.groups().values()) == {"v3"}, "all groups at v3", 5000)
    world.refuse = lambda _: None
    await world.until(lambda: partition(world.lws) == HOLD, "the window is closed")


@pytest.mark.parametrize("style", STYLES_AND_LANES, ids=str)
async def test_the_version_that_waits_is_released_in_steps(world: World, style: Style) -> None:
    await overrun(world, style)
    world.set_image("v4")
    while not (world.state == "Healthy" and set(world.groups().values()) == {"v4"}):
        if world.state == "AwaitingApproval":
            world.approve()
        assert world.state == "Healthy" or world.status.get("message"), world.describe()
        await world._change(600)
    await world.rest()
    assert_clean(world, "v4", 3)
    assert EventReason.ROLLED_OUT_NATIVELY in [event.reason for event in world.events]


async def abort(world: World) -> None:
    world.set_image("v4")
    await world.until(lambda: world.status["canaryStatus"]["currentStepState"] == "StepUpgrade", "v4 is released")
    world.request("Abort")
    await world.until_state("Aborted")


async def disable(world: World) -> None:
    world.set_image("v4")
    world.patch_rollout({"disabled": True})
    await world.until_state("Disabled")


async def delete(world: World) -> None:
    world.set_image("v4")
    world.delete(world.ROLLOUT, NAME)
    await world.until(lambda: world.get(world.ROLLOUT, NAME) is None, "the Rollout leaves")


@pytest.mark.long
@pytest.mark.parametrize("act", [abort, disable, delete], ids=lambda act: act.__name__)
@pytest.mark.parametrize("style", [CANARY_STYLE, IN_PLACE, SURGE], ids=str)
async def test_what_goes_back_or_leaves_ends_at_the_version_that_runs(
    world: World, style: Style, act: Callable[[World], Awaitable[None]]
) -> None:
    await overrun(world, style)
    await act(world)
    await world.rest()
    assert set(world.groups().values()) == {"v3"}
    assert world.names()["leaderworkersets"] == [NAME]
    assert partition(world.lws) == HOLD
    if act is not abort:
        assert KEYS.held in world.lws["metadata"]["annotations"]


@pytest.mark.long
@pytest.mark.parametrize("tag", ["v1", "v2", "v3"])
@pytest.mark.parametrize("style", STYLES, ids=str)
async def test_a_version_that_has_been_there_before_is_released_or_stable(world: World, style: Style, tag: str) -> None:
    await overrun(world, style)
    world.set_image(tag)
    while not (world.state == "Healthy" and set(world.groups().values()) == {tag}):
        if world.state == "AwaitingApproval":
            world.approve()
        await world._change(600)
    await world.rest()
    assert_clean(world, tag, 3)


@pytest.mark.long
@pytest.mark.parametrize("style", STYLES, ids=str)
async def test_a_third_version_that_crashes_does_not_hold_back_its_mend(world: World, style: Style) -> None:
    await overrun(world, style, CRASHES)
    apply(world, "v4", faults=dict.fromkeys(CRASHES))
    while not (world.state == "Healthy" and set(world.groups().values()) == {"v4"}):
        if world.state == "AwaitingApproval":
            world.approve()
        assert world.state == "Healthy" or world.status.get("message"), world.describe()
        await world._change(3600)
    assert world.get(LEADER_WORKER_SETS, f"{NAME}-canary") is None
