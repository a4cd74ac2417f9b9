"""Pairs that shift, in harm's way: dying controllers, groups that fail, clients that write what they should not."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timedelta

import pytest

from rollout_lws.objects.resources import LWS_GROUP_INDEX, PODS
from rollout_lws.sandbox.behaviours.faults import CUT_OFF, PREFIX
from tests.scenarios.crashes import PARTS, kill_after_every_write
from tests.scenarios.paired import (
    BLUE,
    GREEN,
    apply,
    approve_to_the_end,
    in_step,
    left,
    released,
    scaled_pair,
    set_ready,
    share,
    weights,
)
from tests.scenarios.paired_scaled import replicas, roles
from tests.scenarios.paired_shift import (
    GROUPS,
    STEPS,
    ShiftJudge,
    assert_none_left,
    at_rest,
    come_to,
    draining,
    pods_of,
    shifting,
    unlabelled,
)
from tests.scenarios.routed import OF_PAIRS
from tests.scenarios.scaled import create_autoscaler
from tests.scenarios.world import KEYS, World

pytestmark = [pytest.mark.looptime, *OF_PAIRS]


# Dying controllers


async def _begin(world: World) -> None:
    await scaled_pair(world, *STEPS, more={"shift": {}})
    ShiftJudge(world, least=None)


async def _two_releases_and_an_abort(world: World, _: None) -> None:
    await released(world, side=GREEN, tag="v2")
    assert at_rest(world, GREEN) and roles(world) == {BLUE: "parked", GREEN: "active"}
    await in_step(world, 2, side=BLUE, tag="v3")
    await world.sleep(120)
    assert replicas(world) == {BLUE: 3, GREEN: 1}
    world.request("Abort")
    await world.until_state("Aborted", 1200)
    await world.rest()
    assert at_rest(world, GREEN) and {*world.groups(GREEN).values()} == {"v2"}
    assert weights(world) == {BLUE: 0, GREEN: 100}
    assert_none_left(world)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_controller_killed_after_any_write_comes_to_the_same_end(part: int) -> None:
    kill_after_every_write(_begin, _two_releases_and_an_abort, part)


# Clients that write what they should not


async def test_a_group_that_gets_its_label_back_loses_it_again() -> None:
    async with shifting() as pair:
        world = pair.world
        await come_to(world, "draining")
        for _ in range(3):
            for name in draining(world):
                world.patch(PODS, name, {"metadata": {"labels": {"app": "llama"}}})
            await world.sleep(5)
        await world.until(lambda: replicas(world)[BLUE] == GROUPS - 1, "the group goes", 1200)
        await world.sleep(60)
        pair.assert_unharmed()


async def test_a_draining_group_that_is_made_again_gets_no_requests_for_long() -> None:
    async with shifting() as pair:
        world = pair.world
        await come_to(world, "draining")
        world.delete(PODS, f"{BLUE}-{GROUPS - 1}")
        await world.until(lambda: replicas(world)[BLUE] == GROUPS - 1, "the group goes", 1200)
        await world.until_state("AwaitingApproval", 1200)
        await world.sleep(60)
        assert not draining(world) and replicas(world) == {BLUE: GROUPS - 1, GREEN: 1}


async def test_a_number_that_is_lowered_while_groups_load_is_put_back() -> None:
    async with shifting() as pair:
        world = pair.world
        apply(world, GREEN, "v2")
        await world.until(lambda: replicas(world) == {BLUE: GROUPS, GREEN: 1}, "a group loads")
        world.patch_lws({"replicas": 0}, BLUE)
        await world.sleep(1)
        assert replicas(world) == {BLUE: GROUPS, GREEN: 1}
        await world.until_state("AwaitingApproval", 1200)
        await approve_to_the_end(world)
        assert at_rest(world, GREEN)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "note",
    [
        None,
        "nonsense",
        '{"x":' + "[" * 3000,
        '{"labels":{"a b":"%%","app":"llama"},"since":"2030-01-01T00:00:00Z"}',
        '{"labels":{"app":"llama"},"since":"9999-12-31T23:59:59Z"}',
    ],
    ids=["none", "nonsense", "deep", "labels", "late"],
)
async def test_a_note_that_another_client_writes_cuts_no_stream(note: str | None) -> None:
    async with shifting() as pair:
        world = pair.world
        await come_to(world, "draining")
        for name in draining(world):
            world.patch(PODS, name, {"metadata": {"annotations": {KEYS.draining: note}}})
        await world.until(lambda: replicas(world)[BLUE] == GROUPS - 1, "the group goes", 1200)
        await world.sleep(60)
        pair.assert_unharmed()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("note", ["nonsense", '{"labels":{"a b":"%%","app":"llama"},"since":"2026-01-01T00:00:00Z"}'])
async def test_a_group_with_a_forged_note_gets_its_label_back(note: str) -> None:
    async with shifting() as pair:
        world = pair.world
        await come_to(world, "draining")
        for name in draining(world):
            world.patch(PODS, name, {"metadata": {"annotations": {KEYS.draining: note}}})
        world.request("Abort")
        await world.until_state("Aborted", 1200)
        await world.sleep(60)
        assert_none_left(world)


async def test_an_autoscaler_of_a_side_does_not_keep_the_last_group_from_coming() -> None:
    async with shifting({"maxExtraGroups": 0, "maxUnavailableGroups": 1}) as pair:
        world = pair.world
        await come_to(world, "hand-over")
        create_autoscaler(world, 1, 10, target=GREEN)
        await world.until(lambda: at_rest(world, GREEN), "the last group", 1200)


# Groups that fail


async def breaks(world: World, side: str) -> None:
    """All groups of this side but the first stop answering as soon as they do, until cancelled."""
    while True:
        for pod in pods_of(world, side):
            labels, notes = pod["metadata"]["labels"], pod["metadata"].get("annotations") or {}
            if labels[LWS_GROUP_INDEX] != "0" and PREFIX + CUT_OFF not in notes:
                world.patch(PODS, pod["metadata"]["name"], {"metadata": {"annotations": {PREFIX + CUT_OFF: "true"}}})
        await asyncio.sleep(0.5)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("how", ["deleted", "disabled", "forced"])
async def test_old_groups_that_do_not_come_back_keep_no_rollout(how: str) -> None:
    async with shifting(more={"progressDeadlineSeconds": 120}) as pair:
        world = pair.world
        await come_to(world, "step 2")
        await world.sleep(60)
        breaking = asyncio.create_task(breaks(world, BLUE))
        match how:
            case "deleted":
                await left(world)
            case "disabled":
                world.patch_rollout({"disabled": True})
                await world.until_state("Disabled", 1200)
            case _:
                world.request("Abort", force=True)
                await world.until_state("Aborted", 1200)
        breaking.cancel()
        if how != "forced":
            # The side that serves keeps what it has.
            assert share(world, GREEN) >= 0.5 and replicas(world)[GREEN] > 1
        assert not unlabelled(world)


async def test_an_abort_keeps_the_groups_that_serve_while_the_old_ones_do_not_come_back() -> None:
    async with shifting(more={"progressDeadlineSeconds": 120}) as pair:
        world = pair.world
        await come_to(world, "step 2")
        await world.sleep(60)
        breaking = asyncio.create_task(breaks(world, BLUE))
        world.request("Abort")
        await world.until(lambda: world.state == "Stalled", "told", 1200)
        await world.sleep(600)
        assert "kubectl rollout-lws abort llama --force" in world.status["message"]
        assert replicas(world)[GREEN] >= 3 and share(world, GREEN) >= 0.5
        breaking.cancel()
        set_ready(world, BLUE, True)
        await world.until_state("Aborted", 1200)
        assert at_rest(world, BLUE)


async def test_groups_that_come_one_by_one_are_progress() -> None:
    steps = ({"replicas": "25%", "traffic": "auto", "pause": {}},)
    async with shifting(replicas=8, steps=steps, more={"progressDeadlineSeconds": 60}) as pair:
        world = pair.world
        await come_to(world, "step 1")
        await approve_to_the_end(world)
        await world.sleep(120)
        assert not [each.note for each in world.events if "no further group" in each.note]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("moment", ["draining", "step 1", "step 2"])
async def test_a_group_that_was_about_to_go_serves_in_a_pause(moment: str) -> None:
    async with shifting() as pair:
        world = pair.world
        await come_to(world, moment)
        await world.sleep(3)
        world.patch_rollout({"strategy": {"paused": True}})
        await world.sleep(60)
        assert not unlabelled(world)
        ShiftJudge(world)
        await world.sleep(600)
        world.patch_rollout({"strategy": {"paused": None}})
        await approve_to_the_end(world)
        assert at_rest(world, GREEN)
        pair.assert_unharmed()


async def test_pods_that_are_not_listed_yet_neither_go_nor_stay() -> None:
    async with shifting() as pair:
        world = pair.world
        await come_to(world, "draining")
        await world.sleep(20)
        known = world.view.unknown_pods
        before = {pod["metadata"]["name"]: pod["metadata"].get("annotations") for pod in pods_of(world, BLUE)}
        world.view.unknown_pods = {BLUE: "", GREEN: ""}.get  # type: ignore[assignment]
        world._wake()
        await world.sleep(2)
        world.view.unknown_pods = known  # type: ignore[method-assign]
        world._wake()
        await world.sleep(1)
        assert {pod["metadata"]["name"]: pod["metadata"].get("annotations") for pod in pods_of(world, BLUE)} == before


async def test_a_group_keeps_its_requests_until_routers_had_their_grace() -> None:
    async with shifting() as pair:
        world = pair.world
        await come_to(world, "draining")
        accepted = datetime.fromisoformat(world.status["traffic"]["since"])
        notes = (pod["metadata"].get("annotations") or {} for pod in pods_of(world, BLUE))
        begun = [json.loads(each[KEYS.draining])["since"] for each in notes if KEYS.draining in each]
        assert begun and all(datetime.fromisoformat(each) - accepted >= timedelta(seconds=3) for each in begun)
