"""Gates that ask for a signal of the model servers: measured of both versions' leader pods, or of what leads to
them, and judged by intervals.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import assert_never, cast

from rollout_lws.analysis.criterion import Criterion
from rollout_lws.analysis.kinds import Router
from rollout_lws.analysis.trial import Trial
from rollout_lws.api import Analysis, GateRecord, GateResult, MetricGate, PlannedGate
from rollout_lws.api.gate_rules import criterion
from rollout_lws.rollout.decision import Endpoint, Measurement, Question, Stored, Wanted
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates.kinds import figures
from rollout_lws.rollout.gates.kinds.kind import Ended, Judged, Kind, Running, Time, not_answered, result_of
from rollout_lws.rollout.gates.records import question
from rollout_lws.rollout.metrics_endpoints import (
    from_source,
    metrics_of_new,
    metrics_of_stable,
    pickers_are_known,
    pickers_of_new,
    pickers_of_stable,
)

_UNLISTED = "the pods of the pools' endpoint pickers are not listed yet"


def _wanted(d: Draft, gate: PlannedGate, record: GateRecord) -> Wanted:
    asked = _asked(d, gate, record)
    if not _is_known(d, gate):
        # A round without them would count as one in which there were none.
        return Wanted()
    stable = of_stable(d, gate, asked.since) if _criterion(d, gate).compared else ()
    return Wanted(measurements=(Measurement(asked, _of_new(d, gate, asked.since), stable),))


def _is_known(d: Draft, gate: PlannedGate) -> bool:
    """Whether the pods that expose the metric are listed; leader pods always are."""
    return cast(MetricGate, gate.metric).of is None or pickers_are_known(d)


def _of_new(d: Draft, gate: PlannedGate, since: datetime) -> tuple[Endpoint, ...]:
    """Pods that expose the metric for the new version."""
    match cast(MetricGate, gate.metric).of:
        case None:
            return metrics_of_new(d)
        case Router.ENDPOINT_PICKER:
            return pickers_of_new(d, since)
        case unknown:
            assert_never(unknown)


def of_stable(d: Draft, gate: PlannedGate, since: datetime) -> tuple[Endpoint, ...]:
    """Pods that expose it for the stable version."""
    match cast(MetricGate, gate.metric).of:
        case None:
            return metrics_of_stable(d)
        case Router.ENDPOINT_PICKER:
            return pickers_of_stable(d, since)
        case unknown:
            assert_never(unknown)


def _criterion(d: Draft, gate: PlannedGate) -> Criterion:
    return criterion(cast(MetricGate, gate.metric), gate, d.o.rollout.spec.strategy.source)


def _asked(d: Draft, gate: PlannedGate, record: GateRecord) -> Question:
    return question(d, gate, record, asks(gate, d.o.rollout.spec.strategy.source))


def asks(gate: PlannedGate, source: Analysis) -> Criterion | Stored:
    """What the gate asks, of pods or of Prometheus."""
    return from_source(source, criterion(cast(MetricGate, gate.metric), gate, source))


def _judge(d: Draft, gate: PlannedGate, record: GateRecord) -> tuple[Draft, Judged]:
    trial = d.o.answers.get(_asked(d, gate, record))
    if not isinstance(trial, Trial):
        return d, not_answered(d, gate, record, trial) if _is_known(d, gate) else _unlisted(d, gate, record)
    # From the first figures, since a controller that was restarted begins anew with them.
    time = Time.of(gate, record, trial.began)
    if time.is_over(d, trial.last, unread=bool(trial.unread)):
        trial = trial.ended()
    if trial.verdict is None:
        return d, Running(time.looks_again(d), figures.lost([trial], figures.pods(d)))
    return d, ended(trial, figures.pods(d))


def _unlisted(d: Draft, gate: PlannedGate, record: GateRecord) -> Judged:
    """The gate waits until its deadline for the list of the pickers' pods, and then for a user."""
    deadline = Time.of(gate, record, (record.since or d.now).timestamp()).deadline
    if deadline is None or deadline > d.now:
        return Running(deadline, _UNLISTED)
    return Ended(GateResult.ERROR, _UNLISTED)


def ended(trial: Trial, names: Mapping[str, str]) -> Ended:
    """What comes of a trial that has ended; ``names`` are those of pods, by uid."""
    result = result_of(trial.verdict, missing=bool(trial.unread) or trial.new.silent())
    told = figures.why(trial.criterion, trial, names)
    return Ended(result, told, figures.values(trial.criterion, trial.figures))


METRIC = Kind(_judge, _wanted)
