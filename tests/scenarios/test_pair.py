"""Pairs of workloads that their owners scale: a release moves the requests from one to the other; the roles change."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.rollout.reasons import EventReason, Reason
from tests.scenarios.crashes import PARTS, kill_after_every_write
from tests.scenarios.paired import (
    BLUE,
    GREEN,
    all_ready,
    apply,
    approve_to_the_end,
    create_sides,
    metered_pair,
    no_workload_written,
    pair_at_rest,
    rollout,
    set_weights,
    share,
    weights,
)
from tests.scenarios.routed import OF_PAIRS, ROUTE, kind, rules_of
from tests.scenarios.told import tells
from tests.scenarios.world import NAME, ROLLOUTS, World

pytestmark = [pytest.mark.looptime, *OF_PAIRS]


@tells(
    events={
        EventReason.ADOPTED: "LeaderWorkerSet llama is the active side of the pair, llama-green the inactive one",
        EventReason.PROMOTING: "step 2 done: llama hands over",
    }
)
async def test_a_release_moves_the_requests_and_the_roles(world: World) -> None:
    await pair_at_rest(world)
    assert world.status["active"] == BLUE
    apply(world, GREEN, "v2")
    await world.until_state("AwaitingApproval")
    assert share(world, GREEN) == pytest.approx(0.2)
    world.approve()
    await world.until(lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval")
    assert share(world, GREEN) == pytest.approx(0.5)
    await approve_to_the_end(world)
    assert weights(world) == {BLUE: 0, GREEN: 100}
    assert world.status["active"] == GREEN
    assert world.condition("ReadyToRetire")["status"] == "True"
    await world.sleep(3600)
    assert world.status["active"] == GREEN and world.state == "Healthy"


@pytest.mark.long
async def test_roles_alternate_and_nothing_is_left(world: World) -> None:
    await pair_at_rest(world)
    for number, side in enumerate((GREEN, BLUE, GREEN, BLUE), 2):
        apply(world, side, f"v{number}")
        await world.until_state("AwaitingApproval")
        await approve_to_the_end(world)
        assert world.status["active"] == side
        assert world.names()["batchreleases"] == []
    assert len(rules_of(world)) == 1


async def test_no_request_is_lost_to_the_end() -> None:
    async with metered_pair() as pair:
        apply(pair.world, GREEN, "v2")
        await pair.world.until_state("AwaitingApproval")
        assert await pair.shares() == {BLUE: 0.8, GREEN: 0.2}
        await approve_to_the_end(pair.world)
        assert await pair.shares() == {GREEN: 1.0}
        pair.world.patch_lws({"replicas": 0}, BLUE)
        await pair.world.rest()
        assert await pair.shares() == {GREEN: 1.0}
        pair.assert_unharmed()


async def test_an_abort_gives_everything_back_and_starts_no_release_by_itself() -> None:
    async with metered_pair() as pair:
        world = pair.world
        apply(world, GREEN, "v2")
        await world.until_state("AwaitingApproval")
        world.approve()
        await world.until(lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval")
        world.request("Abort")
        await world.until_state("Aborted")
        await world.rest()
        assert await pair.shares() == {BLUE: 1.0}
        assert weights(world) == {BLUE: 100, GREEN: 0}
        await world.sleep(3600)
        assert world.state == "Aborted" and world.status["active"] == BLUE
        world.request("Retry")
        await world.until_state("AwaitingApproval")
        await approve_to_the_end(world)
        assert world.status["active"] == GREEN
        pair.assert_unharmed()


async def test_the_stable_template_on_the_new_side_takes_the_release_back() -> None:
    async with metered_pair() as pair:
        world = pair.world
        apply(world, GREEN, "v2")
        await world.until_state("AwaitingApproval")
        apply(world, GREEN, "v1")
        await world.until_state("Healthy")
        await world.rest()
        assert weights(world) == {BLUE: 100, GREEN: 0}
        assert world.status["active"] == BLUE


async def test_a_third_version_begins_a_release_of_its_own() -> None:
    async with metered_pair() as pair:
        world = pair.world
        apply(world, GREEN, "v2")
        await world.until_state("AwaitingApproval")
        apply(world, GREEN, "v3")
        await world.until(lambda: share(world, GREEN) == 0)
        await world.until(lambda: world.state == "AwaitingApproval" and share(world, GREEN) > 0)
        assert {each.rstrip("!") for each in world.groups(GREEN).values()} == {"v3"}
        await approve_to_the_end(world)
        assert world.status["active"] == GREEN


@tells(
    {
        Reason.PREPARING: "LeaderWorkerSet llama-green has another version and 0 groups: its release begins when it is"
        " scaled up"
    }
)
async def test_a_version_on_a_side_without_groups_waits_until_its_owner_scales_it_up(world: World) -> None:
    await pair_at_rest(world, beside=0)
    apply(world, GREEN, "v2")
    await world.sleep(60)
    assert world.state == "Preparing"
    assert "its release begins when it is scaled up" in world.status["message"]
    world.patch_lws({"replicas": 1}, GREEN)
    await world.until_state("AwaitingApproval")
    world.approve()
    await world.until(lambda: "scale it up" in world.status["message"] or world.status["currentStepIndex"] == 2)
    await approve_to_the_end(world)
    assert world.status["active"] == GREEN


@tells(
    {
        Reason.COUNTERPART_MISSING: "LeaderWorkerSet llama does not exist; llama-green has all requests: create llama"
        " to release a version on it"
    }
)
async def test_the_other_side_serves_when_the_active_one_is_deleted(world: World) -> None:
    await pair_at_rest(world)
    world.delete(LEADER_WORKER_SETS, BLUE)
    await world.until(lambda: world.condition("Stalled")["reason"] == "CounterpartMissing")
    assert weights(world) == {BLUE: 0, GREEN: 100}
    world.create_workload(name=BLUE, replicas=4, tag="v1")
    await world.until_state("Healthy")
    await world.sleep(600)
    assert world.status["active"] == GREEN and weights(world) == {BLUE: 0, GREEN: 100}


async def test_a_new_side_that_is_deleted_ends_its_release(world: World) -> None:
    await pair_at_rest(world)
    apply(world, GREEN, "v2")
    await world.until_state("AwaitingApproval")
    world.delete(LEADER_WORKER_SETS, GREEN)
    await world.until(lambda: world.condition("Stalled")["reason"] == "CounterpartMissing")
    assert weights(world) == {BLUE: 100, GREEN: 0}
    assert world.names()["batchreleases"] == []


async def test_a_tool_that_sends_requests_to_an_empty_side_is_corrected_at_once(world: World) -> None:
    await pair_at_rest(world)
    apply(world, GREEN, "v2")
    await world.until_state("AwaitingApproval")
    await approve_to_the_end(world)
    world.patch_lws({"replicas": 0}, BLUE)
    await world.rest()
    for _ in range(5):
        set_weights(world, {BLUE: 100, GREEN: 0})
        await world.sleep(1)
        assert weights(world) == {BLUE: 0, GREEN: 100}
    assert world.status["active"] == GREEN


async def test_a_tool_that_insists_on_weights_is_answered_ever_later(world: World) -> None:
    await pair_at_rest(world)
    apply(world, GREEN, "v2")
    await world.until_state("AwaitingApproval")
    await approve_to_the_end(world)
    set_weights(world, {BLUE: 100, GREEN: 0})
    await world.sleep(1)
    assert weights(world) == {BLUE: 0, GREEN: 100}
    set_weights(world, {BLUE: 100, GREEN: 0})
    await world.sleep(30)
    assert world.condition("Stalled")["reason"] == "RouteConflict"
    await world.sleep(60)
    assert weights(world) == {BLUE: 0, GREEN: 100}
    await world.until_state("Healthy")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("moment", ["rest", "step", "after"])
async def test_a_status_that_is_wiped_moves_no_request_to_another_side(world: World, moment: str) -> None:
    await pair_at_rest(world)
    if moment != "rest":
        apply(world, GREEN, "v2")
        await world.until_state("AwaitingApproval")
    if moment == "after":
        await approve_to_the_end(world)
    serving = GREEN if moment == "after" else BLUE
    world.patch(ROLLOUTS, NAME, {"status": dict.fromkeys(world.status)}, "status")
    await world.until(lambda: world.status.get("active") == serving and world.state == "Healthy")
    await world.sleep(600)
    assert share(world, serving) == 1
    assert world.names()["batchreleases"] == []


@pytest.mark.one_in(2)
@pytest.mark.parametrize("moment", ["rest", "step", "after"])
async def test_a_deleted_rollout_leaves_the_requests_where_they_belong(world: World, moment: str) -> None:
    await pair_at_rest(world)
    if moment != "rest":
        apply(world, GREEN, "v2")
        await world.until_state("AwaitingApproval")
    if moment == "after":
        await approve_to_the_end(world)
    serving = GREEN if moment == "after" else BLUE
    world.delete(ROLLOUTS, NAME)
    await world.until(lambda: world.get(ROLLOUTS, NAME) is None)
    assert share(world, serving) == 1
    assert not (world.get(kind(), ROUTE) or {})["metadata"].get("annotations")
    world.server.create(ROLLOUTS, rollout())
    await world.until(lambda: world.status.get("active") == serving and world.state == "Healthy")
    await world.sleep(600)
    assert share(world, serving) == 1


@tells(
    {
        Reason.ACTIVE_SIDE_UNKNOWN: "requests go to both llama and llama-green, or to neither: set the weight of one of"
        " them to 0 in the route, or name the side that serves in spec.activeSide"
    }
)
@pytest.mark.parametrize("at", [{BLUE: 50, GREEN: 50}, {BLUE: 0, GREEN: 0}], ids=["both", "neither"])
async def test_nothing_is_moved_until_it_is_said_which_side_is_active(world: World, at: dict[str, int]) -> None:
    create_sides(world)
    set_weights(world, at)
    world.server.create(ROLLOUTS, rollout())
    await all_ready(world, BLUE, GREEN)
    world.start_controller()
    await world.until_state("Stalled")
    await world.rest()
    assert world.condition("Stalled")["reason"] == Reason.ACTIVE_SIDE_UNKNOWN
    assert weights(world) == at and "active" not in world.status
    world.patch_rollout({"activeSide": GREEN})
    await world.until_state("Healthy")
    await world.rest()
    assert weights(world)[BLUE] == 0 and weights(world)[GREEN] > 0 and world.status["active"] == GREEN


async def test_another_template_on_the_active_side_rolls_and_is_no_release(world: World) -> None:
    await pair_at_rest(world)
    apply(world, BLUE, "v2")
    await world.until(lambda: set(world.groups(BLUE).values()) == {"v2"})
    await world.rest()
    assert world.state == "Healthy" and weights(world) == {BLUE: 100, GREEN: 0}
    assert any(each.reason == "RolledOutNatively" for each in world.events)
    await world.sleep(600)
    assert world.state == "Healthy" and weights(world) == {BLUE: 100, GREEN: 0}


async def test_start_goes_back_to_the_version_that_was_there(world: World) -> None:
    await pair_at_rest(world)
    apply(world, GREEN, "v2")
    await world.until_state("AwaitingApproval")
    await approve_to_the_end(world)
    world.request("Start")
    await world.until_state("AwaitingApproval")
    await approve_to_the_end(world)
    assert world.status["active"] == BLUE and weights(world) == {BLUE: 100, GREEN: 0}


async def _begin(world: World) -> None:
    await pair_at_rest(world)


async def _two_releases_and_an_abort(world: World, _: None) -> None:
    """To the other side, aborted half-way back, and back."""
    apply(world, GREEN, "v2")
    await world.until_state("AwaitingApproval", 1200)
    await approve_to_the_end(world)
    assert world.status["active"] == GREEN and weights(world) == {BLUE: 0, GREEN: 100}
    apply(world, BLUE, "v3")
    await world.until_state("AwaitingApproval", 1200)
    world.request("Abort")
    await world.until_state("Aborted", 1200)
    await world.rest()
    assert world.status["active"] == GREEN and weights(world) == {BLUE: 0, GREEN: 100}
    apply(world, BLUE, "v4")
    await world.until_state("AwaitingApproval", 1200)
    await approve_to_the_end(world)
    assert world.status["active"] == BLUE and weights(world) == {BLUE: 100, GREEN: 0}
    assert world.names()["batchreleases"] == []


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_a_controller_killed_after_any_write_comes_to_the_same_end(part: int) -> None:
    kill_after_every_write(_begin, _two_releases_and_an_abort, part)


NETWORK = {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}
ACCELERATORS = {"resources": {"limits": {"nvidia.com/gpu": "4"}}}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("change", ["size", "network", "accelerators"])
async def test_what_no_held_workload_can_change_is_released(change: str) -> None:
    async with metered_pair() as pair:
        world = pair.world
        apply(world, GREEN, "v2")
        match change:
            case "size":
                world.patch_lws({"leaderWorkerTemplate": {"size": 3}}, GREEN)
            case "network":
                world.patch_lws(NETWORK, GREEN)
            case _:
                (container,) = world.containers.of("v2")
                template = {"spec": {"containers": [container | ACCELERATORS]}}
                world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": template}}, GREEN)
        await world.until_state("AwaitingApproval")
        await approve_to_the_end(world)
        assert world.status["active"] == GREEN and await pair.shares() == {GREEN: 1.0}
        pair.assert_unharmed()


async def test_workloads_of_another_controller_are_released(world: World) -> None:
    create_sides(world)
    # What owns them has to exist, or they would go with it; which kind it is of does not matter.
    made_by = world.get(kind(), ROUTE)
    assert made_by is not None
    meta = made_by["metadata"]
    owner = {"apiVersion": made_by["apiVersion"], "kind": made_by["kind"], "name": meta["name"], "uid": meta["uid"]}
    for name in (BLUE, GREEN):
        owned = {"metadata": {"ownerReferences": [owner | {"controller": True}]}}
        world.patch(LEADER_WORKER_SETS, name, owned)
    world.server.create(ROLLOUTS, rollout())
    await all_ready(world, BLUE, GREEN)
    world.checks.append(no_workload_written(world))
    world.start_controller()
    await world.until_state("Healthy")
    apply(world, GREEN, "v2")
    await world.until_state("AwaitingApproval")
    await approve_to_the_end(world)
    assert world.status["active"] == GREEN
