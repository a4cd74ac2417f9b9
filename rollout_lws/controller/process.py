"""A controller from start to stop: connection, watches, workers, health server, and an orderly end."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import uuid
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollout_lws.api.resources import keys
from rollout_lws.controller import health, logs
from rollout_lws.controller.clock import WallClock
from rollout_lws.controller.controller import Controller
from rollout_lws.controller.logs import fields
from rollout_lws.controller.pulse import stuck
from rollout_lws.errors import UsageError
from rollout_lws.kube.client import Client
from rollout_lws.kube.connection import Connection, connect
from rollout_lws.kube.denials import Denials
from rollout_lws.kube.elector import Elector
from rollout_lws.kube.fence import Fence
from rollout_lws.kube.lease import Terms
from rollout_lws.metrics import Metrics
from rollout_lws.settings import Election, Settings

log = logging.getLogger(__name__)

_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
#: The write at hand ends before: a request may take 30 s.
_OVERDUE_SECONDS = 120.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def run(settings: Settings) -> None:
    """Until SIGINT or SIGTERM; what is being written then is finished first."""
    logs.configure(settings.log_format)
    await until_signalled(_serve(settings))


async def until_signalled(serving: Coroutine[Any, Any, None]) -> None:
    """Run ``serving`` until it ends, or SIGINT or SIGTERM cancels it, at its start already. A second signal kills."""
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(serving)

    def stop() -> None:
        log.info("stopping")
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
        task.cancel()

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop)
    with suppress(asyncio.CancelledError):
        await task


async def _serve(settings: Settings) -> None:
    async with _watching(settings) as process:
        if process.elector is None:
            async with process.controller.working():
                await asyncio.Event().wait()
        else:
            await process.elector.run(process.controller.working)


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Controller]:
    """A controller that is at work as the only one, connected as ``settings`` say, to the end of the block. ValueError
    when they want it to elect a leader.
    """
    if settings.election is not None:
        raise ValueError("who is at work all the time has nobody to elect")
    async with _watching(settings) as process, process.controller.working():
        yield process.controller


@dataclass(frozen=True, slots=True)
class _Process:
    controller: Controller
    elector: Elector | None

    @property
    def missing(self) -> str:
        """Why it is not ready: caches to be filled, or nobody knows who leads."""
        return self.controller.missing + (self.elector.missing if self.elector is not None else "")

    @property
    def stuck(self) -> str:
        """Why it has to begin anew, "" while it lives."""
        found, elector = self.controller.stuck, self.elector
        if elector is None:
            return found
        found += stuck([elector.informer])
        if elector.overdue > _OVERDUE_SECONDS:
            found += f"leadership ended {elector.overdue:.0f}s ago and its work goes on\n"
        return found

    @property
    def leads(self) -> bool:
        return self.elector is None or self.elector.leads


@asynccontextmanager
async def _watching(settings: Settings) -> AsyncIterator[_Process]:
    """Connected as ``settings`` say, with filled caches and a health server, and nothing decided yet."""
    counters = Metrics()
    async with AsyncExitStack() as stack:
        connection = await connect(settings.kubeconfig, settings.context)
        stack.push_async_callback(connection.close)
        fence = Fence() if settings.election is not None else Fence.none()
        client = Client(connection, timeout=settings.request_timeout, fence=fence)
        elector = (
            _elector(settings.election, connection, fence, counters, client.denials)
            if settings.election is not None
            else None
        )
        process = _Process(Controller(client, settings, WallClock(), counters), elector)
        counters.leader.set_function(lambda: process.leads)
        await stack.enter_async_context(
            health.served(
                settings.health,
                settings.metrics,
                counters,
                missing=lambda: process.missing,
                stuck=lambda: process.stuck,
            )
        )
        await stack.enter_async_context(process.controller.watching())
        # What fills the caches by now lives long. Looking through it for garbage again and again would stop every
        # release for as long as that takes: 0.2 s with 1,000 Rollouts.
        gc.freeze()
        log.info("controller started", extra=fields(group=keys(settings.api_group).group, workers=settings.workers))
        yield process


def _elector(election: Election, connection: Connection, fence: Fence, counters: Metrics, denials: Denials) -> Elector:
    """The candidate of this process; its name tells a pod, and tells two lives of one apart."""
    me = f"{socket.gethostname()}_{uuid.uuid4().hex[:12]}"
    terms = Terms(election.duration, election.deadline, election.retry)
    client = Client(connection, timeout=election.retry, observe=counters.requested, denials=denials)
    return Elector(client, election.namespace or _home(), election.name, me, terms, fence)


def _home() -> str:
    """The namespace of the pod that this is."""
    try:
        return _NAMESPACE.read_text().strip()
    except OSError as error:
        raise UsageError(
            "--leader-elect: outside of a pod nothing says where the Lease is: name its namespace with"
            " --leader-elect-resource-namespace"
        ) from error
