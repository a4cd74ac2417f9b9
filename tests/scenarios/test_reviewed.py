"""What a review of the core has found, each told as a story."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import CONTROLLER_REVISIONS, LEADER_WORKER_SETS, PODS
from rollout_lws.sandbox.behaviours.cluster import Options
from tests.scenarios.insisting import Insisting
from tests.scenarios.stories import CANARY, STEPS, assert_clean, at_rest, mid_promotion, waiting_for_approval
from tests.scenarios.world import KEYS, NAME, NAMESPACE, World

pytestmark = pytest.mark.looptime


async def test_a_group_lost_after_a_long_wait_for_approval_has_the_whole_deadline(world: World) -> None:
    await at_rest(world, *STEPS, progressDeadlineSeconds=600, onFailure="Abort")
    await waiting_for_approval(world)
    await world.sleep(7200)
    world.delete(PODS, f"{CANARY}-0")
    await world.sleep(1)
    assert world.state == "Loading", world.describe()


async def test_a_pause_is_no_part_of_the_deadline(world: World) -> None:
    await at_rest(world, *STEPS, progressDeadlineSeconds=600, onFailure="Abort")
    world.set_image("v2")
    await world.until_state("Pausing")
    world.patch_rollout({"strategy": {"paused": True}})
    await world.sleep(7200)
    world.delete(PODS, f"{CANARY}-0")
    await world.sleep(1)
    world.patch_rollout({"strategy": {"paused": False}})
    await world.sleep(1)
    assert world.state == "Loading", world.describe()


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


async def test_a_sub_status_wiped_in_mid_release_is_found_again(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.patch(world.ROLLOUT, NAME, {"status": {"canaryStatus": None}}, "status")
    await world.rest()
    assert world.state == "AwaitingApproval"
    world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")


@pytest.mark.parametrize("how", ["contest", "annotation"])
async def test_stables_template_restored_without_the_hold_ends_the_release(world: World, how: str) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.checks.clear()
    if how == "annotation":
        world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"annotations": {KEYS.release_hold: "true"}}})
    else:
        tool = Insisting(world, lowered=3)
        await world.until(lambda: world.condition("Stalled").get("reason") == "HoldConflict")
        await world.sleep(5)
        tool.stop()
    world.set_image("v1")
    await world.sleep(120)
    assert set(world.groups().values()) == {"v1"}
    assert world.get(LEADER_WORKER_SETS, CANARY) is None
    assert world.status["phase"] == "Healthy"
    assert world.condition("Succeeded")["reason"] == "Rollback"


async def test_an_abort_of_a_release_that_is_superseded_already_is_refused(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.set_image("v3")
    await world.until(lambda: (world.status.get("finalising") or {}).get("reason") == "Continuous")
    world.request("Abort")
    await world.until_state("AwaitingApproval")
    assert world.status["lastAction"]["outcome"] == "Refused"
    assert "another version was applied" in world.status["lastAction"]["message"]


async def test_a_retry_waits_for_the_end_of_the_way_back(world: World) -> None:
    await at_rest(world)
    await mid_promotion(world)
    world.request("Abort")
    await world.until(lambda: (world.status.get("finalising") or {}).get("task") == "RollBackPromotion")
    world.request("Retry")
    await world.until(lambda: "finalising" not in world.status)
    assert (world.status["phase"], world.groups()) == ("Aborted", dict.fromkeys(range(4), "v1"))
    await world.until_state("AwaitingApproval")
    assert world.status["lastAction"]["type"] == "Retry"


async def test_a_group_that_has_warmed_up_at_rest_is_told_as_ready(world: World) -> None:
    await at_rest(world, *STEPS, minReadySeconds=60)
    world.checks.clear()
    world.delete(PODS, f"{NAME}-0")
    await world.sleep(120)
    assert world.status["summary"]["stable"] == "4/4"


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
