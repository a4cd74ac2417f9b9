"""One client's data plane: it sees each change late, an object's changes in order, with lags fixed by a seed."""

from __future__ import annotations

import heapq
import random

from rollout_lws.sandbox.meter.seen import Key, Object, Seen

_Change = tuple[float, int, Key, Object | None]


class DataPlane:
    """``lag`` is the longest delay of a change in seconds.

    The delay depends on ``seed``, the object and the number of its changes; other objects do not affect it.
    """

    def __init__(self, seed: str, lag: float) -> None:
        self.seen = Seen()
        self._seed, self._lag = seed, lag
        self._coming: list[_Change] = []
        self._latest: dict[Key, tuple[int, float, Object | None]] = {}
        self._count = 0

    def know(self, key: Key, obj: Object) -> None:
        """Add an object that exists at the start."""
        self._latest[key] = (0, 0.0, obj)
        self.seen.put(key, obj)

    def learn(self, key: Key, obj: Object | None, now: float) -> None:
        """Record a change of an object (None: deleted); the data plane sees it after its lag."""
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
        """The epoch second at which the data plane sees the next change."""
        return self._coming[0][0] if self._coming else None

    def see(self, now: float) -> bool:
        """Apply the changes due by ``now``; returns whether there were any."""
        seen = False
        while self._coming and self._coming[0][0] <= now:
            _, _, key, obj = heapq.heappop(self._coming)
            self.seen.put(key, obj)
            seen = True
        return seen
