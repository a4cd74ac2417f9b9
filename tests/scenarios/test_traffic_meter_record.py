"""A BatchRelease deleted by hand takes its canary with it: not before the canary's requests have ended elsewhere."""

from __future__ import annotations

import pytest

from tests.scenarios.metered import metered, shared
from tests.scenarios.stories import CANARY
from tests.scenarios.world import NAME, World

pytestmark = pytest.mark.looptime


async def test_a_batch_release_deleted_by_hand_takes_its_canary_when_its_requests_have_ended() -> None:
    steps = [{"replicas": n, "traffic": f"{share}%", "pause": {}} for n, share in ((1, 20), (2, 50))]
    async with metered(*steps, replicas=4) as seen:
        world = seen.world
        await seen.release(2)
        await world.sleep(40)
        before, asked = world.leader_uids(CANARY), world.now
        world.delete(World.RECORD, NAME)
        await world.until(lambda: not before.items() & world.leader_uids(CANARY).items(), "the canary is gone")
        assert (world.now - asked).total_seconds() >= 33, "grace and drain"
        await seen.step(2)
        assert await seen.shares() == shared(0.5)
        seen.assert_unharmed()
