"""The clock of a process, so that tests in virtual time and a cluster in real time run the same code.

Decisions use aware datetimes, the event loop its own monotonic seconds; a clock converts between them.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The current time, and the loop time of a wake-up."""

    def now(self) -> datetime:
        """The current time, in UTC."""
        ...

    def loop_time(self, moment: datetime) -> float:
        """The running loop's ``time()`` at ``moment``, for ``call_at``."""
        ...


class WallClock:
    """The system clock; each moment is converted when used, so a stepped clock causes at most one early wake-up."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def loop_time(self, moment: datetime) -> float:
        return asyncio.get_running_loop().time() + (moment - self.now()).total_seconds()
