"""Whatever routes the requests, users get the share that a step says, and everything comes back as it was."""

from __future__ import annotations

import pytest

from tests.scenarios.metered import NEW_ONLY, STABLE_ONLY, metered, shared
from tests.scenarios.routed import BY_INGRESS, BY_POOLS, FIVE, Provider
from tests.scenarios.test_traffic_meter import HEADER

pytestmark = [
    pytest.mark.looptime,
    # How the HTTPRoute with Services does is told in test_traffic_meter.py.
    pytest.mark.parametrize("by", [BY_POOLS, BY_INGRESS], ids=str),
]
TWO = {"replicas": 1, "traffic": "20%", "pause": {}}, {"replicas": 2, "traffic": "50%", "pause": {}}


async def test_a_header_step_and_five_weighted_ones_share_as_they_say_and_lose_nothing(by: Provider) -> None:
    async with metered(HEADER, *FIVE, by=by) as m:
        await m.release()
        assert await m.all_shares() == {"users": STABLE_ONLY, "tagged": NEW_ONLY, "direct": STABLE_ONLY}
        m.world.approve()
        for step in range(1, 6):
            await m.step(step + 1)
            new = shared(step / 10)
            assert await m.all_shares() == {"users": new, "tagged": new, "direct": STABLE_ONLY}
            m.world.approve()
        await m.finish()
        m.assert_unharmed()
        assert m.meter.cuts == []
