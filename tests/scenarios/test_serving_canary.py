"""A canary that serves in the stead of groups that hardly become ready stays until they are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from tests.scenarios.routed import routed_at_rest
from tests.scenarios.stories import CANARY, waiting_for_approval
from tests.scenarios.world import NAME, ROLLOUTS, World

pytestmark = pytest.mark.looptime

#: Seconds in which a group becomes ready: it is lost a little sooner each time.
LOADS = 10.0


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World(Options(timing=Timing(ready_after=LOADS)))
    yield made
    made.close()
    assert not made.errors


def leave(world: World) -> None:
    world.delete(ROLLOUTS, NAME)


def apply_another(world: World) -> None:
    world.set_image("v3")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("act", "losses"), [(leave, 8), (apply_another, 5)], ids=["leave", "apply_another"])
async def test_a_canary_stays_while_groups_that_it_serves_for_keep_being_rebuilt(
    world: World, act: Callable[[World], None], losses: int
) -> None:
    steps = ({"replicas": 1, "traffic": "25%", "pause": {}}, {"replicas": "100%", "traffic": "100%", "pause": {}})
    await routed_at_rest(world, *steps, replicas=4)
    world.checks.clear()
    await waiting_for_approval(world)
    world.request("Jump", toStep=2)
    await world.until(lambda: any(each.startswith("v2") for each in world.groups().values()), "a promotion", 600)
    act(world)
    for _ in range(losses):
        await world.sleep(0.9 * LOADS)
        if world.get(PODS, f"{NAME}-1") is not None:
            world.delete(PODS, f"{NAME}-1")
    canary = world.get(LEADER_WORKER_SETS, CANARY)
    assert canary is not None
    assert canary["spec"]["replicas"] == 4
    if act is leave:
        # A promotion goes on, and their windows are used up.
        return
    told = world.condition("Stalled")["message"]
    assert told.endswith(
        f"4 of canary {CANARY} serve meanwhile; to do without them now: kubectl delete leaderworkerset"
        f" {CANARY} -n default"
    )
    # Left in peace they come up, and the canary goes.
    await world.until(lambda: world.get(LEADER_WORKER_SETS, CANARY) is None, "the canary goes", 2 * 3600)
    await world.sleep(60)
    assert not any(each.endswith("!") for each in world.groups().values())
