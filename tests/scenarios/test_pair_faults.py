"""Pairs in which something goes wrong: a side dies, an owner changes course, a status is forged.

Requests stay where they are served, and each story ends in a state that the status explains.
"""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import (
    LEADER_WORKER_SETS,
)
from rollout_lws.rollout.reasons import Reason
from rollout_lws.rollout.routing.serving import SHORTEST_BAN_SECONDS
from tests.scenarios.crashes import kill_after_every_write
from tests.scenarios.paired import (
    ADMIN,
    ALL_BLUE,
    ALL_GREEN,
    BLUE,
    DRAINED,
    GREEN,
    MATCH,
    all_ready,
    apply,
    approve_to_the_end,
    create_route,
    create_sides,
    forge,
    forge_mark,
    handing_over,
    in_step,
    left,
    marks,
    pair_at_rest,
    released,
    retirable,
    rollout,
    rules,
    set_ready,
    set_rules,
    set_weights,
    share,
    weights,
    wipe,
)
from tests.scenarios.routed import OF_PAIRS, ROUTE, kind
from tests.scenarios.world import NAME, ROLLOUTS, World

pytestmark = [pytest.mark.looptime, *OF_PAIRS]


# A side dies


async def test_a_side_with_the_version_before_serves_while_the_active_one_does_not(world: World) -> None:
    await pair_at_rest(world)
    set_ready(world, BLUE, False)
    await world.until(lambda: weights(world) == ALL_GREEN, "the other side serves")
    await world.sleep(1)
    assert world.status["active"] == BLUE and not retirable(world)
    set_ready(world, BLUE, True)
    await all_ready(world, BLUE)
    await world.sleep(SHORTEST_BAN_SECONDS - 1)
    assert weights(world) == ALL_GREEN
    await world.sleep(2)
    assert weights(world) == ALL_BLUE and world.state == "Healthy"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("version", ["unreleased", "aborted", "aborted way back"])
async def test_a_version_that_was_not_released_does_not_take_over_by_itself(world: World, version: str) -> None:
    await pair_at_rest(world)
    if version == "unreleased":
        # No release begins on a route that cannot be used.
        set_rules(world, *rules(world), ADMIN)
        apply(world, GREEN, "v2")
        await all_ready(world, GREEN)
    elif version == "aborted":
        await _aborted(world)
    else:
        await released(world)
        world.request("Start")
        await world.until_state("AwaitingApproval")
        world.request("Abort")
        await world.until_state("Aborted")
    await world.rest()
    before, active = weights(world), world.status["active"]
    set_ready(world, active, False)
    await world.sleep(120)
    assert weights(world) == before and share(world, active) == 1
    assert "kubectl rollout-lws start llama" in world.status["message"], world.status["message"]


async def _aborted(world: World) -> None:
    """A release of another version was aborted in its first step."""
    await in_step(world)
    world.request("Abort")
    await world.until_state("Aborted")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("given", [100, 50])
async def test_requests_that_a_person_moves_off_a_dead_side_stay_where_they_are(world: World, given: int) -> None:
    await pair_at_rest(world)
    await _aborted(world)
    set_ready(world, BLUE, False)
    await world.sleep(5)
    set_weights(world, {BLUE: 100 - given, GREEN: given})
    await world.sleep(60)
    assert weights(world) == ALL_GREEN and world.status["active"] == BLUE


@pytest.mark.one_in(2)
@pytest.mark.parametrize("end", ["forced abort", "wiped status"])
async def test_a_release_that_ends_while_the_active_side_is_dead_moves_no_request_to_it(world: World, end: str) -> None:
    await pair_at_rest(world)
    await in_step(world, 2)
    set_ready(world, BLUE, False)
    await world.until(lambda: share(world, GREEN) == 1, "the side that serves has all requests")
    if end == "forced abort":
        world.request("Abort", force=True)
    else:
        wipe(world)
    await world.sleep(300)
    assert share(world, GREEN) == 1 and world.status["active"] == BLUE
    set_ready(world, BLUE, True)
    await world.sleep(60)
    assert share(world, BLUE) == 1


async def test_a_route_that_is_created_again_with_old_weights_sends_no_request_to_a_dead_side(world: World) -> None:
    await pair_at_rest(world)
    await released(world)
    set_ready(world, BLUE, False)
    world.delete(kind(), ROUTE)
    await world.sleep(1)
    create_route(world)
    await world.sleep(60)
    assert weights(world) == ALL_GREEN and world.status["active"] == GREEN


@pytest.mark.one_in(2)
@pytest.mark.parametrize("groups", [0, 4])
async def test_an_annotation_that_is_forged_sends_no_request_to_a_dead_side(world: World, groups: int) -> None:
    await pair_at_rest(world, beside=groups)
    set_ready(world, GREEN, False)
    await world.rest()
    forge_mark(world, active=GREEN)
    await world.sleep(60)
    assert weights(world) == ALL_BLUE


async def test_a_status_that_names_a_deleted_active_side_names_the_one_to_create(world: World) -> None:
    await pair_at_rest(world)
    await released(world)
    world.patch_lws({"replicas": 0}, BLUE)
    await world.rest()
    world.delete(LEADER_WORKER_SETS, GREEN)
    await world.sleep(30)
    assert world.condition("Stalled")["reason"] == Reason.WORKLOAD_NOT_FOUND
    assert f"LeaderWorkerSet {GREEN} does not exist" in world.status["message"]
    assert f"no group of {BLUE} is ready" in world.status["message"]


# The status is forged


@pytest.mark.one_in(2)
@pytest.mark.parametrize("of", ["the version before", "no version"])
@pytest.mark.parametrize("groups", [0, 4])
async def test_a_hand_over_that_is_forged_at_rest_moves_no_request(world: World, groups: int, of: str) -> None:
    await pair_at_rest(world)
    await released(world)
    world.patch_lws({"replicas": groups}, BLUE)
    await world.rest()
    released_hash = world.status["inactiveHash"] if of == "the version before" else None
    ending = {"reason": "Success", "task": "Promote"}
    forge(world, phase="Progressing", finalising=ending, traffic=None, observedTemplateHash=released_hash)
    for _ in range(120):
        await world.sleep(1)
        assert weights(world) == ALL_GREEN
    assert world.status["active"] == GREEN and world.state == "Healthy"


async def test_a_hand_over_whose_record_of_traffic_is_wiped_drains_all_the_same(world: World) -> None:
    await pair_at_rest(world)
    await in_step(world, 2)
    forge(world, finalising={"reason": "Success", "task": "Promote"}, traffic=None)
    await world.until(lambda: share(world, GREEN) == 1)
    await world.sleep(DRAINED - 1)
    assert world.status["active"] == BLUE and not retirable(world)
    await world.until(lambda: world.status["active"] == GREEN)


# Owners change course


async def test_the_version_before_that_comes_back_after_a_third_one_ends_the_release(world: World) -> None:
    await pair_at_rest(world)
    await released(world)
    await in_step(world, side=BLUE, tag="v3")
    apply(world, BLUE, "v1")
    await world.sleep(300)
    assert world.state == "Healthy" and weights(world) == ALL_GREEN


async def test_the_version_before_that_comes_back_after_an_abort_is_not_released(world: World) -> None:
    await pair_at_rest(world)
    await released(world)
    await in_step(world, side=BLUE, tag="v3")
    world.request("Abort")
    await world.until_state("Aborted")
    apply(world, BLUE, "v1")
    await world.sleep(300)
    assert world.state == "Healthy" and weights(world) == ALL_GREEN


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seconds", [0.2, 2])
async def test_a_version_that_comes_back_after_a_third_one_is_released_again(world: World, seconds: float) -> None:
    await pair_at_rest(world)
    await in_step(world)
    apply(world, GREEN, "v3")
    await world.sleep(seconds)
    apply(world, GREEN, "v2")
    await world.sleep(300)
    assert world.state == "AwaitingApproval" and share(world, GREEN) == pytest.approx(0.2)
    assert set(world.groups(GREEN).values()) == {"v2"}


async def test_a_new_side_that_is_created_again_in_a_release_is_released_again(world: World) -> None:
    await pair_at_rest(world)
    await in_step(world)
    world.delete(LEADER_WORKER_SETS, GREEN)
    await world.until(lambda: world.condition("Stalled")["reason"] == Reason.COUNTERPART_MISSING)
    world.create_workload(name=GREEN, replicas=4, tag="v2")
    await world.until_state("AwaitingApproval")
    await approve_to_the_end(world)
    assert world.status["active"] == GREEN and weights(world) == ALL_GREEN


async def test_an_aborted_version_that_is_applied_to_the_active_side_is_healthy(world: World) -> None:
    await pair_at_rest(world)
    await _aborted(world)
    apply(world, BLUE, "v2")
    await world.sleep(300)
    assert world.state == "Healthy" and weights(world) == ALL_BLUE
    assert set(world.groups(BLUE).values()) == {"v2"}


async def test_a_counterpart_that_is_created_after_adoption_is_released(world: World) -> None:
    create_sides(world)
    world.delete(LEADER_WORKER_SETS, GREEN)
    world.server.create(ROLLOUTS, rollout())
    await all_ready(world, BLUE)
    world.start_controller()
    await world.until(lambda: world.condition("Stalled").get("reason") == Reason.COUNTERPART_MISSING)
    world.create_workload(name=GREEN, replicas=4, tag="v2")
    await world.until_state("AwaitingApproval")
    assert share(world, GREEN) == pytest.approx(0.2)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", ["Start", "Retry"])
@pytest.mark.parametrize("then", ["scaled up", "taken back"])
async def test_a_request_for_a_side_without_groups_waits_until_it_is_taken_back(
    world: World, kind: str, then: str
) -> None:
    await pair_at_rest(world)
    if kind == "Start":
        await released(world)
    else:
        await _aborted(world)
    active = world.status["active"]
    other = BLUE if active == GREEN else GREEN
    world.patch_lws({"replicas": 0}, other)
    await world.rest()
    world.request(kind)
    await world.until_state("Preparing")
    if then == "taken back":
        world.request("Abort")
        await world.sleep(5)
        assert world.state != "Preparing"
    world.patch_lws({"replicas": 4}, other)
    await world.sleep(60)
    if then == "taken back":
        assert world.state in ("Healthy", "Aborted") and share(world, active) == 1
    else:
        assert world.state == "AwaitingApproval" and share(world, other) == pytest.approx(0.2)


async def test_a_step_that_asks_for_more_groups_than_there_are_says_what_to_scale(world: World) -> None:
    await pair_at_rest(world, {"replicas": 4, "traffic": "50%", "pause": {}}, beside=1)
    apply(world, GREEN, "v2")
    await world.sleep(120)
    assert weights(world) == ALL_BLUE and world.state == "Loading"
    assert "scale it up" in world.status["message"] and GREEN in world.status["message"]
    world.patch_lws({"replicas": 4}, GREEN)
    await world.until_state("AwaitingApproval")
    assert share(world, GREEN) == 0.5


# The Rollout leaves in the hand-over


@pytest.mark.one_in(2, of="moment")
@pytest.mark.parametrize("how", ["deleted", "disabled"])
@pytest.mark.parametrize("moment", ["paused", "new side dead"])
async def test_a_hand_over_goes_back_when_the_rollout_leaves(world: World, moment: str, how: str) -> None:
    await pair_at_rest(world)
    await handing_over(world)
    if moment == "paused":
        world.request("Pause")
        await world.sleep(60)
    else:
        set_ready(world, GREEN, False)
        await world.sleep(1)
    assert world.status["active"] == BLUE
    if how == "deleted":
        await left(world)
    else:
        world.patch_rollout({"disabled": True})
        await world.until_state("Disabled", 1200)
    assert weights(world) == ALL_BLUE and marks(world) == {}


# What has just changed


@pytest.mark.one_in(2)
@pytest.mark.parametrize("how", ["deleted", "disabled"])
async def test_a_pair_whose_active_side_is_gone_can_leave(world: World, how: str) -> None:
    await pair_at_rest(world, beside=0)
    world.delete(LEADER_WORKER_SETS, BLUE)
    await world.until(lambda: world.condition("Stalled").get("reason") == Reason.WORKLOAD_NOT_FOUND)
    if how == "deleted":
        await left(world)
    else:
        world.patch_rollout({"disabled": True})
        await world.until_state("Disabled")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("paused", [False, True])
async def test_a_release_whose_groups_still_load_keeps_the_route(world: World, paused: bool) -> None:
    await pair_at_rest(world)
    apply(world, GREEN, "bad")
    await world.until_state("Loading")
    world.patch_rollout({"strategy": {"paused": paused}})
    await world.rest()
    set_weights(world, ALL_GREEN)
    await world.sleep(5)
    assert weights(world) == ALL_BLUE


async def test_a_tool_that_insists_on_a_dead_side_is_answered_each_time(world: World) -> None:
    await pair_at_rest(world)
    set_ready(world, BLUE, ready=False)
    await world.until(lambda: weights(world) == ALL_GREEN)
    for _ in range(5):
        set_weights(world, ALL_BLUE)
        await world.sleep(2)
        assert weights(world) == ALL_GREEN


async def test_a_request_to_start_is_over_with_the_version_that_it_was_for(world: World) -> None:
    await pair_at_rest(world)
    await in_step(world)
    world.request("Abort")
    await world.until_state("Aborted")
    world.patch_lws({"replicas": 0}, GREEN)
    await world.rest()
    world.request("Retry")
    await world.until_state("Preparing")
    apply(world, GREEN, "v1")
    await world.until_state("Healthy")
    world.patch_lws({"replicas": 4}, GREEN)
    apply(world, BLUE, "v3")
    await world.sleep(600)
    assert weights(world) == ALL_BLUE and world.state == "Healthy"


async def test_a_rollout_leaves_the_requests_where_they_are_served(world: World) -> None:
    await pair_at_rest(world)
    await in_step(world, 2)
    set_ready(world, BLUE, ready=False)
    await world.until(lambda: weights(world) == ALL_GREEN)
    await left(world)
    assert weights(world) == ALL_GREEN and marks(world) == {}


async def test_no_step_waits_for_requests_when_the_record_of_groups_is_deleted(world: World) -> None:
    await pair_at_rest(world)
    await in_step(world, 2)
    given = share(world, GREEN)
    world.delete(world.RECORD, NAME)
    for _ in range(20):
        await world.sleep(0.5)
        assert share(world, GREEN) == given
    assert world.names()["batchreleases"] == [NAME]


async def test_a_version_that_waits_for_groups_is_released_though_the_active_side_was_created_again(
    world: World,
) -> None:
    await pair_at_rest(world, beside=0)
    apply(world, GREEN, "v2")
    await world.until_state("Preparing")
    world.delete(LEADER_WORKER_SETS, BLUE)
    await world.sleep(60)
    world.create_workload(name=BLUE, replicas=4)
    await all_ready(world, BLUE)
    world.patch_lws({"replicas": 4}, GREEN)
    await world.until_state("AwaitingApproval")


async def test_the_active_side_gets_its_requests_back_when_enough_of_its_groups_are_ready(world: World) -> None:
    await pair_at_rest(world)
    set_ready(world, BLUE, ready=False)
    await world.until(lambda: weights(world) == ALL_GREEN)
    set_ready(world, BLUE, ready=True, group=0)
    await world.sleep(120)
    assert weights(world) == ALL_GREEN and "gets its requests back when 4" in world.status["message"]
    set_ready(world, BLUE, ready=True)
    await world.until(lambda: weights(world) == ALL_BLUE)


# Kills


async def _begin_with_matches(world: World) -> None:
    await pair_at_rest(world, *MATCH)


async def _a_release_an_abort_in_the_hand_over_and_a_deletion(world: World, _: None) -> None:
    await released(world)
    assert weights(world) == ALL_GREEN and len(rules(world)) == 1
    await handing_over(world, side=BLUE, tag="v3")
    world.request("Abort")
    await world.until_state("Aborted", 1200)
    await world.rest()
    assert world.status["active"] == GREEN and weights(world) == ALL_GREEN
    world.request("Retry")
    await world.until_state("AwaitingApproval", 1200)
    world.approve()
    await world.until(
        lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval", "step 2", 1200
    )
    world.approve()
    await world.until(lambda: share(world, BLUE) == 1, "all requests", 1200)
    await left(world)
    assert weights(world) == ALL_GREEN and marks(world) == {} and len(rules(world)) == 1


#: Into how many tests the kills of the story are dealt: it is a long one.
PARTS = 16


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_controller_killed_after_any_write_of_matches_comes_to_the_same_end(part: int) -> None:
    kill_after_every_write(_begin_with_matches, _a_release_an_abort_in_the_hand_over_and_a_deletion, part, PARTS)
