"""The plan of steps: its hash, where a jump leads, and where an edited plan goes on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from rollout_lws.api import Step, Strategy, StyleStrategy
from rollout_lws.capacity.batches import wanted_groups


def plan_hash(strategy: Strategy) -> str:
    """Hash of what decides about capacity and traffic: pauses and the failure threshold may change without a new
    plan.
    """
    document = strategy.to_json_dict()
    for style in ("canary", "blueGreen"):
        part = dict(document.get(style) or {})
        part.pop("failureThreshold", None)
        part["steps"] = [
            {key: value for key, value in step.items() if key != "pause"} for step in part.get("steps", ())
        ]
        if style in document:
            document[style] = part
    kept = {style: document[style] for style in ("canary", "blueGreen") if document.get(style)}
    return hashlib.sha256(msgspec.json.encode(kept, order="sorted")).hexdigest()[:16]


def next_index(steps: Sequence[Step], index: int) -> int:
    """What ``nextStepIndex`` is at step ``index`` when nobody asks for a jump; -1 on the last step."""
    return index + 1 if index < len(steps) else -1


def resumed_index(plan: StyleStrategy, index: int, standing: int, replicas: int) -> int:
    """The step at which an edited plan goes on: the first that asks for what stands already, the current one looked at
    first.
    """
    count = len(plan.steps)
    candidates = [index] if 1 <= index <= count else []
    candidates += range(1, count + 1)
    return next((each for each in candidates if wanted_groups(plan, each, replicas) >= standing), count)
