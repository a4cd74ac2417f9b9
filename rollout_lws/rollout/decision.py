"""What a decision is: refusals of checks, and values for the writes, Events, watches and wake-ups. Nothing has been
carried out yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias, TypeVar

from rollout_lws.analysis.calls import Call, Calls
from rollout_lws.analysis.criterion import Criterion
from rollout_lws.analysis.idling import Idle, Idling
from rollout_lws.analysis.trial import Trial
from rollout_lws.api import FieldReference, GateRecord, GateResult, SummaryState
from rollout_lws.objects.resources import Resource
from rollout_lws.objects.writes import Write
from rollout_lws.prometheus.poll import Poll, Query
from rollout_lws.prometheus.scrapes import Prometheus
from rollout_lws.rollout.reasons import Reason
from rollout_lws.traffic.custom.scripts import Evaluation

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class FieldRef:
    """The field that the user would change: ``path`` in the object of this ``kind`` and ``name``, "" for the object
    itself. Without a kind it is the Rollout.
    """

    path: str
    kind: str = ""
    name: str = ""

    @classmethod
    def of(cls, record: FieldReference) -> FieldRef:
        """Reads a status's field reference."""
        return cls(record.path or "", record.kind or "", record.name or "")

    @property
    def record(self) -> FieldReference:
        """The field reference for a status."""
        return FieldReference(kind=self.kind or None, name=self.name or None, path=self.path or None)


@dataclass(frozen=True, slots=True)
class Refusal:
    """``message`` names the obstacle and the fix, ``field`` its place; if that is an object, it may be missing."""

    reason: Reason
    message: str
    field: FieldRef = FieldRef("spec")


@dataclass(frozen=True, slots=True)
class GateEnd:
    """A gate got a result: its kind as the plan's member is called, its record, and seconds since it began."""

    kind: str
    result: GateResult
    record: GateRecord
    seconds: float


@dataclass(frozen=True, slots=True)
class ReleaseEvent:
    """An Event to record. ``about`` is "Rollout" or the kind of the released workload; ``type`` Normal or Warning.
    ``gates`` are the gates of whose results it tells.
    """

    reason: str
    note: str
    type: str = "Normal"
    about: str = "Rollout"
    gates: tuple[GateEnd, ...] = ()


@dataclass(frozen=True, slots=True)
class BestEffort:
    """A best-effort write: its failure stops nothing. ``event`` is recorded once it succeeded; None for no Event."""

    write: Write
    event: ReleaseEvent | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """What is asked of the figures that ``prometheus`` has scraped."""

    asks: Criterion | Idle
    prometheus: Prometheus


@dataclass(frozen=True, slots=True)
class Broken:
    """No answer, as what measures has a bug; ``began`` is the epoch second of the first round that ended by it."""

    began: float


#: What can be asked of a version, and what is answered.
Asked: TypeAlias = Criterion | Stored | Query | Call | Idle
Answered: TypeAlias = Trial | Poll | Calls | Idling | Broken


@dataclass(frozen=True, slots=True)
class Question:
    """What identifies a measurement: the gate, "" where groups drain, since when it is measured, and what it asks."""

    gate: str
    since: datetime
    asks: Asked


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a pod is asked; ``port`` 0 if its template declares none, ``address`` "" before it has one. A Service has
    neither: which of its pods is asked is found out each time. ``ready_since`` is when the pod's group became ready:
    before, a pod of its name may have been another one.
    """

    uid: str
    pod: str
    address: str
    port: int
    path: str
    ready_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """What to ask: the pods that the new version has now, and stable's where they are compared. Of requests, only
    targets that have not passed or failed. Where groups drain ``new`` are the pods of those that leave, whatever their
    version.
    """

    question: Question
    new: tuple[Endpoint, ...]
    stable: tuple[Endpoint, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the next observation needs in addition: the pods of these LWSs, the endpoints of these Services, all objects
    of these kinds in the namespace, answers of model servers and Services, the pods of these Jobs, by apiVersion and
    kind what the cluster serves, and what scripts return; ``scripts`` whether there is one for them.
    """

    pods: tuple[str, ...] = ()
    endpoints: tuple[str, ...] = ()
    kinds: tuple[Resource, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    jobs: tuple[str, ...] = ()
    custom_kinds: tuple[tuple[str, str], ...] = ()
    scripts: bool = False
    evaluations: tuple[Evaluation, ...] = ()

    def plus(self, other: Wanted) -> Wanted:
        """What either needs."""
        return Wanted(
            _either(self.pods, other.pods),
            _either(self.endpoints, other.endpoints),
            _either(self.kinds, other.kinds),
            _either(self.measurements, other.measurements),
            _either(self.jobs, other.jobs),
            _either(self.custom_kinds, other.custom_kinds),
            self.scripts or other.scripts,
            _either(self.evaluations, other.evaluations),
        )


def _either(one: tuple[_T, ...], other: tuple[_T, ...]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys((*one, *other)))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a decision: which of Ready, Reconciling and Stalled is true, why, and the summary's state."""

    condition: str
    reason: Reason
    state: SummaryState
    message: str = ""
    field: FieldRef | None = None
    """The field that the user would change; None if there is none in particular."""
    goes_on: bool = False
    """The controller continues by itself, although the user should look."""
    by_spec: bool = False
    """The Rollout's spec asks for it; no command of ours edits the spec."""

    @property
    def needs_person(self) -> bool:
        """True if it lasts until the user acts."""
        return self.reason.needs_person and not self.goes_on

    @property
    def verbs(self) -> tuple[str, ...]:
        """Verbs of the command line that end this state, or what it waits for; the usual one first. Empty if the
        controller continues by itself or the spec asks for it.
        """
        return () if self.goes_on or self.by_spec else self.reason.verbs


@dataclass(frozen=True, slots=True)
class Decision:
    """Writes in the order in which they must be carried out; the first that fails ends the reconcile, which is retried.

    The writes include the statuses of Rollout and BatchRelease, at most one per object, each conditional on the
    observed resourceVersion. ``best_effort`` are best-effort writes that follow all of them: labels of leader pods,
    deletions of records that LWS does not need, objects restored for others. If one fails (the pod is gone), the
    reconcile does not; after a failed Confirm the remaining ones are skipped. ``events`` are recorded once the first
    ``events_after`` writes were carried out (None: all of them), the status among them: once it is written, no later
    decision reports the same again. ``wake_at`` is when to decide again if nothing changes before; None: only after a
    change. ``wanted`` are the watches and answers needed besides the permanent ones. ``aside`` marks a decision beside
    the release's, which follows at once: it reports a refused write in the status, or scales the workload. What is
    wanted, and a write that is to be retried, stay. ``verdict`` is None when there is nothing to report.
    """

    writes: tuple[Write, ...] = ()
    best_effort: tuple[BestEffort, ...] = ()
    events: tuple[ReleaseEvent, ...] = ()
    events_after: int | None = None
    wake_at: datetime | None = None
    wanted: Wanted = Wanted()
    aside: bool = False
    verdict: Verdict | None = None
