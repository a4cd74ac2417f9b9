"""A tool that watches an LWS and resets its partition, seconds after each time that the hold is put back."""

from __future__ import annotations

import asyncio

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.sandbox.store import Event
from tests.scenarios.count import HOLD, partition
from tests.scenarios.names import NAME
from tests.scenarios.world import World


class Insisting:
    """Resets it at once, and ``delay`` seconds after each repair, until ``stop``; ``resets`` counts."""

    def __init__(self, world: World, delay: float = 3, lowered: int = 0) -> None:
        self.resets = 0
        self._world, self._delay, self._lowered = world, delay, lowered
        self._on, self._due = True, False
        world.server.store.subscribe(self._changed)
        self._reset()

    def stop(self) -> None:
        self._on = False

    def _changed(self, event: Event) -> None:
        mine = event.resource == LEADER_WORKER_SETS and event.object["metadata"]["name"] == NAME
        if self._on and mine and not self._due and partition(event.object) >= HOLD:
            self._due = True
            asyncio.get_running_loop().call_later(self._delay, self._reset)

    def _reset(self) -> None:
        self._due = False
        if self._on:
            self.resets += 1
            self._world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": self._lowered}}})
