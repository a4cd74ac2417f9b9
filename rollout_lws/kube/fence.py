"""Nothing is sent after leadership has ended: asked before each write, and once more as its bytes go out.

Another controller may lead from the moment at which a lease has run out; what this one still meant to write was decided
from what it knew before that.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from rollout_lws.errors import NotLeading

#: Gives seconds; only differences mean something.
Seconds = Callable[[], float]
_BOOT_TIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def elapsed() -> float:
    """Seconds that pass also while the machine sleeps, where the system counts them (Linux), and while this process is
    stopped; a clock that somebody sets changes nothing.
    """
    return time.monotonic() if _BOOT_TIME is None else time.clock_gettime(_BOOT_TIME)


class Fence:
    """Writes pass until a moment of ``clock`` that may be put off: never at first, for ever where nobody elects."""

    def __init__(self, clock: Seconds = elapsed, until: float = -math.inf) -> None:
        self._clock = clock
        self._until = until
        self._passing: set[asyncio.Timeout] = set()

    @classmethod
    def none(cls) -> Fence:
        """Of a controller that is the only one."""
        return cls(until=math.inf)

    def open_until(self, moment: float) -> None:
        """Writes pass before ``moment``; those on their way get as long, too."""
        if moment != self._until:
            self._until = moment
            for each in self._passing:
                if not each.expired():
                    each.reschedule(self._loop_time())

    def close(self) -> None:
        """Nothing passes any more, and what is on its way is given up."""
        self.open_until(-math.inf)

    def check(self) -> None:
        """NotLeading unless a write may go out now."""
        if self._clock() >= self._until:
            raise NotLeading("not sent: this controller does not lead, or does not know any more that it does")

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[None]:
        """Around a write, from its first byte's preparation to its answer; NotLeading when leadership ends before."""
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
