"""The guard in a controller process: wires its server and its CA bundle controller together.

Imported only when enabled: its certificate library is slow to load.
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
from rollout_lws.metrics.registry import GuardMetrics
from rollout_lws.settings import Guard

log = logging.getLogger(__name__)

#: Seconds after a pod begins to terminate until all API servers, which learn of it by a watch, stop calling it.
_LEAVING_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class RunningGuard:
    """A running guard."""

    bundles: CaBundleController
    state: server.ServerState

    async def leave(self) -> None:
        """Keep judging while API servers may still call. Comes last, so that the next leader does not wait for it."""
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
    """A guard that judges with the caches of ``namespaces``, until the block ends. ``client`` must not be fenced."""
    shown = server.context()
    bundles = CaBundleController(client, settings.name, settings.hosts, partial(server.show, shown), now)
    counted = GuardMetrics(metrics.registry, lambda: bundles.until)
    judging = partial(judge, namespaces, now, lambda: bundles.me)
    async with server.served(settings.address, shown, judging, counted.reviewed) as state:
        log.info("guard listens", extra={"fields": {"port": state.port, "hosts": ",".join(settings.hosts)}})
        # If a bug ends the CA bundle controller, API servers stop trusting this guard, so the process ends too.
        async with asyncio.TaskGroup() as tasks:
            keeping = tasks.create_task(bundles.run(), name="guard")
            try:
                yield RunningGuard(bundles, state)
            finally:
                keeping.cancel()
