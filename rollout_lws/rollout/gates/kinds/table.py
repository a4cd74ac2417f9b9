"""The kind of each gate."""

from __future__ import annotations

from typing import assert_never

from rollout_lws.api import HttpGate, JobGate, MetricGate, PlannedGate, QueryGate
from rollout_lws.rollout.gates.kinds.http import HTTP
from rollout_lws.rollout.gates.kinds.jobs.job import JOB
from rollout_lws.rollout.gates.kinds.kind import Kind
from rollout_lws.rollout.gates.kinds.metric import METRIC
from rollout_lws.rollout.gates.kinds.query import QUERY


def kind_of(gate: PlannedGate) -> Kind:
    """That of a gate without problems."""
    match gate.asked:
        case MetricGate():
            return METRIC
        case QueryGate():
            return QUERY
        case HttpGate():
            return HTTP
        case JobGate():
            return JOB
        case None:
            raise ValueError(f"gate {gate.name} asks for nothing")
        case unknown:
            assert_never(unknown)
