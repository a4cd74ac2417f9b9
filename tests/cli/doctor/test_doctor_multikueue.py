"""LeaderWorkerSets that MultiKueue dispatches: what is known of their groups in the cluster that manages them."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.cli.doctor.links import Link, Name, State, first
from rollout_lws.objects.kueue import PODS_READY_TIMEOUT
from rollout_lws.objects.resources import KUEUE_WORKLOADS
from tests.cli.doctor.looking import links
from tests.scenarios.kueue import condition, in_cluster, queue
from tests.scenarios.test_multikueue import dispatched, dispatched_to_west
from tests.scenarios.world import NAME, World

pytestmark = pytest.mark.looptime

ONLY_THERE = "whether their pods are ready is known there only"


def workload(group: int) -> str:
    return f"leaderworkerset-{NAME}-{group}"


def of_groups(found: tuple[Link, ...]) -> list[tuple[State, str, str]]:
    return [(each.state, each.about, each.found) for each in found if each.name is Name.SCHEDULING]


async def test_groups_have_quota_and_a_cluster_and_none_is_said_to_be_ready(world: World) -> None:
    await dispatched_to_west(world)
    # More groups are admitted there than the copy has: quota says nothing of pods.
    world.patch_lws({"replicas": 5})
    await world.rest()
    pending: dict[str, Any] = {"admissionChecks": [{"name": "dispatch", "state": "Pending"}]}
    reserved = condition("QuotaReserved", "True", "QuotaReserved")
    queue(world, 3, lws=NAME, conditions=[reserved], **{**pending, "nominatedClusterNames": ["west"]})
    short = "couldn't assign flavors to pod set main: insufficient unused quota"
    queue(world, 4, lws=NAME, conditions=[condition("QuotaReserved", "False", "Pending", short)], **pending)
    await world.sleep(10)
    found = await links(world)
    told = f"3 of 5 groups have quota here and in cluster west; {ONLY_THERE}"
    assert of_groups(found) == [(State.WAITING, f"LeaderWorkerSet/{NAME}", told)]
    assert Name.READINESS not in {each.name for each in found}
    refused = first(found, State.BROKEN)
    assert refused is not None
    assert (refused.name, refused.found) == (Name.WORKLOAD, dispatched("cluster west"))


async def test_evictions_of_groups_whose_pods_are_elsewhere_are_warned_of(world: World) -> None:
    await dispatched_to_west(world)
    status = in_cluster("west")
    # Let in again: only the count tells of what was, and will be again.
    status["schedulingStats"] = {"evictions": [{"reason": PODS_READY_TIMEOUT, "count": 2}]}
    world.patch(KUEUE_WORKLOADS, workload(1), {"status": status}, "status")
    evicted = condition("Evicted", "True", PODS_READY_TIMEOUT, f"Exceeded the PodsReady timeout {workload(2)}")
    pending = condition("QuotaReserved", "False", "Pending", evicted["message"])
    gone = {"conditions": [pending, evicted], "clusterName": None, "schedulingStats": status["schedulingStats"]}
    world.patch(KUEUE_WORKLOADS, workload(2), {"status": gone}, "status")
    await world.sleep(10)
    found = await links(world)
    advice = (
        "Kueue on this manager evicts groups whose pods it cannot see: raise waitForPodsReady.timeout or set"
        " DisableWaitForPodsReady"
    )
    ((state, about, told),) = of_groups(found)
    assert (state, about) == (State.BROKEN, f"LeaderWorkerSet/{NAME}")
    assert told == (
        f"2 of 3 groups have quota here and in cluster west; {ONLY_THERE}; evicted for PodsReadyTimeout: Workload"
        f" {workload(1)}, {workload(2)}. {advice}"
    )
    refused = first(found, State.BROKEN)
    assert refused is not None
    assert (refused.name, refused.by_itself) == (Name.WORKLOAD, advice)
    assert refused.next[0] == "kubectl get workloads.kueue.x-k8s.io"


async def test_without_the_right_to_read_workloads_no_group_is_said_to_be_missed(world: World) -> None:
    await dispatched_to_west(world)
    await world.sleep(10)
    found = await links(world, lambda each: each == KUEUE_WORKLOADS)
    refused = first(found, State.BROKEN)
    assert refused is not None
    assert (refused.name, refused.found) == (Name.WORKLOAD, dispatched("cluster west"))
    assert [(state, about) for state, about, _ in of_groups(found)] == [(State.UNKNOWN, f"LeaderWorkerSet/{NAME}")]
    assert Name.READINESS not in {each.name for each in found}
