"""Servers whose workers answer, too: no request reaches a version that leaves, however long its leaders take to end.

Workers of a group go when the object of their leader is gone; until then they are ready and not terminating, and any
selector without pins matches them.
"""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.sandbox.behaviours.faults import PREFIX
from tests.scenarios.metered import metered
from tests.scenarios.routed import (
    BY_POOLS,
    EACH,
    assert_given_back,
    by_each,
    hold_record,
    routed_at_rest,
    told_only_with,
)
from tests.scenarios.shell import ShellWorld
from tests.scenarios.stories import CANARY, waiting_for_approval
from tests.scenarios.told import assert_stalled, tells
from tests.scenarios.world import NAME, NAMESPACE, ROLLOUTS, World

pytestmark = pytest.mark.looptime
#: Seconds that pods take to end, as those with a preStop hook do.
ENDS = 25
STEP: dict[str, Any] = {"replicas": 1, "traffic": "50%", "pause": {}}


def ends_late(world: World, seconds: int = ENDS) -> None:
    """Groups that are made from now on take their time to end."""
    template = world.lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    annotations = {**(template["metadata"].get("annotations") or {}), PREFIX + "terminate-after": f"{seconds}s"}
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": {"metadata": {"annotations": annotations}}}})


@pytest.mark.one_in(2)
@pytest.mark.parametrize("way", ["Abort", "Promote"])
@pytest.mark.parametrize("style", ["canary", pytest.param("blueGreen", marks=pytest.mark.long)])
@by_each(EACH)
async def test_a_canary_that_is_removed_gets_no_request_while_its_leaders_end(
    world: World, style: str, way: str
) -> None:
    before = await routed_at_rest(world, STEP, style=style, replicas=2, all_pods=True)
    ends_late(world)
    await waiting_for_approval(world)
    if way == "Abort":
        world.request("Abort")
    else:
        world.approve()
    await world.until(lambda: world.get(LEADER_WORKER_SETS, CANARY) is None, "the canary is gone", 1200)
    assert world.get(PODS, WORKER) is not None
    await world.until_state("Aborted" if way == "Abort" else "Healthy")
    assert world.get(PODS, LEADER) is None
    assert_given_back(world, before)


@pytest.mark.long
@by_each(EACH)
async def test_no_request_is_lost_while_the_leaders_of_an_aborted_version_end() -> None:
    async with metered(STEP, replicas=4, all_pods=True) as m:
        ends_late(m.world)
        await m.release()
        await m.abort()
        m.assert_unharmed()
        assert m.meter.cuts == []


@by_each(EACH)
async def test_in_one_lws_an_aborted_version_gets_no_request_while_its_surge_group_ends(world: World) -> None:
    before = await routed_at_rest(world, STEP, replicas=2, words={"capacity": "Surge"}, all_pods=True)
    ends_late(world)
    await waiting_for_approval(world)
    world.request("Abort")
    await world.until_state("Aborted")
    assert_given_back(world, before)


LEADER, WORKER = f"{CANARY}-0", f"{CANARY}-0-1"
STUCK = (
    f"Service llama-api stays pinned until pod {WORKER} of the version that leaves is gone; pod {LEADER} should have"
    f" ended at 00:01:11 UTC: if its node is lost, kubectl delete pod {LEADER} -n default --force --grace-period=0"
)


@tells({Reason.POD_STUCK_TERMINATING: STUCK}, {EventReason.STALLED: STUCK})
@by_each(EACH)
async def test_a_leader_that_never_ends_is_named_with_what_to_do_and_nothing_is_given_back_before(
    world: World,
) -> None:
    before = await routed_at_rest(world, STEP, replicas=2, all_pods=True)
    ends_late(world, seconds=100_000)
    await waiting_for_approval(world)
    world.request("Abort")
    await world.until_state("Stalled")
    assert world.status["phase"] == "Progressing"
    world.delete(ROLLOUTS, NAME)
    await world.rest()
    assert world.status["message"] == f"leaving the LeaderWorkerSet: {STUCK}"
    world.server.delete(PODS, NAMESPACE, LEADER, grace_seconds=0)
    await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "gone", 100_100)
    assert hold_record(world) == before


@by_each(EACH)
async def test_a_status_that_forgets_the_release_names_a_leader_that_never_ends_all_the_same(world: World) -> None:
    before, known = await routed_at_rest(world, STEP, replicas=2, all_pods=True), world.status
    ends_late(world, seconds=100_000)
    await waiting_for_approval(world)
    world.request("Abort")
    await world.until_state("Stalled")
    world.stop_controller()
    world.patch(ROLLOUTS, NAME, {"status": {**dict.fromkeys(world.status), **known}}, "status")
    world.patch(world.RECORD, NAME, {"metadata": {"finalizers": None}})
    world.delete(world.RECORD, NAME)
    world.start_controller()
    await world.rest()
    assert_stalled(world, Reason.POD_STUCK_TERMINATING, STUCK, phase="Healthy")
    assert hold_record(world) != before
    world.server.delete(PODS, NAMESPACE, LEADER, grace_seconds=0)
    # A picker may choose a worker until it is gone.
    await world.until(lambda: hold_record(world) == before, "everything is restored", 100_100)


@told_only_with(BY_POOLS, why="about pools alone")
async def test_pools_are_given_back_one_grace_period_after_the_last_pod_that_a_picker_may_choose(world: World) -> None:
    before = await routed_at_rest(world, STEP, by=BY_POOLS, replicas=2, gracePeriodSeconds=7)
    ends_late(world, seconds=100_000)
    await waiting_for_approval(world)
    world.request("Abort")
    await world.until(lambda: world.get(LEADER_WORKER_SETS, CANARY) is None, "the canary is gone")
    await world.sleep(20)
    assert world.state == "RollingBack"
    # Pods of a node that is lost stay for ever, and are told as not ready.
    unready = [{"type": "Ready", "status": "False"}]
    world.patch(PODS, LEADER, {"status": {"conditions": unready}}, "status")
    lost = world.now
    await world.until_state("Aborted")
    assert hold_record(world, BY_POOLS) == before
    assert 7 <= (world.now - lost).total_seconds() < 8


@by_each(EACH)
async def test_a_controller_that_is_started_anew_knows_the_workers_that_are_left() -> None:
    world = ShellWorld()
    try:
        before = await routed_at_rest(world, STEP, replicas=2, all_pods=True)
        ends_late(world)
        await waiting_for_approval(world)
        world.request("Abort")
        await world.until(lambda: world.get(LEADER_WORKER_SETS, CANARY) is None, "the canary is gone")
        await world.gone()
        assert world.get(PODS, WORKER) is not None
        world.start_controller()
        await world.until_state("Aborted")
        assert world.get(PODS, LEADER) is None
        assert hold_record(world) == before
    finally:
        await world.gone()
        world.close()
