"""Gates that ask Prometheus a query of the user's own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

from rollout_lws.api import GateRecord, QueryGate, StepGate
from rollout_lws.api.base import tallied
from rollout_lws.api.gate_rules import query
from rollout_lws.prometheus.poll import Poll
from rollout_lws.rollout.decision import Measurement, Question, Wanted
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates.kinds.figures import digits
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
from rollout_lws.rollout.metrics_endpoints import metrics_of_new, metrics_of_stable

#: Characters of a query that a status keeps.
_LONGEST = 1024


def _asked(d: Draft, gate: StepGate, record: GateRecord) -> Question:
    asks = query(cast(QueryGate, gate.query), gate, d.o.rollout.spec.strategy.source)
    return question(d, gate, record, asks)


def _wanted(d: Draft, gate: StepGate, record: GateRecord) -> Wanted:
    measurement = Measurement(_asked(d, gate, record), metrics_of_new(d), metrics_of_stable(d))
    return Wanted(measurements=(measurement,))


def _judge(d: Draft, gate: StepGate, record: GateRecord) -> tuple[Draft, Judged]:
    poll = d.o.answers.get(_asked(d, gate, record))
    if not isinstance(poll, Poll):
        return d, unanswered(d, gate, poll)
    deadline = datetime.fromtimestamp(poll.began, UTC) + timedelta(seconds=gate.deadline)
    if is_over(d, deadline, poll.last, unread=bool(poll.trouble)):
        poll = poll.ended()
    if poll.verdict is None:
        return d, Running(looks_again(d, deadline), poll.lasting)
    result = result_of(poll.verdict, missing=bool(poll.trouble) or poll.answer is None)
    return d, Ended(result, _why(poll), _shown(poll))


def _why(poll: Poll) -> str:
    if poll.trouble or poll.answer is None:
        return poll.trouble or "Prometheus has not answered yet"
    bound = "at least" if poll.query.at_least else "at most"
    told = f"the query's value is {digits(poll.answer.value)}, {bound} {digits(poll.query.limit)}"
    return told if poll.answer.samples is None else f"{told}: of {poll.answer.samples:,.0f} samples"


def _shown(poll: Poll) -> dict[str, Any]:
    """The fields of a gate's record."""
    if poll.answer is None or poll.trouble:
        return {"limit": digits(poll.query.limit)}
    samples = poll.answer.samples
    return {
        "value": digits(poll.answer.value),
        "limit": digits(poll.query.limit),
        "samples": tallied(round(samples)) if samples is not None else None,
        "query": poll.answer.text[:_LONGEST],
    }


QUERY = Kind(_judge, _wanted)
