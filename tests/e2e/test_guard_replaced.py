"""Replicas of the guard that are replaced while people edit: everybody gets an answer, and no hold opens."""

from __future__ import annotations

import asyncio
import itertools
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from rollout_lws.cli.install.options import DEFAULT_NAMESPACE
from rollout_lws.cli.install.rbac import CONTROLLER
from rollout_lws.errors import ApiError
from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.workload.hold import HOLD
from tests.e2e import rights, tools
from tests.e2e.cluster import cluster
from tests.e2e.plane import connected
from tests.e2e.service import Service, serving
from tests.e2e.test_guard import (
    ACCOUNT,
    NAME,
    World,
    at_rest,
    image,
    install,
    lead_to,
    partition,
    strategy,
    strategy_with,
)
from tests.e2e.test_install import _without_us
from tests.kubectl.programs import Program, Programs, held_port

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio, pytest.mark.timeout(300)]

#: Who edits at a time, and writes the same: so many that connections to every replica are open.
_EDITORS = 5
_BETWEEN_SECONDS = 0.08
#: From what a kubelet sees until the network leads elsewhere: a Service and its nodes hear of it by watches.
_LATE_SECONDS = 1.0
_PROBE_SECONDS = 0.05
_FAREWELL = "guard judges on while its Service turns elsewhere"


@dataclass
class Edits:
    """Those that would open the hold: how many were sent, why some were refused, and what partition got stored."""

    sent: int = 0
    refused: list[str] = field(default_factory=list)
    opened: list[int] = field(default_factory=list)

    async def one(self, world: World, number: int) -> None:
        self.sent += 1
        try:
            stored, _ = await world.patch(LEADER_WORKER_SETS, NAME, strategy(partition=number))
        except ApiError as error:
            self.refused.append(error.message)
        else:
            if partition(stored) != HOLD:
                self.opened.append(partition(stored))


@asynccontextmanager
async def editing(world: World) -> AsyncIterator[Edits]:
    """People who write their own partition again and again, to the end of the block."""
    edits, over = Edits(), asyncio.Event()

    async def go_on() -> None:
        for number in itertools.count():
            await asyncio.gather(*(edits.one(world, number % 2) for _ in range(_EDITORS)))
            if over.is_set():
                return
            await asyncio.sleep(_BETWEEN_SECONDS)

    going = asyncio.create_task(go_on())
    try:
        yield edits
    finally:
        over.set()
        await going


@dataclass
class Replica:
    """A controller, and what its kubelet and its Service make of it."""

    program: Program
    port: int
    health: int

    @classmethod
    async def start(cls, world: World) -> Replica:
        port, health = held_port(), held_port()
        return cls(await world.guard(port, f"127.0.0.1:{health}"), port, health)

    async def enter(self, service: Service) -> None:
        await self._probed(lambda ready: ready)
        await asyncio.sleep(_LATE_SECONDS)
        service.endpoints.append(self.port)

    async def leave(self, service: Service) -> None:
        self.program.signal(signal.SIGTERM)
        await self._probed(lambda ready: not ready)
        await asyncio.sleep(_LATE_SECONDS)
        service.endpoints.remove(self.port)

    async def _probed(self, holds: Callable[[bool], bool]) -> None:
        async with asyncio.timeout(30), aiohttp.ClientSession() as session:
            while True:
                if holds(await self._is_ready(session)):
                    return
                await asyncio.sleep(_PROBE_SECONDS)

    async def _is_ready(self, session: aiohttp.ClientSession) -> bool:
        try:
            async with session.get(f"http://127.0.0.1:{self.health}/readyz") as answer:
                return answer.status == 200
        except aiohttp.ClientConnectionError:
            return False

    @property
    def farewell(self) -> int:
        """How many edits it has repaired since it was told to end."""
        lines = self.program.lines
        since = next(number for number, line in enumerate(lines) if _FAREWELL in line)
        return sum("edit repaired" in line for line in lines[since:])


async def test_nobody_notices_that_every_replica_is_replaced(tmp_path: Path) -> None:
    """As a Deployment does it: one more first, and the next as soon as one has begun to end."""
    programs = Programs()
    try:
        async with (
            cluster(tools.directory(), tmp_path, nodes=4, audited=[ACCOUNT], install=_without_us) as running,
            connected(running.plane.admin) as connection,
            serving() as service,
        ):
            plane = running.plane
            await install(plane, programs)
            who = await rights.login(connection, plane.admin, DEFAULT_NAMESPACE, CONTROLLER, tmp_path)
            world = World(plane, connection, Client(connection), who, programs)
            await _replaced(world, service)
    finally:
        await programs.close()


async def _replaced(world: World, service: Service) -> None:
    old = await asyncio.gather(Replica.start(world), Replica.start(world))
    await asyncio.gather(*(each.enter(service) for each in old))
    await lead_to(world, service.port, "Fail")
    await at_rest(world)
    await world.patch(LEADER_WORKER_SETS, NAME, {**image("v2"), **strategy_with(image("v2"), partition=0)})
    await world.state("AwaitingApproval")
    before = await world.pods()
    async with editing(world) as edits:
        new = []
        for each in old:
            new.append(await Replica.start(world))
            await new[-1].enter(service)
            await each.leave(service)
        codes = await asyncio.gather(*(each.program.end(30) for each in old))
    judged = [each.farewell for each in old]
    told = f"{edits.sent} edits, {len(edits.refused)} refused, {len(edits.opened)} opened; {judged} while they left"
    assert (edits.refused, edits.opened, service.lost) == ([], [], []), told
    # It was put to the test: who was told to end had something to judge yet.
    assert sum(judged) > 0, told
    assert sorted(service.endpoints) == sorted(each.port for each in new)
    assert codes == [0, 0]
    # What would have opened is a version that waits: it has replaced nobody.
    assert partition(await world.lws()) == HOLD and await world.pods() == before
    assert all("Traceback" not in each.program.output for each in (*old, *new))
