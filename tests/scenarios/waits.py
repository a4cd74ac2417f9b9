"""Waiting in a world until something is so, whatever tells of its changes and whichever clock it goes by."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import msgspec

from rollout_lws.rollout.decision import ReleaseEvent
from tests.scenarios.names import NAME
from tests.scenarios.sight import Sight


class Waits(Sight):
    """Whoever changes the world calls ``_announce``; ``errors`` are what went wrong meanwhile."""

    errors: list[BaseException]
    #: How often the controller was killed in mid-release.
    kills: int = 0
    #: Seconds after which what a story waits for will not come: its test must be allowed longer to say so.
    patience: float = 3600
    _waiters: set[asyncio.Future[None]]

    @property
    def now(self) -> datetime:
        raise NotImplementedError

    @property
    def is_current(self) -> bool:
        """Whether every change that was made is known here."""
        return True

    def _announce(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    async def _change(self, seconds: float) -> bool:
        """Wait for the next change; False when there was none in time."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            async with asyncio.timeout(max(0.001, seconds)):
                await waiter
        except TimeoutError:
            return False
        return True

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)
        self.raise_errors()

    async def until(self, holds: Callable[[], bool], what: str = "", seconds: float = 600) -> None:
        """Wait until something is so."""
        deadline = self.now + timedelta(seconds=seconds)
        while not holds():
            self.raise_errors()
            if self.now >= deadline:
                raise AssertionError(f"not within {seconds} s: {what or holds}\n{self.describe()}")
            await self._change((deadline - self.now).total_seconds())
        self.raise_errors()

    async def until_state(self, state: str, seconds: float = 600) -> None:
        await self.until(lambda: self.state == state, f"state {state}", seconds)

    async def rest(self, quiet: float = 3, seconds: float = 900) -> None:
        """Wait until nothing has changed for ``quiet`` seconds."""
        deadline = self.now + timedelta(seconds=seconds)
        while True:
            self.raise_errors()
            assert self.now < deadline, f"never at rest\n{self.describe()}"
            if not await self._change(quiet):
                self.raise_errors()
                return

    def raise_errors(self) -> None:
        if self.errors:
            raise self.errors[0]

    def describe(self) -> str:
        listed = {name: self.groups(name) for name in self.workloads}
        told = "\n".join(f"  {event.reason}: {event.note}" for event in self._told()[-8:])
        partition = self.lws["spec"][self.kind.strategy[0]] if self.get(self.kind.resource, NAME) else None
        return f"groups {listed}\nstrategy {partition}\nstatus {msgspec.json.encode(self.status).decode()}\n{told}"

    def _told(self) -> Sequence[ReleaseEvent]:
        """What the controller has told as Events so far."""
        raise NotImplementedError
