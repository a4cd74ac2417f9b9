"""What is told of a release before it begins: a row for each of its steps and for the promotion, and their sums."""

from __future__ import annotations

from dataclasses import dataclass

from rollout_lws.capacity.base import CapacityStrategy


@dataclass(frozen=True, slots=True)
class Given:
    """What a preview needs besides the plan: the LWS's ``replicas``, the user's maxUnavailable in groups, as LWS
    resolves it (maxSurge plays no part: the hold has none), the seconds until a group is ready and for which it then
    must be, and its accelerators.

    ``unlisted``: a Service or InferencePool that trafficRoutings do not name leads to the LWS's groups, too.
    ``reached``: without trafficRoutings, whether the Services that lead to the LWS's groups lead to those of a second
    LWS as well; one that selects by LWS's own name label does not.
    """

    replicas: int
    unavailable: int = 1
    load_seconds: float = 0
    min_ready_seconds: float = 0
    accelerators: int = 0
    unlisted: bool = False
    reached: bool = True


@dataclass(frozen=True, slots=True)
class Row:
    """A step, or the promotion: loads are relative, 1.0 being a group's requests while all R groups carry them alike;
    None stands for a side without groups.
    """

    step: int | None
    """The step's number, from 1; None is the promotion."""
    new: int
    """Groups of the new version at the end of the step; in the promotion, when the first portion goes down."""
    extra: int
    """Groups beyond R."""
    ready: int
    """Fewest ready groups, of sides that have a share, at any moment."""
    share: float
    """Share of requests of the new version, 0 to 1, at rest; in the promotion, while its first portion is down."""
    load_new: float | None
    """Load of a group of the new version with that share."""
    load_stable: float | None
    """Load of a group of the LWS that is not of the new version, with that share; in the promotion, of any that is not
    away.
    """
    peak_load: float
    """Highest load of any group at any moment."""
    windows: int
    """How often the LWS is opened."""
    rounds: int
    """Loads one after the other."""
    loads: int
    """Groups that load the model."""
    seconds: float
    """How long it takes: loads, grace, drain, and a pause with a duration."""
    approval: bool
    """Whether somebody has to approve it."""
    accelerators: int
    """Accelerators held, those of the R groups included."""
    back_loads: int
    """Groups that load the old version if the release goes back at its end; in the promotion, at most."""
    back_seconds: float
    """Seconds until all R groups are the old version's and ready; 0 where they are all the time."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """All rows, the promotion last."""

    strategy: CapacityStrategy
    given: Given
    rows: tuple[Row, ...]

    @property
    def extra(self) -> int:
        """Groups beyond R, at the peak."""
        return max(row.extra for row in self.rows)

    @property
    def ready(self) -> int:
        return min(row.ready for row in self.rows)

    @property
    def peak_load(self) -> float:
        return max(row.peak_load for row in self.rows)

    @property
    def windows(self) -> int:
        return sum(row.windows for row in self.rows)

    @property
    def rounds(self) -> int:
        return sum(row.rounds for row in self.rows)

    @property
    def loads(self) -> int:
        return sum(row.loads for row in self.rows)

    @property
    def seconds(self) -> float:
        """How long the release takes, waits for approvals apart."""
        return sum(row.seconds for row in self.rows)

    @property
    def approvals(self) -> tuple[int, ...]:
        """Steps that somebody has to approve."""
        return tuple(row.step for row in self.rows if row.approval and row.step is not None)

    @property
    def accelerators(self) -> int:
        """Accelerators held at the peak, those of the R groups included."""
        return max(row.accelerators for row in self.rows)
