"""The controller process from start to stop: connection, watches, workers, health server, graceful shutdown."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import signal
import socket
import uuid
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollout_lws import logs
from rollout_lws.api.resources import keys
from rollout_lws.clock import WallClock
from rollout_lws.controller import health
from rollout_lws.controller.controller import Controller
from rollout_lws.controller.health import Readiness
from rollout_lws.controller.self_metrics import stuck
from rollout_lws.errors import UsageError
from rollout_lws.kube.client import Client
from rollout_lws.kube.connection import Connection, connect
from rollout_lws.kube.denials import Denials
from rollout_lws.kube.elector import Elector
from rollout_lws.kube.fence import Fence
from rollout_lws.kube.lease import Terms
from rollout_lws.logs import fields
from rollout_lws.metrics import Metrics
from rollout_lws.scripting.runner import check_installed
from rollout_lws.settings import DEFAULT_GUARD, Election, Guard, Settings

if TYPE_CHECKING:
    from rollout_lws.admission.guard import RunningGuard

log = logging.getLogger(__name__)

_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
#: The current write ends before that: a request may take 30 s.
_OVERDUE_SECONDS = 120.0
_NO_LEASE = (
    "--leader-elect: outside of a pod nothing says where the Lease is: name its namespace with"
    " --leader-elect-resource-namespace"
)
_NO_HOST = "--guard: outside of a pod nothing says how API servers reach it: name it with --guard-host"
_NO_SCRIPTS = (
    "--custom-network-scripts: outside of a pod nothing says in which namespace the ConfigMap is: write namespace/name"
)
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def run(settings: Settings) -> None:
    """Run until SIGINT or SIGTERM; writes in progress are finished first."""
    logs.configure(settings.log_format)
    await until_signalled(_serve(settings))


async def until_signalled(serving: Coroutine[Any, Any, None]) -> None:
    """Run ``serving`` until it ends, or SIGINT or SIGTERM cancels it, even during start-up. A second signal kills."""
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
        try:
            if process.elector is None:
                async with process.controller.working():
                    await asyncio.Event().wait()
            else:
                await process.elector.run(process.controller.working)
        except asyncio.CancelledError:
            await process.leave()
            raise


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Controller]:
    """A working controller without leader election, connected according to ``settings``, to the end of the block.
    ValueError when the settings ask for leader election.
    """
    if settings.election is not None:
        raise ValueError("a controller that always works has no leader election")
    async with _watching(settings) as process, process.controller.working():
        yield process.controller


@dataclass(slots=True)
class _Process:
    controller: Controller
    elector: Elector | None
    guard: RunningGuard | None = None
    _was_ready: bool = False
    _leaving: bool = False

    def readiness(self) -> Readiness:
        """Ready once caches are filled, the leader is known, and API servers trust the webhook's certificate. A missing
        permission blocks only the first readiness, so that an upgrade with an outdated role stops at its first pod. If
        lost later, it is only reported: all replicas, and with them the webhook, would become unready together, and one
        permission in one namespace would let pass, or block, every edit in the cluster.
        """
        parts = (self.controller, self.elector, self.guard.bundles if self.guard is not None else None)
        missing = "".join(each.missing for each in parts if each is not None)
        if self._leaving:
            missing = missing or "stopping\n"
        untold = "".join(each.untold for each in parts if each is not None)
        ready = not missing and (self._was_ready or not untold)
        self._was_ready = self._was_ready or ready
        return Readiness(ready, missing + untold)

    async def leave(self) -> None:
        """Called after the work has ended and leadership is released."""
        self._leaving = True
        if self.guard is not None:
            await self.guard.leave()

    @property
    def stuck(self) -> str:
        """Why the process has to restart, "" while it is alive."""
        found, elector = self.controller.stuck, self.elector
        if self.guard is not None:
            found += stuck(self.guard.bundles.informers)
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
    """Connects according to ``settings``, fills the caches and serves health checks; decides nothing yet."""
    counters = Metrics()
    settings = _with_scripts(settings)
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
                readiness=process.readiness,
                stuck=lambda: process.stuck,
            )
        )
        if settings.guard is not None:
            process.guard = await stack.enter_async_context(
                _guarding(settings, settings.guard, connection, process.controller, counters, client.denials)
            )
        await stack.enter_async_context(process.controller.watching())
        # The objects in the filled caches live long. Repeated garbage collection over them would stop every release for
        # as long as that takes: 0.2 s with 1,000 Rollouts.
        gc.freeze()
        _give_back()
        log.info("controller started", extra=fields(group=keys(settings.api_group).group, workers=settings.workers))
        yield process


def _with_scripts(settings: Settings) -> Settings:
    """The settings with the namespace of the ConfigMap with scripts; UsageError where nothing can run them."""
    if settings.scripts is None:
        return settings
    check_installed()
    namespace, name = settings.scripts
    return replace(settings, custom_network_scripts=f"{namespace or _home(_NO_SCRIPTS)}/{name}")


def _guarding(
    settings: Settings,
    guard: Guard,
    connection: Connection,
    controller: Controller,
    counters: Metrics,
    denials: Denials,
) -> AbstractAsyncContextManager[RunningGuard]:
    """Listens from the start and allows everything until its caches are filled: API servers must not wait."""
    from rollout_lws.admission import guard as admission

    client = Client(
        connection,
        field_manager=DEFAULT_GUARD,
        timeout=settings.request_timeout,
        observe=counters.requested,
        denials=denials,
    )
    hosts = guard.hosts or (f"{DEFAULT_GUARD}.{_home(_NO_HOST)}.svc",)
    known = replace(guard, hosts=hosts)
    return admission.running(client, known, controller.look, WallClock().now, counters)


def _give_back() -> None:
    """Return memory freed after the first lists to the system: the allocator would keep some 10 MB of it. C libraries
    other than glibc have no such call.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _elector(election: Election, connection: Connection, fence: Fence, counters: Metrics, denials: Denials) -> Elector:
    """The candidate of this process; its name identifies the pod and distinguishes restarts of it."""
    me = f"{socket.gethostname()}_{uuid.uuid4().hex[:12]}"
    terms = Terms(election.duration, election.deadline, election.retry)
    client = Client(connection, timeout=election.retry, observe=counters.requested, denials=denials)
    return Elector(client, election.namespace or _home(_NO_LEASE), election.name, me, terms, fence)


def _home(needs: str) -> str:
    """The namespace of this pod; outside of a pod UsageError, whose message begins with ``needs``."""
    try:
        return _NAMESPACE.read_text().strip()
    except OSError as error:
        raise UsageError(needs) from error
