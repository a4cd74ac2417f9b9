"""The partition is reset: by people and their jobs, who never lose the hold by it, and by a tool that insists."""

from __future__ import annotations

import pytest

from rollout_lws.workload.hold import HOLD
from tests.scenarios.insisting import Insisting
from tests.scenarios.invariants import nothing_unapproved_starts
from tests.scenarios.stories import CANARY, PROMOTED_STEPS, assert_clean, at_rest, waiting_for_approval
from tests.scenarios.world import World

pytestmark = pytest.mark.looptime

#: What a person does who applies a manifest twice; a job that is repeated; a pipeline of several tools, run twice.
APPLIED_AFTER = [(39,), (20,) * 12, (2, 2, 2, 30, 2, 2)]


def apply_again(world: World, partition: int = 0) -> None:
    world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": partition}}})


def held(world: World) -> bool:
    return bool(world.lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] == HOLD)


async def resting(world: World) -> None:
    await at_rest(world, *PROMOTED_STEPS)
    # A group that goes in the moment before the repair comes back.
    world.checks.clear()
    world.checks.append(nothing_unapproved_starts())


@pytest.mark.one_in(3)
@pytest.mark.parametrize("waits", APPLIED_AFTER, ids=str)
async def test_who_applies_a_partition_again_and_again_never_loses_the_hold(
    world: World, waits: tuple[float, ...]
) -> None:
    await resting(world)
    world.set_image("v2")
    apply_again(world)
    for seconds in waits:
        await world.sleep(seconds)
        apply_again(world)
    await world.rest()
    assert held(world)
    assert set(world.groups().values()) == {"v1"}
    assert (world.state, world.condition("Held")["status"]) == ("AwaitingApproval", "True")
    assert ("again and again" in world.status["message"]) == (len(waits) > 1)
    for step in (1, 2):
        await world.until(
            lambda step=step: (world.state, world.status["currentStepIndex"]) == ("AwaitingApproval", step)
        )
        world.request("Approve")
    await world.until_state("Healthy", 1800)
    await world.sleep(700)
    assert_clean(world, "v2")
    assert world.status.get("message", "") == ""


@pytest.mark.each_change
async def test_a_tool_that_insists_is_left_alone_and_the_hold_comes_back_for_the_next_version(world: World) -> None:
    await resting(world)
    await waiting_for_approval(world)
    tool = Insisting(world)
    await world.until(lambda: world.condition("Stalled").get("reason") == "HoldConflict")
    assert tool.resets == 6
    assert "leave it alone; it is put back once that roll is over" in world.status["message"]
    for kind in ("Approve", "Jump", "PromoteFull", "Pause"):
        world.request(kind, **({"toStep": 2} if kind == "Jump" else {}))
        await world.sleep(1)
        last = world.status["lastAction"]
        assert (last["type"], last["outcome"]) == (kind, "Refused")
        assert "is not held now and rolls by itself" in last["message"]
    await world.until(lambda: set(world.groups().values()) == {"v2"}, "a native roll")
    await world.until(lambda: world.status["phase"] == "Healthy")
    assert any(event.reason == "RolledOutNatively" for event in world.events)
    # With nothing pending the tool is tried again, and each time is left alone for longer.
    before, since = tool.resets, world.now
    await world.until(lambda: tool.resets > before + 2, seconds=1200)
    assert (world.now - since).total_seconds() > 180
    tool.stop()
    assert not held(world)
    world.set_image("v3")
    await world.sleep(1)
    assert held(world), world.describe()
    await world.until_state("AwaitingApproval")
    assert set(world.groups().values()) == {"v2"}


async def test_a_third_version_in_the_middle_of_a_roll_is_held_and_what_rolled_goes_back(world: World) -> None:
    await resting(world)
    await waiting_for_approval(world)
    tool = Insisting(world)
    await world.until(lambda: "v2" in world.groups().values(), "a group that rolls by itself")
    tool.stop()
    world.set_image("v3")
    await world.until(lambda: held(world), seconds=5)
    await world.until_state("RollingBack")
    await world.until_state("AwaitingApproval", 1800)
    assert set(world.groups().values()) == {"v1"}
    assert set(world.groups(CANARY).values()) == {"v3"}
