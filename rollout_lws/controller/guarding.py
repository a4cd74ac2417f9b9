"""The guard as a part of a controller process: server, keeper and caches, put together.

It is imported only where it is asked for: certificates need a library that takes long to load.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from rollout_lws.api.resources import Keys
from rollout_lws.controller.clock import Clock
from rollout_lws.controller.judging import Namespaces, judge
from rollout_lws.controller.logs import fields
from rollout_lws.guard import server
from rollout_lws.guard.keeper import Keeper
from rollout_lws.kube.client import Client
from rollout_lws.metrics import Metrics
from rollout_lws.metrics.guard import GuardMetrics
from rollout_lws.settings import Guard

log = logging.getLogger(__name__)

#: From the moment at which a pod ends until no API server asks it any more: they learn of it by a watch.
_FAREWELL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Guarding:
    """A guard that judges."""

    keeper: Keeper
    door: server.Door

    async def leave(self) -> None:
        """Judge on for as long as API servers may still ask. It comes last: who leads next need not wait."""
        self.door.leaving = True
        log.info("guard judges on while its Service turns elsewhere", extra=fields(seconds=f"{_FAREWELL_SECONDS:g}"))
        await asyncio.sleep(_FAREWELL_SECONDS)


@asynccontextmanager
async def guarding(
    client: Client, settings: Guard, namespaces: Namespaces, keys: Keys, clock: Clock, metrics: Metrics
) -> AsyncIterator[Guarding]:
    """A guard that judges by what ``namespaces`` know, until the block ends. ``client`` must not be fenced."""
    shown = server.context()
    keeper = Keeper(client, settings.name, settings.hosts, partial(server.show, shown), clock.now)
    counted = GuardMetrics(metrics.registry, lambda: keeper.until)
    judging = partial(judge, namespaces, keys, clock.now, lambda: keeper.me)
    async with server.served(settings.address, shown, judging, counted.reviewed) as door:
        log.info("guard listens", extra=fields(port=door.port, hosts=",".join(settings.hosts)))
        # A keeper that ends by a bug would leave a guard that nobody trusts any more, so it ends the process.
        async with asyncio.TaskGroup() as tasks:
            keeping = tasks.create_task(keeper.run(), name="guard")
            try:
                yield Guarding(keeper, door)
            finally:
                keeping.cancel()
