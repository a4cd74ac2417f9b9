"""Capacity Shift under lost and false evidence, and among people who delete what a release needs: no group gets more
requests than it may have, and what serves stays.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import LEADER_WORKER_SETS, LWS_NAME, SERVICES
from rollout_lws.rollout.reasons import Reason
from tests.scenarios.crashes import PARTS, kill_after_every_write
from tests.scenarios.failures import cordon
from tests.scenarios.paired import forge, wipe
from tests.scenarios.paired_scaled import stalled
from tests.scenarios.paired_shift import GROUPS, STEPS, LoadJudge, ShiftJudge
from tests.scenarios.routed import BY_INGRESS, BY_ROUTE, SERVICE, Provider, routed_at_rest
from tests.scenarios.shifted import assert_serves, come_to, shifted
from tests.scenarios.stories import CANARY
from tests.scenarios.swapped import leave_as_is, left_as_is, make_anew, moved, released, replicas, to_the_end
from tests.scenarios.world import KEYS, NAME, ROLLOUTS, World

pytestmark = pytest.mark.looptime

AWAY = pytest.mark.parametrize("away", [False, True], ids=["from home", "back home"])
MOMENTS = pytest.mark.parametrize("moment", ["draining", "step 1", "step 2", "hand-over", "clean-up"])
LATE = pytest.mark.parametrize("moment", ["step 2", "hand-over"])


def _later(moment: str) -> float:
    """Seconds after which the moment's groups have gone, or requests have moved."""
    return 60 if "step" in moment else 10 if moment == "hand-over" else 1


@AWAY
async def test_a_release_to_its_end_gives_no_group_too_much(away: bool) -> None:
    async with shifted() as m:
        world = m.world
        await moved(m, away=away)
        judge = LoadJudge(world)
        await come_to(m, "hand-over", "v3")
        await to_the_end(world)
        judge.assert_kept()
        m.assert_unharmed()


@pytest.mark.one_in(4)
@LATE
@AWAY
@pytest.mark.parametrize("how", ["abort", "wiped", "stable template", "third version", "leaves"])
async def test_the_way_back_gives_no_group_too_much(away: bool, moment: str, how: str) -> None:
    async with shifted() as m:
        world = m.world
        serves = await moved(m, away=away)
        await come_to(m, moment, "v3")
        await world.sleep(_later(moment))
        judge = LoadJudge(world)
        ShiftJudge(world, GROUPS + 1, None)
        match how:
            case "abort":
                world.request("Abort")
            case "leaves":
                leave_as_is(world)
                world.delete(ROLLOUTS, NAME)
            case "wiped":
                wipe(world)
            case "third version":
                world.set_image("v4")
            case _:
                world.set_image("v2" if away else "v1")
        # What was not on record, and another version, is released again from its first step on.
        left = GROUPS - 1 if how in ("wiped", "third version") else GROUPS
        await world.until(lambda: replicas(world).get(serves, 0) >= left, "back", 1200)
        await world.sleep(300)
        assert world.groups(serves) == dict.fromkeys(range(left), "v2" if away else "v1")
        judge.assert_kept()
        assert not m.meter.failures


@pytest.mark.one_in(4)
@MOMENTS
@AWAY
async def test_a_wiped_status_takes_no_group_that_serves(away: bool, moment: str) -> None:
    async with shifted() as m:
        world = m.world
        await moved(m, away=away)
        await come_to(m, moment, "v3")
        await world.sleep(_later(moment))
        judge = LoadJudge(world)
        wipe(world)
        await world.sleep(300)
        await to_the_end(world)
        await world.sleep(60)
        assert_serves(world, NAME if away else CANARY, "v3")
        judge.assert_kept()
        assert not m.meter.failures


@pytest.mark.one_in(8)
@AWAY
@pytest.mark.parametrize(
    "forged",
    [
        {"phase": "Healthy"},
        {"phase": "Aborted"},
        {"phase": "Disabled"},
        {"capacity": "InPlace"},
        {"capacity": "ExtraWorkload"},
        {"finalising": {"reason": "Aborted", "task": "CleanUp"}},
        {"finalising": {"reason": "Success", "task": "CleanUp"}},
        {"finalising": {"reason": "Success", "task": "Promote"}},
        {"stable": None},
        {"active": NAME},
    ],
    ids=str,
)
async def test_a_status_that_says_something_else(away: bool, forged: dict[str, Any]) -> None:
    async with shifted() as m:
        world = m.world
        await moved(m, away=away)
        await come_to(m, "step 2", "v3")
        await world.sleep(60)
        judge = LoadJudge(world)
        ShiftJudge(world, GROUPS + 1, None)
        forge(world, **forged)
        await world.sleep(400)
        judge.assert_kept()
        assert not m.meter.failures


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("what", "moment"),
    [
        *(("workload", each) for each in ("draining", "step 1", "step 2", "hand-over")),
        *(("record", each) for each in ("draining", "step 1", "step 2")),
    ],
)
async def test_a_second_workload_that_is_deleted_goes_when_others_have_its_requests(what: str, moment: str) -> None:
    async with shifted() as m:
        world = m.world
        await come_to(m, moment, "v2")
        await world.sleep(_later(moment))
        judge = LoadJudge(world)
        if what == "workload":
            world.delete(LEADER_WORKER_SETS, CANARY)
        else:
            world.delete(world.RECORD, NAME)
        await world.until(lambda: world.get(LEADER_WORKER_SETS, CANARY) is None, "gone", 1800)
        assert replicas(world)[NAME] >= GROUPS // 2 and "!" not in "".join(world.groups().values())
        await to_the_end(world)
        await world.sleep(60)
        assert_serves(world, CANARY, "v2")
        judge.assert_kept()
        assert not m.meter.failures


@pytest.mark.one_in(2)
@pytest.mark.parametrize("moment", ["rest", "step 1", "step 2", "hand-over"])
async def test_one_that_serves_is_deleted_when_the_requests_are_home(moment: str) -> None:
    async with shifted() as m:
        world = m.world
        await moved(m, away=True)
        if moment != "rest":
            await come_to(m, moment, "v3")
            await world.sleep(_later(moment))
        judge = LoadJudge(world)
        world.delete(LEADER_WORKER_SETS, CANARY)
        await world.until(lambda: world.state == "AwaitingApproval" or replicas(world) == {NAME: GROUPS}, "home", 1200)
        await to_the_end(world)
        await world.sleep(60)
        assert_serves(world, NAME, "v2" if moment == "rest" else "v3")
        judge.assert_kept()
        assert not m.meter.failures


@pytest.mark.one_in(2)
@pytest.mark.parametrize("moment", ["step 2", "hand-over"])
async def test_the_users_workload_is_deleted_in_a_release(moment: str) -> None:
    async with shifted() as m:
        world = m.world
        await come_to(m, moment, "v2")
        await world.sleep(_later(moment))
        before = world.lws
        world.delete(LEADER_WORKER_SETS, NAME)
        await world.until(lambda: stalled(world, Reason.WORKLOAD_NOT_FOUND), "told", 600)
        assert (await m.shares())[CANARY] == 1.0
        meta = {"name": NAME, "namespace": before["metadata"]["namespace"], "labels": before["metadata"].get("labels")}
        spec = {**before["spec"], "replicas": GROUPS}
        spec["rolloutStrategy"] = {"type": "RollingUpdate"}
        kind = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind}
        world.server.create(LEADER_WORKER_SETS, {**kind, "metadata": meta, "spec": spec})
        await world.until_state("Healthy", 1200)
        await world.rest()
        assert replicas(world) == {NAME: GROUPS} and world.groups() == dict.fromkeys(range(GROUPS), "v2")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("moment", ["step 2", "hand-over"])
@AWAY
async def test_a_rollout_that_leaves_in_a_release_gives_the_groups_back(away: bool, moment: str) -> None:
    async with shifted() as m:
        world = m.world
        serves = await moved(m, away=away)
        await come_to(m, moment, "v3")
        await world.sleep(_later(moment))
        left = await left_as_is(world)
        await world.sleep(60)
        assert_serves(world, serves, "v2" if away else "v1")
        assert await m.shares() == {serves: 1.0}
        make_anew(world, left)
        await world.until(lambda: world.state in ("AwaitingApproval",), "again", 1200)
        await to_the_end(world)
        await world.sleep(60)
        assert_serves(world, NAME if away else CANARY, "v3")
        assert not m.meter.failures


async def test_a_plan_that_shifts_no_more_brings_the_release_to_its_end() -> None:
    async with shifted() as m:
        world = m.world
        await moved(m, away=True)
        await come_to(m, "step 2", "v3")
        await world.sleep(60)
        judge = LoadJudge(world)
        canary = world.rollout["spec"]["strategy"]["canary"]
        style = {"promotion": "Swap", "trafficRoutings": canary["trafficRoutings"], "steps": canary["steps"]}
        world.patch_rollout({"strategy": {"canary": None, "blueGreen": style}})
        await world.sleep(300)
        await to_the_end(world)
        await world.sleep(60)
        assert_serves(world, NAME, "v3")
        judge.assert_kept()
        assert not m.meter.failures


async def test_numbers_that_others_write_are_put_back() -> None:
    async with shifted() as m:
        world = m.world
        await come_to(m, "step 2", "v2")
        await world.sleep(60)
        for name, count in ((NAME, 4), (CANARY, 1), (NAME, 0), (CANARY, 6)):
            world.patch_lws({"replicas": count}, name)
            await world.sleep(120)
            assert replicas(world) == {NAME: 1, CANARY: 3}, (name, count)
        await to_the_end(world)
        await world.sleep(60)
        assert_serves(world, CANARY, "v2")


async def test_groups_come_back_where_none_of_the_new_version_was_made() -> None:
    async with shifted() as m:
        world = m.world
        world.set_image("v2")
        world.request("Pause")
        world.patch_lws({"replicas": 0})
        await world.sleep(1)
        world.set_image("v3")
        await world.sleep(1)
        world.request("Resume")
        await world.until(lambda: replicas(world)[NAME] >= GROUPS - 1, "back", 600)
        await to_the_end(world)
        await world.sleep(60)
        assert_serves(world, CANARY, "v3")


async def test_a_single_group_is_exchanged_for_one_that_is_ready() -> None:
    async with shifted(None, {"replicas": "100%"}, replicas=1) as m:
        world = m.world
        for number, serves in enumerate((CANARY, NAME), 2):
            world.set_image(f"v{number}")
            await world.until(lambda: world.state != "Healthy", "the release")
            await to_the_end(world)
            assert_serves(world, serves, f"v{number}", 1)
        m.assert_unharmed()


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("moment", "ends"), [("step 1", True), ("step 2", True), ("step 1", False), ("step 2", False), ("hand-over", False)]
)
async def test_another_capacity_in_a_release_takes_no_group_that_serves(moment: str, ends: bool) -> None:
    async with shifted() as m:
        world = m.world
        await come_to(m, moment, "v2")
        await world.sleep(_later(moment))
        judge = LoadJudge(world)
        ShiftJudge(world, None if moment == "hand-over" else 2 * GROUPS, None)
        world.patch_rollout({"strategy": {"canary": {"capacity": "ExtraWorkload"}}})
        await world.sleep(300)
        if ends:
            world.request("Abort")
            await world.until_state("Aborted", 1200)
            await world.rest()
            assert replicas(world) == {NAME: GROUPS}
        else:
            world.patch_rollout({"strategy": {"canary": {"capacity": "Shift"}}})
            await world.sleep(60)
            await to_the_end(world)
            await world.sleep(60)
            assert_serves(world, CANARY, "v2")
        assert sum(replicas(world).values()) == GROUPS
        judge.assert_kept()
        assert not m.meter.failures


# What an unkind reader has found


@pytest.mark.one_in(4)
@pytest.mark.parametrize("how", ["abort", "jump back", "stable template", "scaled"])
@pytest.mark.parametrize("by", [BY_ROUTE, BY_INGRESS], ids=str)
@pytest.mark.parametrize(
    ("count", "shift"), [(8, None), (4, {"maxExtraGroups": 0, "maxUnavailableGroups": 1})], ids=["8", "no extra"]
)
async def test_new_groups_that_go_lose_their_requests_first(how: str, by: Provider, count: int, shift: Any) -> None:
    async with shifted(shift, replicas=count, by=by) as m:
        world = m.world
        await come_to(m, "step 2", "v2")
        await world.sleep(60)
        match how:
            case "abort":
                world.request("Abort")
            case "stable template":
                world.set_image("v1")
            case "jump back":
                world.patch(ROLLOUTS, NAME, {"status": {"canaryStatus": {"nextStepIndex": 1}}}, "status")
            case _:
                world.patch_rollout({"replicas": count // 2})
        await world.sleep(900)
        m.assert_unharmed()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("then", ["abort", "restore"])
@AWAY
async def test_routings_that_a_manifest_drops_move_no_request(then: str, away: bool) -> None:
    """The API server refuses that, unless its definition of Rollouts is an older one."""
    async with shifted() as m:
        world = m.world
        serves = await moved(m, away=away)
        await come_to(m, "step 2", "v3")
        await world.sleep(60)
        judge = LoadJudge(world)
        before = copy.deepcopy(world.rollout)
        with pytest.raises(ApiError, match="it needs trafficRoutings"):
            world.patch_rollout({"strategy": {"canary": {"trafficRoutings": None}}})
        _put(world, trafficRoutings=[])
        await world.sleep(100)
        assert stalled(world, Reason.INVALID_SPEC)
        if then == "restore":
            _put(world, **before["spec"]["strategy"]["canary"])
            await world.sleep(30)
            await to_the_end(world)
        else:
            world.request("Abort")
            await world.until_state("Aborted", 1800)
        await world.sleep(60)
        assert_serves(world, serves if then == "abort" else NAME if away else CANARY, world.groups(serves).get(0, "v3"))
        judge.assert_kept()
        assert not m.meter.failures


def _put(world: World, **members: Any) -> None:
    """Another plan, past what the API server asks of one."""
    made = copy.deepcopy(world.rollout)
    made["spec"]["strategy"]["canary"] |= members
    made["metadata"]["generation"] += 1
    world.server.store.put(ROLLOUTS, made)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("phase", ["Healthy", "Initial", "Terminating", "Disabling"])
@AWAY
async def test_a_forged_phase_in_the_hand_over_keeps_nothing_waiting(phase: str, away: bool) -> None:
    async with shifted() as m:
        world = m.world
        await moved(m, away=away)
        await come_to(m, "hand-over", "v3")
        await world.sleep(10)
        forge(world, phase=phase)
        await world.sleep(10)
        await to_the_end(world)
        await world.sleep(60)
        assert_serves(world, NAME if away else CANARY, "v3")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("capacity", ["InPlace", "Surge", "ExtraWorkload"])
async def test_another_capacity_and_a_lost_status_give_no_group_too_much(capacity: str) -> None:
    async with shifted() as m:
        world = m.world
        await come_to(m, "step 2", "v3")
        await world.sleep(60)
        judge = LoadJudge(world)
        world.patch_rollout({"strategy": {"canary": {"capacity": capacity}}})
        await world.sleep(20)
        wipe(world)
        await world.sleep(300)
        judge.assert_kept()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("capacity", ["InPlace", "ExtraWorkload"])
async def test_a_note_that_a_manifest_brings_scales_nothing(capacity: str, world: World) -> None:
    await routed_at_rest(world, *STEPS, replicas=4, words={"capacity": capacity})
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"annotations": {KEYS.replicas: "9"}}})
    await world.sleep(60)
    assert (world.rollout["spec"].get("replicas"), world.lws["spec"]["replicas"]) == (None, 4)
    assert KEYS.replicas not in world.lws["metadata"]["annotations"]


@pytest.mark.one_in(2)
@AWAY
async def test_a_note_at_rest_is_none_of_a_rollout_that_leaves(away: bool) -> None:
    async with shifted() as m:
        world = m.world
        serves = await moved(m, away=away)
        world.stop_controller()
        world.patch(LEADER_WORKER_SETS, serves, {"metadata": {"annotations": {KEYS.replicas: "50"}}})
        leave_as_is(world)
        world.delete(ROLLOUTS, NAME)
        world.start_controller()
        await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "it has left", 600)
        assert replicas(world)[serves] == GROUPS


@pytest.mark.one_in(2)
@AWAY
async def test_a_rollout_may_leave_without_old_groups_that_do_not_come_back(away: bool) -> None:
    async with shifted() as m:
        world = m.world
        await moved(m, away=away)
        world.patch_rollout({"strategy": {"progressDeadlineSeconds": 120}})
        await come_to(m, "step 2", "v3")
        await world.sleep(60)
        cordon(world)
        leave_as_is(world)
        world.delete(ROLLOUTS, NAME)
        await world.until(lambda: "rollout-lws abort llama --force" in world.status["message"], "told", 1200)
        world.request("Abort", force=True)
        await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "it has left", 1200)


@pytest.mark.one_in(2)
@AWAY
async def test_a_copy_of_the_service_leads_where_it_has_to(away: bool) -> None:
    async with shifted() as m:
        world = m.world
        serves = await moved(m, away=away)
        await come_to(m, "step 2", "v3")
        await world.sleep(60)
        judge = LoadJudge(world)
        world.patch(SERVICES, f"{SERVICE}-canary", {"spec": {"selector": {LWS_NAME: serves}}})
        await world.sleep(300)
        judge.assert_kept()
        await to_the_end(world)
        await world.sleep(60)
        assert_serves(world, NAME if away else CANARY, "v3")


async def test_a_step_that_the_plan_does_not_have_is_none() -> None:
    async with shifted() as m:
        world = m.world
        await come_to(m, "step 2", "v2")
        await world.sleep(60)
        forge(world, canaryStatus={"currentStepIndex": 99})
        await world.sleep(60)
        await to_the_end(world)
        await world.sleep(60)
        assert_serves(world, CANARY, "v2")


# Dying controllers


async def _begin(world: World) -> None:
    await routed_at_rest(world, *STEPS, replicas=2, words={"capacity": "Shift"}, drainSeconds=10)
    await world.until(lambda: world.rollout["spec"].get("replicas") == 2, "its number of groups")
    await world.rest()
    world.checks.clear()


async def _there_and_back(world: World, _: None) -> None:
    judge = ShiftJudge(world, 3, 2)
    await released(world, "v2")
    assert_serves(world, CANARY, "v2", 2)
    judge.least = None
    world.set_image("v3")
    await world.until_state("AwaitingApproval")
    await world.sleep(30)
    world.request("Abort")
    await world.until_state("Aborted", 1200)
    await world.rest()
    assert_serves(world, CANARY, "v2", 2)
    await released(world, "v4")
    assert_serves(world, NAME, "v4", 2)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_controller_killed_after_any_write_comes_to_the_same_end(part: int) -> None:
    kill_after_every_write(_begin, _there_and_back, part)
