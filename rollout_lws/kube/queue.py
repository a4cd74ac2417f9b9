"""Work queue: each key at most once however often it is added, never with two workers at a time, with exact timers.

No polling: a change, the key's timer, or the end of its back-off wakes a key.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_FIRST_BACK_OFF, _LONGEST_BACK_OFF = 0.005, 30.0


class KeyedQueue(Generic[K]):
    """A queue of keys; ``chance`` is the source of the back-off's jitter, ``late`` is called with each timer's delay,
    in seconds.
    """

    def __init__(self, chance: random.Random | None = None, late: Callable[[float], None] | None = None) -> None:
        #: Keys with the loop's time when they were added, the oldest first.
        self._ready: deque[tuple[K, float]] = deque()
        self._dirty: set[K] = set()
        self._processing: set[K] = set()
        self._failures: dict[K, int] = {}
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._chance = chance or random.Random()
        self._late = late

    def __len__(self) -> int:
        """Number of keys that wait for a worker."""
        return len(self._ready)

    @property
    def oldest_seconds(self) -> float:
        """How long the oldest key has waited for a worker, 0 when none waits."""
        return asyncio.get_running_loop().time() - self._ready[0][1] if self._ready else 0.0

    @property
    def failing(self) -> int:
        """Number of keys whose last try failed."""
        return len(self._failures)

    def add(self, key: K) -> None:
        """Queue ``key``; while it is being processed, once more afterwards."""
        if key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._put(key)

    def add_at(self, key: K, when: float) -> None:
        """Queue ``key`` when the loop's time is ``when``; of several moments the earliest counts."""
        known = self._timers.get(key)
        if known is not None:
            if known.when() <= when:
                return
            known.cancel()
        self._timers[key] = asyncio.get_running_loop().call_at(when, self._fire, key, when)

    def retry(self, key: K, after: float | None = None) -> None:
        """Queue ``key`` after its back-off, which doubles with each failure; not before ``after`` seconds."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = min(_FIRST_BACK_OFF * 2 ** min(failures - 1, 20), _LONGEST_BACK_OFF) * self._chance.uniform(1.0, 1.25)
        self.add_at(key, asyncio.get_running_loop().time() + max(delay, after or 0.0))

    def forget(self, key: K) -> None:
        """``key`` succeeded: its next failure starts with the shortest back-off, and its timer is cancelled."""
        self._failures.pop(key, None)
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def clear(self) -> None:
        """Forget every key, its timer and its failures; keys being processed stay so until they are done."""
        for timer in self._timers.values():
            timer.cancel()
        for forgotten in (self._timers, self._failures, self._dirty, self._ready):
            forgotten.clear()

    async def get(self) -> K:
        """The next key; the caller must call ``done`` after processing it."""
        while not self._ready:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
                elif self._ready:
                    self._wake()
                raise
        key, _ = self._ready.popleft()
        self._dirty.discard(key)
        self._processing.add(key)
        return key

    def done(self, key: K) -> None:
        self._processing.discard(key)
        if key in self._dirty:
            self._put(key)

    def _fire(self, key: K, when: float) -> None:
        del self._timers[key]
        if self._late is not None:
            self._late(max(0.0, asyncio.get_running_loop().time() - when))
        self.add(key)

    def _put(self, key: K) -> None:
        self._ready.append((key, asyncio.get_running_loop().time()))
        self._wake()

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
