"""The one clock of a process, so that a story in virtual time and a cluster in real time run the same code.

Decisions know moments (aware datetimes), the event loop its own monotonic seconds; a clock turns one into the other.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """What the time is, and when the loop has to wake up for a moment."""

    def now(self) -> datetime:
        """This moment, in UTC."""
        ...

    def loop_time(self, moment: datetime) -> float:
        """The running loop's ``time()`` at ``moment``, to be given to ``call_at``."""
        ...


class WallClock:
    """The machine's clock; a moment is converted anew each time, so a stepped clock costs at most one early look."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def loop_time(self, moment: datetime) -> float:
        return asyncio.get_running_loop().time() + (moment - self.now()).total_seconds()


class LoopClock:
    """Time bound to the running loop: ``origin`` is when its ``time()`` was 0. Virtual where the loop is."""

    def __init__(self, origin: datetime) -> None:
        self._origin = origin

    def now(self) -> datetime:
        return self._origin + timedelta(seconds=asyncio.get_running_loop().time())

    def loop_time(self, moment: datetime) -> float:
        return (moment - self._origin).total_seconds()
