"""Numbers of groups of a pair that releases scale: R is the Rollout's, whatever others write on a side, and a release
loads no more than R.
"""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS, LEADER_WORKER_SETS
from rollout_lws.rollout.reasons import Reason
from tests.scenarios.gauge import Gauge
from tests.scenarios.paired import (
    ALL_BLUE,
    BLUE,
    GREEN,
    all_ready,
    apply,
    create_sides,
    handing_over,
    in_step,
    metered_pair,
    released,
    rollout,
    scaled_pair,
    set_ready,
    share,
    weights,
)
from tests.scenarios.paired_scaled import refuse_patches, replicas, scales_to, stalled
from tests.scenarios.routed import OF_PAIRS
from tests.scenarios.scaled import AUTOSCALER, create_autoscaler, scale, wants
from tests.scenarios.world import NAME, ROLLOUTS, World

pytestmark = [pytest.mark.looptime, *OF_PAIRS]


async def roles_changed(world: World) -> None:
    """The second side is the active one, and the release is over."""
    await world.until(lambda: world.status["active"] == GREEN and world.state == "Healthy", "the end", 1200)
    await world.rest()


# What others write on a side


async def test_a_number_that_others_write_on_the_active_side_is_not_loaded_on_the_new_one(world: World) -> None:
    await scaled_pair(world)
    await in_step(world)

    def judge(seen: World) -> None:
        assert replicas(seen)[GREEN] <= 4

    world.checks.append(judge)
    world.approve()
    for _ in range(20):
        world.patch_lws({"replicas": 8}, BLUE)
        await world.sleep(0.5)
    await world.until_state("AwaitingApproval")
    await world.rest()
    assert replicas(world) == {BLUE: 4, GREEN: 4}


async def test_a_number_that_a_tool_writes_once_a_minute_is_put_back_at_once_each_time(world: World) -> None:
    await scaled_pair(world)
    for _ in range(10):
        world.patch_lws({"replicas": 0}, BLUE)
        await world.sleep(1)
        assert replicas(world) == {BLUE: 4, GREEN: 0}
        await world.sleep(59)


async def test_a_number_on_the_new_side_stays_in_a_pause_and_is_put_back_when_the_release_goes_on() -> None:
    async with metered_pair(scaled=True) as pair:
        world = pair.world
        await in_step(world, 2)
        world.request("Pause")
        await world.until_state("Paused")
        world.patch_lws({"replicas": 6}, GREEN)
        await world.sleep(120)
        assert replicas(world) == {BLUE: 4, GREEN: 6} and share(world, GREEN) == 0.5
        world.request("Resume")
        await world.until(lambda: replicas(world)[GREEN] == 4, "put back", 120)
        # Groups that go have no requests.
        assert weights(world) == ALL_BLUE
        await world.until_state("AwaitingApproval")
        assert share(world, GREEN) == 0.5
        pair.assert_unharmed()


async def test_a_number_on_the_new_side_in_the_hand_over_costs_no_stream() -> None:
    async with metered_pair(scaled=True) as pair:
        world = pair.world
        await handing_over(world)
        world.patch_lws({"replicas": 8}, GREEN)
        await roles_changed(world)
        await world.sleep(60)
        assert replicas(world) == {BLUE: 0, GREEN: 4}
        pair.assert_unharmed()


async def test_groups_that_are_scaled_away_while_they_drain_do_not_load_again(world: World) -> None:
    await scaled_pair(world)
    gauge = Gauge(world, 4)
    await handing_over(world)
    await world.sleep(5)
    world.patch_lws({"replicas": 0}, BLUE)
    await roles_changed(world)
    gauge.stop()
    assert gauge.loads == 4


async def test_requests_leave_a_dead_side_while_its_number_is_refused(world: World) -> None:
    await scaled_pair(world)
    await in_step(world)
    refuse_patches(world, 422, scales_to(4))
    world.approve()
    await world.sleep(60)
    assert share(world, GREEN) == 0.2
    set_ready(world, GREEN, False)
    await world.sleep(60)
    assert weights(world) == ALL_BLUE


@pytest.mark.one_in(2)
@pytest.mark.parametrize("since", ["adoption", "later"])
async def test_what_an_autoscaler_asks_of_a_side_is_not_undone(world: World, since: str) -> None:
    if since == "adoption":
        create_sides(world, beside=0)
        create_autoscaler(world, target=BLUE)
        world.server.create(ROLLOUTS, rollout(spec={}))
        await all_ready(world, BLUE)
        world.start_controller()
        await world.until(lambda: stalled(world, Reason.AUTOSCALER_PROBLEM), "told")
    else:
        await scaled_pair(world)
        create_autoscaler(world, target=BLUE)
    wants(world, 8)
    await world.until(lambda: replicas(world)[BLUE] == 8, "what it asks for")
    await world.sleep(120)
    assert replicas(world) == {BLUE: 8, GREEN: 0}
    world.delete(HORIZONTAL_POD_AUTOSCALERS, AUTOSCALER)
    await world.until_state("Healthy")
    await world.rest()
    # Until then no number was seeded.
    assert replicas(world) == {BLUE: 8 if since == "adoption" else 4, GREEN: 0}


# R, and who says it


async def test_a_number_that_was_seeded_counts_again_when_the_rollout_is_enabled_again(world: World) -> None:
    await scaled_pair(world)
    world.patch_rollout({"disabled": True})
    await world.until_state("Disabled")
    world.patch_lws({"replicas": 8}, BLUE)
    await all_ready(world, BLUE)
    await world.rest()
    assert replicas(world) == {BLUE: 8, GREEN: 0}
    world.patch_rollout({"disabled": False})
    await world.until_state("Healthy")
    await world.rest()
    assert replicas(world) == {BLUE: 4, GREEN: 0} and world.rollout["spec"]["replicas"] == 4


async def test_r_stays_when_a_manifest_without_it_replaces_the_rollout_and_a_side_is_scaled(world: World) -> None:
    await scaled_pair(world)
    world.stop_controller()
    world.patch_lws({"replicas": 0}, BLUE)
    world.patch(ROLLOUTS, NAME, {"spec": {"replicas": None}})
    world.start_controller()
    await world.rest()
    assert replicas(world) == {BLUE: 4, GREEN: 0} and world.rollout["spec"]["replicas"] == 4


async def test_r_stays_when_a_manifest_without_it_replaces_the_rollout_and_the_other_side_takes_over(
    world: World,
) -> None:
    await scaled_pair(world)
    await released(world)
    world.stop_controller()
    world.delete(LEADER_WORKER_SETS, GREEN)
    world.patch(ROLLOUTS, NAME, {"spec": {"replicas": None}})
    await world.sleep(30)
    world.start_controller()
    await world.until(lambda: replicas(world) == {BLUE: 4}, "woken")
    assert world.rollout["spec"]["replicas"] == 4


async def test_r_that_grows_while_the_old_side_drains_is_loaded_on_the_new_side_alone(world: World) -> None:
    await scaled_pair(world)
    gauge = Gauge(world, 4)
    await handing_over(world)
    scale(world, 6)
    await roles_changed(world)
    gauge.stop()
    assert gauge.loads == 6 and replicas(world) == {BLUE: 0, GREEN: 6}


async def test_a_version_and_a_number_that_are_applied_together_to_sides_without_groups_start(world: World) -> None:
    await scaled_pair(world)
    scale(world, 0)
    await world.until(lambda: replicas(world) == {BLUE: 0, GREEN: 0}, "zero")
    await world.rest()
    world.stop_controller()
    apply(world, BLUE, "v2")
    scale(world, 3)
    await world.sleep(1)
    world.start_controller()
    await world.until(lambda: world.groups(BLUE) == dict.fromkeys(range(3), "v2"), "groups")
    assert replicas(world) == {BLUE: 3, GREEN: 0}


async def test_auto_is_in_proportion_to_the_groups_that_a_step_makes(world: World) -> None:
    await scaled_pair(world, {"replicas": 10, "traffic": "auto", "pause": {}})
    await in_step(world)
    assert replicas(world) == {BLUE: 4, GREEN: 4} and share(world, GREEN) == 0.5
