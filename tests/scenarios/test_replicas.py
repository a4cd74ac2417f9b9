"""Two controllers, and whatever becomes of the one that leads: the release goes on, and never two write."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from tests.scenarios.invariants import always_serving, at_most_down
from tests.scenarios.replicas import TERMS, Replica, ReplicatedWorld
from tests.scenarios.stories import assert_clean, at_rest, mid_promotion, waiting_for_approval

pytestmark = pytest.mark.looptime

Fate = Callable[[Replica], Awaitable[None] | None]
Moment = Callable[[ReplicatedWorld], Awaitable[None]]


async def loading(world: ReplicatedWorld) -> None:
    world.set_image("v2")
    await world.until(lambda: world.state == "Loading")


async def approving(world: ReplicatedWorld) -> None:
    await waiting_for_approval(world)


async def promoting(world: ReplicatedWorld) -> None:
    await mid_promotion(world)


async def ends(world: ReplicatedWorld) -> None:
    """Through the approval, where it has not been given yet or is asked for again, to the end."""

    def asks() -> bool:
        return world.state == "AwaitingApproval" and world.status["currentStepIndex"] == 2

    def done() -> bool:
        return world.state == "Healthy" and set(world.groups().values()) == {"v2"}

    await world.until(lambda: asks() or done())
    if asks():
        world.approve()
    await world.until(done)
    await world.rest()
    assert_clean(world, "v2")


_LEASE_RUNS_OUT = (TERMS.duration - TERMS.retry - 1, TERMS.duration + 2)


def fates() -> Iterator[Any]:
    """What becomes of the leader, and between which seconds the other leads; each in one moment by default."""
    told = {
        "killed": (Replica.kill, _LEASE_RUNS_OUT, promoting),
        "cut off": (Replica.cut, _LEASE_RUNS_OUT, loading),
        "ended in order": (Replica.terminate, (0, 0.1), approving),
    }
    for name, (fate, after, short) in told.items():
        for moment in (loading, approving, promoting):
            marks = [] if moment is short else [pytest.mark.long]
            yield pytest.param(moment, fate, after, marks=marks, id=f"{name}-{moment.__name__}")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("moment", "fate", "after"), [*fates()])
async def test_the_other_goes_on(moment: Moment, fate: Fate, after: tuple[float, float]) -> None:
    world = ReplicatedWorld()
    try:
        await at_rest(world)
        world.checks += [at_most_down(1), always_serving]
        await moment(world)
        leader = world.leader
        other, began = world.other(leader), asyncio.get_running_loop().time()
        told = fate(leader)
        if told is not None:
            await told
        await world.until(lambda: world.leads(other), "the other leads", 60)
        least, most = after
        assert least <= asyncio.get_running_loop().time() - began <= most
        leader.mend()
        await ends(world)
        assert other.sent > 0
        assert leader.dead or not leader.elector.leads
    finally:
        world.close()


@pytest.mark.parametrize(
    "moment",
    [approving, *(pytest.param(each, marks=pytest.mark.long) for each in (loading, promoting))],
    ids=lambda each: each.__name__,
)
async def test_who_has_stood_still_writes_nothing_of_what_it_was_about_to(moment: Moment) -> None:
    world = ReplicatedWorld()
    try:
        await at_rest(world)
        await moment(world)
        leader, sent = world.leader, world.leader.sent
        leader.stand_still(60)
        # An event wakes it before it has looked at its Lease.
        world.set_image("v3")
        await asyncio.sleep(0.01)
        assert leader.sent == sent
        await world.until(lambda: any(world.leads(each) for each in world.replicas), "somebody leads", 60)
        world.set_image("v2")
        await ends(world)
    finally:
        world.close()


async def test_they_take_turns_all_along_a_release() -> None:
    """Whoever leads is cut off again and again, and comes back as the one who waits."""
    world = ReplicatedWorld()
    try:
        await at_rest(world)
        world.checks += [at_most_down(1), always_serving]
        world.set_image("v2")
        for _ in range(6):
            leader = world.leader
            other = world.other(leader)
            leader.cut()
            await world.until(lambda other=other: world.leads(other), "the other leads", 60)  # type: ignore[misc]
            leader.mend()
            if world.state == "AwaitingApproval":
                world.approve()
            await world.sleep(7)
        if world.state == "AwaitingApproval":
            world.approve()
        await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {"v2"})
        await world.rest()
        assert_clean(world, "v2")
        assert all(each.sent > 0 for each in world.replicas)
    finally:
        world.close()
