"""Whoever may decide on releases may write their status: numbers that no controller wrote hold up nobody."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from tests.scenarios.routed import routed_at_rest
from tests.scenarios.stories import at_rest, waiting_for_approval
from tests.scenarios.world import NAME, NAMESPACE, ROLLOUTS, World

pytestmark = pytest.mark.looptime
_FAR = 2**62


@pytest.mark.one_in(4)
@pytest.mark.timeout(30)
@pytest.mark.parametrize("member", ["currentStepIndex", "nextStepIndex"])
@pytest.mark.parametrize("number", [-_FAR, 99])
@pytest.mark.parametrize("routed", [False, True], ids=["unrouted", "routed"])
async def test_a_step_that_is_none_is_no_endless_way(world: World, member: str, number: int, routed: bool) -> None:
    if routed:
        await routed_at_rest(world)
    else:
        await at_rest(world)
    await waiting_for_approval(world)
    forged = {"status": {"canaryStatus": {member: number}}}
    world.server.patch(ROLLOUTS, NAMESPACE, NAME, forged, subresource="status")
    await world.sleep(60)
    world.set_image("v3")
    await world.sleep(60)
    assert world.server.get(LEADER_WORKER_SETS, NAMESPACE, NAME)["spec"]["replicas"] > 0
