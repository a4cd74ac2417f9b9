"""What random walks have found, each told again as a story of its own."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS, SERVICES
from rollout_lws.objects.writes import Create, Patch
from rollout_lws.sandbox.behaviours.faults import PREFIX
from tests.scenarios.one_workload import IN_PLACE, SURGE, over, routed_in_care, step
from tests.scenarios.routed import BY_ROUTE, FIVE, assert_given_back, create_provider, hold_record, routing, share
from tests.scenarios.stories import CANARY, STEPS, assert_clean, at_rest, waiting_for_approval
from tests.scenarios.world import KEYS, NAME, World

pytestmark = pytest.mark.looptime


async def test_a_new_rollout_takes_the_mark_off_that_told_of_a_version_nobody_releases(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.delete(world.ROLLOUT, NAME)
    await world.until(lambda: world.get(world.ROLLOUT, NAME) is None)
    assert KEYS.held in world.lws["metadata"]["annotations"]
    world.create_rollout(*STEPS)
    await world.until_state("AwaitingApproval")
    assert KEYS.held not in world.lws["metadata"]["annotations"]
    world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")


async def test_a_hold_that_was_released_by_hand_comes_back_without_a_contest(world: World) -> None:
    await at_rest(world)
    world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 1}}})
    await world.rest()
    for value in ("true", None):
        world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"annotations": {KEYS.release_hold: value}}})
        await world.rest()
        assert world.state == ("HoldReleased" if value else "Healthy")
    assert_clean(world, "v1")
    assert [event.reason for event in world.events].count("HoldReset") == 1


async def test_an_lws_made_anew_in_mid_release_gets_no_record_before_it_is_adopted(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.checks.clear()
    world.delete(LEADER_WORKER_SETS, NAME)
    await world.until(lambda: world.get(LEADER_WORKER_SETS, NAME) is None)
    await world.rest()
    world.writes.clear()
    world.create_workload(tag="v5")
    await world.until(lambda: set(world.groups().values()) == {"v5"}, "groups of the new LWS")
    world.set_image("v6")
    await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {"v6"})
    await world.rest()
    assert_clean(world, "v6")
    assert not [write for write in world.writes if isinstance(write, Create) and write.resource == world.RECORD]


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


@pytest.mark.parametrize("replicas", [pytest.param(2, marks=pytest.mark.long), 4])
async def test_a_release_mends_a_stable_version_that_does_not_serve(world: World, replicas: int) -> None:
    """All requests go to the new version then, more than its steps ask for, and that must not hold them up, nor must it
    in a promotion that a canary with fewer groups carries alone.
    """
    create_provider(world, BY_ROUTE)
    before = hold_record(world)
    world.create_workload(replicas=replicas)
    template = {"metadata": {"annotations": {f"{PREFIX}fail": "CrashLoopBackOff"}}}
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": template}})
    world.create_rollout(*FIVE[:2], canary={"trafficRoutings": routing()})
    world.start_controller()
    await world.until_state("Healthy")
    template["metadata"]["annotations"] = {f"{PREFIX}fail": None}
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": template}})
    for number in (1, 2):
        await step(world, number)
        await world.until(lambda: share(world) == 1.0, "all requests at the side that serves")
        world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_given_back(world, before)
    assert "!" not in "".join(world.groups().values())


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


async def test_a_canary_that_has_just_become_ready_serves_until_the_lws_made_anew_does(world: World) -> None:
    await at_rest(world, minReadySeconds=5)
    world.checks.clear()
    world.set_image("v2")
    await world.until(lambda: world.groups(CANARY) == {0: "v2"})
    world.delete(LEADER_WORKER_SETS, NAME, "Foreground")
    await world.until(lambda: world.get(LEADER_WORKER_SETS, NAME) is None)
    world.create_workload(tag="v5")
    await world.until(lambda: "v5" in world.groups().values() or world.groups(CANARY) != {0: "v2"})
    assert world.groups(CANARY) == {0: "v2"}, "it goes only when somebody else serves"
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v5")


#: Half of groups and requests, until it is approved.
HALF = {"replicas": "50%", "traffic": "50%", "pause": {}}


async def test_a_release_that_no_old_group_is_left_of_ends_by_itself(world: World) -> None:
    """Somebody had the LWS roll by itself, and took it back when its only group had been taken down for it."""
    before = await routed_in_care(world, SURGE, HALF, {"replicas": "100%"}, replicas=1)
    world.checks.clear()
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"annotations": {KEYS.release_hold: "true"}}})
    world.set_image("v2")
    await over(world, "v2", "HoldReleased")
    world.set_image("v1")
    await world.until(lambda: world.groups() == {0: "v1!"}, "the group is recreated")
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"annotations": {KEYS.release_hold: None}}})
    await over(world, "v1")
    world.set_image("v3")
    await world.until(lambda: world.groups().get(1) == "v3", "a surge group of the third version")
    await step(world, 1)
    world.approve()
    await over(world, "v3")
    assert_given_back(world, before)


async def test_an_lws_of_which_no_group_ever_served_is_fixed_in_place_step_by_step(world: World) -> None:
    world.create_workload(replicas=3)
    template = world.lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    broken = template | {"metadata": {"annotations": {f"{PREFIX}fail": "CrashLoopBackOff"}}}
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": broken}})
    world.create_rollout({"replicas": "50%", "pause": {}}, {"replicas": "100%"}, canary=IN_PLACE.words)
    world.start_controller()
    await world.until_state("Healthy")
    fixed = template | {"metadata": {"annotations": {f"{PREFIX}fail": None}}}
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": fixed}})
    world.set_image("v2")
    await step(world, 1)
    tags = [world.groups()[ordinal] for ordinal in range(3)]
    assert (tags[1:], tags[0].startswith("v1")) == (["v2", "v2"], True), "only as many as the step says"
    world.approve()
    await over(world, "v2")


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
