"""Pairs on a real control plane, to each of their ends; the controller of each story is killed once in the middle."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from rollout_lws.objects.owners import OURS
from rollout_lws.objects.resources import HTTP_ROUTES, LEADER_WORKER_SETS, PODS, SERVICES
from tests.e2e.place import UNROUTED, Place
from tests.e2e.world import RemoteWorld
from tests.kubectl.programs import Programs
from tests.scenarios.paired import (
    BLUE,
    GREEN,
    all_ready,
    apply,
    approve_to_the_end,
    create_sides,
    rollout,
    set_weights,
    weights,
)
from tests.scenarios.routed import ROUTE
from tests.scenarios.world import NAME, ROLLOUTS

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

ROUTING = {"gracePeriodSeconds": 1, "drainSeconds": 2}


async def begin(world: RemoteWorld) -> None:
    create_sides(world, replicas=2, beside=2, size=1)  # type: ignore[arg-type]
    world.server.create(ROLLOUTS, rollout(routing=ROUTING))
    await all_ready(world, BLUE, GREEN)  # type: ignore[arg-type]
    world.start_controller()
    await world.until(lambda: world.state == "Healthy", "at rest", 60)


async def released(world: RemoteWorld, side: str, tag: str) -> None:
    apply(world, side, tag)  # type: ignore[arg-type]
    await world.until(lambda: world.state == "AwaitingApproval", f"{tag} waits for approval", 90)
    await approve_to_the_end(world)  # type: ignore[arg-type]
    assert world.status["active"] == side


async def there_and_back(world: RemoteWorld) -> None:
    world.kill_after(8)
    await released(world, GREEN, "v2")
    assert weights(world) == {BLUE: 0, GREEN: 100}  # type: ignore[arg-type]
    await released(world, BLUE, "v3")
    assert weights(world) == {BLUE: 100, GREEN: 0}  # type: ignore[arg-type]


async def aborted(world: RemoteWorld) -> None:
    world.kill_after(6)
    apply(world, GREEN, "v2")  # type: ignore[arg-type]
    await world.until(lambda: world.state == "AwaitingApproval", "in a step", 90)
    world.request("Abort")
    await world.until(lambda: world.state == "Aborted", "aborted", 90)
    assert weights(world) == {BLUE: 100, GREEN: 0}  # type: ignore[arg-type]


async def deleted(world: RemoteWorld) -> None:
    world.kill_after(6)
    apply(world, GREEN, "v2")  # type: ignore[arg-type]
    await world.until(lambda: world.state == "AwaitingApproval", "in a step", 90)
    world.delete(ROLLOUTS, NAME)
    await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "the Rollout leaves", 90)
    assert weights(world) == {BLUE: 100, GREEN: 0}  # type: ignore[arg-type]
    route = world.get(HTTP_ROUTES, ROUTE)
    assert route is not None and not route["metadata"].get("annotations")


async def corrected(world: RemoteWorld) -> None:
    """A tool applies the route of its manifest again, whose side has no groups any more."""
    world.kill_after(8)
    await released(world, GREEN, "v2")
    world.patch_lws({"replicas": 0}, BLUE)
    await world.until(lambda: not world.server.list(PODS, label_selector=f"leaderworkerset.sigs.k8s.io/name={BLUE}"))
    set_weights(world, {BLUE: 100, GREEN: 0})  # type: ignore[arg-type]
    await world.until(lambda: weights(world) == {BLUE: 0, GREEN: 100}, "corrected", 30)  # type: ignore[arg-type]


STORIES: tuple[Callable[[RemoteWorld], Awaitable[None]], ...] = (there_and_back, aborted, deleted, corrected)


async def test_a_pair_comes_to_each_of_its_ends(place: Place) -> None:
    if place.unrouted:
        pytest.skip(f"{UNROUTED}: {place.unrouted}")
    async with asyncio.TaskGroup() as stories:
        for story in STORIES:
            stories.create_task(_told(place, story))


async def _told(place: Place, story: Callable[[RemoteWorld], Awaitable[None]]) -> None:
    programs = Programs()
    try:
        async with place.world(f"pair-{story.__name__.replace('_', '-')}", programs) as world:
            await begin(world)
            await story(world)
            assert world.kills == 1
            assert _written(world) == []
    except BaseException as error:
        error.add_note("\n".join(programs.logs()))
        raise
    finally:
        await programs.close()


def _written(world: RemoteWorld) -> list[str]:
    """Workloads, Services and pods that the controller has written."""
    return [
        f"{kind.kind} {each['metadata']['name']}"
        for kind in (LEADER_WORKER_SETS, SERVICES, PODS)
        for each in world.server.list(kind)
        for field in each["metadata"].get("managedFields") or ()
        if str(field.get("manager", "")).startswith(OURS)
    ]
