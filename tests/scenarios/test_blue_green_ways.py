"""Blue-green, whatever happens while green stands in full: the table of acts, with and without a route."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS
from tests.scenarios.invariants import always_serving
from tests.scenarios.routed import assert_given_back, routed_at_rest
from tests.scenarios.stories import CANARY, assert_clean, at_rest
from tests.scenarios.world import NAME, World

# The matrix tells of each act once; here it is all of them while green stands in full.
pytestmark = [pytest.mark.looptime, pytest.mark.long]

PLAIN: tuple[dict[str, Any], ...] = ({"replicas": "50%", "pause": {}}, {"replicas": "100%", "pause": {}})
ROUTED: tuple[dict[str, Any], ...] = (
    {"replicas": "50%", "traffic": "0%", "pause": {}},
    {"replicas": "100%", "traffic": "50%", "pause": {}},
)
GREEN = dict.fromkeys(range(3), "v2")


async def step(world: World, number: int) -> None:
    await world.until(
        lambda: world.state == "AwaitingApproval" and world.status["currentStepIndex"] == number, f"step {number}"
    )


async def full_green(world: World, tag: str = "v2") -> None:
    world.set_image(tag)
    await step(world, 1)
    world.approve()
    await step(world, 2)


async def over(world: World, tag: str, state: str = "Healthy") -> None:
    await world.until(lambda: world.state == state and set(world.groups().values()) == {tag}, f"{state} at {tag}", 1200)
    await world.rest()


async def finish(world: World) -> str:
    world.approve()
    await over(world, "v2")
    return "v2"


async def restored(world: World) -> str:
    before = world.leader_uids()
    world.set_image("v1")
    await over(world, "v1")
    assert world.leader_uids() == before
    return "v1"


async def aborted_and_tried_again(world: World) -> str:
    before = world.leader_uids()
    world.request("Abort")
    await over(world, "v1", "Aborted")
    assert world.leader_uids() == before
    world.request("Retry")
    await step(world, 1)
    world.approve()
    await step(world, 2)
    return await finish(world)


async def overtaken(world: World) -> str:
    await full_green(world, "v3")
    assert world.groups(CANARY) == dict.fromkeys(range(3), "v3")
    world.approve()
    await over(world, "v3")
    return "v3"


async def scaled_up_and_down(world: World) -> str:
    for replicas in (5, 3):
        world.patch_lws({"replicas": replicas})
        await world.until(
            lambda n=replicas: world.groups(CANARY) == dict.fromkeys(range(n), "v2"),  # type: ignore[misc]
            f"{replicas} groups of green",
        )
        await step(world, 2)
    return await finish(world)


async def scaled_to_zero(world: World) -> str:
    world.checks.clear()
    world.patch_lws({"replicas": 0})
    await world.rest()
    world.patch_lws({"replicas": 3})
    await world.until(lambda: "!" not in "".join(world.groups().values()) and len(world.groups()) == 3, "groups", 600)
    await world.rest()
    if world.state == "AwaitingApproval":
        world.approve()
    await over(world, "v2")
    return "v2"


async def a_group_of_green_lost(world: World) -> str:
    world.delete(PODS, f"{CANARY}-1")
    await world.until(lambda: world.groups(CANARY) != GREEN, "the loss")
    world.approve()
    await world.rest()
    await over(world, "v2")
    return "v2"


async def disabled(world: World) -> str:
    before = world.leader_uids()
    world.patch_rollout({"disabled": True})
    await world.until(lambda: world.status.get("phase") == "Disabled", "disabled", 600)
    await world.rest()
    assert world.leader_uids() == before
    world.patch_rollout({"disabled": False})
    await step(world, 1)
    world.approve()
    await step(world, 2)
    return await finish(world)


async def green_deleted_by_hand(world: World) -> str:
    uid = (world.get(LEADER_WORKER_SETS, CANARY) or {})["metadata"]["uid"]
    world.delete(LEADER_WORKER_SETS, CANARY)
    await world.until(
        lambda: (world.get(LEADER_WORKER_SETS, CANARY) or {"metadata": {"uid": uid}})["metadata"]["uid"] != uid,
        "another green",
        600,
    )
    await step(world, 2)
    return await finish(world)


async def restarted(world: World) -> str:
    world.stop_controller()
    await world.sleep(60)
    world.start_controller()
    return await finish(world)


Act = Callable[[World], Awaitable[str]]
ACTS: tuple[Act, ...] = (
    finish,
    restored,
    aborted_and_tried_again,
    overtaken,
    scaled_up_and_down,
    scaled_to_zero,
    a_group_of_green_lost,
    disabled,
    green_deleted_by_hand,
    restarted,
)


@pytest.mark.parametrize("act", ACTS, ids=lambda each: each.__name__)
async def test_without_routing(world: World, act: Act) -> None:
    await at_rest(world, *PLAIN, replicas=3, blueGreen={})
    world.checks.append(always_serving)
    await full_green(world)
    assert_clean(world, await act(world), replicas=3)


@pytest.mark.parametrize("act", ACTS, ids=lambda each: each.__name__)
async def test_with_a_route(world: World, act: Act) -> None:
    before = await routed_at_rest(world, *ROUTED, replicas=3, style="blueGreen")
    world.checks.append(always_serving)
    await full_green(world)
    await act(world)
    assert_given_back(world, before)
    assert world.names()["leaderworkersets"] == [NAME]
