"""An HTTPRoute and an Ingress named together, as while users move from the one to the other: both share alike."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rollout_lws.objects.resources import HTTP_ROUTES
from rollout_lws.sandbox.meter import Client, TrafficMeter
from tests.scenarios.metered import (
    ACCEPTED,
    HEADER,
    LAG,
    NEW_ONLY,
    PERIOD,
    STABLE_ONLY,
    STREAM,
    Metered,
    metered,
    shared,
)
from tests.scenarios.routed import (
    BY_INGRESS,
    BY_ROUTE,
    ROUTE,
    hold_record,
    told_only_with,
)
from tests.scenarios.world import NAME

pytestmark = [pytest.mark.looptime, told_only_with(BY_INGRESS, why="about an Ingress and a route together")]

TWO: tuple[dict[str, Any], ...] = (
    {"replicas": 1, "traffic": "20%", "pause": {}},
    {"replicas": 2, "traffic": "50%", "pause": {}},
)
#: Named beside the Ingress.
ROUTE_TOO = {"gateway": {"httpRouteName": ROUTE}}


@asynccontextmanager
async def metered_by_both(*steps: dict[str, Any]) -> AsyncIterator[tuple[Metered, TrafficMeter]]:
    """Requests by the Ingress and past both are measured by the first meter, those by the route by the second."""
    async with metered(*steps, replicas=4, by=BY_INGRESS, **ROUTE_TOO) as m:
        clients = (
            Client("users", route=ROUTE),
            Client("tagged", route=ROUTE, headers={"x-canary": "yes"}),
        )
        ours = m.meter
        by_route = TrafficMeter(m.world.server, clients, drain=STREAM, lag=LAG)
        by_route.start()
        before = hold_record(m.world, BY_ROUTE)
        yield m, by_route
        by_route.stop()
        assert hold_record(m.world, BY_ROUTE) == before
        assert (ours.failures, by_route.failures) == ([], [])
        assert [cut for cut in (*ours.cuts, *by_route.cuts) if cut.lws != NAME] == []


async def both(m: Metered, by_route: TrafficMeter) -> list[dict[str, dict[str, float]]]:
    """Shares of users and of tagged ones, by the Ingress and by the route."""
    await m.world.sleep(LAG + ACCEPTED)
    begun = m.world.server.clock()
    await m.world.sleep(PERIOD)
    return [
        {
            client: {side: round(share, 6) for side, share in each.shares(client, begun).items()}
            for client in ("users", "tagged")
        }
        for each in (m.meter, by_route)
    ]


async def test_both_share_as_each_step_says_to_the_end() -> None:
    async with metered_by_both(HEADER, *TWO) as (m, by_route):
        await m.release()
        assert await both(m, by_route) == [{"users": STABLE_ONLY, "tagged": NEW_ONLY}] * 2
        for index, share in ((2, 0.2), (3, 0.5)):
            m.world.approve()
            await m.step(index)
            assert await both(m, by_route) == [dict.fromkeys(("users", "tagged"), shared(share))] * 2
        await m.finish()


@pytest.mark.long
@pytest.mark.parametrize("step", [1, 2, 3])
async def test_an_abort_takes_the_share_from_both(step: int) -> None:
    async with metered_by_both(HEADER, *TWO) as (m, by_route):
        await m.release(step)
        await m.abort()
        assert await both(m, by_route) == [dict.fromkeys(("users", "tagged"), STABLE_ONLY)] * 2
        assert [*m.cuts, *by_route.cuts] == []


@pytest.mark.long
async def test_no_share_is_given_while_one_of_the_two_is_missing() -> None:
    async with metered_by_both(*TWO) as (m, by_route):
        world = m.world
        route = world.get(HTTP_ROUTES, ROUTE)
        assert route is not None
        world.set_image("v2")
        await world.until(lambda: world.get_canary_replicas() == 1, "the canary")
        by_route.stop()
        world.delete(HTTP_ROUTES, ROUTE)
        await world.until_state("Routing")
        await world.sleep(60)
        assert await m.shares() == STABLE_ONLY
        assert world.condition("Reconciling")["message"] == "HTTPRoute llama does not exist: make it anew"
        world.server.create(HTTP_ROUTES, {**route, "metadata": {"name": ROUTE, "namespace": "default"}, "status": {}})
        await m.step(1)
        assert await m.shares() == shared(0.2)
        await m.finish()
