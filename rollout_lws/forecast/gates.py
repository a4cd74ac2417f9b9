"""What gates of figures take before they can say something: requests of either version, and time.

Numbers are those of ``analysis``, before anything is measured: of requests that are independent of each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from rollout_lws.analysis.judge import planned
from rollout_lws.api import Analysis, HttpGate, JobGate, MetricGate, QueryGate, StepGate, StyleStrategy
from rollout_lws.api.gate_rules import criterion, query
from rollout_lws.capacity.weights import sharing_step


@dataclass(frozen=True, slots=True)
class Placed:
    """A gate, its ``step`` (from 1), and its position in that step (from 0)."""

    gate: StepGate
    step: int
    index: int


@dataclass(frozen=True, slots=True)
class Demand:
    """What a gate needs of a step in which the new version gets ``share`` (0 to 1) of requests.

    ``new`` is the number of the new version's requests, or of a query's samples, ``stable`` that of the stable version,
    0 where it is not compared; None where time decides, or no number of them does. ``matched``: requests that match go
    to the new version besides.
    """

    placed: Placed
    share: float
    matched: bool
    new: int | None
    stable: int

    @property
    def window(self) -> int:
        return self.placed.gate.seconds

    @property
    def deadline(self) -> int:
        return self.placed.gate.deadline

    @property
    def counts_requests(self) -> bool:
        """Whether a rate of requests tells how long the gate takes: samples of a query may be anything."""
        return self.placed.gate.metric is not None

    @property
    def in_all(self) -> float | None:
        """Requests of both versions that go by until each has its own; None where that is not known, as of requests
        that match.
        """
        if self.new is None or not self.counts_requests or not self.share or self.matched:
            return None
        return max(self.new / self.share, self.stable / (1 - self.share) if self.stable else 0.0)

    def seconds(self, rate: float) -> float:
        """How long the gate takes at so many requests a second of both versions, 0 where that is not known: at least
        its window. It may be longer than the deadline.
        """
        return max(self.window, self.in_all / rate) if rate and self.in_all is not None else self.window


def gates_of(plan: StyleStrategy) -> Iterator[Placed]:
    """All gates of a plan, in their order."""
    for step, of in enumerate(plan.steps, 1):
        yield from (Placed(gate, step, index) for index, gate in enumerate(of.gates))


def demands(plan: StyleStrategy, step: int, share: float) -> tuple[Demand, ...]:
    """Those of a step's gates of figures; of a plan without problems."""
    matched = bool(sharing_step(plan, step).matches)
    found = (_demand(each, share, matched) for each in gates_of(plan) if each.step == step)
    return tuple(each for each in found if each is not None)


def _demand(placed: Placed, share: float, matched: bool) -> Demand | None:
    gate = placed.gate
    match gate.asked:
        case MetricGate() as metric:
            # How many there have to be does not hang on who exposes them.
            needed = planned(criterion(metric, gate, Analysis()), share)
            return Demand(placed, share, matched, *(needed if needed is not None else (None, 0)))
        case QueryGate() as asked:
            samples = query(asked, gate, Analysis()).needed if asked.samples is not None else None
            return Demand(placed, share, matched, samples, 0)
        case HttpGate() | JobGate() | None:
            return None
        case unknown:
            assert_never(unknown)


def least_seconds(plan: StyleStrategy, step: int, share: float, rate: float) -> float:
    """Seconds that a step's gates of figures take at least, up to their deadlines; 0 without any."""
    return max((min(each.seconds(rate), each.deadline) for each in demands(plan, step, share)), default=0.0)
