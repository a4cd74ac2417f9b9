"""Plans for an LWS that a Rollout could not take into care as it is, and for versions that would be refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rollout_lws.cli.demo import manifests
from rollout_lws.cli.plan.model import Plan
from rollout_lws.cli.plan.planning import make
from rollout_lws.cli.plan.startups import load_times
from rollout_lws.objects.resources import PODS
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from tests.cli.plan.snapshots import plan_of, seen
from tests.scenarios.stories import at_rest, waiting_for_approval
from tests.scenarios.world import NAME, NAMESPACE, ROLLOUTS, World

pytestmark = pytest.mark.looptime


def rollout(**more: Any) -> dict[str, Any]:
    return manifests.rollout(ROLLOUTS.api_version, {"name": NAME}, **more)


def planned(world: World, *given: dict[str, Any]) -> Plan:
    return make(seen(world, *given), seen(world, *given))


async def test_groups_of_two_versions_by_a_partition_are_a_refusal() -> None:
    world = World()
    strategy = {"rollingUpdateConfiguration": {"partition": 2}}
    world.create_workload(replicas=4, rolloutStrategy=strategy)
    await world.until(lambda: world.groups() == dict.fromkeys(range(4), "v1"), "running")
    world.set_image("v2")
    await world.until(lambda: world.groups() == {0: "v1", 1: "v1", 2: "v2", 3: "v2"}, "two versions")
    await world.rest()
    (refusal,) = planned(world, rollout()).refusals
    assert refusal.startswith(f"LeaderWorkerSet {NAME} runs several versions because of its partition 2: set it to 0")
    world.close()


async def test_a_plan_is_for_the_groups_that_the_rollout_asks_for() -> None:
    world = World()
    await at_rest(world)
    asking = rollout()
    asking["spec"]["replicas"] = 7
    assert (planned(world, rollout()).replicas, planned(world, asking).replicas) == (4, 7)
    world.close()


async def test_a_plan_in_a_release_is_for_the_groups_that_there_are() -> None:
    world = World()
    await at_rest(world)
    await waiting_for_approval(world)
    world.patch_rollout({"replicas": 0})
    await world.rest()
    assert plan_of(world).replicas == 4
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert plan_of(world).replicas == 4
    world.close()


async def test_a_rolling_update_of_lws_itself_is_waited_for() -> None:
    world = World(Options(timing=Timing(ready_after=60)))
    world.create_workload(replicas=2)
    await world.until(lambda: world.groups() == {0: "v1", 1: "v1"}, "running", 600)
    world.set_image("v2")
    await world.until(lambda: any("v2" in told for told in world.groups().values()), "a new group", 600)
    plan = planned(world, rollout())
    assert plan.refusals == ()
    assert f"waiting until LeaderWorkerSet {NAME} has finished its own rolling update" in plan.cautions
    world.close()


async def test_a_version_that_was_aborted_is_only_retried() -> None:
    world = World()
    await at_rest(world)
    await waiting_for_approval(world)
    world.request("Abort", reason="worse answers")
    await world.until_state("Aborted", 600)
    (refusal,) = plan_of(world).refusals
    assert refusal.startswith("this version was aborted (")
    assert refusal.endswith("start it again with kubectl rollout-lws retry llama")
    world.close()


async def test_a_release_of_another_version_goes_back_first() -> None:
    world = World()
    await at_rest(world)
    await waiting_for_approval(world)
    third = manifests.workload()
    plan = make(seen(world, third), seen(world))
    assert any(
        told.startswith("a release of another version is on (step 2): it goes back first") for told in plan.cautions
    )
    world.close()


async def test_an_autoscaler_of_keda_is_a_refusal() -> None:
    world = World()
    await at_rest(world)
    owner = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "llama", "uid": "k", "controller": True}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "keda-hpa-llama", "ownerReferences": [owner]},
        "spec": {
            "scaleTargetRef": {"apiVersion": World.LWS.api_version, "kind": World.LWS.kind, "name": NAME},
            "maxReplicas": 9,
        },
    }
    (refusal,) = planned(world, autoscaler).refusals
    assert "is written by ScaledObject llama of KEDA" in refusal
    world.close()


async def test_another_size_is_refused_where_lws_would_damage_groups_that_restart() -> None:
    world = World()
    await at_rest(world)
    lws = {**world.lws, "spec": {**world.lws["spec"]}}
    lws["spec"]["leaderWorkerTemplate"] = {**lws["spec"]["leaderWorkerTemplate"], "size": 4}
    plan = make(seen(world, lws), seen(world))
    assert any("changes its size" in refusal for refusal in plan.refusals)
    assert plan.change == "size 2 -> 4"
    world.close()


@pytest.mark.parametrize("longest", [None, 60])
async def test_groups_that_were_all_not_ready_for_a_while_do_not_tell_how_long_a_load_takes(
    longest: int | None,
) -> None:
    world = World(Options(timing=Timing(ready_after=60)))
    await at_rest(world)
    assert load_times(seen(world)).typical == pytest.approx(60, abs=5)
    world.cluster.runner.stop()
    world.stop_controller()
    world.patch(ROLLOUTS, NAME, {"status": {"longestStartupSeconds": longest}}, "status")
    since = f"{world.now + timedelta(hours=5):%Y-%m-%dT%H:%M:%SZ}"
    for pod in world.server.list(PODS, NAMESPACE):
        said = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": since}]}
        world.patch(PODS, pod["metadata"]["name"], {"status": said}, "status")
    assert load_times(seen(world)).seconds == (() if longest is None else (60.0,))
    world.close()
