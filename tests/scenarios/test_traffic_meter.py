"""What users get during a release: exactly the share that a step says, and never an error by the release's doing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenarios.metered import NEW_ONLY, STABLE_ONLY, metered, shared
from tests.scenarios.world import NAME

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


@pytest.mark.one_in(2)
@pytest.mark.parametrize("step", [1, *(pytest.param(step, marks=pytest.mark.long) for step in (2, 3, 4)), 5])
async def test_an_abort_at_any_step_loses_no_request_and_cuts_no_stream(step: int) -> None:
    async with metered() as m:
        await m.release(step)
        assert await m.shares() == shared(step / 10)
        await m.abort()
        m.assert_unharmed()
        assert m.meter.cuts == []


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("groups", "renewed"),
    [(2, 1), pytest.param(2, 3, marks=pytest.mark.long), pytest.param(4, 1, marks=pytest.mark.long), (4, 3)],
)
async def test_an_abort_in_mid_promotion_fails_no_request_and_a_full_canary_takes_all_streams_before(
    groups: int, renewed: int
) -> None:
    async with metered({"replicas": groups, "traffic": "40%", "pause": {}}, replicas=4) as m:
        await m.release()
        await m.world.sleep(30)
        m.world.approve()
        await m.world.until(
            lambda: sum(told == "v2" for told in m.world.groups().values()) >= renewed, f"{renewed} renewed groups"
        )
        m.world.request("Abort")
        await m.world.until_state("Aborted", 1200)
        await m.settled()
        assert m.meter.failures == []
        # Fewer groups cannot carry everything: then groups that go back serve until they go, as in any rolling update.
        assert {cut.lws for cut in m.meter.cuts} <= (set() if groups == 4 else {NAME})


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
