"""A Gateway that is late to accept a share may send requests by it all the same: they are drained like any others."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import LWS_NAME, PODS
from rollout_lws.sandbox.behaviours.cluster import Options
from tests.scenarios.routed import ACCEPTING, assert_given_back, routed_at_rest, share
from tests.scenarios.stories import CANARY
from tests.scenarios.world import NAMESPACE, World

pytestmark = [pytest.mark.looptime, *ACCEPTING]

LATE = 5.0


def going(world: World) -> bool:
    pods = world.server.list(PODS, NAMESPACE, label_selector=f"{LWS_NAME}={CANARY}")
    return any("deletionTimestamp" in pod["metadata"] for pod in pods)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("again", [False, True], ids=["its first share", "a share that it has got back"])
async def test_an_abort_before_a_share_is_accepted_lets_its_requests_end_all_the_same(again: bool) -> None:
    world = World(Options(gateway_lag=LATE))
    before = await routed_at_rest(world)
    world.set_image("v2")
    if again:
        await world.until_state("AwaitingApproval")
        world.delete(PODS, f"{CANARY}-0")
        await world.until(lambda: share(world) == 0 and world.status["traffic"]["applied"] == {"weight": 0})
    await world.until(lambda: share(world) > 0)
    await world.sleep(2)
    world.request("Abort")
    await world.until(lambda: share(world) == 0)
    taken = world.now
    await world.until(lambda: going(world))
    assert (world.now - taken).total_seconds() >= LATE + 33, "grace and drain once it is accepted"
    await world.until_state("Aborted")
    await world.rest(quiet=LATE + 1)
    assert_given_back(world, before)
    world.close()
