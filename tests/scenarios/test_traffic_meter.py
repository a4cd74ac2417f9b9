"""What users get during a release: exactly the share that a step says, and never an error by the release's doing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenarios.metered import NEW_ONLY, STABLE_ONLY, metered, shared

pytestmark = pytest.mark.looptime

HEADER: dict[str, Any] = {"replicas": 1, "matches": [{"headers": [{"name": "x-canary", "value": "yes"}]}], "pause": {}}
TWO = {"replicas": 1, "traffic": "20%", "pause": {}}, {"replicas": 2, "traffic": "50%", "pause": {}}


async def test_five_steps_share_requests_as_they_say_and_lose_none_to_the_very_end() -> None:
    async with metered() as m:
        await m.release()
        for step in range(1, 6):
            await m.step(step)
            new = shared(step / 10)
            assert await m.all_shares() == {"users": new, "tagged": new, "direct": STABLE_ONLY}
            m.world.approve()
        await m.finish()
        m.assert_unharmed()
        assert m.meter.cuts == [], "who had groups enough let even renewed groups end their streams"


async def test_a_header_step_sends_tagged_requests_alone_to_the_new_version() -> None:
    async with metered(HEADER, {"replicas": 1, "traffic": "20%", "pause": {}}) as m:
        await m.release()
        assert await m.all_shares() == {"users": STABLE_ONLY, "tagged": NEW_ONLY, "direct": STABLE_ONLY}
        m.world.approve()
        await m.step(2)
        assert await m.shares("tagged") == shared(0.2)
        await m.finish()
        m.assert_unharmed()


async def test_aborting_a_header_step_sends_tagged_requests_back() -> None:
    async with metered(HEADER, *TWO) as m:
        await m.release()
        await m.abort()
        m.assert_unharmed()


async def test_a_canary_of_fewer_groups_carries_its_part_while_stable_groups_are_renewed() -> None:
    async with metered(*TWO, replicas=4) as m:
        await m.release(2)
        assert await m.shares() == shared(0.5)
        m.world.approve()
        await m.world.until(lambda: any(told.endswith("!") for told in m.world.groups().values()), "a window")
        assert await m.shares() == shared(0.5)
        await m.finish()
        m.assert_unharmed()


async def test_automatic_traffic_follows_the_groups() -> None:
    async with metered(*({"replicas": each, "traffic": "auto", "pause": {}} for each in (1, 2, 4)), replicas=4) as m:
        await m.release()
        for step, share in ((1, 0.2), (2, 0.33), (3, 0.5)):
            await m.step(step)
            assert await m.shares() == shared(share)
            m.world.approve()
        await m.finish()
        m.assert_unharmed()
