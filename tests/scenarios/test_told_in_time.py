"""Somebody touches the Rollout in the very moment in which the controller answers: what was done is on record."""

from __future__ import annotations

import asyncio

import pytest

from rollout_lws.objects.resources import HTTP_ROUTES
from rollout_lws.sandbox.store import Event
from tests.scenarios.routed import routed_at_rest
from tests.scenarios.shell import ShellWorld
from tests.scenarios.stories import waiting_for_approval
from tests.scenarios.world import NAME

pytestmark = pytest.mark.looptime


class Loop:
    """Applies the route as it was, and then the Rollout with a number of its own, each second; the number changes once
    more whenever the route does.
    """

    def __init__(self, world: ShellWorld) -> None:
        self.answers = 0
        self._world, self._number, self._on = world, 0, False
        route = world.get(HTTP_ROUTES, NAME)
        assert route is not None
        self._rules = route["spec"]["rules"]
        world.server.store.subscribe(self._changed)

    async def run(self) -> None:
        self._on = True
        while True:
            self._world.patch(HTTP_ROUTES, NAME, {"spec": {"rules": self._rules}})
            await asyncio.sleep(1)

    def _changed(self, event: Event) -> None:
        if not self._on or event.resource != HTTP_ROUTES or event.previous is None:
            return
        if event.object["spec"] == event.previous["spec"]:
            return
        self.answers += event.object["spec"]["rules"] != self._rules
        self._number += 1
        self._world.patch(self._world.ROLLOUT, NAME, {"metadata": {"annotations": {"number": str(self._number)}}})


async def test_a_loop_that_applies_route_and_rollout_is_told_of_and_answered_ever_more_rarely() -> None:
    world = ShellWorld()
    await routed_at_rest(world, {"replicas": 1, "traffic": "30%", "pause": {}}, replicas=4)
    world.checks.clear()
    loop = Loop(world)
    await waiting_for_approval(world)
    running = asyncio.create_task(loop.run())
    await world.until(lambda: world.condition("Stalled").get("reason") == "RouteConflict", seconds=10)
    await world.sleep(30)
    assert (loop.answers, world.condition("Stalled")["reason"]) == (1, "RouteConflict")
    running.cancel()
    await world.gone()
    assert any(event.reason == "RouteReset" for event in world.events)
    world.close()
