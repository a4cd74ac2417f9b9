"""What differs by the controller of an Ingress, and a Rollout that declares another one in mid-release."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import INGRESSES
from rollout_lws.rollout.reasons import Reason
from rollout_lws.sandbox.meter import Client, TrafficMeter
from tests.scenarios.metered import ACCEPTED, LAG, PERIOD, STREAM, Metered, metered, shared
from tests.scenarios.obstacles import rules_to
from tests.scenarios.routed import (
    AN_INGRESS,
    BY_INGRESS,
    BY_TRAEFIK,
    INGRESS,
    SERVICE,
    Provider,
    make,
    routing,
    told_only_with,
)
from tests.scenarios.told import assert_stalled
from tests.scenarios.world import NAME

pytestmark = [pytest.mark.looptime, told_only_with(*AN_INGRESS, why="about classes of Ingresses")]

TWO: tuple[dict[str, Any], ...] = (
    {"replicas": 1, "traffic": "20%", "pause": {}},
    {"replicas": 2, "traffic": "50%", "pause": {}},
)
CANARY_INGRESS = f"{INGRESS}-canary"


async def share_of_the_second(m: Metered, meter: TrafficMeter) -> dict[str, float]:
    await m.world.sleep(LAG + ACCEPTED)
    begun = m.world.server.clock()
    await m.world.sleep(PERIOD)
    return {side: round(share, 6) for side, share in meter.shares("second", begun).items()}


@pytest.mark.parametrize(("by", "alike"), [(BY_INGRESS, False), (BY_TRAEFIK, True)], ids=str)
async def test_a_second_ingress_to_the_service_shares_alike_by_traefik_alone(by: Provider, alike: bool) -> None:
    async with metered(*TWO, replicas=4, by=by) as m:
        world = m.world
        users = world.get(INGRESSES, INGRESS)
        assert users is not None
        rules = [{"host": "second.example.com", **each} for each in rules_to(SERVICE)]
        make(world, INGRESSES, "second", spec={**users["spec"], "rules": rules})
        client = Client("second", host="second.example.com", **{**by.entry, "ingress": "second"})
        second = TrafficMeter(world.server, [client], drain=STREAM, lag=LAG)
        second.start()
        for index, new in ((1, 0.2), (2, 0.5)):
            await (m.release() if index == 1 else m.step(index))
            assert await m.shares() == shared(new)
            assert await share_of_the_second(m, second) == (shared(new) if alike else {NAME: 1.0})
            world.approve()
        await world.until_state("Healthy", 1200)
        await world.rest()
        assert await share_of_the_second(m, second) == {NAME: 1.0}
        second.stop()
        assert (m.meter.failures, second.failures, m.cuts) == ([], [], [])
        assert [each["metadata"]["name"] for each in world.server.list(INGRESSES, "default")] == [INGRESS, "second"]


async def test_another_controller_that_is_declared_in_mid_release_gets_no_share_and_takes_none_away() -> None:
    async with metered(*TWO, replicas=4, by=BY_TRAEFIK) as m:
        world = m.world
        await m.release()
        standing = world.get(INGRESSES, CANARY_INGRESS)
        elsewhere = {"ingress": {"name": INGRESS, "classType": "haproxy"}}
        world.patch_rollout({"strategy": {"canary": {"trafficRoutings": [{"service": SERVICE, **elsewhere}]}}})
        world.approve()
        await world.until_state("Stalled")
        message = (
            "classType haproxy is not supported: HAProxy shares requests by route-acl alone, which goes before all"
            " longer paths of a host and could send requests for other Services to the new version; use the Gateway"
            " API (gateway.httpRouteName)"
        )
        assert_stalled(world, Reason.ROUTE_PROBLEM, message, phase="Progressing")
        await world.sleep(60)
        assert world.get(INGRESSES, CANARY_INGRESS) == standing
        assert await m.shares() == shared(0.2)
        world.patch_rollout({"strategy": {"canary": {"trafficRoutings": routing(BY_TRAEFIK)}}})
        await m.step(2)
        assert await m.shares() == shared(0.5)
        await m.finish()
        m.assert_unharmed()
