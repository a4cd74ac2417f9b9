"""The hold against everybody else, and leaving: disabled, deleted, LWS deleted, refused."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.objects.writes import Create
from rollout_lws.workload.hold import HOLD
from tests.scenarios.stories import CANARY, STEPS, assert_clean, at_rest, waiting_for_approval
from tests.scenarios.world import KEYS, NAME, World

pytestmark = pytest.mark.looptime


def strategy(world: World) -> dict[str, object]:
    return dict(world.lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"])


def reset_partition(world: World, partition: int = 0) -> None:
    world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": partition}}})


async def test_a_template_changed_while_the_controller_is_down_waits_for_it(world: World) -> None:
    await at_rest(world)
    before = world.leader_uids()
    world.stop_controller()
    world.set_image("v2")
    await world.sleep(600)
    assert world.leader_uids() == before
    world.start_controller()
    await world.until_state("AwaitingApproval")
    assert world.leader_uids() == before


async def test_a_users_surge_is_saved_and_given_back(world: World) -> None:
    world.create_workload()
    users = {"partition": 0, "maxSurge": 2, "maxUnavailable": "50%"}
    world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": users}})
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.until_state("Healthy")
    await world.rest()
    assert strategy(world) == {"partition": HOLD, "maxSurge": 0, "maxUnavailable": 2}
    world.patch_rollout({"disabled": True})
    await world.until_state("Disabled")
    await world.rest()
    assert strategy(world) == users
    assert KEYS.original not in world.lws["metadata"].get("annotations", {})


async def test_the_hold_is_put_back_once_and_the_writer_is_named(world: World) -> None:
    await at_rest(world)
    reset_partition(world)
    await world.rest()
    assert strategy(world)["partition"] == HOLD
    assert any(event.reason == "HoldReset" for event in world.events)
    assert world.state == "Healthy"


async def test_break_glass_lets_the_pending_version_roll_by_itself(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.checks.clear()
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"annotations": {KEYS.release_hold: "true"}}})
    await world.until(lambda: set(world.groups().values()) == {"v2"}, "a native roll")
    await world.rest()
    assert world.names()["leaderworkersets"] == [NAME]
    assert strategy(world)["partition"] == 0
    assert world.condition("Held")["status"] == "False"
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"annotations": {KEYS.release_hold: None}}})
    await world.rest()
    assert_clean(world, "v2")


async def test_disabling_at_rest_gives_the_strategy_back_and_rolls_nothing(world: World) -> None:
    await at_rest(world)
    before = world.leader_uids()
    world.patch_rollout({"disabled": True})
    await world.until_state("Disabled")
    await world.rest()
    assert strategy(world)["partition"] == 0
    assert world.leader_uids() == before
    world.patch_rollout({"disabled": False})
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v1")


async def test_disabling_before_the_promotion_goes_back_and_leaves_the_version_held(world: World) -> None:
    await at_rest(world)
    before = world.leader_uids()
    await waiting_for_approval(world)
    world.patch_rollout({"disabled": True})
    await world.until_state("Disabled")
    await world.rest()
    assert world.leader_uids() == before
    assert strategy(world)["partition"] == HOLD
    assert "let it roll" in world.lws["metadata"]["annotations"][KEYS.held]
    assert world.names()["leaderworkersets"] == [NAME]
    assert world.names()["batchreleases"] == []
    world.patch_rollout({"disabled": False})
    await world.until_state("AwaitingApproval")
    assert world.leader_uids() == before


async def test_deleting_the_rollout_at_rest_leaves_no_trace(world: World) -> None:
    await at_rest(world)
    before = world.leader_uids()
    world.delete(world.ROLLOUT, NAME)
    await world.until(lambda: world.get(world.ROLLOUT, NAME) is None)
    await world.rest()
    assert strategy(world) == {"partition": 0, "maxSurge": 0, "maxUnavailable": 1}
    assert not [key for key in world.lws["metadata"].get("annotations", {}) if KEYS.owns(key)]
    assert world.leader_uids() == before


async def test_deleting_the_rollout_in_the_foreground_takes_nothing_early(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.delete(world.ROLLOUT, NAME, propagation="Foreground")
    await world.until(lambda: world.get(world.ROLLOUT, NAME) is None)
    await world.rest()
    assert world.groups() == dict.fromkeys(range(4), "v1")
    assert world.names()["leaderworkersets"] == [NAME]


async def test_a_second_rollout_on_the_same_lws_is_refused(world: World) -> None:
    world.create_rollout(*STEPS, name="older")
    await world.sleep(5)
    await_state = world.status_of
    world.create_workload()
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.rest()
    condition = world.condition("Stalled")
    assert condition["reason"] == "SecondRollout"
    assert "already released by Rollout older" in condition["message"]
    assert strategy(world)["partition"] == 0
    assert await_state("older") == {}


async def test_a_rollout_created_with_the_new_template_adopts_what_runs(world: World) -> None:
    world.create_workload()
    await world.rest()
    world.set_image("v2")
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")


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
