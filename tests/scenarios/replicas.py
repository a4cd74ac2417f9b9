"""A world with two whole controllers that elect a leader, each with a wire, a clock and a fate of its own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import cast

from rollout_lws.controller.controller import Controller
from rollout_lws.errors import ApiError
from rollout_lws.kube.client import Client
from rollout_lws.kube.elector import Elector
from rollout_lws.kube.fence import Fence
from rollout_lws.kube.lease import Terms
from rollout_lws.metrics import Metrics
from rollout_lws.notifications.outbox import Notifications
from rollout_lws.objects.resources import LEASES, NAMESPACES
from rollout_lws.objects.writes import Write
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.faults import Effect, Faults
from rollout_lws.sandbox.store import Event
from rollout_lws.sandbox.transport import DirectTransport
from rollout_lws.settings import Settings
from tests.scenarios.shell import Door
from tests.scenarios.world import ORIGIN, World
from tests.virtual_time import LoopClock

TERMS = Terms(15, 10, 2)
PLACE = "rollout-lws-system", "rollout-lws-controller"


class Replica:
    """One controller process. Its machine's clock is ``ahead`` of the others'."""

    def __init__(self, world: ReplicatedWorld, name: str, ahead: float) -> None:
        self.name, self.ahead, self.dead = name, ahead, False
        self.faults = Faults()
        self.sent = 0
        self._world = world
        loop = asyncio.get_running_loop()

        def elapsed() -> float:
            return loop.time() + self.ahead

        fence = Fence(elapsed)
        wire = DirectTransport(cast(ApiServer, Door(world.server, self._judge)), self.faults)
        short = Client(wire, timeout=TERMS.retry)
        self.elector = Elector(short, *PLACE, name, TERMS, fence, clock=elapsed, chance=random.Random(name))
        clock, metrics = LoopClock(ORIGIN), Metrics()
        told = world.notifications(clock, metrics)
        self._controller = Controller(Client(wire, fence=fence), Settings(), clock, metrics, told)
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async with self._controller.watching():
            await self.elector.run(self._controller.working)

    def _judge(self, write: Write) -> None:
        """Nothing arrives from who is dead, and but for the Lease nothing from who does not hold it."""
        if self.dead:
            raise ApiError(503, "ServiceUnavailable", "this process is dead")
        if write.resource == LEASES:
            return
        self.sent += 1
        held = self._world.server.get(LEASES, *PLACE)["spec"]["holderIdentity"]
        if held != self.name:
            self._world.errors.append(AssertionError(f"{self.name} writes though {held} leads: {write}"))

    def kill(self) -> None:
        """At once, with nothing handed back."""
        self.dead = True
        self._task.cancel()

    async def terminate(self) -> None:
        """In order."""
        self._task.cancel()
        await asyncio.wait([self._task])

    def cut(self) -> None:
        """Nothing gets through, either way."""
        self.faults.add(Effect(lost=True), count=None)
        self.faults.cut_watches()

    def mend(self) -> None:
        self.faults.restore()

    def stand_still(self, seconds: float) -> None:
        """The process is stopped for so long, and finds that out by its clock alone."""
        self.ahead += seconds


class ReplicatedWorld(World):
    def __init__(self, options: Options | None = None) -> None:
        super().__init__(options)
        self.server.create(NAMESPACES, {"metadata": {"name": PLACE[0]}})
        self.replicas: list[Replica] = []
        #: The notifications of each replica, by its clock and metrics.
        self.notifications: Callable[[LoopClock, Metrics], Notifications | None] = lambda *_: None
        self._quiet_since = 0.0

    def start_controller(self, budget: int | None = None) -> None:
        assert budget is None, "a budget is for the world with one controller"
        self.running = True
        self.replicas = [Replica(self, "first", 0.0), Replica(self, "second", 1e8)]

    def stop_controller(self) -> None:
        self.running = False
        for each in self.replicas:
            each.kill()

    def _take(self, event: Event) -> None:
        if event.resource != LEASES:
            self._quiet_since = asyncio.get_running_loop().time()
        super()._take(event)

    async def rest(self, quiet: float = 3, seconds: float = 900) -> None:
        """Renewals of the Lease go on for ever, and are no unrest."""
        async with asyncio.timeout(seconds):
            while (left := self._quiet_since + quiet - asyncio.get_running_loop().time()) > 0:
                await self.sleep(left)

    def _wake(self) -> None:
        """Nothing decides here; the controllers have watches of their own."""

    @property
    def leader(self) -> Replica:
        (found,) = [each for each in self.replicas if each.elector.leads and not each.dead]
        return found

    def other(self, than: Replica) -> Replica:
        (found,) = [each for each in self.replicas if each is not than]
        return found

    def leads(self, replica: Replica) -> bool:
        return replica.elector.leads and self.server.get(LEASES, *PLACE)["spec"]["holderIdentity"] == replica.name
