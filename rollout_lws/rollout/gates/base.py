"""What a gate is: it looks at the current step and answers whether the step passes, waits, or has failed.

A gate takes a draft and returns the next one, with what it writes, records and wakes for, and its answer. It gives no
verdict: the step machine does, and acts on a failure as ``onFailure`` says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from rollout_lws.api import Step, StepState, SummaryState
from rollout_lws.capacity.batches import Batch
from rollout_lws.capacity.result import CapacityResult
from rollout_lws.rollout.decision import FieldRef
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import Reason
from rollout_lws.rollout.routing.route_result import Routed


@dataclass(frozen=True, slots=True)
class CurrentStep:
    """The step that the release is in, and what this pass has asked for so that it can end.

    ``index`` is 1-based. ``batch`` is the state of its groups. ``pinned`` tells whether selectors reach one version
    only, ``drained`` whether requests have left the groups that the step removes (done if it removes none). ``routed``
    is the result of the step's traffic weight where that is routed before further groups are updated; None where the
    groups come first. ``scaled`` is what its groups take; nothing of it is written yet.
    """

    index: int
    plan: Step
    batch: Batch
    pinned: Routed
    drained: Routed
    routed: Routed | None
    scaled: CapacityResult


@dataclass(frozen=True, slots=True)
class Passed:
    """The step passes the gate now. A later pass asks again."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The step waits: reason, summary and message of the verdict, which is Stalled if ``state`` is."""

    reason: Reason
    state: SummaryState
    message: str
    until: datetime | None = None
    """When the answer changes by time alone; None if it never does."""
    field: FieldRef | None = None
    """The field that a user would change; None if there is none in particular."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The release is stuck: ``message`` says why, ``way_on`` how the step goes on after all if nothing is aborted."""

    reason: Reason
    message: str
    way_on: str


Answer: TypeAlias = Passed | Waiting | Failed
PASSED = Passed()


@dataclass(frozen=True, slots=True)
class Gate:
    """Something that a step has to pass. ``state`` is the step's ``currentStepState`` while it has not."""

    state: StepState
    judge: Callable[[Draft, CurrentStep], tuple[Draft, Answer]]


def aborts(d: Draft) -> bool:
    """True if a release that fails goes back by itself; else it waits for the user."""
    return d.o.rollout.spec.strategy.on_failure == "Abort"
