"""Tells tasks of an event loop that something has changed, which threads may say."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class Bell:
    """``set`` may be called by any thread. Who takes ``next`` before looking at what changes misses no change."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._next = asyncio.Event()

    @property
    def next(self) -> asyncio.Event:
        """Set by the next change."""
        return self._next

    def set(self) -> None:
        """Something has changed."""
        # A watch may end after the loop.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._ring)

    def _ring(self) -> None:
        rung, self._next = self._next, asyncio.Event()
        rung.set()
