"""Sides of a pair that releases scale, when they go, die or are adopted, and when what a release goes by is gone:
requests go where groups serve, no group that may be wanted goes, and a Rollout can leave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from rollout_lws.objects.resources import (
    LEADER_WORKER_SETS,
    PODS,
)
from rollout_lws.rollout.reasons import EventReason, Reason
from tests.scenarios.paired import (
    ALL_BLUE,
    ALL_GREEN,
    BLUE,
    GREEN,
    all_ready,
    apply,
    create_sides,
    drop_mark,
    handing_over,
    in_step,
    left,
    marks,
    metered_pair,
    released,
    rollout,
    scaled_pair,
    set_ready,
    set_weights,
    weights,
    wipe,
)
from tests.scenarios.paired_scaled import (
    admit_all,
    drop_labels,
    refuse_patches,
    replicas,
    roles,
    scales_to,
    stalled,
)
from tests.scenarios.routed import OF_PAIRS, ROUTE, kind
from tests.scenarios.told import tells
from tests.scenarios.world import NAME, ROLLOUTS, World

pytestmark = [pytest.mark.looptime, *OF_PAIRS]

FINALIZER = {"metadata": {"finalizers": ["example.com/keeps"]}}


async def new_side_dies_before_the_old_one_is_parked(
    world: World, code: int, refused: Callable[[Mapping[str, Any]], bool]
) -> None:
    """The roles have changed, and the old side still has its groups, since these patches were refused meanwhile."""
    await scaled_pair(world)
    await in_step(world, 2)
    refuse_patches(world, code, refused)
    world.approve()
    await world.until(lambda: world.status["active"] == GREEN, "the roles", 1200)
    set_ready(world, GREEN, False)
    await world.sleep(60)
    admit_all(world)


def labels(body: Mapping[str, Any]) -> bool:
    return "labels" in (body.get("metadata") or {})


# Sides that die


async def test_the_old_side_is_active_again_when_the_new_one_dies_before_the_labels_say_otherwise(
    world: World,
) -> None:
    await new_side_dies_before_the_old_one_is_parked(world, 500, labels)
    await world.until(lambda: weights(world) == ALL_BLUE, "requests")
    assert replicas(world)[BLUE] == 4
    await world.until(lambda: replicas(world) == {BLUE: 4, GREEN: 0}, "parked")
    assert roles(world) == {BLUE: "active", GREEN: "parked"} and world.status["active"] == BLUE


async def test_an_old_side_that_could_not_be_scaled_to_zero_serves_until_the_new_one_does_again(world: World) -> None:
    await new_side_dies_before_the_old_one_is_parked(world, 422, scales_to(0))
    await world.until(lambda: weights(world) == ALL_BLUE, "requests")
    await world.sleep(300)
    assert replicas(world) == {BLUE: 4, GREEN: 4} and weights(world) == ALL_BLUE
    set_ready(world, GREEN, True)
    await world.until(lambda: replicas(world) == {BLUE: 0, GREEN: 4}, "parked")
    assert weights(world) == ALL_GREEN and roles(world) == {BLUE: "parked", GREEN: "active"}
    # They were no other client's.
    assert not [each.note for each in world.events if each.reason == EventReason.REPLICAS_RESET]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("code", "what"), [(500, labels), (422, scales_to(0))], ids=["label", "number"])
async def test_the_rollout_leaves_while_only_a_side_serves_that_was_to_be_parked(
    world: World, code: int, what: Callable[[Mapping[str, Any]], bool]
) -> None:
    await new_side_dies_before_the_old_one_is_parked(world, code, what)
    await left(world)
    assert weights(world) == ALL_BLUE and replicas(world) == {BLUE: 4, GREEN: 4}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("when", ["the next release", "a third version"])
async def test_a_pod_that_does_not_end_on_the_parked_side_is_named(world: World, when: str) -> None:
    await scaled_pair(world)
    side = BLUE if when == "the next release" else GREEN
    if side == GREEN:
        await in_step(world, 2)
    world.patch(PODS, f"{side}-2", FINALIZER)
    if side == BLUE:
        await released(world)
    apply(world, side, "v3")
    await world.sleep(4 * 3600)
    assert f"{side}-2" in world.status["message"]


# Sides that go


def delete(world: World, side: str, *, slowly: bool) -> None:
    """The owner of a side deletes it; ``slowly``: one of its pods does not end."""
    if slowly:
        world.patch(PODS, f"{side}-0", FINALIZER)
    world.delete(LEADER_WORKER_SETS, side, "Foreground" if slowly else "Background")


@pytest.mark.parametrize("takes", ["an instant", "long"])
async def test_the_new_side_takes_over_when_the_active_one_is_deleted_in_a_release(world: World, takes: str) -> None:
    await scaled_pair(world)
    await in_step(world, 2)
    delete(world, BLUE, slowly=takes == "long")
    await world.until(lambda: world.status["active"] == GREEN, "the roles", 120)
    await world.until(lambda: weights(world) == ALL_GREEN, "requests", 120)
    await world.rest()
    assert replicas(world)[GREEN] == 4 and weights(world) == ALL_GREEN


@tells(events={EventReason.ADOPTED: "LeaderWorkerSet llama was deleted: llama-green becomes the active side"})
async def test_a_parked_side_is_woken_when_the_active_one_is_deleted_at_rest(world: World) -> None:
    await scaled_pair(world)
    world.delete(LEADER_WORKER_SETS, BLUE)
    await world.until(lambda: replicas(world) == {GREEN: 4}, "woken", 120)
    await world.until(lambda: weights(world) == ALL_GREEN, "requests", 120)
    world.create_workload(name=BLUE, replicas=4, tag="v1")
    await world.until(lambda: replicas(world) == {BLUE: 0, GREEN: 4}, "parked", 120)
    await world.until_state("Healthy")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("how", ["deleted", "disabled"])
async def test_a_rollout_leaves_without_its_active_side(world: World, how: str) -> None:
    await scaled_pair(world)
    await released(world)
    world.stop_controller()
    apply(world, BLUE, "v3")
    world.delete(LEADER_WORKER_SETS, GREEN)
    if how == "deleted":
        world.delete(ROLLOUTS, NAME)
    else:
        world.patch_rollout({"disabled": True})
    await world.sleep(5)
    world.start_controller()
    if how == "deleted":
        await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "the Rollout leaves")
    else:
        await world.until_state("Disabled")
    assert replicas(world) == {BLUE: 0} and roles(world) == {BLUE: None}


async def test_the_other_side_takes_over_from_an_active_one_whose_deletion_takes_long(world: World) -> None:
    await scaled_pair(world)
    await released(world)
    delete(world, GREEN, slowly=True)
    await world.until(lambda: replicas(world)[BLUE] == 4, "woken")
    assert weights(world) == ALL_BLUE and world.status["active"] == BLUE
    await world.until(lambda: set(world.groups(BLUE).values()) == {"v1"}, "groups")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("what", ["never ran", "aborted", "aborted, and the status wiped"])
async def test_a_version_that_was_not_released_does_not_take_over(world: World, what: str) -> None:
    await scaled_pair(world, other="v2" if what == "never ran" else "v1")
    if "aborted" in what:
        await in_step(world)
        world.request("Abort")
        await world.until_state("Aborted", 1200)
        await world.rest()
    if "wiped" in what:
        wipe(world)
        await world.rest()
    world.delete(LEADER_WORKER_SETS, BLUE)
    await world.until(lambda: stalled(world, Reason.WORKLOAD_NOT_FOUND), "told")
    await world.sleep(600)
    assert replicas(world) == {GREEN: 0}


# Adoption


async def test_groups_of_a_side_that_activeside_names_stay_although_the_route_names_the_other_one(
    world: World,
) -> None:
    create_sides(world, beside=4)
    world.server.create(ROLLOUTS, rollout(spec={"activeSide": GREEN}))
    await all_ready(world, BLUE, GREEN)
    world.start_controller()
    await world.until(lambda: stalled(world, Reason.ACTIVE_SIDE_UNKNOWN), "told")
    assert "spec.activeSide names llama-green, and the route gives the requests to llama" in world.status["message"]
    await world.sleep(300)
    assert replicas(world) == {BLUE: 4, GREEN: 4} and weights(world) == ALL_BLUE


async def test_groups_that_load_stay_although_activeside_names_a_side_without_any(world: World) -> None:
    named = {"activeSide": BLUE}
    await scaled_pair(world, more={"spec": named})
    await released(world)
    await left(world)
    set_ready(world, GREEN, False)
    # A tool applies the route and the Rollout of their manifests.
    set_weights(world, ALL_BLUE)
    world.server.create(ROLLOUTS, rollout(spec=named))
    await world.sleep(60)
    set_ready(world, GREEN, True)
    await world.sleep(600)
    assert replicas(world) == {BLUE: 0, GREEN: 4}


# Without what a release goes by


async def test_a_forced_abort_ends_without_the_route(world: World) -> None:
    await scaled_pair(world)
    await in_step(world, 2)
    world.delete(kind(), ROUTE)
    await world.sleep(10)
    world.request("Abort", force=True)
    await world.until_state("Aborted", 1200)
    assert replicas(world) == {BLUE: 4, GREEN: 0}


async def test_a_rollout_leaves_without_the_route(world: World) -> None:
    await scaled_pair(world)
    await in_step(world, 2)
    world.delete(kind(), ROUTE)
    await left(world)
    assert replicas(world) == {BLUE: 4, GREEN: 0} and roles(world) == {BLUE: None, GREEN: None}


async def test_a_hand_over_goes_on_without_its_batchrelease(world: World) -> None:
    await scaled_pair(world)
    await handing_over(world)
    world.patch(world.RECORD, NAME, {"metadata": {"finalizers": None}})
    world.delete(world.RECORD, NAME)
    await world.until(lambda: world.status["active"] == GREEN, "the roles", 3600)
    await world.until_state("Healthy")
    assert replicas(world) == {BLUE: 0, GREEN: 4} and weights(world) == ALL_GREEN


async def test_both_sides_keep_their_groups_when_note_and_labels_are_gone_in_the_hand_over() -> None:
    async with metered_pair(scaled=True) as pair:
        world = pair.world
        await handing_over(world)
        await world.sleep(5)
        drop_mark(world)
        drop_labels(world)
        await world.until(lambda: stalled(world, Reason.ACTIVE_SIDE_UNKNOWN), "told")
        await world.sleep(120)
        assert replicas(world) == {BLUE: 4, GREEN: 4} and weights(world) == ALL_GREEN
        world.patch_rollout({"activeSide": GREEN})
        await world.until(lambda: replicas(world) == {BLUE: 0, GREEN: 4}, "parked")
        await world.sleep(60)
        pair.assert_unharmed()


async def test_a_version_that_is_applied_in_the_moment_of_the_change_waits_and_is_told(world: World) -> None:
    await scaled_pair(world)
    await handing_over(world)

    def apply_next(seen: World) -> None:
        turned = next((each["active"] for each in marks(seen).values()), "") == GREEN
        if turned and apply_next in seen.checks:
            seen.checks.remove(apply_next)
            apply(seen, GREEN, "v3")

    world.checks.append(apply_next)
    await world.until(lambda: stalled(world, Reason.ACTIVE_SIDE_EDITED), "told", 1200)
    assert {*world.groups(GREEN).values()} == {"v2"} and world.status["active"] == GREEN
    apply(world, GREEN, "v2")
    await world.until_state("Healthy", 600)
