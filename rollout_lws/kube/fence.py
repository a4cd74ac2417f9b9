"""Write fence: stops writes after leadership has ended, checked before each write and again as its bytes are sent.

Once the lease has expired, another controller may lead, and writes decided before that are outdated.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from rollout_lws.errors import NotLeading

#: Gives seconds; only differences are meaningful.
Seconds = Callable[[], float]
_BOOT_TIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def elapsed() -> float:
    """Seconds that also pass while the machine sleeps, where the system counts them (Linux), and while this process is
    stopped; setting the system time does not affect them.
    """
    return time.monotonic() if _BOOT_TIME is None else time.clock_gettime(_BOOT_TIME)


class Fence:
    """Lets writes pass until an extensible moment of ``clock``: initially never, without leader election always."""

    def __init__(self, clock: Seconds = elapsed, until: float = -math.inf) -> None:
        self._clock = clock
        self._until = until
        self._passing: set[asyncio.Timeout] = set()

    @classmethod
    def none(cls) -> Fence:
        """The fence of a controller without leader election."""
        return cls(until=math.inf)

    def open_until(self, moment: float) -> None:
        """Let writes pass before ``moment``, which is also the limit for those in progress."""
        if moment != self._until:
            self._until = moment
            for each in self._passing:
                if not each.expired():
                    each.reschedule(self._loop_time())

    def close(self) -> None:
        """Let no further write pass, and abort those in progress."""
        self.open_until(-math.inf)

    def check(self) -> None:
        """NotLeading unless a write may be sent now."""
        if self._clock() >= self._until:
            raise NotLeading("not sent: this controller does not lead, or does not know any more that it does")

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[None]:
        """Encloses a write, from its preparation to its answer; NotLeading when leadership ends before that."""
        self.check()
        limit = asyncio.timeout_at(self._loop_time())
        self._passing.add(limit)
        try:
            async with limit:
                yield
        except TimeoutError as late:
            if not limit.expired():
                raise
            raise NotLeading("given up: leadership has ended before the answer came") from late
        finally:
            self._passing.discard(limit)

    def _loop_time(self) -> float | None:
        if self._until == math.inf:
            return None
        return asyncio.get_running_loop().time() + max(0.0, self._until - self._clock())
