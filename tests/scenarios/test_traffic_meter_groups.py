"""Groups of the new version that come and go under a share: routers hear of groups and of shares by different ways."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from tests.scenarios.metered import metered
from tests.scenarios.stories import CANARY
from tests.scenarios.world import NAME, ROLLOUTS

pytestmark = pytest.mark.looptime


async def test_the_first_share_comes_when_routers_have_heard_of_the_first_group() -> None:
    step = {"replicas": 1, "traffic": "20%", "pause": {}}
    async with metered(step, {"replicas": 2, "traffic": "50%", "pause": {}}, replicas=4, min_ready=0) as seen:
        await seen.release()
        await seen.shares()
        assert seen.meter.failures == []


async def test_a_jump_back_drains_the_groups_that_go_and_gives_the_share_when_they_are_gone() -> None:
    steps = [{"replicas": n, "traffic": f"{share}%", "pause": {}} for n, share in ((1, 20), (2, 50), (4, 80))]
    async with metered(*steps, replicas=4) as seen:
        await seen.release(3)
        await seen.world.sleep(40)
        body = {"status": {"canaryStatus": {"nextStepIndex": 1}}}
        seen.world.patch(ROLLOUTS, NAME, body, "status")
        await seen.world.until(lambda: seen.world.groups(CANARY) == {0: "v2"})
        await seen.world.until_state("AwaitingApproval")
        await seen.shares()
        seen.assert_unharmed()


async def test_a_canary_deleted_by_hand_goes_when_its_requests_have_ended() -> None:
    steps = [{"replicas": n, "traffic": f"{share}%", "pause": {}} for n, share in ((1, 20), (2, 50))]
    async with metered(*steps, replicas=4) as seen:
        await seen.release(2)
        await seen.world.sleep(40)
        seen.world.delete(LEADER_WORKER_SETS, CANARY)
        await seen.world.until(lambda: seen.world.get(LEADER_WORKER_SETS, CANARY) is None)
        await seen.world.until_state("AwaitingApproval")
        await seen.shares()
        seen.assert_unharmed()
