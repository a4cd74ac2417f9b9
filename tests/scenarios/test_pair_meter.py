"""Pairs whose requests are measured: a side that may be retired is retired at once, and no request is lost."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from tests.scenarios.paired import (
    BLUE,
    GREEN,
    MeteredPair,
    drop_mark,
    forge,
    in_step,
    metered_pair,
    released,
    retirable,
    rollout,
    set_weights,
    share,
    weights,
    wipe,
)
from tests.scenarios.routed import OF_PAIRS
from tests.scenarios.world import NAME, ROLLOUTS, World

pytestmark = [pytest.mark.looptime, *OF_PAIRS]

MOMENTS = pytest.mark.parametrize("moment", ["step", "hand-over"])
#: Seconds after which requests of a step run on both sides.
RUN = 40


async def _come_to(pair: MeteredPair, moment: str = "step") -> None:
    """Requests run on both sides; in the hand-over all new ones go to the new side."""
    await in_step(pair.world, 2)
    await pair.world.sleep(RUN)
    if moment == "hand-over":
        pair.world.approve()
        await pair.world.until(lambda: share(pair.world, GREEN) == 1)


async def test_the_old_side_is_retired_at_the_end_of_a_release() -> None:
    async with metered_pair() as pair:
        await _come_to(pair, "hand-over")
        await pair.world.until(lambda: not retirable(pair.world))
        await pair.retire(BLUE)
        assert pair.world.status["active"] == GREEN
        assert await pair.shares() == {GREEN: 1.0}


@pytest.mark.one_in(2, of="moment")
@MOMENTS
@pytest.mark.parametrize("force", [False, True])
async def test_the_new_side_is_retired_after_an_abort(moment: str, force: bool) -> None:
    async with metered_pair() as pair:
        await _come_to(pair, moment)
        pair.world.request("Abort", force=force)
        await pair.world.until(lambda: share(pair.world, BLUE) == 1)
        await pair.retire(GREEN)
        assert await pair.shares() == {BLUE: 1.0}


async def test_a_side_to_which_a_tool_sent_requests_is_retired_when_those_have_ended() -> None:
    async with metered_pair() as pair:
        world = pair.world
        await released(world)
        await world.sleep(60)
        set_weights(world, {BLUE: 100, GREEN: 0})
        await world.sleep(4)
        assert weights(world) == {BLUE: 0, GREEN: 100} and not retirable(world)
        await pair.retire(BLUE)


async def test_a_side_that_activeside_does_not_name_is_retired_when_its_requests_have_ended() -> None:
    async with metered_pair() as pair:
        world = pair.world
        await _come_to(pair)
        world.stop_controller()
        world.patch(ROLLOUTS, NAME, {"metadata": {"finalizers": None}})
        world.delete(ROLLOUTS, NAME)
        drop_mark(world)
        manifest = rollout()
        manifest["spec"]["activeSide"] = BLUE
        world.server.create(ROLLOUTS, manifest)
        world.start_controller()
        await world.until(lambda: share(world, BLUE) == 1)
        await pair.retire(GREEN)


async def test_the_new_side_is_retired_after_the_status_was_wiped() -> None:
    async with metered_pair() as pair:
        await _come_to(pair)
        wipe(pair.world)
        await pair.world.until(lambda: share(pair.world, BLUE) == 1)
        await pair.retire(GREEN)


async def test_the_old_side_is_retired_after_the_record_of_traffic_was_wiped_in_the_hand_over() -> None:
    async with metered_pair() as pair:
        await _come_to(pair, "hand-over")
        forge(pair.world, traffic=None)
        await pair.world.sleep(0.1)
        await pair.retire(BLUE)


@pytest.mark.one_in(2)
@MOMENTS
async def test_a_side_is_retired_after_the_stable_record_was_forged(moment: str) -> None:
    async with metered_pair() as pair:
        world = pair.world
        await _come_to(pair, moment)
        other = world.get(LEADER_WORKER_SETS, GREEN) or {}
        forge(
            world,
            stable={"workloadUID": other["metadata"]["uid"], "templateHash": world.status["observedTemplateHash"]},
        )
        await world.sleep(0.1)
        await world.until(lambda: share(world, BLUE) in (0, 1))
        await pair.retire(GREEN if share(world, BLUE) == 1 else BLUE)


@pytest.mark.one_in(2, of="moment")
@MOMENTS
@pytest.mark.parametrize("how", ["deleted", "disabled"])
async def test_a_side_is_retired_once_the_rollout_has_left(moment: str, how: str) -> None:
    async with metered_pair() as pair:
        world = pair.world
        await _come_to(pair, moment)
        await _leave(world, how)
        world.patch_lws({"replicas": 0}, GREEN if share(world, BLUE) == 1 else BLUE)
        await world.sleep(60)
        pair.assert_unharmed()


async def _leave(world: World, how: str) -> None:
    if how == "deleted":
        world.delete(ROLLOUTS, NAME)
        await world.until(lambda: world.get(ROLLOUTS, NAME) is None)
    else:
        world.patch_rollout({"disabled": True})
        await world.until_state("Disabled")
