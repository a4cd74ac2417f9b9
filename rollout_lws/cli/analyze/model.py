"""What is tried, how, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rollout_lws.api import GateResult, PlannedGate, StyleStrategy


@dataclass(frozen=True, slots=True)
class Planned:
    """A gate of the plan; ``step`` is 1-based, None of a gate of the release."""

    step: int | None
    gate: PlannedGate


def planned(plan: StyleStrategy) -> tuple[Planned, ...]:
    """All gates of a plan: those of the release, then those of its steps in their order."""
    of_release = (Planned(None, gate) for gate in plan.gates)
    return (*of_release, *(Planned(number, gate) for number, step in enumerate(plan.steps, 1) for gate in step.gates))


@dataclass(frozen=True, slots=True)
class Ways:
    """How gates are tried. ``window`` is the seconds for which all are measured, None for the default of each.
    ``prometheus`` is the URL to ask, "" for none, and ``token`` what is sent to it. ``confine`` keeps queries in the
    Rollout's namespace. ``http`` says whether requests are sent.
    """

    window: int | None = None
    prometheus: str = ""
    token: str = ""
    confine: bool = True
    http: bool = False


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of a gate. ``result`` is None if it was not asked. ``shown`` are fields of a gate's record,
    ``needed`` how many requests a verdict takes, None where that is not known.
    """

    planned: Planned
    result: GateResult | None
    message: str
    shown: Mapping[str, Any] = field(default_factory=dict)
    needed: int | None = None

    @property
    def bad(self) -> bool:
        """Whether a release would not get past it."""
        return self.result in (GateResult.FAILED, GateResult.ERROR)
