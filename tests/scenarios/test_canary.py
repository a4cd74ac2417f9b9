"""The main story and its variations: a canary in a second LeaderWorkerSet."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rollout_lws.objects.resources import PODS
from rollout_lws.objects.writes import Patch
from rollout_lws.sandbox.behaviours.cluster import Options
from tests.scenarios.invariants import always_serving, at_most_down
from tests.scenarios.stories import CANARY, STEPS, assert_clean, at_rest, mid_promotion, waiting_for_approval
from tests.scenarios.world import KEYS, NAME, NAMESPACE, World

pytestmark = pytest.mark.looptime


async def test_an_adopted_lws_is_held_and_nothing_of_it_restarts(world: World) -> None:
    world.create_workload()
    await world.rest()
    before = world.leader_uids()
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.until_state("Healthy")
    await world.rest()
    assert world.leader_uids() == before
    assert_clean(world, "v1")
    assert world.condition("Ready")["status"] == "True"
    assert world.condition("Held")["status"] == "True"


async def test_a_canary_release_goes_through_its_steps_and_is_promoted(world: World) -> None:
    await at_rest(world)
    world.checks += [at_most_down(1), always_serving]
    world.set_image("v2")
    await world.until_state("Pausing")
    assert world.groups(CANARY) == {0: "v2"}
    await world.until_state("AwaitingApproval")
    assert world.groups(CANARY) == {0: "v2", 1: "v2"}
    assert world.groups() == dict.fromkeys(range(4), "v1")
    assert world.condition("Reconciling")["status"] == "True"
    world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")
    assert (world.condition("Succeeded")["status"], world.condition("Succeeded")["reason"]) == ("True", "Success")
    assert world.status["observedRolloutID"] == world.status["stable"]["revision"]


async def test_a_second_release_follows_right_after_the_first(world: World) -> None:
    await at_rest(world)
    for tag in ("v2", "v3"):
        await waiting_for_approval(world, tag)
        world.approve()
        await world.until(lambda tag=tag: world.state == "Healthy" and set(world.groups().values()) == {tag})  # type: ignore[misc]
        await world.rest()
        assert_clean(world, tag)


async def test_one_group_is_never_down_without_a_canary_that_serves(world: World) -> None:
    await at_rest(world, {"replicas": "100%"}, replicas=1)
    world.checks.append(always_serving)
    world.set_image("v2")
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2", replicas=1)


async def test_groups_of_one_pod_are_released_as_well(world: World) -> None:
    await at_rest(world, size=1)
    world.checks += [at_most_down(1), always_serving]
    await waiting_for_approval(world)
    world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")


async def test_a_portion_is_as_large_as_max_unavailable_and_the_canary_allow(world: World) -> None:
    world.create_workload(replicas=6)
    world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"maxUnavailable": 3}}})
    world.create_rollout({"replicas": 2, "pause": {"duration": 1}})
    world.start_controller()
    await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {"v1"})
    await world.rest()
    world.checks += [at_most_down(2), always_serving]
    world.set_image("v2")
    await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {"v2"})
    await world.rest()
    assert_clean(world, "v2", replicas=6)
    windows = [write for write in world.writes if isinstance(write, Patch) and write.reason.startswith("renew group")]
    assert [write.reason for write in windows] == ["renew group 4, 5", "renew group 2, 3", "renew group 0, 1"]


async def test_a_pause_lasts_as_long_as_it_says_to_the_millisecond(world: World) -> None:
    await at_rest(world)
    world.set_image("v2")
    await world.until_state("Pausing")
    began = world.now
    await world.until(lambda: (world.get_canary_replicas() or 0) == 2)
    assert timedelta(seconds=9.9) <= world.now - began <= timedelta(seconds=10.01)


async def test_waiting_for_an_approval_writes_nothing(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    await world.rest()
    before = len(world.writes)
    await world.sleep(24 * 3600)
    assert len(world.writes) == before


async def test_a_stable_group_that_is_lost_while_waiting_for_an_approval_is_shown(world: World) -> None:
    await at_rest(world)
    world.checks.clear()
    await waiting_for_approval(world)
    await world.rest()
    world.delete(PODS, f"{NAME}-2")
    await world.until(lambda: world.status["summary"]["stable"] in ("3/3", "3/4"))
    await world.rest()
    assert (world.state, world.status["summary"]["stable"]) == ("AwaitingApproval", "4/4")


async def test_a_three_step_release_stays_within_its_budget_of_writes(world: World) -> None:
    await at_rest(world)
    world.writes.clear()
    await waiting_for_approval(world)
    world.approve()
    await world.until_state("Healthy")
    await world.rest()
    windows = [write for write in world.writes if write.reason.startswith(("renew group", "the batch's leaders"))]
    assert len(world.writes) - len(windows) <= 30, [write.reason for write in world.writes]


async def test_leaders_of_the_new_version_carry_release_and_batch(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    await world.rest()
    labels = {pod["metadata"]["name"]: pod["metadata"]["labels"] for pod in world.server.list(PODS, NAMESPACE)}
    assert labels[f"{CANARY}-0"][KEYS.rollout_batch_id] == "1"
    assert labels[f"{CANARY}-1"][KEYS.rollout_batch_id] == "2"
    assert labels[f"{CANARY}-0"][KEYS.rollout_id] == world.status["observedRolloutID"]
    assert KEYS.rollout_id not in labels[f"{NAME}-0"]


async def test_the_users_own_id_names_the_release(world: World) -> None:
    await at_rest(world)
    world.patch(world.LWS, NAME, {"metadata": {"labels": {KEYS.rollout_id: "build-7"}}})
    await waiting_for_approval(world)
    assert world.status["observedRolloutID"] == "build-7"


async def test_the_canary_follows_a_percentage_of_changing_replicas(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.patch_lws({"replicas": 8})
    await world.until(lambda: world.groups(CANARY) == dict.fromkeys(range(4), "v2"))
    await world.until(lambda: world.groups() == dict.fromkeys(range(8), "v1"))
    world.patch_lws({"replicas": 2})
    await world.until(lambda: world.groups(CANARY) == {0: "v2"})
    world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2", replicas=2)


async def test_a_change_at_zero_groups_is_stable_by_itself(world: World) -> None:
    await at_rest(world)
    world.checks.clear()
    world.patch_lws({"replicas": 0})
    await world.rest()
    world.set_image("v2")
    await world.rest()
    assert world.status["stable"]["templateHash"] == world.status["observedTemplateHash"]
    world.patch_lws({"replicas": 2})
    await world.rest()
    assert_clean(world, "v2", replicas=2)


async def test_scaling_up_in_mid_promotion_ends_with_all_groups_new(world: World) -> None:
    await at_rest(world)
    await mid_promotion(world)
    world.patch_lws({"replicas": 6})
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2", replicas=6)


async def test_paused_means_no_progress_until_it_is_resumed(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.patch_rollout({"strategy": {"paused": True}})
    world.approve()
    await world.rest()
    assert world.state == "Paused"
    assert world.groups(CANARY) == {0: "v2", 1: "v2"}
    world.patch_rollout({"strategy": {"paused": False}})
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")


async def test_a_jump_back_shrinks_and_a_jump_forward_grows_the_canary(world: World) -> None:
    await at_rest(world, {"replicas": 1, "pause": {}}, {"replicas": 2, "pause": {}}, {"replicas": 3, "pause": {}})
    await waiting_for_approval(world)
    world.request("Jump", toStep=3)
    await world.until(lambda: world.groups(CANARY) == dict.fromkeys(range(3), "v2"))
    await world.until_state("AwaitingApproval")
    world.patch(world.ROLLOUT, NAME, {"status": {"canaryStatus": {"nextStepIndex": 1}}}, "status")
    await world.until(lambda: world.groups(CANARY) == {0: "v2"})
    await world.until_state("AwaitingApproval")
    assert world.status["currentStepIndex"] == 1


async def test_a_jump_to_the_very_next_step_leaves_this_one_as_soon_as_its_groups_are_ready(world: World) -> None:
    await at_rest(world, {"replicas": 1, "pause": {}}, {"replicas": 2, "pause": {}}, {"replicas": 3, "pause": {}})
    await waiting_for_approval(world)
    world.request("Jump", toStep=2)
    await world.until(lambda: world.status["currentStepIndex"] == 2, "the second step")
    await world.sleep(0.1)
    assert world.groups(CANARY) == {0: "v2", 1: "v2!"}
    world.request("Jump", toStep=3)
    await world.until(lambda: world.status["currentStepIndex"] == 3, "the third step")
    await world.until_state("AwaitingApproval")
    assert world.groups(CANARY) == dict.fromkeys(range(3), "v2")
    assert world.status["lastAction"]["outcome"] == "Done"


async def test_the_later_of_two_jumps_counts(world: World) -> None:
    await at_rest(world, *({"replicas": count, "pause": {}} for count in (1, 2, 3, 4)))
    world.set_image("v2")
    await world.until(lambda: world.groups(CANARY) == {0: "v2!"}, "a group that loads")
    world.request("Jump", toStep=4)
    await world.sleep(0.1)
    world.request("Jump", toStep=2)
    await world.until_state("AwaitingApproval")
    assert world.status["currentStepIndex"] == 2
    assert world.status["lastAction"]["outcome"] == "Done"


async def test_an_edited_plan_goes_on_from_the_groups_that_stand(world: World) -> None:
    await at_rest(world, {"replicas": 1, "pause": {}}, {"replicas": 2, "pause": {}}, {"replicas": 4, "pause": {}})
    await waiting_for_approval(world)
    world.approve()
    await world.until(lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval")
    steps = [{"replicas": 1, "pause": {}}, {"replicas": 3, "pause": {}}, {"replicas": 4, "pause": {}}]
    world.patch_rollout({"strategy": {"canary": {"steps": steps}}})
    await world.until(lambda: world.groups(CANARY) == dict.fromkeys(range(3), "v2"))
    await world.until_state("AwaitingApproval")
    assert world.status["currentStepIndex"] == 2


@pytest.mark.long
async def test_more_canary_groups_than_leaders_on_file_come_to_rest() -> None:
    world = World(Options(nodes=40))
    world.create_workload(replicas=60, size=1)
    world.create_rollout({"replicas": 55, "pause": {}}, {"replicas": "100%"})
    world.start_controller()
    await world.until_state("Healthy")
    await waiting_for_approval(world)
    await world.rest()
    before = len(world.writes)
    await world.sleep(300)
    assert len(world.writes) == before
    world.close()


async def test_a_plan_shortened_while_paused_goes_on_afterwards(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.patch_rollout({"strategy": {"paused": True}})
    await world.rest()
    world.patch_rollout({"strategy": {"canary": {"steps": [{"replicas": "50%", "pause": {}}]}}})
    await world.rest()
    assert world.state == "Paused"
    world.patch_rollout({"strategy": {"paused": False}})
    await world.until_state("AwaitingApproval")
    assert world.status["summary"]["step"] == "1/1"


async def test_a_group_that_has_warmed_up_at_rest_is_told_as_ready(world: World) -> None:
    await at_rest(world, *STEPS, minReadySeconds=60)
    world.checks.clear()
    world.delete(PODS, f"{NAME}-0")
    await world.sleep(120)
    assert world.status["summary"]["stable"] == "4/4"
