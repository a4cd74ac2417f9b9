"""The break-glass annotation is taken off while the LWS rolls by itself: it finishes that roll and is held again."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS
from rollout_lws.workload.hold import HOLD
from tests.scenarios.failures import apply
from tests.scenarios.insisting import Insisting
from tests.scenarios.one_workload import HALF, SURGE, over, routed_in_care, step
from tests.scenarios.routed import assert_given_back
from tests.scenarios.stories import CANARY, assert_clean, at_rest, waiting_for_approval
from tests.scenarios.world import KEYS, NAME, World

pytestmark = pytest.mark.looptime


def release(world: World, value: str | None = "true") -> None:
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"annotations": {KEYS.release_hold: value}}})


def partition(world: World) -> int:
    return int(world.lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"])


def sizes(world: World) -> set[str]:
    annotation = "leaderworkerset.sigs.k8s.io/size"
    found = (world.get(PODS, name) for name in world.leader_uids())
    return {pod["metadata"]["annotations"][annotation] for pod in found if pod is not None}


async def begun(world: World, spec: dict[str, Any] | None = None) -> None:
    """One group has gone over by itself, and the annotation is gone again."""
    release(world)
    await world.until(
        lambda: "v2" in {told.strip("!") for told in world.groups().values()}, "a group renewed by itself"
    )
    if spec:
        world.patch_lws(spec)
    release(world, None)


async def resting(world: World) -> None:
    await at_rest(world)
    world.checks.clear()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("restarted", [False, True])
async def test_the_lws_is_held_again_once_its_own_roll_is_over(world: World, restarted: bool) -> None:
    await resting(world)
    await waiting_for_approval(world)
    if restarted:
        # Killed right after the strategy was restored, and gone while the annotation goes.
        release(world)
        await world.until(lambda: partition(world) < HOLD)
        world.stop_controller()
        await world.until(lambda: "v2" in {told.strip("!") for told in world.groups().values()})
        release(world, None)
        world.start_controller()
    else:
        await begun(world)
    await world.sleep(0.2)
    assert (partition(world), world.state, world.condition("Held")["status"]) == (0, "HoldReleased", "False")
    assert "is held again as soon as the roll is over" in world.status["message"]
    assert "of 4 groups have its version" in world.status["message"]
    world.request("Approve")
    await world.sleep(0.2)
    assert world.status["lastAction"]["outcome"] == "Refused"
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")
    assert not {each.reason for each in world.events} & {"HoldReset", "HoldConflict"}
    assert "holdReleasedAt" not in world.status
    world.set_image("v3")
    await world.until_state("AwaitingApproval")
    assert set(world.groups().values()) == {"v2"}


async def test_an_lws_whose_groups_change_their_size_is_never_held_in_the_middle_of_it(world: World) -> None:
    await resting(world)
    world.patch_lws({"leaderWorkerTemplate": {"size": 4}})
    await world.until_state("Stalled")
    assert world.condition("Stalled")["reason"] == "UnsafePending"
    release(world)
    await world.until(lambda: "4" in sizes(world), "a group of the new size")
    release(world, None)
    await world.until(lambda: partition(world) >= HOLD, "the hold")
    assert (sizes(world), len(world.groups())) == ({"4"}, 4)
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v1")


async def test_a_hold_released_for_a_moment_in_which_nothing_began_is_back_at_once(world: World) -> None:
    await resting(world)
    release(world)
    await world.until(lambda: partition(world) < HOLD)
    release(world, None)
    await world.until(lambda: partition(world) >= HOLD, seconds=1)
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    assert set(world.groups().values()) == {"v1"}


async def test_a_roll_that_does_not_end_says_why_it_is_waited_for_and_how_to_go_back(world: World) -> None:
    await resting(world)
    apply(world, faults={"fail": "ImagePullBackOff"})
    await world.sleep(10)
    release(world)
    await world.until(lambda: "v2!" in world.groups().values())
    release(world, None)
    await world.sleep(300)
    assert (partition(world), world.state) == (0, "HoldReleased")
    assert "llama-3" in world.status["message"]
    assert 'ImagePullBackOff: Back-off pulling image "vllm:v2"' in world.status["message"]
    assert "restore the template of the version before" in world.status["message"]
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": {"metadata": {"annotations": None}}}})
    world.set_image("v1")
    await world.until(lambda: partition(world) >= HOLD, "the hold")
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v1")


async def test_a_partition_of_the_users_own_that_ends_the_roll_early_is_told(world: World) -> None:
    await resting(world)
    await waiting_for_approval(world)
    await begun(world, {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 2}}})
    await world.until(lambda: world.condition("Stalled").get("reason") == "PartitionInUse")
    await world.sleep(60)
    assert world.groups() == {0: "v1", 1: "v1", 2: "v2", 3: "v2"}
    world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}})
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("capacity", ["InPlace", "Surge"])
async def test_the_stable_template_restored_under_the_annotation_ends_the_release_once(
    world: World, capacity: str
) -> None:
    steps = ({"replicas": 1, "pause": {}}, {"replicas": 2, "pause": {}})
    await at_rest(world, *steps, replicas=3, size=1, canary={"capacity": capacity})
    world.checks.clear()
    await waiting_for_approval(world)
    release(world)
    await world.sleep(2)
    world.set_image("v1")
    await world.sleep(2)
    before = len(world.writes)
    await world.sleep(30)
    assert set(world.groups().values()) == {"v1"}
    assert partition(world) == 0
    assert [each.name for each in world.writes[before:] if each.resource == LEADER_WORKER_SETS] == []
    assert [each.reason for each in world.events].count("RollingBack") == 1
    assert world.state == "HoldReleased"


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
