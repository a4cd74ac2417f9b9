"""A controller that has just begun knows nothing of Kueue yet: it renews no group in place before it does."""

from __future__ import annotations

import pytest

from rollout_lws.objects.kueue import QUEUE_NAME
from rollout_lws.objects.resources import KUEUE_WORKLOADS, LEADER_WORKER_SETS
from rollout_lws.rollout.reasons import Reason
from tests.scenarios.failures import apply
from tests.scenarios.kueue import ADMITTED, condition, dispatching_check, in_cluster, install, queue
from tests.scenarios.one_workload import Windows, over, step
from tests.scenarios.stories import at_rest
from tests.scenarios.world import NAME, World

pytestmark = pytest.mark.looptime

STEPS = ({"replicas": 1, "pause": {}}, {"replicas": 2, "pause": {}}, {"replicas": "100%", "pause": {}})
#: Kueue has given each group up three times, long ago.
BEFORE = {
    "conditions": [*ADMITTED[:2], condition("PodsReady", "True", "Started")],
    "schedulingStats": {"evictions": [{"reason": "PodsReadyTimeout", "count": 3}]},
}


async def in_first_step(world: World, capacity: str) -> None:
    install(world)
    await at_rest(world, *STEPS, replicas=3, size=1, canary={"capacity": capacity})
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"labels": {QUEUE_NAME: "team-a"}}})
    for group in range(3):
        queue(world, group, lws=NAME, **BEFORE)
    world.set_image("v2")
    await world.until_state("AwaitingApproval")


def restart(world: World) -> None:
    """A new process asks for the list of Workloads only once it has found that it needs it."""
    world.view.want(())
    world.start_controller()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("promoting", [False, True], ids=["in a step", "in the promotion"])
async def test_what_kueue_had_given_up_before_is_not_held_against_the_new_version(
    world: World, promoting: bool
) -> None:
    await in_first_step(world, "ExtraWorkload" if promoting else "InPlace")
    if promoting:
        world.approve()
        await step(world, 2)
    world.stop_controller()
    world.approve()
    restart(world)
    failed: set[str] = set()
    world.checks.append(lambda seen: failed.update(each["reason"] for each in seen.status.get("notReadyGroups", ())))
    if promoting:
        await over(world, "v2")
    else:
        await step(world, 2)
        assert [each["count"] for each in world.status["evictions"]] == [3, 3]
    assert "GivenUpByKueue" not in failed


async def test_a_retry_that_comes_before_the_list_forgives_what_kueue_gave_up(world: World) -> None:
    await in_first_step(world, "InPlace")
    apply(world, "v3", faults={"fail": "ImagePullBackOff"})
    await world.until_state("Loading")
    again = {"schedulingStats": {"evictions": [{"reason": "PodsReadyTimeout", "count": 4}]}}
    await world.sleep(60)
    world.patch(KUEUE_WORKLOADS, f"leaderworkerset-{NAME}-2", {"status": again}, "status")
    await world.until_state("Stalled")
    assert "Kueue gave group 2 of llama up 1 time" in world.status["message"]
    world.stop_controller()
    world.request("Retry")
    restart(world)
    await world.rest()
    assert (world.state, world.status["lastAction"]["outcome"]) == ("Loading", "Done")


async def test_no_group_is_renewed_that_multikueue_has_dispatched_meanwhile(world: World) -> None:
    await in_first_step(world, "InPlace")
    before, windows = world.leader_uids(), Windows(world)
    world.checks.append(windows)
    world.stop_controller()
    world.approve()
    dispatching_check(world)
    for group in range(3):
        name = f"leaderworkerset-{NAME}-{group}"
        world.patch(KUEUE_WORKLOADS, name, {"status": in_cluster("west")}, "status")
    restart(world)
    await world.until(lambda: world.true_conditions.get("Stalled", {}).get("reason") == Reason.MULTIKUEUE)
    await world.rest()
    assert (windows.lengths, windows.is_open) == ([], False)
    # What was renewed before goes back.
    after = world.leader_uids()
    assert {name for name, uid in before.items() if after[name] != uid} <= {f"{NAME}-2"}
