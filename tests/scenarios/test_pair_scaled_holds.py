"""What keeps the sides of a pair that releases scale from rolling by themselves: holds that others open, and versions
that wait under one.
"""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.workload.hold import HOLD
from tests.scenarios.insisting import Insisting
from tests.scenarios.paired import (
    ALL_BLUE,
    ALL_GREEN,
    BLUE,
    GREEN,
    apply,
    handing_over,
    in_step,
    left,
    metered_pair,
    released,
    scaled_pair,
    share,
    weights,
)
from tests.scenarios.paired_scaled import OPEN, partitions, recreate_rollout, replicas, stalled
from tests.scenarios.routed import OF_PAIRS
from tests.scenarios.told import tells
from tests.scenarios.world import KEYS, World

pytestmark = [pytest.mark.looptime, *OF_PAIRS]

OPENED = pytest.mark.parametrize("by", ["annotation", "a tool that insists"])


async def opened(world: World, by: str) -> None:
    """The active side is not held any more."""
    if by == "annotation":
        world.patch(LEADER_WORKER_SETS, BLUE, {"metadata": {"annotations": {KEYS.release_hold: "true"}}})
    else:
        Insisting(world)
    await world.until(lambda: world.condition("Held")["status"] == "False", "not held")


async def requested(world: World, kind: str) -> None:
    """A request is carried out."""
    world.request(kind)
    await world.until(lambda: (world.status.get("lastAction") or {}).get("type") == kind, "answered")
    assert world.status["lastAction"]["outcome"] == "Done", world.status["lastAction"]


# The active side's


@OPENED
async def test_a_release_does_what_is_asked_although_the_active_side_is_not_held(world: World, by: str) -> None:
    await scaled_pair(world)
    await in_step(world)
    await opened(world, by)
    await requested(world, "Approve")
    await world.until(lambda: share(world, GREEN) == 0.5, "step 2")
    await requested(world, "Pause")
    await requested(world, "Resume")
    await requested(world, "Abort")
    await world.until_state("Aborted")
    assert replicas(world) == {BLUE: 4, GREEN: 0} and weights(world) == ALL_BLUE
    await requested(world, "Retry")
    await world.until_state("AwaitingApproval")
    await requested(world, "PromoteFull")
    await world.until(lambda: world.status["active"] == GREEN, "the roles")
    await world.until_state("Healthy")
    assert replicas(world) == {BLUE: 0, GREEN: 4} and weights(world) == ALL_GREEN


@OPENED
async def test_an_active_side_that_is_not_held_is_told(world: World, by: str) -> None:
    await scaled_pair(world)
    await opened(world, by)
    if by == "annotation":
        assert world.condition("Reconciling")["reason"] == Reason.HOLD_RELEASED.value
        assert "the hold of LeaderWorkerSet llama was released" in world.status["message"]
    else:
        assert stalled(world, Reason.HOLD_CONFLICT)
        assert "resets the partition of LeaderWorkerSet llama" in world.status["message"]


@tells(
    {
        Reason.ACTIVE_SIDE_EDITED: "LeaderWorkerSet llama has all requests, and the version in its template waits:"
        " apply it to llama-green to release it, and restore the template of llama"
    }
)
async def test_a_version_that_waited_on_the_active_side_is_not_released_by_itself_when_that_is_parked(
    world: World,
) -> None:
    await scaled_pair(world)
    apply(world, BLUE, "v9")
    await world.until(lambda: stalled(world, Reason.ACTIVE_SIDE_EDITED), "told")
    await released(world)
    await world.sleep(600)
    assert replicas(world) == {BLUE: 0, GREEN: 4} and world.state == "Healthy"
    await requested(world, "Start")
    await world.until_state("AwaitingApproval")
    assert set(world.groups(BLUE).values()) == {"v9"}


# The new side's


async def test_a_hold_of_the_new_side_that_is_reset_in_a_step_is_put_back(world: World) -> None:
    await scaled_pair(world)
    await in_step(world, 2)
    world.patch_lws(OPEN, GREEN)
    await world.sleep(1)
    assert partitions(world) == {BLUE: HOLD, GREEN: HOLD}


async def test_a_new_side_that_others_have_scaled_first_is_held(world: World) -> None:
    await scaled_pair(world)
    apply(world, GREEN, "v2")
    await world.until(lambda: world.status["phase"] == "Progressing", "the release")
    world.patch_lws({"replicas": 2}, GREEN)
    await world.until_state("AwaitingApproval", 1200)
    assert partitions(world) == {BLUE: HOLD, GREEN: HOLD}


async def test_a_new_side_that_is_recreated_in_a_release_is_held_before_it_gets_requests(world: World) -> None:
    await scaled_pair(world)
    await in_step(world, 2)
    world.delete(LEADER_WORKER_SETS, GREEN)
    await world.until(lambda: weights(world) == ALL_BLUE, "requests")

    def judge(seen: World) -> None:
        assert not share(seen, GREEN) or partitions(seen)[GREEN] == HOLD

    world.checks.append(judge)
    world.create_workload(name=GREEN, replicas=4, size=2, tag="v2")
    await world.until_state("AwaitingApproval", 1200)
    assert share(world, GREEN) == 0.2


async def test_a_third_version_that_opens_the_hold_gets_no_requests_before_its_own_release() -> None:
    """LWS begins to renew the new side's groups with the write that applies it, which no controller can prevent."""
    async with metered_pair(scaled=True) as pair:
        world = pair.world
        await handing_over(world)
        await world.sleep(10)
        apply(world, GREEN, "v3", **OPEN)
        await world.sleep(0.5)
        assert weights(world) == ALL_BLUE and partitions(world) == {BLUE: HOLD, GREEN: HOLD}
        seen: set[str] = set()

        def judge(seen_world: World) -> None:
            if share(seen_world, GREEN):
                seen.update(seen_world.groups(GREEN).values())
                assert partitions(seen_world)[GREEN] == HOLD

        world.checks.append(judge)
        await world.until_state("AwaitingApproval", 1200)
        assert EventReason.SUPERSEDED in [each.reason for each in world.events]
        assert world.status["currentStepIndex"] == 1 and replicas(world) == {BLUE: 4, GREEN: 1}
        await world.sleep(60)
        assert seen == {"v3"}
        assert not pair.meter.failures and {each.cause for each in pair.meter.cuts} <= {"renewed"}


# What stays


async def test_no_hold_stays_on_a_side_that_was_parked_before_the_rollout_was_recreated(world: World) -> None:
    await scaled_pair(world)
    await released(world)
    recreate_rollout(world)
    await world.until_state("Healthy")
    await world.rest()
    await left(world)
    assert partitions(world) == {BLUE: 0, GREEN: 0}
