"""Waiting for many objects at once: until enough of them are as expected, and until nothing changes any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from types import TracebackType

from rollout_lws.kube.client import Client
from rollout_lws.kube.informer import Informer
from rollout_lws.objects.resources import Resource
from tests.e2e.following import Whole, whole
from tests.e2e.mirror import Object

#: Much longer than a burst on a slow machine, and far too short for anybody to wait for by chance.
_REACH_SECONDS = 600.0


class Informed:
    """Follows all objects of a kind inside its block; ``enough`` is asked about each as it is, or has become, there."""

    def __init__(self, client: Client, resource: Resource, enough: Callable[[Object], bool]) -> None:
        self._resource = resource
        self._enough = enough
        self._reached = asyncio.Event()
        self._changed = asyncio.Event()
        self._informer: Informer[Whole] = Informer(client, resource, partial(whole, resource))
        self._informer.on_change(self._take)
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Informed:
        self._running = asyncio.create_task(self._informer.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._running is not None
        self._running.cancel()
        await asyncio.wait([self._running])

    async def reached(self) -> None:
        """Wait until ``enough`` has said so. TimeoutError after ten minutes."""
        try:
            async with asyncio.timeout(_REACH_SECONDS):
                await self._reached.wait()
        except TimeoutError:
            raise TimeoutError(f"{self._resource} are not as expected after {_REACH_SECONDS:g} s") from None

    async def quiet(self, seconds: float) -> None:
        """Wait until none has changed for ``seconds``."""
        while True:
            self._changed.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._changed.wait()
            except TimeoutError:
                return

    def _take(self, _: Whole | None, after: Whole | None) -> None:
        self._changed.set()
        if after is not None and self._enough(dict(after.object)):
            self._reached.set()
