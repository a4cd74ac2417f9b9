"""The same world with the whole controller in it: client, watches, queue and workers, and faults between it and the
server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from rollout_lws.controller.controller import Controller
from rollout_lws.errors import ApiError
from rollout_lws.kube.client import Client
from rollout_lws.metrics import Metrics
from rollout_lws.notifications.outbox import Notifications
from rollout_lws.objects.resources import EVENTS, Resource
from rollout_lws.objects.writes import Create, Delete, Patch, Write
from rollout_lws.rollout.decision import ReleaseEvent
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.faults import Effect, Faults
from rollout_lws.sandbox.transport import DirectTransport
from rollout_lws.settings import Settings
from tests.json_patch import merged
from tests.scenarios.walk import Walk
from tests.scenarios.world import ORIGIN, World
from tests.virtual_time import LoopClock


class Door:
    """The server as one controller process sees it: ``before`` is told of each write, until the process is dead."""

    def __init__(self, server: ApiServer, before: Callable[[Write], None]) -> None:
        self._server, self._before = server, before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    def create(self, resource: Resource, body: dict[str, Any], **asked: Any) -> Any:
        self._before(Create(resource, body, "asked by the controller"))
        return self._server.create(resource, body, **asked)

    def patch(self, resource: Resource, namespace: str, name: str, body: Any, *kind: str, **asked: Any) -> Any:
        merge, tested = merged(body) if isinstance(body, list) else (body, {})
        version = (merge.get("metadata") or {}).get("resourceVersion")
        reason, subresource = "asked by the controller", asked.get("subresource", "")
        self._before(Patch(resource, namespace, name, merge, reason, version, subresource, **tested))
        return self._server.patch(resource, namespace, name, body, *kind, **asked)

    def delete(self, resource: Resource, namespace: str, name: str, **asked: Any) -> Any:
        self._before(Delete(resource, namespace, name, asked.get("uid") or "", "asked by the controller"))
        return self._server.delete(resource, namespace, name, **asked)


class ShellWorld(World):
    """A world whose decisions are made by a whole controller over a transport with ``faults``."""

    def __init__(self, options: Options | None = None) -> None:
        super().__init__(options)
        self.faults = Faults()
        self.metrics = Metrics()
        #: The notifications of each controller process that is started, by its clock and metrics.
        self.notifications: Callable[[LoopClock, Metrics], Notifications | None] = lambda *_: None
        self._process: asyncio.Task[None] | None = None
        self._ended: set[asyncio.Task[None]] = set()

    def start_controller(self, budget: int | None = None) -> None:
        was_running, self.running, self.budget = self.running, True, budget
        if was_running:
            return
        self._process = asyncio.create_task(self._run())
        self._ended.add(self._process)

    async def _run(self) -> None:
        me = asyncio.current_task()

        def before(write: Write) -> None:
            if self._process is me and self.budget == 0:
                self.stop_controller()
            if self._process is not me:
                raise ApiError(503, "ServiceUnavailable", "this process is dead")
            if write.resource == EVENTS:
                return
            if self.budget is not None:
                self.budget -= 1
            try:
                self.refuse(write)
            except AssertionError as error:
                self.errors.append(error)

        transport = DirectTransport(cast(ApiServer, Door(self.server, before)), self.faults)
        self.metrics = Metrics()
        settings = Settings(scrape_through="api-server", custom_network_scripts="/".join(self.view.scripts_in or ()))
        clock = LoopClock(ORIGIN)
        told = self.notifications(clock, self.metrics)
        controller = Controller(Client(transport), settings, clock, self.metrics, told)
        async with controller.running():
            await asyncio.Event().wait()

    def stop_controller(self) -> None:
        self.running = False
        if self._process is not None:
            self._process.cancel()
            self._process = None
        self._announce()

    def _wake(self) -> None:
        """Nothing decides here; the controller has watches of its own."""

    async def gone(self) -> None:
        """Wait for the last process to end, and take down what it told as Events."""
        self.stop_controller()
        for process in self._ended:
            with suppress(asyncio.CancelledError):
                await process
        self.events = [ReleaseEvent(event["reason"], event.get("note", "")) for event in self.server.list(EVENTS)]


class ShellWalk(Walk):
    """A walk whose faults happen between the controller and the server."""

    world: ShellWorld

    def send(self, write: Write) -> None:
        self.judge.judge(write)

    def heal(self) -> None:
        self.world.faults.restore()
        # A watch is disturbed for as long as it lasts.
        self.world.faults.cut_watches()

    def refuse(self, told: tuple[int, int]) -> None:
        code, count = told
        self.world.faults.refuse(code, count=count, retry_after=1.5 if code == 429 else None)

    def lose_answer(self, count: int) -> None:
        self.world.faults.add(Effect(lost=True, carried_out=True), "patch", count=count)

    def cut(self) -> None:
        self.world.faults.cut_watches()

    def silence(self, count: int) -> None:
        """Watches that are opened anew stay open and say nothing."""
        self._watches(Effect(silent=True), count)

    def late(self, seconds: float) -> None:
        self._watches(Effect(event_delay=seconds), 6)

    def twice(self) -> None:
        self._watches(Effect(copies=2), 12)

    def forget(self) -> None:
        """The server has forgotten the history that the watches would go on from."""
        self.world.server.store.compact()
        self.world.faults.cut_watches()

    def slow(self, seconds: float) -> None:
        self.world.faults.add(Effect(delay=seconds), count=8)

    def _watches(self, effect: Effect, count: int) -> None:
        self.world.faults.add(effect, "watch", count=count)
        self.world.faults.cut_watches()
