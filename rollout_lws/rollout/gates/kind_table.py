"""The kind of each gate."""

from __future__ import annotations

from typing import assert_never

from rollout_lws.api import JobGate, MetricGate, StepGate
from rollout_lws.rollout.gates.jobs.kind import JOB
from rollout_lws.rollout.gates.kinds import Kind
from rollout_lws.rollout.gates.metric import METRIC


def kind_of(gate: StepGate) -> Kind:
    """That of a gate without problems."""
    match gate.asked:
        case MetricGate():
            return METRIC
        case JobGate():
            return JOB
        case None:
            raise ValueError(f"gate {gate.name} asks for nothing")
        case unknown:
            assert_never(unknown)
