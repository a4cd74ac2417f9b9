"""A release that mends: the stable version is broken, in part or as a whole, and the new one must still arrive."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.rollout.reasons import Reason
from rollout_lws.sandbox.behaviours.faults import PREFIX
from tests.scenarios.invariants import never_two_canaries
from tests.scenarios.one_workload import IN_PLACE, over, step
from tests.scenarios.routed import BY_ROUTE, FIVE, assert_given_back, create_provider, hold_record, routing, share
from tests.scenarios.stories import CANARY, assert_clean, waiting_for_approval
from tests.scenarios.told import tells
from tests.scenarios.world import NAME, World

pytestmark = pytest.mark.looptime

STEP: dict[str, Any] = {"replicas": 1, "pause": {}}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("replicas", [1, 3])
async def test_a_version_of_which_no_group_is_ready_is_replaced(world: World, replicas: int) -> None:
    world.create_workload(replicas=replicas, tag="bad1")
    world.create_rollout(STEP)
    world.start_controller()
    await world.until_state("Healthy")
    world.checks.append(never_two_canaries)
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    world.approve()
    await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {"v2"})
    await world.rest()
    assert_clean(world, "v2", replicas)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("broken", [0, 3])
async def test_one_broken_group_does_not_stop_the_promotion_of_the_others(world: World, broken: int) -> None:
    faults = {
        "sandbox.rollouts.kruise.io/fail": "NeverReady",
        "sandbox.rollouts.kruise.io/fail-on": f"llama-{broken}",
    }
    world.create_workload()
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": {"metadata": {"annotations": faults}}}})
    await world.rest()
    world.create_rollout(STEP)
    world.start_controller()
    await world.until_state("Healthy")
    assert [index for index, told in world.groups().items() if told.endswith("!")] == [broken]
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": {"metadata": {"annotations": None}}}})
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    world.approve()
    await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {"v2"})
    await world.rest()
    assert_clean(world, "v2")


KEEPS = (
    "no group of llama is ready, so 1 of canary llama-canary keep serving until one is. To do without them now: kubectl"
    " delete leaderworkerset llama-canary -n default"
)


LATE = f"clean-up: no further group became ready within 600 s: pod llama-0 (leader) is not ready; {KEEPS}"


@tells({Reason.WAITING_FOR_STABLE: KEEPS, Reason.DEADLINE: LATE})
async def test_an_aborted_version_that_alone_serves_goes_when_a_person_takes_it_away(world: World) -> None:
    await alone(world)
    world.request("Abort")
    await left_serving(world)
    assert world.status["phase"] == "Aborted"


@tells({Reason.DEADLINE: f"leaving the LeaderWorkerSet: {LATE}"})
async def test_a_deleted_rollout_leaves_the_version_that_alone_serves_to_a_person(world: World) -> None:
    await alone(world)
    world.delete(world.ROLLOUT, NAME)
    await left_serving(world)
    assert world.get(world.ROLLOUT, NAME) is None


async def alone(world: World) -> None:
    """Stable has never been ready, the canary serves."""
    world.create_workload(replicas=1, tag="bad1")
    world.create_rollout(STEP, progressDeadlineSeconds=600)
    world.start_controller()
    await world.until_state("Healthy")
    await waiting_for_approval(world)


async def left_serving(world: World) -> None:
    """The canary serves on while nothing is written, and goes when it is deleted by hand."""
    await world.until_state("Stalled", 1200)
    before = world.server.store.version
    await world.sleep(3600)
    assert (world.groups(CANARY), world.server.store.version) == ({0: "v2"}, before)
    world.delete(LEADER_WORKER_SETS, CANARY)
    await world.rest()
    assert world.get(LEADER_WORKER_SETS, CANARY) is None
    assert world.names()["batchreleases"] == []


@pytest.mark.parametrize("replicas", [pytest.param(2, marks=pytest.mark.long), 4])
async def test_a_release_mends_a_stable_version_that_does_not_serve(world: World, replicas: int) -> None:
    """All requests go to the new version then, more than its steps ask for, and that must not hold them up, nor must it
    in a promotion that a canary with fewer groups carries alone.
    """
    create_provider(world, BY_ROUTE)
    before = hold_record(world)
    world.create_workload(replicas=replicas)
    template = {"metadata": {"annotations": {f"{PREFIX}fail": "CrashLoopBackOff"}}}
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": template}})
    world.create_rollout(*FIVE[:2], canary={"trafficRoutings": routing()})
    world.start_controller()
    await world.until_state("Healthy")
    template["metadata"]["annotations"] = {f"{PREFIX}fail": None}
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": template}})
    for number in (1, 2):
        await step(world, number)
        await world.until(lambda: share(world) == 1.0, "all requests at the side that serves")
        world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_given_back(world, before)
    assert "!" not in "".join(world.groups().values())


async def test_an_lws_of_which_no_group_ever_served_is_fixed_in_place_step_by_step(world: World) -> None:
    world.create_workload(replicas=3)
    template = world.lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    broken = template | {"metadata": {"annotations": {f"{PREFIX}fail": "CrashLoopBackOff"}}}
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": broken}})
    world.create_rollout({"replicas": "50%", "pause": {}}, {"replicas": "100%"}, canary=IN_PLACE.words)
    world.start_controller()
    await world.until_state("Healthy")
    fixed = template | {"metadata": {"annotations": {f"{PREFIX}fail": None}}}
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": fixed}})
    world.set_image("v2")
    await step(world, 1)
    tags = [world.groups()[ordinal] for ordinal in range(3)]
    assert (tags[1:], tags[0].startswith("v1")) == (["v2", "v2"], True), "only as many as the step says"
    world.approve()
    await over(world, "v2")
