"""Versions that cannot be released now: they wait under the hold, in a release as well as at rest."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS
from rollout_lws.objects.writes import Delete
from rollout_lws.rollout.observation import Capabilities
from rollout_lws.rollout.reasons import EventReason, Reason
from tests.scenarios.stories import CANARY, STEPS, assert_clean, at_rest, mid_promotion, waiting_for_approval
from tests.scenarios.told import assert_only_held, assert_stalled, tells
from tests.scenarios.walk_plans import template
from tests.scenarios.world import NAME, World

pytestmark = pytest.mark.looptime


def unsafe(member: str) -> str:
    return (
        f"the pending version of LeaderWorkerSet llama changes its {member}; up to LWS 0.10 any group of the held"
        f" version that restarts would be damaged: restore the {member}, or upgrade LeaderWorkerSet"
    )


@tells(
    {Reason.UNSAFE_PENDING: unsafe("size")},
    {EventReason.RELEASE_REFUSED: f"the new version waits: {unsafe('size')}", EventReason.STALLED: unsafe("size")},
)
async def test_another_size_waits_until_it_is_restored(world: World) -> None:
    await at_rest(world)
    before = world.leader_uids()
    world.patch_lws({"leaderWorkerTemplate": {"size": 3}})
    await world.rest()
    assert_stalled(world, Reason.UNSAFE_PENDING, unsafe("size"), phase="Healthy")
    assert_only_held(world, before)
    world.patch_lws({"leaderWorkerTemplate": {"size": 2}})
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v1")


async def test_another_network_waits(world: World) -> None:
    await at_rest(world)
    before = world.leader_uids()
    world.patch_lws({"networkConfig": {"subdomainPolicy": "UniquePerReplica"}})
    await world.rest()
    assert_stalled(world, Reason.UNSAFE_PENDING, unsafe("networkConfig"), phase="Healthy")
    assert_only_held(world, before)


async def test_other_subgroups_wait(world: World) -> None:
    policy = {"subGroupSize": 2, "subGroupPolicyType": "LeaderWorker"}
    world.create_workload(size=3)
    world.delete(LEADER_WORKER_SETS, NAME)
    await world.rest()
    template = {"spec": {"containers": [{"name": "vllm", "image": "vllm:v1"}]}}
    groups = {"size": 3, "subGroupPolicy": policy, "workerTemplate": template}
    world.create_workload(replicas=2, leaderWorkerTemplate=groups)
    await world.rest()
    before = world.leader_uids()
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.rest()
    world.patch_lws({"leaderWorkerTemplate": {"subGroupPolicy": {"subGroupPolicyType": "LeaderExcluded"}}})
    await world.rest()
    assert_stalled(world, Reason.UNSAFE_PENDING, unsafe("subGroupPolicy"), phase="Healthy")
    assert_only_held(world, before)


async def test_a_newer_lws_releases_another_size(world: World) -> None:
    world.view.capabilities = Capabilities(group_identity=True)
    await at_rest(world)
    world.patch_lws({"leaderWorkerTemplate": {"size": 3}})
    await world.until_state("AwaitingApproval")


async def test_another_size_in_mid_release_ends_the_release_and_waits(world: World) -> None:
    await at_rest(world)
    before = world.leader_uids()
    await waiting_for_approval(world)
    world.patch_lws({"leaderWorkerTemplate": {"size": 3}})
    await world.rest()
    assert_stalled(world, Reason.UNSAFE_PENDING, unsafe("size"), phase="Healthy")
    assert world.leader_uids() == before
    assert world.get(LEADER_WORKER_SETS, CANARY) is None
    world.patch_lws({"leaderWorkerTemplate": {"size": 2}})
    await world.until_state("AwaitingApproval")


async def test_another_size_in_mid_promotion_deletes_no_group_while_it_stands(world: World) -> None:
    await at_rest(world)
    await mid_promotion(world)
    world.request("Pause")
    await world.rest()
    world.writes.clear()
    before = world.leader_uids()
    world.patch_lws({"leaderWorkerTemplate": {"size": 3}})
    await world.rest()
    assert_stalled(world, Reason.UNSAFE_PENDING, unsafe("size"), phase="Progressing")
    assert not [write for write in world.writes if isinstance(write, Delete) and write.resource == PODS]
    assert {name: uid for name, uid in world.leader_uids().items() if before.get(name) != uid} == {}
    world.request("Abort")
    await world.rest()
    assert (world.status["lastAction"]["outcome"], world.status["lastAction"]["message"]) == ("Refused", unsafe("size"))
    world.patch_lws({"leaderWorkerTemplate": {"size": 2}})
    world.request("Resume")
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")


CLAIMS = (
    "the pending version of LeaderWorkerSet llama changes volumeClaimTemplates, which a StatefulSet cannot change:"
    " restore them, or make a new LeaderWorkerSet"
)


@tells({Reason.CLAIMS_CHANGED: CLAIMS})
async def test_other_volume_claims_wait(world: World) -> None:
    await at_rest(world)
    before = world.leader_uids()
    claim = {
        "metadata": {"name": "cache"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    world.patch_lws({"leaderWorkerTemplate": {"volumeClaimTemplates": [claim]}})
    await world.rest()
    assert_stalled(world, Reason.CLAIMS_CHANGED, CLAIMS, phase="Healthy")
    assert_only_held(world, before)
    world.patch_lws({"leaderWorkerTemplate": {"volumeClaimTemplates": None}})
    await world.until_state("Healthy")


async def test_claims_that_are_applied_again_as_the_manifest_has_them_are_the_same(world: World) -> None:
    claim = {
        "metadata": {"name": "cache"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}},
    }
    groups = {"size": 2, "workerTemplate": template("v1", world.containers), "volumeClaimTemplates": [claim]}
    world.create_workload(leaderWorkerTemplate=groups)
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.until_state("Healthy")
    # Client-side apply sends a list whole, without what LWS's webhook has filled in when the object was made.
    world.patch_lws({"leaderWorkerTemplate": {"volumeClaimTemplates": [claim]}})
    await world.rest()
    assert world.state == "Healthy", world.describe()
    world.set_image("v2")
    await world.until(lambda: world.state == "AwaitingApproval", "in its first step")


TAKEN = (
    "LeaderWorkerSet llama-canary exists and is not ours, but the canary needs its name: delete it, or make it anew"
    " under another name"
)


@tells({Reason.NAME_TAKEN: TAKEN})
async def test_a_foreign_lws_that_bears_the_canarys_name_is_left_alone(world: World) -> None:
    await at_rest(world)
    before = world.leader_uids()
    world.create_workload(replicas=1, tag="foreign", name=CANARY)
    await world.rest()
    foreign = world.leader_uids(CANARY)
    world.set_image("v2")
    await world.rest()
    assert_stalled(world, Reason.NAME_TAKEN, TAKEN, phase="Healthy")
    assert world.leader_uids() == before
    assert world.leader_uids(CANARY) == foreign
    world.delete(LEADER_WORKER_SETS, CANARY)
    await world.until_state("AwaitingApproval")


OTHER_STYLE = (
    "the style of a release that is on cannot change: restore spec.strategy.canary until it is over, or go back"
)
UNBUILT = "spec.strategy.blueGreen.disableGenerateCanaryService: the single-Service mode is not built yet: remove it"
TO_BLUE_GREEN: dict[str, Any] = {"strategy": {"canary": None, "blueGreen": {"steps": [{"replicas": "100%"}]}}}
TO_UNBUILT: dict[str, Any] = {
    "strategy": {
        "canary": None,
        "blueGreen": {"steps": [{"replicas": "100%"}], "promotion": "Swap", "disableGenerateCanaryService": True},
    }
}
TO_CANARY: dict[str, Any] = {"strategy": {"canary": {"steps": list(STEPS)}, "blueGreen": None}}


async def test_a_strategy_that_cannot_be_followed_stops_a_release_where_it_is(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.patch_rollout(TO_BLUE_GREEN)
    world.approve()
    await world.rest()
    assert_stalled(world, Reason.INVALID_SPEC, OTHER_STYLE, phase="Progressing")
    assert world.groups(CANARY) == {0: "v2", 1: "v2"}
    assert world.groups() == dict.fromkeys(range(4), "v1")
    world.patch_rollout(TO_CANARY)
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")


async def test_a_strategy_that_cannot_be_followed_does_not_keep_from_aborting(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.patch_rollout(TO_BLUE_GREEN)
    await world.until_state("Stalled")
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert_clean(world, "v1")


async def test_a_promotion_is_finished_whatever_the_strategy_has_become(world: World) -> None:
    await at_rest(world)
    await mid_promotion(world)
    world.patch_rollout(TO_UNBUILT)
    await world.until(lambda: world.status["phase"] == "Healthy")
    await world.rest()
    assert_clean(world, "v2")
    assert_stalled(world, Reason.INVALID_SPEC, UNBUILT, phase="Healthy")


# Adoption

IN_USE = (
    "LeaderWorkerSet llama runs several versions because of its partition 2: set it to 0 to let the new version roll,"
    " or restore the old template; the LeaderWorkerSet is adopted once it has one version"
)


@tells({Reason.PARTITION_IN_USE: IN_USE})
async def test_a_native_canary_by_partition_is_not_adopted(world: World) -> None:
    world.create_workload()
    world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 2}}})
    await world.rest()
    world.set_image("v2")
    await world.rest()
    before = world.leader_uids()
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.rest()
    assert_stalled(world, Reason.PARTITION_IN_USE, IN_USE, phase="Initial")
    assert world.leader_uids() == before
    assert world.lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] == 2
    world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}})
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")
