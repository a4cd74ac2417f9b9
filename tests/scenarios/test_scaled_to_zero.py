"""An LWS is scaled to zero, and up again, in the middle of a release."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import CONTROLLER_REVISIONS, SERVICES
from rollout_lws.objects.writes import Patch
from tests.scenarios.matrix import GROUPS, Moment, release
from tests.scenarios.one_workload import HALF, IN_PLACE, routed_in_care, step
from tests.scenarios.routed import assert_given_back
from tests.scenarios.stories import CANARY, assert_clean, at_rest, mid_promotion, waiting_for_approval
from tests.scenarios.styles import STYLES, Style
from tests.scenarios.world import KEYS, NAME, NAMESPACE, World

pytestmark = pytest.mark.looptime


async def test_the_canary_serves_until_groups_that_were_scaled_to_zero_and_back_are_ready(world: World) -> None:
    await at_rest(world, replicas=1)
    await waiting_for_approval(world)
    world.checks.clear()
    serving: list[bool] = []
    world.server.store.subscribe(
        lambda _: serving.append(bool({"v1", "v2"} & {*world.groups().values(), *world.groups(CANARY).values()}))
    )
    world.patch_lws({"replicas": 0})
    await world.until(lambda: not world.leader_uids())
    world.patch_lws({"replicas": 1})
    await world.until(lambda: world.groups() == {0: "v2"})
    if world.state == "AwaitingApproval":
        world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2", 1)
    assert all(serving)


async def test_groups_scaled_to_zero_and_back_before_they_were_gone_go_through_the_release(world: World) -> None:
    await at_rest(world, replicas=1)
    await waiting_for_approval(world)
    world.checks.clear()
    world.patch_lws({"replicas": 0})
    await world.sleep(0.001)
    assert world.leader_uids(), "the last group is still going"
    world.patch_lws({"replicas": 1})
    await world.rest()
    assert (world.groups(), world.state) == ({0: "v1"}, "AwaitingApproval")
    world.approve()
    await world.until(lambda: world.state == "Healthy" and world.groups() == {0: "v2"})
    await world.rest()
    assert_clean(world, "v2", 1)


async def test_what_is_given_back_at_zero_groups_is_not_taken_again_while_these_end(world: World) -> None:
    before = await routed_in_care(world, IN_PLACE, HALF, {"replicas": "100%"}, replicas=2)
    world.checks.clear()
    world.set_image("v2")
    await world.sleep(0.3)
    world.set_image("v3")
    world.patch_lws({"replicas": 0})
    await world.until(lambda: world.state == "Healthy" and not world.groups(), "at rest without groups")
    await world.rest()
    assert_given_back(world, before)
    pins = [write for write in world.writes if write.resource == SERVICES and isinstance(write, Patch)]
    assert len(pins) <= 2, "once to pin it, once to give it back"


async def test_scaling_to_zero_together_with_a_reset_of_the_hold_in_place_is_decided(world: World) -> None:
    before = await routed_in_care(world, IN_PLACE, HALF, {"replicas": "100%"})
    world.checks.clear()
    world.set_image("v2")
    await step(world, 1)
    world.patch_lws({"replicas": 0, "rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}})
    await world.until(lambda: world.state == "Healthy" and not world.groups(), "at rest without groups")
    await world.rest()
    assert_given_back(world, before)


async def test_an_aborted_version_that_started_from_zero_groups_is_told_as_stable(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    world.checks.clear()
    for replicas in (0, 4):
        world.patch_lws({"replicas": replicas})
        await world.rest()
    assert world.state == "Healthy"
    assert "aborted" not in world.status
    assert KEYS.aborted not in world.lws["metadata"]["annotations"]
    assert_clean(world, "v2")


async def test_a_version_that_became_stable_at_zero_groups_is_in_the_history(world: World) -> None:
    await at_rest(world)
    await mid_promotion(world)
    world.stop_controller()
    world.set_image("v3")
    world.patch_lws({"replicas": 0})
    await world.sleep(1)
    world.start_controller()
    await world.rest()
    stored = world.server.list(CONTROLLER_REVISIONS, NAMESPACE, label_selector=KEYS.history)
    assert f"{NAME}-{world.status['stable']['templateHash']}" in {each["metadata"]["name"] for each in stored}


LONG = (Moment.LOADING, Moment.FIRST, Moment.PROMOTION, Moment.CLEAN_UP)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("moment", [Moment.SECOND, *(pytest.param(each, marks=pytest.mark.long) for each in LONG)])
@pytest.mark.parametrize("traffic", [pytest.param("none", marks=pytest.mark.long), "HTTPRoute"])
@pytest.mark.parametrize("style", STYLES, ids=str)
async def test_scaled_to_zero_and_up_again_while_no_controller_looked(
    world: World, style: Style, traffic: str, moment: Moment
) -> None:
    """LWS starts the new version in every group then: there is nothing left to release."""
    it = release(world, style, traffic)
    await it.begin()
    await it.come_to(moment)
    world.stop_controller()
    it.take_all(lambda: it.replicas(0))
    await it.until(lambda: world.groups() == {}, "empty")
    await world.rest()
    it.do(lambda: it.replicas(GROUPS))
    await world.rest()
    world.start_controller()
    await it.ends_at("v2", approve=False)
