"""In place and surge: what may come together with a step, a window or a promotion in one LeaderWorkerSet."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rollout_lws.objects.resources import PODS
from tests.scenarios.failures import cordon, kill
from tests.scenarios.gauge import Gauge
from tests.scenarios.insisting import Insisting
from tests.scenarios.invariants import always_serving
from tests.scenarios.metered import metered
from tests.scenarios.one_workload import IN_PLACE, STYLES, SURGE, Style, in_care, over, routed_in_care, step, watch
from tests.scenarios.routed import assert_given_back
from tests.scenarios.world import KEYS, NAME, World

pytestmark = pytest.mark.looptime


async def promoting(world: World) -> None:
    """v2 in half of the groups, and the promotion begins."""
    world.set_image("v2")
    for number in (1, 2):
        await step(world, number)
        world.approve()
    await world.until(lambda: (world.status.get("finalising") or {}).get("task") == "Promote", "the promotion")


async def test_a_promotion_whose_new_groups_are_scaled_away_does_not_wait_for_their_endpoints(world: World) -> None:
    before = await routed_in_care(world, IN_PLACE)
    await promoting(world)
    world.checks.clear()
    world.patch_lws({"replicas": 2})
    await over(world, "v2")
    assert_given_back(world, before)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("style", STYLES, ids=str)
async def test_an_abort_that_comes_together_with_a_reset_of_the_hold_is_not_lost(world: World, style: Style) -> None:
    await in_care(world, style)
    world.checks.clear()
    world.set_image("v2")
    await step(world, 1)
    world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}})
    world.request("Abort")
    await over(world, "v1", "Aborted")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("style", STYLES, ids=str)
async def test_an_abort_that_finds_all_groups_new_is_refused(world: World, style: Style) -> None:
    await in_care(world, style)
    world.set_image("v2")
    for number in (1, 2):
        await step(world, number)
        world.approve()
    await world.until(lambda: {tag for o, tag in world.groups().items() if o < 4} == {"v2"}, "all new")
    world.stop_controller()
    await world.rest()
    world.request("Abort")
    world.start_controller()
    await world.rest()
    assert world.status["lastAction"]["outcome"] == ("Refused" if world.state == "Healthy" else "Done")
    assert set(world.groups().values()) == {"v2" if world.state == "Healthy" else "v1"}


EDITS = ({"maxSurge": 2}, {"maxUnavailable": 2}, {"maxSurge": "50%", "maxUnavailable": "50%"})


@pytest.mark.one_in(4)
@pytest.mark.parametrize("values", EDITS, ids=str)
@pytest.mark.parametrize("style", STYLES, ids=str)
async def test_a_strategy_edited_in_a_step_is_noted_and_makes_no_groups(
    world: World, style: Style, values: dict[str, Any]
) -> None:
    await in_care(world, style)
    world.set_image("v2")
    await step(world, 1)
    world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": values}})
    await world.rest()
    assert world.groups() == style.new(1)
    world.patch_rollout({"disabled": True})
    await world.until(lambda: world.state == "Disabled", "disabled")
    mark = json.loads(world.lws["metadata"]["annotations"][KEYS.original])
    live = world.lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]
    wanted = {member: mark["original"].get(member, live[member]) for member in values}
    assert wanted == values, "they are the user's from then on"


async def test_a_surge_window_outlives_an_edit_of_the_strategy(world: World) -> None:
    own = {"rolloutStrategy": {"rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 1}}}
    await in_care(world, SURGE)
    world.patch_lws(own)
    await world.rest()
    world.set_image("v2")
    windows = watch(world, SURGE)
    await world.until(lambda: windows.is_open, "a window")
    world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"maxUnavailable": 1, "maxSurge": 0}}})
    await step(world, 1)
    assert world.groups() == SURGE.new(1)


@pytest.mark.each_change
@pytest.mark.one_in(2)
@pytest.mark.parametrize("style", STYLES, ids=str)
async def test_a_contested_release_that_rolls_by_itself_fails_no_request(style: Style) -> None:
    steps = ({"replicas": 1, "traffic": "20%", "pause": {}}, {"replicas": "100%"})
    async with metered(*steps, replicas=4, words=style.words) as told:
        world = told.world
        world.checks.clear()
        await told.release(1)
        Insisting(world)
        await over(world, "v2")
        await told.settled()
        assert [str(each) for each in told.meter.failures] == []


async def test_a_group_that_serves_for_a_moment_only_stays_where_it_is_the_last(world: World) -> None:
    own = {"rollingUpdateConfiguration": {"maxUnavailable": 2}}
    world.create_workload(replicas=2, size=1, rolloutStrategy={"type": "RollingUpdate", **own})
    world.create_rollout(
        {"replicas": 1, "pause": {}}, {"replicas": "100%"}, canary=dict(IN_PLACE.words), minReadySeconds=60
    )
    world.start_controller()
    await world.until_state("Healthy")
    await world.sleep(100)
    await kill(world, "llama-1", NAME)
    await world.until(lambda: world.groups().get(1) == "v1", "group 1 serves again")
    cordon(world)
    world.delete(PODS, "llama-0")
    await world.sleep(5)
    world.checks[:] = [always_serving]
    world.set_image("v2")
    await world.sleep(50)
    assert world.groups() == {0: "v1!", 1: "v1"}
    assert world.status["message"] == "group 0 is not ready: no further group may go down"


@pytest.mark.each_change
@pytest.mark.parametrize(("replicas", "unavailable", "most"), [(3, 1, 2.0), (5, 3, 3.0), (4, 3, 4.0)])
async def test_groups_that_go_back_share_requests_until_they_may_go_and_drain_then(
    world: World, replicas: int, unavailable: int, most: float
) -> None:
    """``most``: times the requests at rest that a group gets, with as many away as the user lets be."""
    last = {"replicas": "100%", "traffic": "auto", "pause": {}}
    await routed_in_care(world, IN_PLACE, last, last, replicas=replicas)
    world.checks.clear()
    world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"maxUnavailable": unavailable}}})
    world.set_image("v2")
    await step(world, 1)
    await world.sleep(60)
    gauge = Gauge(world, replicas)
    world.request("Abort")
    await over(world, "v1", "Aborted")
    gauge.stop()
    assert gauge.undrained == 0
    assert gauge.peak_load <= most + 0.01
