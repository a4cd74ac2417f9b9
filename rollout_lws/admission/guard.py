"""The guard as a part of a controller process: its server and the controller of its CA bundles, put together.

It is imported only where it is asked for: certificates need a library that takes long to load.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from rollout_lws.admission import server
from rollout_lws.admission.ca_bundle_controller import CaBundleController
from rollout_lws.admission.judge import Namespaces, judge
from rollout_lws.kube.client import Client
from rollout_lws.metrics import Metrics
from rollout_lws.metrics.guard import GuardMetrics
from rollout_lws.settings import Guard

log = logging.getLogger(__name__)

#: Seconds from the moment at which a pod ends until no API server asks it any more: they learn of it by a watch.
_LEAVING_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class RunningGuard:
    """A guard that judges."""

    bundles: CaBundleController
    state: server.ServerState

    async def leave(self) -> None:
        """Judge on for as long as API servers may still ask. It comes last: the next leader need not wait for it."""
        self.state.leaving = True
        told = {"fields": {"seconds": f"{_LEAVING_SECONDS:g}"}}
        log.info("guard judges on while its Service turns elsewhere", extra=told)
        await asyncio.sleep(_LEAVING_SECONDS)


@asynccontextmanager
async def running(
    client: Client,
    settings: Guard,
    namespaces: Namespaces,
    now: Callable[[], datetime],
    metrics: Metrics,
) -> AsyncIterator[RunningGuard]:
    """A guard that judges by what ``namespaces`` know, until the block ends. ``client`` must not be fenced."""
    shown = server.context()
    bundles = CaBundleController(client, settings.name, settings.hosts, partial(server.show, shown), now)
    counted = GuardMetrics(metrics.registry, lambda: bundles.until)
    judging = partial(judge, namespaces, now, lambda: bundles.me)
    async with server.served(settings.address, shown, judging, counted.reviewed) as state:
        log.info("guard listens", extra={"fields": {"port": state.port, "hosts": ",".join(settings.hosts)}})
        # If the controller of the bundles ends by a bug, API servers stop trusting this guard, so the process ends too.
        async with asyncio.TaskGroup() as tasks:
            keeping = tasks.create_task(bundles.run(), name="guard")
            try:
                yield RunningGuard(bundles, state)
            finally:
                keeping.cancel()
