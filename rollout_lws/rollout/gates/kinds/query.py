"""Gates that ask Prometheus a query of the user's own."""

from __future__ import annotations

from typing import Any, cast

from rollout_lws.api import Analysis, GateRecord, PlannedGate, QueryGate
from rollout_lws.api.base import tallied
from rollout_lws.api.gate_rules import query
from rollout_lws.prometheus.poll import Poll, Query
from rollout_lws.rollout.decision import Measurement, Question, Wanted
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates.kinds.figures import digits
from rollout_lws.rollout.gates.kinds.kind import Ended, Judged, Kind, Running, Time, not_answered, result_of
from rollout_lws.rollout.gates.records import question
from rollout_lws.rollout.metrics_endpoints import metrics_of_new, metrics_of_stable

#: Characters of a query that a status keeps.
_LONGEST = 1024


def _asked(d: Draft, gate: PlannedGate, record: GateRecord) -> Question:
    return question(d, gate, record, asks(gate, d.o.rollout.spec.strategy.source))


def asks(gate: PlannedGate, source: Analysis) -> Query:
    """What the gate asks of Prometheus."""
    return query(cast(QueryGate, gate.query), gate, source)


def _wanted(d: Draft, gate: PlannedGate, record: GateRecord) -> Wanted:
    measurement = Measurement(_asked(d, gate, record), metrics_of_new(d), metrics_of_stable(d))
    return Wanted(measurements=(measurement,))


def _judge(d: Draft, gate: PlannedGate, record: GateRecord) -> tuple[Draft, Judged]:
    poll = d.o.answers.get(_asked(d, gate, record))
    if not isinstance(poll, Poll):
        return d, not_answered(d, gate, record, poll)
    time = Time.of(gate, record, poll.began)
    if time.is_over(d, poll.last, unread=bool(poll.trouble)):
        poll = poll.ended()
    if poll.verdict is None:
        return d, Running(time.looks_again(d), poll.lasting)
    return d, ended(poll)


def ended(poll: Poll) -> Ended:
    """What comes of a query that has ended."""
    result = result_of(poll.verdict, missing=bool(poll.trouble) or poll.answer is None)
    return Ended(result, _why(poll), _shown(poll))


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
