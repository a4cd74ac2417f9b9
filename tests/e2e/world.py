"""The world of stories in a namespace of a real cluster: the same words, real time, the controller in a process."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rollout_lws.api.resources import batch_releases
from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import (
    ENDPOINT_SLICES,
    EVENTS,
    HTTP_ROUTES,
    JOBS,
    LEADER_WORKER_SETS,
    NAMESPACES,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from rollout_lws.objects.writes import Create
from rollout_lws.rollout.decision import ReleaseEvent
from rollout_lws.sandbox.api_resources import GATEWAYS
from tests.e2e.door import Door
from tests.e2e.mirror import Mirror
from tests.e2e.plane import connected
from tests.e2e.scenes import record
from tests.kubectl.programs import Program, Programs
from tests.scenarios.containers import TAGGED, Containers
from tests.scenarios.kinds import LeaderWorkerSets
from tests.scenarios.names import NAME, ROLLOUTS
from tests.scenarios.sight import Sight
from tests.scenarios.user import User
from tests.scenarios.waits import Waits

#: The kinds that stories look at.
KINDS = (
    *(LEADER_WORKER_SETS, STATEFUL_SETS, PODS, SERVICES, ENDPOINT_SLICES, HTTP_ROUTES, GATEWAYS, EVENTS, JOBS),
    *(ROLLOUTS, batch_releases()),
)
_ROLLOUT_LWS = str(Path(sys.executable).with_name("rollout-lws"))

Check = Callable[[Any], None]


class Settled(Sight):
    """What checks look at: the world in the order in which the server made its changes."""

    def __init__(self, mirror: Mirror, checks: list[Check], containers: Containers) -> None:
        self.server = mirror.settled  # type: ignore[assignment]
        self.name = NAME
        self.checks = checks
        self.containers = containers


class RemoteWorld(User, Waits):
    """One LWS ``llama`` and one Rollout ``llama`` in a namespace of their own; ``remote_world`` makes one.

    ``checks`` are made at every change, in the server's order. The controller is a process that sees this namespace
    only, so that it can be killed without anybody else's noticing.
    """

    ROLLOUT = ROLLOUTS
    #: Less than any test here may take.
    patience = 180

    def __init__(
        self,
        client: Client,
        admin: Path,
        controller: Path,
        namespace: str,
        programs: Programs,
        containers: Containers,
        gateway: Mapping[str, str] | None,
        also: tuple[Resource, ...] = (),
    ) -> None:
        self.name, self.namespace, self._admin = NAME, namespace, admin
        self.containers, self.gateway = containers, gateway
        self.hosts = (f"{namespace}.example.com",) if gateway else ()
        self.checks: list[Check] = []
        self.errors: list[BaseException] = []
        self._waiters: set[asyncio.Future[None]] = set()
        self.mirror = Mirror(client, namespace, (*KINDS, *also), self._seen, self._check)
        self.server = Door(admin, namespace, self.mirror)  # type: ignore[assignment]
        self._settled = Settled(self.mirror, self.checks, containers)
        self._command = (
            *(_ROLLOUT_LWS, "controller", "--kubeconfig", str(controller), "-n", namespace),
            *("--metrics-bind-address", "0", "--health-probe-bind-address", "0"),
        )
        self._programs = programs
        self._process: Program | None = None
        self._changes, self._killed_at = 0, 0
        self.kills = 0
        self._tasks: set[asyncio.Task[None]] = set()
        #: What refuses writes in the sandbox; a real API server refuses what it likes.
        self.refuse: Callable[[Any], Any] = lambda _: None

    def use(self, kind: LeaderWorkerSets) -> None:
        """What the story releases, before it makes any."""
        self.kind = self._settled.kind = kind

    @property
    def now(self) -> datetime:
        return datetime.now(UTC)

    @property
    def events(self) -> list[ReleaseEvent]:
        """What the controller has told as Events; what it says again and again counts once."""
        listed = sorted(self.server.list(EVENTS), key=lambda each: str(each.get("eventTime") or ""))
        return [ReleaseEvent(each["reason"], each.get("note", ""), each.get("type", "Normal")) for each in listed]

    @property
    def is_current(self) -> bool:
        """After an outage of the API server every kind is heard of again in its own time."""
        return self.mirror.is_current

    def _told(self) -> list[ReleaseEvent]:
        return self.events

    async def rest(self, quiet: float = 3, seconds: float = 900) -> None:
        """Wait until nothing has changed for ``quiet`` seconds in which all kinds were heard of."""
        await super().rest(quiet, seconds)
        while not self.is_current:
            await super().rest(quiet, seconds)

    # The controller

    async def begin(self) -> None:
        self._process = await self._programs.start(*self._command)
        await self._process.says("controller started")

    def start_controller(self) -> None:
        """It runs already."""

    def kill_after(self, changes: int) -> None:
        """Kill the controller when so many changes more have been seen, and start it again."""
        self._killed_at = self._changes + changes

    async def _kill_and_begin(self) -> None:
        if self._process is not None:
            self._process.signal(signal.SIGKILL)
            self.kills += 1
            await self._process.kill()
        await self.begin()

    async def close(self) -> None:
        for task in tuple(self._tasks):
            await task
        if self._process is not None:
            await self._process.stop()
        self.server.close()  # type: ignore[attr-defined]

    async def undo(self) -> None:
        """Back to the version before the stable one, by the command."""
        place = ("--kubeconfig", str(self._admin), "-n", self.namespace)
        command = await self._programs.start(_ROLLOUT_LWS, "undo", NAME, *place)
        assert await command.end(60) == 0, command.output

    # Changes

    def _seen(self) -> None:
        self._changes += 1
        if self._killed_at and self._changes >= self._killed_at:
            self._killed_at = 0
            task = asyncio.create_task(self._kill_and_begin())
            self._tasks.add(task)
            task.add_done_callback(self._killed)
        self._announce()

    def _killed(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.errors.append(error)
            self._announce()

    def _check(self) -> None:
        for check in tuple(self.checks):
            try:
                check(self._settled)
            except AssertionError as error:
                self.errors.append(error)


@asynccontextmanager
async def remote_world(
    admin: Path,
    controller: Path,
    namespace: str,
    programs: Programs,
    *,
    labels: Mapping[str, str] | None = None,
    containers: Containers = TAGGED,
    gateway: Mapping[str, str] | None = None,
    also: tuple[Resource, ...] = (),
) -> AsyncIterator[RemoteWorld]:
    """A world in a new ``namespace`` with ``labels``, its controller running as the user of kubeconfig ``controller``.

    ``containers`` run in its pods; ``gateway`` is the parentRef to a Gateway for its routes, if there is one; ``also``
    are kinds that the story looks at besides.
    """
    async with AsyncExitStack() as stack:
        client = Client(await stack.enter_async_context(connected(admin)))
        metadata = {"name": namespace, "labels": dict(labels or {})}
        await client.send(Create(NAMESPACES, {"metadata": metadata}, "a story of its own"))
        stack.enter_context(record.scene(admin, namespace, programs))
        world = RemoteWorld(client, admin, controller, namespace, programs, containers, gateway, also)
        for task in world.mirror.start():
            stack.push_async_callback(_ended, task)
        await world.mirror.synced()
        stack.push_async_callback(world.close)
        await world.begin()
        yield world


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
