"""Pairs of LeaderWorkerSets whose groups have no numbers (groupIdentity Hash): requests move, and nothing is held."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.rollout.reasons import EventReason, Reason
from tests.scenarios.kinds import HASHED
from tests.scenarios.paired import (
    BLUE,
    GREEN,
    apply,
    approve_to_the_end,
    create_sides,
    in_step,
    left,
    metered_pair,
    released,
    rollout,
    scaled_pair,
    share,
    weights,
)
from tests.scenarios.paired_scaled import come_to, replicas, roles, stalled
from tests.scenarios.routed import OF_PAIRS
from tests.scenarios.scaled import scale
from tests.scenarios.told import tells
from tests.scenarios.world import World

pytestmark = [pytest.mark.looptime, *OF_PAIRS]


@pytest.fixture
def world(world: World) -> World:
    world.release(HASHED)
    return world


def strategies(world: World) -> list[dict[str, object]]:
    """Rolling updates of both sides, and what Rollouts have noted on them."""
    found = [world.get(LEADER_WORKER_SETS, name) for name in (BLUE, GREEN)]
    return [HASHED.parameters(lws) for lws in found if lws is not None]


def held(world: World) -> str:
    return str(world.condition("Held").get("status"))


@pytest.mark.parametrize("scaled", [False, True], ids=["route only", "scaled"])
async def test_there_and_back_and_no_request_is_lost(scaled: bool) -> None:
    async with metered_pair(scaled=scaled, kind=HASHED) as pair:
        world = pair.world
        before = strategies(world)
        for number, (side, other) in enumerate(((GREEN, BLUE), (BLUE, GREEN)), 2):
            await released(world, side=side, tag=f"v{number}")
            assert set(world.groups(side).values()) == {f"v{number}"} and len(world.groups(side)) == 4
            assert weights(world) == {side: 100, other: 0}
            if scaled:
                assert replicas(world) == {side: 4, other: 0}
                assert roles(world) == {side: "active", other: "parked"}
                assert held(world) == "False"
        assert strategies(world) == before
        await world.sleep(60)
        pair.assert_unharmed()
        await left(world)
        assert strategies(world) == before


@pytest.mark.parametrize("moment", ["step 1", "step 2", "hand-over"])
async def test_an_abort_takes_the_groups_that_were_made(moment: str) -> None:
    async with metered_pair(scaled=True, kind=HASHED) as pair:
        world = pair.world
        await come_to(world, moment)
        await world.sleep(10 if moment == "hand-over" else 40)
        world.request("Abort")
        await world.until_state("Aborted", 1200)
        await world.rest()
        assert replicas(world) == {BLUE: 4, GREEN: 0}
        assert await pair.shares() == {BLUE: 1.0}
        world.request("Retry")
        await world.until_state("AwaitingApproval", 1200)
        await approve_to_the_end(world)
        assert replicas(world) == {BLUE: 0, GREEN: 4}
        await world.sleep(60)
        pair.assert_unharmed()


@pytest.mark.parametrize("moment", ["step 1", "step 2"])
async def test_a_third_version_gets_requests_only_when_the_second_has_gone(world: World, moment: str) -> None:
    await scaled_pair(world)
    await come_to(world, moment)
    await world.sleep(40)
    apply(world, GREEN, "v3")
    seen: set[str] = set()

    def judge(seen_world: World) -> None:
        if share(seen_world, GREEN):
            seen.update(each.rstrip("!") for each in seen_world.groups(GREEN).values())

    await world.until(lambda: share(world, GREEN) == 0, "requests go back", 60)
    world.checks.append(judge)
    await world.until_state("AwaitingApproval", 1200)
    await approve_to_the_end(world)
    assert seen == {"v3"} and world.status["active"] == GREEN
    assert set(world.groups(GREEN).values()) == {"v3"}


async def test_a_template_of_the_active_side_is_renewed_natively_and_told(world: World) -> None:
    await scaled_pair(world)
    apply(world, BLUE, "v2")
    await world.until(lambda: set(world.groups(BLUE).values()) == {"v2"}, "LWS renews its groups", 300)
    await world.rest()
    assert world.state == "Healthy", world.describe()
    assert weights(world) == {BLUE: 100, GREEN: 0}
    told = [each for each in world.events if each.reason == EventReason.ROLLED_OUT_NATIVELY]
    assert len(told) == 1 and "by its own strategy, not step by step" in told[0].note
    await released(world, tag="v3")
    assert replicas(world) == {BLUE: 0, GREEN: 4}


async def test_the_rollout_is_scaled_and_groups_that_are_not_ready_go_first(world: World) -> None:
    await scaled_pair(world)
    for count in (6, 3):
        scale(world, count)
        await world.until(lambda count=count: len(world.groups(BLUE)) == count, f"{count} groups", 120)  # type: ignore[misc]
        await world.rest()
        assert set(world.groups(BLUE).values()) == {"v1"}
    await in_step(world, 1)
    assert replicas(world) == {BLUE: 3, GREEN: 1}
    await approve_to_the_end(world)
    assert replicas(world) == {BLUE: 0, GREEN: 3}


async def test_a_version_that_never_becomes_ready_is_taken_back_at_its_deadline(world: World) -> None:
    await scaled_pair(world, more={"progressDeadlineSeconds": 120})
    apply(world, GREEN, "bad-v2")
    await world.until(lambda: stalled(world, Reason.DEADLINE), "the deadline", 600)
    assert weights(world) == {BLUE: 100, GREEN: 0}
    world.request("Abort")
    await world.until_state("Aborted", 600)
    assert replicas(world) == {BLUE: 4, GREEN: 0}


WITH_SHIFT = (
    "LeaderWorkerSet llama has groupIdentity Hash, which cannot be held back by a partition: release it as one of a"
    " pair without shift and companions, or make it anew with groupIdentity Ordinal, which cannot be changed later"
)


@tells({Reason.HASH_IDENTITY: WITH_SHIFT})
async def test_with_a_shift_it_is_refused(world: World) -> None:
    create_sides(world, beside=0)
    world.server.create(world.ROLLOUT, rollout(spec={}, shift={"maxExtraGroups": 1}))
    world.start_controller()
    await world.until(lambda: stalled(world, Reason.HASH_IDENTITY), "refused")
