"""Virtual time for tests whose whole world is in one process.

Before it moves the clock looptime turns the loop some forty times more, for what threads and sockets may still bring.
Here nothing comes from outside: what can run has run when the loop asks for its next timer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeVar

import looptime

#: Of ``setup_looptime``, and of the marker ``looptime``.
OPTIONS: dict[str, Any] = {"noop_cycles": 0}

_Result = TypeVar("_Result")


def run(work: Coroutine[Any, Any, _Result]) -> _Result:
    """The answer of ``work``, run in a loop of its own from second 0 on."""
    loop = looptime.patch_event_loop(asyncio.new_event_loop())
    loop.setup_looptime(**OPTIONS)
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


class LoopClock:
    """Time bound to the running loop: ``origin`` is when its ``time()`` was 0. Virtual where the loop is."""

    def __init__(self, origin: datetime) -> None:
        self._origin = origin

    def now(self) -> datetime:
        return self._origin + timedelta(seconds=asyncio.get_running_loop().time())

    def loop_time(self, moment: datetime) -> float:
        return (moment - self._origin).total_seconds()
