"""Swaps in harm's way: lost evidence, dying controllers, workloads that are deleted, manifests applied again."""

from __future__ import annotations

import json

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.rollout.reasons import Reason
from rollout_lws.workload.applied import LAST_APPLIED
from tests.scenarios.crashes import PARTS, kill_after_every_write
from tests.scenarios.paired import forge, wipe
from tests.scenarios.paired_scaled import stalled
from tests.scenarios.stories import CANARY
from tests.scenarios.swapped import (
    come_to,
    left_as_is,
    make_anew,
    moved,
    plain_swap,
    released,
    replicas,
    stands_in,
    swapped,
    to_the_end,
)
from tests.scenarios.told import tells
from tests.scenarios.world import NAME, NAMESPACE, ROLLOUTS, World

pytestmark = pytest.mark.looptime

MOMENTS = pytest.mark.parametrize("moment", ["step 1", "step 2", "hand-over", "clean-up"])
WAYS = pytest.mark.parametrize("away", [False, True], ids=["from home", "back home"])


# Dying controllers


async def _begin(world: World) -> None:
    await plain_swap(world)


async def _there_and_back(world: World, _: None) -> None:
    await released(world, "v2")
    assert replicas(world) == {NAME: 0, CANARY: 4} and stands_in(world)
    assert world.groups(CANARY) == dict.fromkeys(range(4), "v2")
    world.set_image("v3")
    await world.until_state("AwaitingApproval")
    world.request("Abort")
    await world.until_state("Aborted", 1200)
    await world.rest()
    assert replicas(world) == {NAME: 0, CANARY: 4}
    await released(world, "v4")
    assert replicas(world) == {NAME: 4} and world.groups() == dict.fromkeys(range(4), "v4")
    assert world.names()["batchreleases"] == []


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_controller_killed_after_any_write_comes_to_the_same_end(part: int) -> None:
    kill_after_every_write(_begin, _there_and_back, part)


# Lost and false evidence


@pytest.mark.one_in(4)
@WAYS
@MOMENTS
async def test_a_wiped_status_takes_no_side_that_serves(away: bool, moment: str) -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=away)
        await come_to(m, moment, "v3")
        await world.sleep(2)
        wipe(world)
        await world.until(lambda: world.state in ("Healthy", "AwaitingApproval"), "it goes on", 1200)
        await to_the_end(world)
        assert replicas(world) == ({NAME: 4} if away else {NAME: 0, CANARY: 4})
        assert world.groups(NAME if away else CANARY) == dict.fromkeys(range(4), "v3")
        assert not m.meter.failures


@pytest.mark.one_in(4)
@WAYS
@pytest.mark.parametrize("phase", ["Healthy", "Aborted", "Initial", "Progressing"])
async def test_a_forged_status_takes_no_side_that_serves(away: bool, phase: str) -> None:
    async with swapped() as m:
        world = m.world
        serves = await moved(m, away=away)
        forge(world, phase=phase, active=NAME if away else CANARY)
        await world.sleep(300)
        assert await m.shares() == {serves: 1.0} and replicas(world)[serves] == 4
        await come_to(m, "step 2", "v3")
        forge(world, phase=phase, finalising=None, active=NAME if away else CANARY)
        await world.sleep(300)
        assert replicas(world)[serves] == 4
        await to_the_end(world)
        assert not m.meter.failures


@pytest.mark.one_in(4)
@WAYS
@pytest.mark.parametrize("task", ["Promote", "CleanUp", "RollBackSteps", "RollBackPromotion"])
@pytest.mark.parametrize("reason", ["Success", "Rollback", "RolledOutNatively"])
async def test_a_forged_end_takes_no_side_that_serves(away: bool, task: str, reason: str) -> None:
    async with swapped() as m:
        world = m.world
        serves = await moved(m, away=away)
        await come_to(m, "step 1", "v3")
        forge(world, finalising={"task": task, "reason": reason, "since": "2026-01-01T00:10:00Z"})
        await world.sleep(600)
        assert any(count == 4 for count in replicas(world).values()), world.describe()
        if world.state == "AwaitingApproval":
            assert replicas(world)[serves] == 4
        await to_the_end(world)
        assert sum(replicas(world).values()) == 4
        assert not m.meter.failures


# Workloads that come and go


async def test_the_users_workload_may_be_deleted_and_comes_back_parked() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        before = world.lws
        world.delete(LEADER_WORKER_SETS, NAME)
        await world.until(lambda: stalled(world, Reason.WORKLOAD_NOT_FOUND), "told")
        assert world.groups(CANARY) == dict.fromkeys(range(4), "v2")
        meta = {"name": NAME, "namespace": NAMESPACE}
        world.server.create(LEADER_WORKER_SETS, {**before, "metadata": meta, "spec": {**before["spec"], "replicas": 3}})
        await world.until(lambda: replicas(world) == {NAME: 0, CANARY: 4}, "parked")
        await world.until_state("Healthy")
        assert await m.shares() == {CANARY: 1.0}
        await released(world, "v3")
        assert replicas(world) == {NAME: 4}
        m.assert_unharmed()


async def test_one_that_serves_in_its_place_is_deleted_when_the_requests_are_home() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        world.delete(LEADER_WORKER_SETS, CANARY)
        await world.until(lambda: world.state == "AwaitingApproval", "a release home", 600)
        assert world.groups(CANARY) == dict.fromkeys(range(4), "v2")
        await to_the_end(world)
        await world.until(lambda: replicas(world) == {NAME: 4}, "home", 600)
        assert world.groups() == dict.fromkeys(range(4), "v2") and await m.shares() == {NAME: 1.0}
        m.assert_unharmed()


@pytest.mark.one_in(4)
@MOMENTS
async def test_numbers_that_are_applied_in_a_release_home_are_put_back(moment: str) -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        await come_to(m, moment, "v3")
        for count in (6, 4, 5):
            world.patch_lws({"replicas": count})
            await world.sleep(20)
        await to_the_end(world)
        await world.sleep(60)
        assert replicas(world) == {NAME: 4} and world.groups() == dict.fromkeys(range(4), "v3")
        assert not m.meter.failures


@pytest.mark.one_in(4)
@MOMENTS
async def test_numbers_that_are_applied_while_another_workload_takes_over_are_put_back(moment: str) -> None:
    async with swapped() as m:
        world = m.world
        await come_to(m, moment, "v3")
        for count in (6, 5):
            world.patch_lws({"replicas": count})
            await world.sleep(20)
        await to_the_end(world)
        await world.sleep(60)
        assert replicas(world) == {NAME: 0, CANARY: 4}
        assert not m.meter.failures


async def test_groups_that_are_asked_for_at_rest_go_and_get_no_requests() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        world.patch_lws({"replicas": 4})
        await world.sleep(1)
        assert replicas(world) == {NAME: 0, CANARY: 4}
        assert await m.shares() == {CANARY: 1.0}
        world.patch(
            LEADER_WORKER_SETS,
            NAME,
            {"metadata": {"annotations": {LAST_APPLIED: json.dumps({"spec": {"replicas": 4}})}}},
        )
        await world.until(lambda: "would wait" in world.status.get("message", ""), "told")
        world.set_image("v3")
        await world.until(lambda: stalled(world, Reason.REPLICAS_APPLIED), "told")
        world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"annotations": {LAST_APPLIED: None}}})
        await world.until_state("AwaitingApproval")
        await to_the_end(world)
        assert replicas(world) == {NAME: 4}
        m.assert_unharmed()


# Rollouts that leave


@tells(
    {
        Reason.STANDS_IN: "llama-canary serves, and LeaderWorkerSet llama has no groups: to have its requests brought"
        " there first: kubectl rollout-lws home llama; to leave both as they are: kubectl annotate rollout llama"
        " rollouts.kruise.io/leave-as-is=true"
    }
)
async def test_a_rollout_that_is_deleted_waits_until_the_requests_are_home(world: World) -> None:
    await plain_swap(world)
    await released(world, "v2")
    world.delete(ROLLOUTS, NAME)
    await world.until(lambda: stalled(world, Reason.STANDS_IN), "told")
    await world.sleep(3600)
    assert replicas(world) == {NAME: 0, CANARY: 4}
    world.request("Start")
    for _ in range(2):
        await world.until_state("AwaitingApproval", 600)
        world.approve()
        await world.sleep(5)
    await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "it has left", 1200)
    assert replicas(world) == {NAME: 4} and world.groups() == dict.fromkeys(range(4), "v2")
    assert world.lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"].get("partition", 0) == 0


async def test_a_rollout_leaves_both_as_they_are_where_a_person_says_so() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        made = await left_as_is(world)
        await world.sleep(600)
        assert replicas(world) == {NAME: 0, CANARY: 4} and await m.shares() == {CANARY: 1.0}
        assert not (world.get(LEADER_WORKER_SETS, CANARY) or {})["metadata"].get("finalizers")
        make_anew(world, made)
        await world.until_state("Healthy", 600)
        await world.rest()
        assert world.status["active"] == CANARY
        await released(world, "v3")
        assert replicas(world) == {NAME: 4}
        m.assert_unharmed()


async def test_a_disabled_rollout_says_which_workload_serves() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        world.patch_rollout({"disabled": True})
        await world.until(lambda: stalled(world, Reason.STANDS_IN), "told")
        world.patch_rollout({"disabled": False})
        await world.until_state("Healthy", 600)
        assert replicas(world) == {NAME: 0, CANARY: 4}
        m.assert_unharmed()


@pytest.mark.one_in(4)
@WAYS
@MOMENTS
async def test_a_rollout_that_is_deleted_in_a_release_goes_back_first(away: bool, moment: str) -> None:
    async with swapped() as m:
        world = m.world
        serves = await moved(m, away=away)
        await come_to(m, moment, "v3")
        await world.sleep(2)
        world.delete(ROLLOUTS, NAME)
        await world.sleep(1200)
        turned = moment == "clean-up"
        serves = (CANARY if serves == NAME else NAME) if turned else serves
        assert replicas(world) == ({NAME: 0, CANARY: 4} if serves == CANARY else {NAME: 4}), world.describe()
        assert (world.get(ROLLOUTS, NAME) is None) == (serves == NAME)
        assert await m.shares() == {serves: 1.0}
        assert not m.meter.failures


# Plans that change


@pytest.mark.one_in(4)
@pytest.mark.parametrize("plan", ["canary", "in place", "blue-green"])
async def test_another_plan_brings_the_next_release_home(plan: str) -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        blue = world.rollout["spec"]["strategy"]["blueGreen"]
        style = {key: blue[key] for key in ("steps", "trafficRoutings")}
        match plan:
            case "canary":
                strategy = {"blueGreen": None, "canary": style}
            case "in place":
                strategy = {"blueGreen": None, "canary": {**style, "capacity": "InPlace"}}
            case _:
                strategy = {"blueGreen": {"promotion": None}}
        world.patch_rollout({"strategy": strategy})
        await world.rest()
        await released(world, "v3")
        assert replicas(world) == {NAME: 4} and world.groups() == dict.fromkeys(range(4), "v3")
        await released(world, "v4")
        assert replicas(world) == {NAME: 4} and world.groups() == dict.fromkeys(range(4), "v4")
        m.assert_unharmed()
