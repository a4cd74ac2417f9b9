"""One client's data plane: it learns of each change late, each object's changes in order, by lags that a seed fixes."""

from __future__ import annotations

import heapq
import random

from rollout_lws.sandbox.meter.seen import Key, Object, Seen

_Change = tuple[float, int, Key, Object | None]


class DataPlane:
    """``lag`` is the longest delay of a change in seconds.

    The delay depends on ``seed``, the object and how many changes it has had: other objects do not move it.
    """

    def __init__(self, seed: str, lag: float) -> None:
        self.seen = Seen()
        self._seed, self._lag = seed, lag
        self._coming: list[_Change] = []
        self._latest: dict[Key, tuple[int, float, Object | None]] = {}
        self._count = 0

    def know(self, key: Key, obj: Object) -> None:
        """Take in what was there before."""
        self._latest[key] = (0, 0.0, obj)
        self.seen.put(key, obj)

    def learn(self, key: Key, obj: Object | None, now: float) -> None:
        """An object has changed to this (None: has gone) and will be seen so after its lag."""
        changes, last, known = self._latest.get(key, (0, 0.0, None))
        if known == obj:
            return
        chance = random.Random(f"{self._seed}/{key[0]}/{key[1]}/{key[2]}/{changes}")
        due = max(last, now + chance.uniform(0.0, self._lag))
        self._latest[key] = (changes + 1, due, obj)
        self._count += 1
        heapq.heappush(self._coming, (due, self._count, key, obj))

    @property
    def due(self) -> float | None:
        """When the next change is seen, in epoch seconds."""
        return self._coming[0][0] if self._coming else None

    def see(self, now: float) -> bool:
        """See what is due by ``now``; whether that was anything."""
        seen = False
        while self._coming and self._coming[0][0] <= now:
            _, _, key, obj = heapq.heappop(self._coming)
            self.seen.put(key, obj)
            seen = True
        return seen
