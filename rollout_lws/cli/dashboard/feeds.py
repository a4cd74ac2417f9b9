"""The feeds of all releases that pages show now."""

from __future__ import annotations

from collections.abc import Callable

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.dashboard.release_feed import ReleaseFeed
from rollout_lws.cli.get.caller import Caller
from rollout_lws.objects.resources import Resource


class Feeds:
    """Each feed is shared by all pages that show its release, and closed when the last one goes."""

    def __init__(self, transport: Transport, rollouts: Resource, caller: Callable[[str], Caller]) -> None:
        self._transport, self._rollouts, self._caller = transport, rollouts, caller
        self._open: dict[tuple[str, str], ReleaseFeed] = {}
        self._pages: dict[tuple[str, str], int] = {}

    def enter(self, namespace: str, name: str) -> ReleaseFeed:
        """The feed of a Rollout, for one page more."""
        key = (namespace, name)
        if key not in self._open:
            transport = self._transport.within(namespace)
            self._open[key] = ReleaseFeed(transport, self._rollouts, name, self._caller(namespace))
        self._pages[key] = self._pages.get(key, 0) + 1
        return self._open[key]

    async def leave(self, namespace: str, name: str) -> None:
        """One page less; the last one closes the feed."""
        key = (namespace, name)
        self._pages[key] -= 1
        if not self._pages[key]:
            del self._pages[key]
            await self._open.pop(key).close()
