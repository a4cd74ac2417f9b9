"""A client's connections: each keeps its endpoint until its lifetime is over or the endpoint is gone.

They are modelled as equal parts that reopen in turn, so a change of weights takes full effect after one lifetime, in
even steps.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from rollout_lws.sandbox.meter.split import Split, Target, mixed

_PARTS = 60


class Connections:
    """``lifetime`` is in seconds; with 0 each request chooses an endpoint. The first lifetime opens all evenly."""

    def __init__(self, lifetime: float, now: float, chosen: Split) -> None:
        self._step = lifetime / _PARTS
        self._begun = now
        self._turn = 0
        self._parts: list[Split] = [chosen] * (_PARTS if lifetime else 1)
        self._chosen = chosen
        self.spread: Split = chosen

    @property
    def due(self) -> float | None:
        """The epoch second of the next change of ``spread``; None if no change is due."""
        if self._step and any(part is not self._chosen for part in self._parts):
            return self._begun + self._step * (self._turn + 1)
        return None

    def choose(self, chosen: Split, hopeless: Callable[[Target], bool]) -> None:
        """Open connections to ``chosen`` from now on; those to ``hopeless`` targets reopen at once."""
        if chosen != self._chosen:
            self._chosen = chosen
        self._parts = [self._reopened(part, hopeless) for part in self._parts] if self._step else [self._chosen]
        self._mix()

    def _reopened(self, part: Split, hopeless: Callable[[Target], bool]) -> Split:
        if part is self._chosen:
            return part
        lost = [target for target in part if hopeless(target)]
        if not lost:
            return part
        kept = {target: share for target, share in part.items() if target not in lost}
        again = 1 - sum(kept.values(), Fraction(0))
        return self._chosen if again == 1 else mixed([(Fraction(1), kept), (again, self._chosen)])

    def pass_time(self, now: float) -> None:
        """Reopen the connections whose lifetime is over by ``now``."""
        if not self._step:
            return
        before = self._turn
        while self._begun + self._step * (self._turn + 1) <= now:
            self._parts[self._turn % _PARTS] = self._chosen
            self._turn += 1
        if self._turn != before:
            self._mix()

    def _mix(self) -> None:
        distinct: dict[int, tuple[int, Split]] = {}
        for part in self._parts:
            count, _ = distinct.get(id(part), (0, part))
            distinct[id(part)] = count + 1, part
        spread = mixed((Fraction(count, len(self._parts)), part) for count, part in distinct.values())
        if spread != self.spread:
            self.spread = spread
