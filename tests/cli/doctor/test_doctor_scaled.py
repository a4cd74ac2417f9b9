"""Doctor of a pair that its releases scale: the hold, the roles, the parked side, and whatever scales a side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from rollout_lws.cli.doctor.chain import chain
from rollout_lws.cli.doctor.links import Link, Name, State, first
from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS, LEADER_WORKER_SETS
from rollout_lws.sandbox.patching.patches import APPLY_PATCH
from rollout_lws.workload.applied import LAST_APPLIED
from tests.cli.doctor.looking import assert_whole, broken, links, look, told
from tests.scenarios.paired import (
    BLUE,
    GREEN,
    all_ready,
    apply,
    approve_to_the_end,
    create_sides,
    in_step,
    rollout,
    scaled_pair,
)
from tests.scenarios.world import KEYS, NAME, NAMESPACE, ROLLOUTS, World

pytestmark = pytest.mark.looptime
SHOW = "kubectl get leaderworkersets.leaderworkerset.x-k8s.io {} -o yaml --show-managed-fields"


def of(found: Sequence[Link], name: Name) -> dict[str, Link]:
    return {each.about: each for each in found if each.name is name}


def of_workload(found: Sequence[Link], name: str) -> Link:
    return of(found, Name.WORKLOAD)[f"LeaderWorkerSet/{name}"]


def relabel(world: World, name: str, role: str | None) -> None:
    world.patch(LEADER_WORKER_SETS, name, {"metadata": {"labels": {KEYS.side: role}}})


def state_replicas(world: World, name: str) -> None:
    """What ``kubectl apply`` leaves of a manifest that states replicas."""
    applied = msgspec.json.encode({"spec": {"replicas": 4}}).decode()
    world.patch(LEADER_WORKER_SETS, name, {"metadata": {"annotations": {LAST_APPLIED: applied}}})


async def test_at_rest_and_in_a_release_nothing_is_broken(world: World) -> None:
    await scaled_pair(world)
    found = await links(world)
    assert {each.state for each in found} == {State.OK}, told(found)
    assert of_workload(found, BLUE).found == "generation 2, 4 groups, the active side"
    assert of_workload(found, GREEN).found == "generation 1, 0 groups, the inactive side, parked"
    assert list(of(found, Name.HOLD)) == [f"LeaderWorkerSet/{BLUE}"]
    assert of(found, Name.SERVICE)["Service/green-api"].found == f"selects nothing now: {GREEN} has 0 groups"
    apply(world, GREEN, "v2")
    while world.state != "AwaitingApproval":
        await assert_whole(world)
    await assert_whole(world)
    await approve_to_the_end(world)
    found = await links(world)
    assert {each.state for each in found} == {State.OK}, told(found)
    assert list(of(found, Name.HOLD)) == [f"LeaderWorkerSet/{GREEN}"]


async def test_a_hold_that_no_controller_puts_back_is_broken(world: World) -> None:
    await scaled_pair(world)
    world.stop_controller()
    world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}}, BLUE)
    found = of(await links(world), Name.HOLD)[f"LeaderWorkerSet/{BLUE}"]
    assert found.state is State.BROKEN and "the hold is not closed: partition is 0" in found.found


async def test_a_template_of_the_active_side_is_broken_and_the_release_waits(world: World) -> None:
    await scaled_pair(world)
    apply(world, BLUE, "v2")
    await world.until(lambda: world.condition("Stalled").get("reason") == "ActiveSideEdited")
    await world.rest()
    found = await links(world)
    one = first(found, State.BROKEN)
    assert one is not None and one is of_workload(found, BLUE), told(found)
    assert f"apply it to {GREEN} to release it, and restore the template of {BLUE}" in one.found
    assert one.next == (
        "kubectl rollout-lws history llama",
        "kubectl get leaderworkersets.leaderworkerset.x-k8s.io llama -o yaml",
    )
    assert of_workload(found, GREEN).state is State.OK
    release = of(found, Name.RELEASE)[f"Rollout/{NAME}"]
    assert (release.state, release.found) == (
        State.WAITING,
        f"none is on: the version in the template of LeaderWorkerSet {BLUE} waits",
    )
    assert not any("scale" in command for each in found for command in each.next)


@pytest.mark.parametrize("side", [BLUE, GREEN])
@pytest.mark.parametrize("adopted", [False, True], ids=["at adoption", "at rest"])
async def test_a_manifest_that_states_replicas_is_broken(world: World, side: str, adopted: bool) -> None:
    if adopted:
        await scaled_pair(world)
        state_replicas(world, side)
        await world.rest()
    else:
        create_sides(world, beside=0)
        state_replicas(world, side)
        world.server.create(ROLLOUTS, rollout(spec={}))
        await all_ready(world, BLUE)
        world.start_controller()
        await world.until(lambda: world.condition("Stalled").get("reason") == "ReplicasApplied")
    found = await links(world)
    one, other = of_workload(found, side), of_workload(found, GREEN if side == BLUE else BLUE)
    assert one is first(found, State.BROKEN) and other.state is State.OK, told(found)
    assert one.next == (f"kubectl apply edit-last-applied leaderworkersets.leaderworkerset.x-k8s.io {side}",)


async def test_a_field_manager_that_applies_replicas_is_shown(world: World) -> None:
    await scaled_pair(world)
    body = {
        "apiVersion": LEADER_WORKER_SETS.api_version,
        "kind": LEADER_WORKER_SETS.kind,
        "metadata": {"name": GREEN, "namespace": NAMESPACE},
        "spec": {"replicas": 0},
    }
    world.server.patch(LEADER_WORKER_SETS, NAMESPACE, GREEN, body, APPLY_PATCH, field_manager="argocd", force=True)
    await world.rest()
    one = await broken(world)
    assert (one.name, one.about) == (Name.WORKLOAD, f"LeaderWorkerSet/{GREEN}")
    assert "(argocd)" in one.found and one.next == (SHOW.format(GREEN),)


@pytest.mark.parametrize("watched", [True, False], ids=["a controller", "no controller"])
async def test_groups_of_the_parked_side(world: World, watched: bool) -> None:
    await scaled_pair(world)
    await world.sleep(60)
    if not watched:
        world.stop_controller()
    world.patch_lws({"replicas": 2}, GREEN)
    before = look(world)
    one = of_workload(chain(before), GREEN)
    assert (one.state, one.found) == (
        State.WAITING,
        "has 2 groups, though it is the inactive side and no release is on",
    )
    found = of_workload(await links(world), GREEN)
    assert found.state is (State.OK if watched else State.BROKEN)
    assert watched or found.next == (SHOW.format(GREEN),)


@pytest.mark.parametrize(("side", "role"), [(BLUE, "active"), (GREEN, "parked")])
@pytest.mark.parametrize("said", [None, "other"])
async def test_a_label_that_no_controller_writes_is_broken(
    world: World, side: str, role: str, said: str | None
) -> None:
    await scaled_pair(world)
    await world.rest()
    world.stop_controller()
    relabel(world, side, said)
    found = of_workload(await links(world), side)
    label = f"label {KEYS.side} says other" if said else f"it has no label {KEYS.side}"
    name = "the active side" if side == BLUE else "the inactive side"
    assert (found.state, found.found) == (State.BROKEN, f"{label}, though it is {name}")
    assert found.by_itself == f"the controller writes {role} as soon as it acts"


async def test_a_label_is_written_again_when_the_release_ends(world: World) -> None:
    await scaled_pair(world)
    await in_step(world)
    relabel(world, GREEN, None)
    await world.rest()
    found = of_workload(await links(world), GREEN)
    assert (found.state, found.by_itself) == (State.WAITING, "the controller writes parked when the release ends")
    await approve_to_the_end(world)
    await assert_whole(world)


async def test_a_number_of_the_active_side_that_no_controller_puts_back_is_broken(world: World) -> None:
    await scaled_pair(world)
    await world.rest()
    world.stop_controller()
    world.patch_lws({"replicas": 3}, BLUE)
    found = await links(world)
    assert of(found, Name.CONTROLLER)[f"Rollout/{NAME}"].state is State.BROKEN, told(found)


@pytest.mark.parametrize("side", [BLUE, GREEN])
async def test_an_autoscaler_of_a_side_is_broken_and_one_of_the_rollout_is_fine(world: World, side: str) -> None:
    await scaled_pair(world)
    _autoscaler(world, LEADER_WORKER_SETS.api_version, LEADER_WORKER_SETS.kind, side)
    await world.rest()
    one = await broken(world)
    assert (one.name, one.about) == (Name.AUTOSCALER, "HorizontalPodAutoscaler/hpa")
    assert f"scales LeaderWorkerSet {side}" in one.found and "have it scale the Rollout" in one.found
    target = {"apiVersion": ROLLOUTS.api_version, "kind": ROLLOUTS.kind, "name": NAME}
    world.patch(HORIZONTAL_POD_AUTOSCALERS, "hpa", {"spec": {"scaleTargetRef": target}})
    await world.rest()
    found = await links(world)
    assert {each.state for each in found} == {State.OK}, told(found)
    await in_step(world)
    await assert_whole(world)


def _autoscaler(world: World, api_version: str, kind: str, name: str) -> None:
    spec: dict[str, Any] = {
        "scaleTargetRef": {"apiVersion": api_version, "kind": kind, "name": name},
        "minReplicas": 1,
        "maxReplicas": 8,
    }
    made = {"apiVersion": HORIZONTAL_POD_AUTOSCALERS.api_version, "kind": HORIZONTAL_POD_AUTOSCALERS.kind}
    world.server.create(
        HORIZONTAL_POD_AUTOSCALERS, {**made, "metadata": {"name": "hpa", "namespace": "default"}, "spec": spec}
    )


@pytest.mark.parametrize("watched", [True, False], ids=["a controller", "no controller"])
async def test_sides_that_both_have_groups_are_told_apart_by_a_user(world: World, watched: bool) -> None:
    create_sides(world, beside=2)
    world.server.create(ROLLOUTS, rollout(spec={}))
    await all_ready(world, BLUE, GREEN)
    if watched:
        world.start_controller()
        await world.until(lambda: world.condition("Stalled").get("reason") == "ActiveSideUnknown")
        await world.rest()
    one = await broken(world)
    assert one.name is Name.ROLLOUT and "spec.activeSide" in one.found, one


async def test_a_hold_that_a_tool_resets_and_one_that_was_released_are_told(world: World) -> None:
    await scaled_pair(world)
    world.patch(LEADER_WORKER_SETS, BLUE, {"metadata": {"annotations": {KEYS.release_hold: "true"}}})
    await world.rest()
    found = await links(world)
    assert first(found, State.BROKEN) is None, told(found)
    assert of(found, Name.HOLD)[f"LeaderWorkerSet/{BLUE}"].state is State.WAITING
    world.patch(LEADER_WORKER_SETS, BLUE, {"metadata": {"annotations": {KEYS.release_hold: None}}})
    await world.until_state("Healthy")
    while world.condition("Stalled").get("reason") != "HoldConflict":
        world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}}, BLUE)
        await world.sleep(2)
    one = await broken(world)
    assert (one.name, one.about) == (Name.HOLD, f"LeaderWorkerSet/{BLUE}") and "resets the partition" in one.found


async def test_without_groups_by_the_rollout_requests_wait_for_them(world: World) -> None:
    await scaled_pair(world)
    world.patch(ROLLOUTS, NAME, {"spec": {"replicas": 0}})
    await world.until(lambda: (world.get(LEADER_WORKER_SETS, BLUE) or {})["spec"]["replicas"] == 0, "scaled")
    await world.sleep(60)
    found = await links(world)
    assert first(found, State.BROKEN) is None, told(found)
    (route,) = of(found, Name.ROUTE).values()
    assert (route.state, route.by_itself) == (State.WAITING, "nothing, until the Rollout is scaled up")


async def test_an_aborted_release_is_not_gone_back_from_by_undo(world: World) -> None:
    await scaled_pair(world)
    await in_step(world)
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    found = await links(world)
    assert of(found, Name.RELEASE)[f"Rollout/{NAME}"].next == ("kubectl rollout-lws retry llama",)
    assert of_workload(found, GREEN).found.endswith("0 groups, the inactive side, parked")
