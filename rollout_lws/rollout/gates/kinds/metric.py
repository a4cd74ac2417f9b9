"""Gates that ask for a signal of the model servers: measured of both versions' leader pods, and judged by intervals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import cast

from rollout_lws.analysis.criterion import Criterion
from rollout_lws.analysis.trial import Trial
from rollout_lws.api import GateRecord, MetricGate, StepGate
from rollout_lws.api.gate_rules import criterion
from rollout_lws.rollout.decision import Measurement, Question, Wanted
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates.kinds import figures
from rollout_lws.rollout.gates.kinds.kind import (
    Ended,
    Judged,
    Kind,
    Running,
    is_over,
    looks_again,
    result_of,
    unanswered,
)
from rollout_lws.rollout.gates.records import question
from rollout_lws.rollout.metrics_endpoints import from_source, metrics_of_new, metrics_of_stable


def _wanted(d: Draft, gate: StepGate, record: GateRecord) -> Wanted:
    stable = metrics_of_stable(d) if _criterion(d, gate).compared else ()
    return Wanted(measurements=(Measurement(_asked(d, gate, record), metrics_of_new(d), stable),))


def _criterion(d: Draft, gate: StepGate) -> Criterion:
    return criterion(cast(MetricGate, gate.metric), gate, d.o.rollout.spec.strategy.source)


def _asked(d: Draft, gate: StepGate, record: GateRecord) -> Question:
    return question(d, gate, record, from_source(d, _criterion(d, gate)))


def _judge(d: Draft, gate: StepGate, record: GateRecord) -> tuple[Draft, Judged]:
    trial = d.o.answers.get(_asked(d, gate, record))
    if not isinstance(trial, Trial):
        return d, unanswered(d, gate, trial)
    # From the first figures, since a controller that was restarted begins anew with them.
    deadline = datetime.fromtimestamp(trial.began, UTC) + timedelta(seconds=gate.deadline)
    if is_over(d, deadline, trial.last, unread=bool(trial.unread)):
        trial = trial.ended()
    if trial.verdict is None:
        return d, Running(looks_again(d, deadline), figures.lost([trial], figures.pods(d)))
    result = result_of(trial.verdict, missing=bool(trial.unread) or trial.new.silent())
    told = figures.why(trial.criterion, trial, figures.pods(d))
    return d, Ended(result, told, figures.values(trial.criterion, trial.figures))


METRIC = Kind(_judge, _wanted)
