"""Nothing is sent after leadership has ended: asked before each write, and once more as its bytes go out.

Another controller may lead from the moment at which a lease has run out; what this one still meant to write was decided
from what it knew before that.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

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
    """Writes pass until ``until`` on ``clock``: never at first, and for ever where nobody elects (``Fence.none``)."""

    def __init__(self, clock: Seconds = elapsed, until: float = -math.inf) -> None:
        self._clock = clock
        self.until = until

    @classmethod
    def none(cls) -> Fence:
        """Of a controller that is the only one."""
        return cls(until=math.inf)

    def close(self) -> None:
        """Nothing passes any more."""
        self.until = -math.inf

    @property
    def left(self) -> float:
        """Seconds for which writes still pass, 0 when none does."""
        return max(0.0, self.until - self._clock())

    def check(self) -> None:
        """NotLeading unless a write may go out now."""
        if self._clock() >= self.until:
            raise NotLeading("not sent: this controller does not lead, or does not know any more that it does")
