"""A release that mends: the stable version is broken, in part or as a whole, and the new one must still arrive."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenarios.invariants import never_two_canaries
from tests.scenarios.stories import assert_clean
from tests.scenarios.world import World

pytestmark = pytest.mark.looptime

STEP: dict[str, Any] = {"replicas": 1, "pause": {}}


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
