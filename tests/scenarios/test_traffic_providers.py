"""Whatever routes the requests, users get the share that a step says, and everything comes back as it was."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenarios.metered import HEADER, NEW_ONLY, STABLE_ONLY, metered, shared
from tests.scenarios.routed import AND_SCRIPTS, FIVE, Provider
from tests.scenarios.world import NAME

pytestmark = [
    pytest.mark.looptime,
    pytest.mark.parametrize("by", AND_SCRIPTS, ids=str),
]
TWO: tuple[dict[str, Any], ...] = (
    {"replicas": 1, "traffic": "20%", "pause": {}},
    {"replicas": 2, "traffic": "50%", "pause": {}},
)


@pytest.mark.one_in(3)
async def test_a_header_step_and_five_weighted_ones_share_as_they_say_and_lose_nothing(by: Provider) -> None:
    async with metered(HEADER, *FIVE, by=by) as m:
        await m.release()
        assert await m.all_shares() == {"users": STABLE_ONLY, "tagged": NEW_ONLY, "direct": STABLE_ONLY}
        m.world.approve()
        for step in range(1, 6):
            await m.step(step + 1)
            new = shared(step / 10)
            assert await m.all_shares() == {"users": new, "tagged": new, "direct": STABLE_ONLY}
            assert m.world.status["summary"]["traffic"] == f"{10 * step}%"
            m.world.approve()
        await m.finish()
        m.assert_unharmed()
        assert m.meter.cuts == []


@pytest.mark.one_in(3)
async def test_automatic_traffic_follows_the_groups(by: Provider) -> None:
    steps = ({"replicas": each, "traffic": "auto", "pause": {}} for each in (1, 2, 4))
    async with metered(*steps, replicas=4, by=by) as m:
        await m.release()
        for step, share in ((1, 0.2), (2, 0.33), (3, 0.5)):
            await m.step(step)
            assert await m.shares() == shared(share)
            m.world.approve()
        await m.finish()
        m.assert_unharmed()


@pytest.mark.one_in(18)
@pytest.mark.parametrize("step", range(1, 7))
async def test_an_abort_at_any_step_loses_no_request_and_cuts_no_stream(by: Provider, step: int) -> None:
    async with metered(HEADER, *FIVE, by=by) as m:
        await m.release(step)
        assert await m.shares() == (shared((step - 1) / 10) if step > 1 else STABLE_ONLY)
        await m.abort()
        m.assert_unharmed()
        assert m.meter.cuts == []


# A controller that decides once on all changes of an instant may first see the abort when all groups are renewed, and
# then has to refuse it.
@pytest.mark.each_change
@pytest.mark.one_in(12)
@pytest.mark.parametrize(("groups", "renewed"), [(2, 1), (2, 3), (4, 1), (4, 3)])
async def test_an_abort_in_mid_promotion_fails_no_request(by: Provider, groups: int, renewed: int) -> None:
    async with metered({"replicas": groups, "traffic": "40%", "pause": {}}, replicas=4, by=by) as m:
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


@pytest.mark.parametrize(
    ("replicas", "groups"), [pytest.param(*each, marks=pytest.mark.long) for each in ((1, 1), (2, 1), (4, 2), (4, 4))]
)
async def test_a_promotion_loses_no_request_whether_or_not_the_canary_can_carry_all(
    by: Provider, replicas: int, groups: int
) -> None:
    async with metered({"replicas": groups, "traffic": "50%", "pause": {}}, replicas=replicas, by=by) as m:
        await m.release()
        assert await m.shares() == shared(0.5)
        # Streams of stable groups must have the time to end before their groups are renewed.
        await m.world.sleep(30)
        await m.finish()
        assert m.world.groups() == dict.fromkeys(range(replicas), "v2")
        m.assert_unharmed()
        assert groups < replicas or m.meter.cuts == []


@pytest.mark.long
async def test_aborting_before_any_share_was_given_loses_nothing(by: Provider) -> None:
    async with metered(*TWO, replicas=4, by=by) as m:
        m.world.set_image("v2")
        await m.world.until(lambda: m.world.get_canary_replicas() == 1, "the canary")
        await m.abort()
        m.assert_unharmed()
        assert m.meter.cuts == []
