"""The plan of steps: its hash, the target of a jump, and the step at which an edited plan resumes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import assert_never

import msgspec

from rollout_lws.api import (
    Analysis,
    FigureSource,
    HttpGate,
    JobGate,
    MetricGate,
    PlannedGate,
    QueryGate,
    Step,
    Strategy,
    StyleStrategy,
)
from rollout_lws.capacity.batches import wanted_groups


def plan_hash(strategy: Strategy) -> str:
    """Hash of the plan's capacity and traffic. Pauses, gates and the failure threshold change no hash."""
    document = strategy.to_json_dict()
    for style in ("canary", "blueGreen"):
        part = dict(document.get(style) or {})
        for name in ("failureThreshold", "gates"):
            part.pop(name, None)
        part["steps"] = [
            {key: value for key, value in step.items() if key not in ("pause", "gates")}
            for step in part.get("steps", ())
        ]
        if style in document:
            document[style] = part
    kept = {style: document[style] for style in ("canary", "blueGreen") if document.get(style)}
    return hashlib.sha256(msgspec.json.encode(kept, order="sorted")).hexdigest()[:16]


def gate_hash(gate: PlannedGate, analysis: Analysis) -> str:
    """Hash of what a gate asks, and of whom: a gate that is edited is measured anew."""
    source = analysis.to_json_dict()
    document = {**gate.to_json_dict(), "analysis": {name: source.get(name) for name in _asked_of(gate, analysis)}}
    return hashlib.sha256(msgspec.json.encode(document, order="sorted")).hexdigest()[:16]


def _asked_of(gate: PlannedGate, analysis: Analysis) -> tuple[str, ...]:
    """Members of the analysis that say whom the gate asks."""
    match gate.asked:
        case MetricGate():
            where = "prometheus" if analysis.from_ is FigureSource.PROMETHEUS else "pods"
            return "from", "engine", where
        case QueryGate():
            return ("prometheus",)
        case HttpGate() | JobGate() | None:
            return ()
        case unknown:
            assert_never(unknown)


def next_index(steps: Sequence[Step], index: int) -> int:
    """``nextStepIndex`` at step ``index`` without a jump; -1 on the last step."""
    return index + 1 if index < len(steps) else -1


def resumed_index(plan: StyleStrategy, index: int, standing: int, replicas: int) -> int:
    """The step at which an edited plan resumes: the first that asks for at least the ``standing`` groups, with the
    current step checked first.
    """
    count = len(plan.steps)
    candidates = [index] if 1 <= index <= count else []
    candidates += range(1, count + 1)
    return next((each for each in candidates if wanted_groups(plan, each, replicas) >= standing), count)
