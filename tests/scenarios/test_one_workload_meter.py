"""In place and surge with their requests measured: shares as the steps say, and nothing lost on any way."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenarios.metered import Metered, metered
from tests.scenarios.one_workload import IN_PLACE, STYLES, SURGE, Style, watch
from tests.scenarios.routed import (
    AND_SCRIPTS,
    BY_ROUTE,
    EACH,
    Provider,
    by_each,
    not_by_pools,
)

pytestmark = pytest.mark.looptime

FOUR: tuple[dict[str, Any], ...] = tuple(
    {"replicas": number, "traffic": f"{20 * number}%", "pause": {}} for number in range(1, 5)
)
TAGGED = {"headers": [{"name": "x-canary", "value": "yes"}]}
MATCHED: tuple[dict[str, Any], ...] = (
    {"replicas": 1, "matches": [TAGGED], "pause": {}},
    {"replicas": 2, "traffic": "40%", "pause": {}},
    {"replicas": "100%"},
)


async def shares(told: Metered) -> dict[str, float]:
    """The new version's share, by client."""
    revision = told.world.status["canaryStatus"]["canaryRevision"]
    found = await told.all_shares("revision")
    return {client: each.get(revision, 0.0) for client, each in found.items()}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("style", STYLES, ids=str)
@pytest.mark.parametrize(
    "by", [BY_ROUTE, *(pytest.param(each, marks=pytest.mark.long) for each in AND_SCRIPTS[1:])], ids=str
)
async def test_weighted_steps_to_the_end(style: Style, by: Provider) -> None:
    async with metered(*FOUR, by=by, words=style.words) as told:
        windows = watch(told.world, style)
        for number in range(1, 5):
            await told.release(number) if number == 1 else told.world.approve()
            await told.step(number)
            found = await shares(told)
            assert found["users"] == pytest.approx(0.2 * number), number
            assert found["direct"] == 0, number
        await told.finish()
        told.assert_unharmed()
        # A portion takes as long as its old leaders need to end, and no more.
        assert max(windows.lengths) < 6.5, windows.lengths


@pytest.mark.one_in(4)
@pytest.mark.parametrize("style", STYLES, ids=str)
@pytest.mark.parametrize("at", [1, *(pytest.param(at, marks=pytest.mark.long) for at in range(2, 5))])
@by_each(EACH)
async def test_an_abort_at_each_step(style: Style, at: int) -> None:
    async with metered(*FOUR, words=style.words) as told:
        watch(told.world, style)
        await told.release(at)
        await told.abort()
        if style is SURGE or at < 3:
            told.assert_unharmed()
        assert [str(each) for each in told.meter.failures] == []


@pytest.mark.one_in(2)
@pytest.mark.parametrize("style", STYLES, ids=str)
@by_each(EACH)
async def test_an_abort_in_mid_promotion(style: Style) -> None:
    async with metered(*FOUR, words=style.words) as told:
        watch(told.world, style)
        await told.release(2)
        told.world.request("PromoteFull")
        await told.world.until(
            lambda: told.world.groups().get(2 if style is IN_PLACE else 4, "").startswith("v2"), "a renewed group", 600
        )
        await told.abort()
        assert [str(each) for each in told.meter.failures] == []


@pytest.mark.parametrize("style", [IN_PLACE, pytest.param(SURGE, marks=pytest.mark.long)], ids=str)
@by_each(EACH)
async def test_matched_requests_first(style: Style) -> None:
    async with metered(*MATCHED, words=style.words) as told:
        watch(told.world, style)
        await told.release(1)
        assert await shares(told) == {"users": 0.0, "tagged": 1.0, "direct": 0.0}
        told.world.approve()
        await told.step(2)
        assert (await shares(told))["users"] == pytest.approx(0.4)
        await told.finish()
        told.assert_unharmed()


@by_each(not_by_pools("a picker may hear that LWS drops the surge group before it hears of the one in its place"))
async def test_one_group_with_a_surge_is_never_without_a_ready_one() -> None:
    steps = ({"replicas": 1, "traffic": "50%", "pause": {}}, {"replicas": "100%"})
    async with metered(*steps, replicas=1, words=SURGE.words) as told:
        watch(told.world, SURGE)
        await told.release(1)
        assert (await shares(told))["users"] == pytest.approx(0.5)
        await told.finish()
        told.assert_unharmed()
