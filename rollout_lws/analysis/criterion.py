"""What is asked of a version, and what the figures said."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, unique

from rollout_lws.analysis.kinds import MEASURES, Exporter, Measure, Signal


@unique
class Verdict(StrEnum):
    """What a trial ends with."""

    PASSED = "Passed"
    FAILED = "Failed"
    INCONCLUSIVE = "Inconclusive"


@dataclass(frozen=True, slots=True)
class Criterion:
    """One limit for one signal.

    ``limit`` is in seconds of a latency (whose ``quantile``, 0 to 1, has to be within it) and of ``Stalled``, a share
    from 0 to 1 of shares, a number of gauges; ``at_least`` makes it the least that is asked for. ``to_stable`` is given
    instead: the multiple of stable's value that is allowed. ``window`` is the least time that the version is watched,
    in seconds; ``confidence`` is that of each verdict; ``min_samples`` are requests of each version. ``watched`` is
    judged one window after the other, until it fails. ``exporter`` is the one whose names are read; None: of any model
    server.
    """

    signal: Signal
    limit: float | None = None
    to_stable: float | None = None
    quantile: float = 0.95
    at_least: bool = False
    window: float = 300.0
    confidence: float = 0.95
    min_samples: int = 100
    exporter: Exporter | None = None
    watched: bool = False

    @property
    def measure(self) -> Measure:
        return MEASURES[self.signal]

    @property
    def compared(self) -> bool:
        """Whether the stable version's figures are needed."""
        return self.to_stable is not None


@dataclass(frozen=True, slots=True)
class Figures:
    """What a verdict rests on.

    ``value`` and ``stable_value`` are in the unit of the limit, ``limit`` is the one that stands; None where nothing is
    known. ``samples`` are completed requests, readings of a gauge; ``needed`` how many independent ones of the new
    version the last look waits for, None where it waits for time only. Of requests (and latencies) ``bad`` is the share
    that is slow or failed, ``low`` and ``high`` are its bounds, ``allowed`` is what may be.
    """

    samples: float = 0.0
    stable_samples: float | None = None
    needed: int | None = None
    value: float | None = None
    stable_value: float | None = None
    limit: float | None = None
    bad: float | None = None
    low: float | None = None
    high: float | None = None
    allowed: float | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """What figures of one moment say: whether they fail the version, and whether they pass it, if this is the end.

    ``effective`` is how many independent requests those of the new version are worth.
    """

    failed: bool
    passed: bool
    figures: Figures
    effective: float = 0.0
