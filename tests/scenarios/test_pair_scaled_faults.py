"""Pairs that releases scale, in harm's way: manifests and autoscalers that scale a side, lost evidence, groups that
fail, dying controllers.
"""

from __future__ import annotations

import json

import pytest

from rollout_lws.objects.resources import (
    HORIZONTAL_POD_AUTOSCALERS,
    LEADER_WORKER_SETS,
)
from rollout_lws.rollout.reasons import Reason
from rollout_lws.sandbox.patching.patches import APPLY_PATCH
from rollout_lws.workload.applied import LAST_APPLIED
from tests.scenarios.crashes import PARTS, kill_after_every_write
from tests.scenarios.paired import (
    ALL_BLUE,
    BLUE,
    GREEN,
    all_ready,
    apply,
    approve_to_the_end,
    create_sides,
    drop_mark,
    handing_over,
    in_step,
    metered_pair,
    released,
    rollout,
    scaled_pair,
    set_ready,
    set_weights,
    share,
    weights,
    wipe,
)
from tests.scenarios.paired_scaled import drop_labels, recreate_rollout, replicas, roles, stalled
from tests.scenarios.routed import OF_PAIRS, ROUTE, kind
from tests.scenarios.scaled import create_autoscaler, scale, wants
from tests.scenarios.test_autoscalers_told import create_scaled_object
from tests.scenarios.told import tells
from tests.scenarios.world import NAME, NAMESPACE, ROLLOUTS, World

pytestmark = [pytest.mark.looptime, *OF_PAIRS]


# Those who scale a side


def state_replicas(world: World, name: str, count: int | None) -> None:
    """kubectl apply of a manifest with so many replicas, or without any."""
    manifest = {"spec": {} if count is None else {"replicas": count}}
    world.patch(LEADER_WORKER_SETS, name, {"metadata": {"annotations": {LAST_APPLIED: json.dumps(manifest)}}})
    if count is not None:
        world.patch_lws({"replicas": count}, name)


@tells(
    {
        Reason.REPLICAS_APPLIED: "LeaderWorkerSet llama-green gets spec.replicas from a manifest (kubectl apply), which"
        " would undo what a release scales: remove spec.replicas with kubectl apply edit-last-applied leaderworkerset"
        " llama-green, and then from the manifest, in this order"
    }
)
async def test_a_manifest_that_states_replicas_is_refused_before_anything_is_written(world: World) -> None:
    create_sides(world, beside=0)
    state_replicas(world, GREEN, 0)
    world.server.create(ROLLOUTS, rollout(spec={}))
    await all_ready(world, BLUE)
    world.start_controller()
    await world.until(lambda: stalled(world, Reason.REPLICAS_APPLIED), "told")
    assert roles(world) == {BLUE: None, GREEN: None} and replicas(world) == {BLUE: 4, GREEN: 0}
    state_replicas(world, GREEN, None)
    await world.until_state("Healthy")
    await world.rest()
    assert roles(world) == {BLUE: "active", GREEN: "parked"}


async def test_replicas_that_are_applied_later_are_put_back_and_keep_the_next_release(world: World) -> None:
    await scaled_pair(world)
    await world.sleep(60)
    state_replicas(world, GREEN, 2)
    await world.sleep(1)
    assert replicas(world) == {BLUE: 4, GREEN: 0}
    await world.rest()
    assert "the next version would wait" in world.status["message"]
    apply(world, GREEN, "v2")
    await world.until(lambda: stalled(world, Reason.REPLICAS_APPLIED), "told")
    state_replicas(world, GREEN, None)
    await world.until_state("AwaitingApproval")
    state_replicas(world, BLUE, 0)
    await world.sleep(1)
    assert replicas(world) == {BLUE: 4, GREEN: 1} and world.status["active"] == BLUE
    await approve_to_the_end(world)
    assert replicas(world) == {BLUE: 0, GREEN: 4}


async def test_server_side_apply_is_seen_as_well(world: World) -> None:
    create_sides(world, beside=0)
    body = {
        "apiVersion": LEADER_WORKER_SETS.api_version,
        "kind": LEADER_WORKER_SETS.kind,
        "metadata": {"name": GREEN, "namespace": NAMESPACE},
        "spec": {"replicas": 1},
    }
    world.server.patch(LEADER_WORKER_SETS, NAMESPACE, GREEN, body, APPLY_PATCH, field_manager="argocd", force=True)
    world.server.create(ROLLOUTS, rollout(spec={"activeSide": BLUE}))
    world.start_controller()
    await world.until(lambda: stalled(world, Reason.REPLICAS_APPLIED), "told")
    assert "gets spec.replicas from a manifest (argocd)" in world.status["message"]
    assert replicas(world)[GREEN] == 1


AUTOSCALER_OF_A_SIDE = (
    "HorizontalPodAutoscaler llama-hpa scales LeaderWorkerSet llama, whose groups are the Rollout's to count: have it"
    " scale the Rollout, with scaleTargetRef rollouts.kruise.io/v1beta1, Rollout, llama"
)


@tells({Reason.AUTOSCALER_PROBLEM: AUTOSCALER_OF_A_SIDE})
async def test_an_autoscaler_of_the_active_side_keeps_the_release(world: World) -> None:
    await autoscaler_keeps_the_release(world, BLUE)


async def test_an_autoscaler_of_the_parked_side_keeps_the_release(world: World) -> None:
    await autoscaler_keeps_the_release(world, GREEN)


async def test_a_scaled_object_of_a_side_keeps_the_release(world: World) -> None:
    await scaled_pair(world)
    create_scaled_object(world)
    apply(world, GREEN, "v2")
    await world.until(lambda: stalled(world, Reason.AUTOSCALER_PROBLEM), "told")
    assert "llama-hpa, of ScaledObject chat, scales LeaderWorkerSet llama" in world.status["message"]


async def autoscaler_keeps_the_release(world: World, side: str) -> None:
    await scaled_pair(world)
    create_autoscaler(world, target=side)
    apply(world, GREEN, "v2")
    await world.until(lambda: stalled(world, Reason.AUTOSCALER_PROBLEM), "told")
    assert replicas(world) == {BLUE: 4, GREEN: 0}
    world.delete(HORIZONTAL_POD_AUTOSCALERS, "llama-hpa")
    await world.until_state("AwaitingApproval")


async def test_an_autoscaler_of_the_rollout_scales_the_side_that_serves(world: World) -> None:
    await scaled_pair(world)
    create_autoscaler(world, of=ROLLOUTS)
    wants(world, 5)
    await world.until(lambda: replicas(world) == {BLUE: 5, GREEN: 0}, "before", 600)
    await world.rest()
    await in_step(world, 2)
    assert replicas(world) == {BLUE: 5, GREEN: 5}
    wants(world, 6)
    await world.until(lambda: replicas(world) == {BLUE: 6, GREEN: 6}, "up in the release", 600)
    wants(world, 2)
    await world.sleep(120)
    assert replicas(world) == {BLUE: 6, GREEN: 6}
    await approve_to_the_end(world)
    await world.until(lambda: replicas(world) == {BLUE: 0, GREEN: 2}, "down after it", 600)
    wants(world, 3)
    await world.until(lambda: replicas(world) == {BLUE: 0, GREEN: 3}, "after", 600)


# Adoption


@tells(
    {
        Reason.ACTIVE_SIDE_UNKNOWN: "llama would be the active side, and the groups of llama-green would go: name the"
        " side that serves in spec.activeSide, or scale llama-green to 0"
    }
)
async def test_groups_of_both_sides_stay_until_a_person_says_which_serves(world: World) -> None:
    create_sides(world, beside=2)
    world.server.create(ROLLOUTS, rollout(spec={}))
    await all_ready(world, BLUE, GREEN)
    world.start_controller()
    await world.until(lambda: stalled(world, Reason.ACTIVE_SIDE_UNKNOWN), "told")
    await world.sleep(600)
    assert replicas(world) == {BLUE: 4, GREEN: 2} and stalled(world, Reason.ACTIVE_SIDE_UNKNOWN)
    world.patch_rollout({"activeSide": BLUE})
    await world.until(lambda: replicas(world) == {BLUE: 4, GREEN: 0}, "parked", 120)
    await world.until_state("Healthy")


async def test_a_side_that_is_made_later_is_parked(world: World) -> None:
    await scaled_pair(world)
    world.delete(LEADER_WORKER_SETS, GREEN)
    await world.until(lambda: stalled(world, Reason.COUNTERPART_MISSING), "told")
    world.create_workload(name=GREEN, replicas=1, tag="v1")
    await world.until(lambda: replicas(world) == {BLUE: 4, GREEN: 0}, "parked", 120)
    await world.until_state("Healthy")
    await released(world)


# Lost and forged evidence


@pytest.mark.one_in(4, of="lost")
@pytest.mark.parametrize("moment", ["rest", "step", "hand-over", "after"])
@pytest.mark.parametrize("lost", ["mark", "labels", "mark and status", "weights and mark"])
async def test_lost_evidence_neither_moves_requests_nor_groups(moment: str, lost: str) -> None:
    async with metered_pair(scaled=True) as pair:
        world = pair.world
        match moment:
            case "step":
                await in_step(world, 2)
            case "hand-over":
                await handing_over(world)
            case "after":
                await released(world)
        world.stop_controller()
        if "mark" in lost:
            drop_mark(world)
        if "weights" in lost:
            set_weights(world, ALL_BLUE)
        if "labels" in lost:
            drop_labels(world)
        if "status" in lost:
            wipe(world)
        world.start_controller()
        active = GREEN if moment == "after" else BLUE
        await world.rest(quiet=60, seconds=1200)
        while world.state == "AwaitingApproval":
            world.request("Abort")
            await world.rest(quiet=60, seconds=1200)
        await world.rest(quiet=60, seconds=1200)
        served = world.status["active"]
        assert served == active or moment == "hand-over", world.describe()
        assert replicas(world) == {BLUE: 0, GREEN: 0} | {served: 4}
        assert share(world, served) == 1
        pair.assert_unharmed()


async def test_weights_that_a_tool_applies_with_the_whole_route_are_put_back_at_once(world: World) -> None:
    await scaled_pair(world)
    await released(world)
    for _ in range(3):
        drop_mark(world)
        set_weights(world, {BLUE: 100, GREEN: 0})
        await world.sleep(1)
        assert weights(world) == {BLUE: 0, GREEN: 100} and replicas(world) == {BLUE: 0, GREEN: 4}
    assert world.status["active"] == GREEN


@pytest.mark.one_in(3)
@pytest.mark.parametrize("moment", ["rest", "step", "after"])
async def test_a_rollout_that_is_created_again_goes_on_where_it_was(moment: str) -> None:
    async with metered_pair(scaled=True) as pair:
        world = pair.world
        if moment == "step":
            await in_step(world, 2)
        elif moment == "after":
            await released(world)
        world.stop_controller()
        recreate_rollout(world)
        world.start_controller()
        await world.until_state("Healthy", 1200)
        await world.rest(quiet=60, seconds=1200)
        active = GREEN if moment == "after" else BLUE
        assert world.status["active"] == active
        assert replicas(world) == {BLUE: 0, GREEN: 0} | {active: 4} and share(world, active) == 1
        pair.assert_unharmed()


# Groups that fail, and strategies that do not fit


async def test_a_side_that_does_not_serve_is_not_given_up_for_the_other_ones_groups(world: World) -> None:
    await scaled_pair(world)
    await in_step(world, 2)
    set_ready(world, BLUE, False)
    await world.until(lambda: share(world, GREEN) == 1, "requests", 120)
    world.request("Abort")
    await world.sleep(300)
    assert replicas(world) == {BLUE: 4, GREEN: 4} and share(world, GREEN) == 1
    set_ready(world, BLUE, True)
    await world.until_state("Aborted", 1200)
    await world.rest()
    assert replicas(world) == {BLUE: 4, GREEN: 0} and share(world, BLUE) == 1


async def test_percentages_of_max_unavailable_resolve_at_every_number(world: World) -> None:
    create_sides(world, beside=0)
    strategy = {"rolloutStrategy": {"rollingUpdateConfiguration": {"maxUnavailable": "30%", "maxSurge": 0}}}
    for name in (BLUE, GREEN):
        world.patch_lws(strategy, name)
    world.server.create(ROLLOUTS, rollout(spec={}))
    await all_ready(world, BLUE)
    world.start_controller()
    await world.until_state("Healthy")
    await released(world)
    for count in (2, 1, 0, 3):
        scale(world, count)
        await world.until(lambda count=count: replicas(world) == {BLUE: 0, GREEN: count}, "scaled", 600)  # type: ignore[misc]
    world.patch_rollout({"disabled": True})
    await world.until_state("Disabled", 600)
    rolling = {
        name: (world.get(LEADER_WORKER_SETS, name) or {})["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]
        for name in (BLUE, GREEN)
    }
    # LWS would reject 30% of three groups.
    assert {name: each["maxUnavailable"] for name, each in rolling.items()} == {BLUE: "30%", GREEN: 1}


async def _begin(world: World) -> None:
    await scaled_pair(world)


async def _two_releases_and_an_abort(world: World, _: None) -> None:
    await released(world, side=GREEN, tag="v2")
    assert replicas(world) == {BLUE: 0, GREEN: 4} and roles(world) == {BLUE: "parked", GREEN: "active"}
    await in_step(world, 2, side=BLUE, tag="v3")
    world.request("Abort")
    await world.until_state("Aborted", 1200)
    await world.rest()
    assert replicas(world) == {BLUE: 0, GREEN: 4}
    await released(world, side=BLUE, tag="v4")
    assert replicas(world) == {BLUE: 4, GREEN: 0} and weights(world) == {BLUE: 100, GREEN: 0}
    assert {each.rstrip("!") for each in world.groups(BLUE).values()} == {"v4"} and not world.groups(GREEN)


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_a_controller_killed_after_any_write_comes_to_the_same_end(part: int) -> None:
    kill_after_every_write(_begin, _two_releases_and_an_abort, part)


async def _leave(world: World, _: None) -> None:
    await handing_over(world)
    world.delete(ROLLOUTS, NAME)
    await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "the Rollout leaves", 1200)
    assert replicas(world) == {BLUE: 4, GREEN: 0} and roles(world) == {BLUE: None, GREEN: None}
    assert (world.get(kind(), ROUTE) or {})["metadata"].get("annotations") in (None, {})


@pytest.mark.long
def test_a_controller_killed_while_the_rollout_leaves_comes_to_the_same_end() -> None:
    kill_after_every_write(_begin, _leave, 0, 1)
