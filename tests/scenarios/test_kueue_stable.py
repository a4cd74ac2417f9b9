"""What Kueue does to the stable version while another one waits: told, and nothing else is done about it."""

from __future__ import annotations

import pytest

from rollout_lws.objects.kueue import MANAGED, QUEUE_NAME
from rollout_lws.objects.resources import KUEUE_WORKLOADS, LEADER_WORKER_SETS, LWS_WORKER_INDEX, PODS
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout.reasons import EventReason
from tests.scenarios.failures import kill, pods
from tests.scenarios.kueue import GATE, condition, install, queue
from tests.scenarios.stories import CANARY, at_rest
from tests.scenarios.told import tells
from tests.scenarios.world import NAME, World

pytestmark = pytest.mark.looptime

ADMITTED = [condition("QuotaReserved", "True", "QuotaReserved"), condition("Admitted", "True", "Admitted")]
OUTSIDE = (
    "group 1 of llama runs outside Kueue's quota, and Kueue evicts it after its own timeout (waitForPodsReady), ready"
    " or not: it lets leaders of the old version go while a version waits. That ends when the group is next recreated"
    " after the release"
)


def put_into_groups(world: World, lws: str) -> None:
    """Kueue marks the leaders that it admits."""
    for name, pod in pods(world, lws).items():
        if pod["metadata"]["labels"][LWS_WORKER_INDEX] == "0":
            world.patch(PODS, name, {"metadata": {"labels": {MANAGED: "true"}}})


async def in_first_step(world: World) -> None:
    """A release of a queued LWS that waits for its approval; all groups are admitted."""
    install(world)
    await at_rest(world, {"replicas": 1, "pause": {}}, {"replicas": "100%"})
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"labels": {QUEUE_NAME: "team-a"}}})
    for group in range(4):
        queue(world, group, lws=NAME, conditions=ADMITTED)
    put_into_groups(world, NAME)
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    queue(world, conditions=ADMITTED)
    put_into_groups(world, CANARY)
    await world.rest()


@tells({}, {EventReason.NOT_ADMITTED_BY_KUEUE: OUTSIDE})
async def test_a_leader_that_kueue_leaves_out_is_told_once_and_not_touched(world: World) -> None:
    await in_first_step(world)
    asked = world.condition("Reconciling")["message"]
    world.checks.clear()
    await kill(world, "llama-1", NAME)
    await world.sleep(10)
    assert world.state == "AwaitingApproval"
    assert world.condition("Reconciling")["message"] == f"{asked}. {OUTSIDE}"
    await world.sleep(60)
    told = [each.note for each in world.events if each.reason == EventReason.NOT_ADMITTED_BY_KUEUE]
    assert told == [OUTSIDE]
    assert not [each for each in world.writes if each.resource == PODS]
    # Another leader of the group is another one to tell of.
    await kill(world, "llama-1", NAME)
    await world.sleep(10)
    assert len([each for each in world.events if each.reason == EventReason.NOT_ADMITTED_BY_KUEUE]) == 2
    put_into_groups(world, NAME)
    await world.sleep(40)
    assert world.status.get("unadmittedGroups", []) == []
    assert world.condition("Reconciling")["message"] == asked
    assert all(isinstance(each, Patch) for each in world.labels)


async def test_a_stable_group_that_kueue_evicts_in_mid_release_is_named(world: World) -> None:
    await in_first_step(world)
    asked = world.condition("Reconciling")["message"]
    evicted = {"conditions": [condition("Evicted", "True", "Preempted", "for another workload")]}
    world.patch(KUEUE_WORKLOADS, "leaderworkerset-llama-2", {"status": evicted}, "status")
    world.cluster.runner.stop()
    world.patch(PODS, "llama-2", {"spec": {"schedulingGates": [{"name": GATE}]}, "status": {"phase": "Pending"}})
    world.patch(PODS, "llama-2", {"status": {"phase": "Pending"}}, "status")
    await world.sleep(40)
    words = "group 2 of llama was evicted by Kueue, Preempted: for another workload (Workload leaderworkerset-llama-2)"
    assert world.state == "AwaitingApproval"
    assert world.condition("Reconciling")["message"] == f"{asked}. stable: {words}"
    (group,) = world.status["notReadyGroups"]
    assert (group["workload"], group["group"], group["reason"], group["message"]) == (
        NAME,
        "2",
        "EvictedByKueue",
        words,
    )
