"""The guard as a part of a controller process: server, keeper and caches, put together.

It is imported only where it is asked for: certificates need a library that takes long to load.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from rollout_lws.api.resources import Keys
from rollout_lws.controller.clock import Clock
from rollout_lws.controller.judging import Look, judge
from rollout_lws.controller.logs import fields
from rollout_lws.guard import server
from rollout_lws.guard.keeper import Keeper
from rollout_lws.kube.client import Client
from rollout_lws.metrics import Metrics
from rollout_lws.metrics.guard import GuardMetrics
from rollout_lws.settings import Guard

log = logging.getLogger(__name__)


@asynccontextmanager
async def guarding(
    client: Client, settings: Guard, look: Look, keys: Keys, clock: Clock, metrics: Metrics
) -> AsyncIterator[Keeper]:
    """A guard that judges by what ``look`` knows, until the block ends. ``client`` must not be fenced."""
    shown = server.context()
    keeper = Keeper(client, settings.name, settings.hosts, partial(server.show, shown), clock.now)
    counted = GuardMetrics(metrics.registry, lambda: keeper.until)
    judging = partial(judge, look, keys, clock.now, lambda: keeper.me)
    async with server.served(settings.address, shown, judging, counted.reviewed) as port:
        log.info("guard listens", extra=fields(port=port, hosts=",".join(settings.hosts)))
        # A keeper that ends by a bug would leave a guard that nobody trusts any more, so it ends the process.
        async with asyncio.TaskGroup() as tasks:
            keeping = tasks.create_task(keeper.run(), name="guard")
            try:
                yield keeper
            finally:
                keeping.cancel()
