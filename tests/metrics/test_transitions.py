"""What two statuses in a row tell of a release that went on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from rollout_lws.metrics.glance import Status
from rollout_lws.metrics.transitions import Became, Ended, PersonActed, Started, StepChanged, Told, transitions

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
SECOND_STEP = BEGIN + timedelta(minutes=10)
NOW = BEGIN + timedelta(minutes=30)


def status(phase: str, state: str, reason: str = "", *, begin: datetime = BEGIN, **more: Any) -> Status:
    conditions = [{"type": "Reconciling", "status": "True", "reason": reason or state}]
    if phase == "Progressing":
        conditions.append({"type": "Progressing", "status": "True", "lastTransitionTime": begin.isoformat()})
    body = {
        "phase": phase,
        "conditions": conditions,
        "summary": {"state": state, "since": SECOND_STEP.isoformat()},
        **more,
    }
    return msgspec.json.decode(msgspec.json.encode(body), type=Status)


def step(at: datetime) -> dict[str, str]:
    return {"startedAt": at.isoformat()}


def ending(reason: str) -> dict[str, str]:
    return {"reason": reason, "task": "CleanUp", "since": SECOND_STEP.isoformat()}


REST = status("Healthy", "Healthy")
FIRST = status("Progressing", "Loading", step=step(BEGIN))
SECOND = status("Progressing", "Loading", step=step(SECOND_STEP))
WAITS = status("Progressing", "AwaitingApproval", step=step(BEGIN))
PROMOTES = status("Progressing", "Promoting", step=step(SECOND_STEP), finalising=ending("Success"))
SUPERSEDED = status("Progressing", "RollingBack", step=step(SECOND_STEP), finalising=ending("Continuous"))
ABORTED = status("Aborted", "Aborted")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (REST, REST, []),
        (FIRST, FIRST, []),
        (REST, FIRST, [Started(), Became("Loading", "Loading")]),
        (FIRST, WAITS, [Became("AwaitingApproval", "AwaitingApproval")]),
        (WAITS, SECOND, [StepChanged(1800), PersonActed("AwaitingApproval", 1200), Became("Loading", "Loading")]),
        (FIRST, SECOND, [StepChanged(1800)]),
        (SECOND, PROMOTES, [StepChanged(1200), Became("Promoting", "Promoting")]),
        (PROMOTES, REST, [Ended("Success", 1800), Became("Healthy", "Healthy")]),
        (SUPERSEDED, REST, [Ended("Continuous", 1800), Became("Healthy", "Healthy")]),
        (SUPERSEDED, FIRST, [Ended("Continuous", 1800), Started(), Became("Loading", "Loading")]),
        (FIRST, ABORTED, [Ended("Aborted", 1800), StepChanged(1800), Became("Aborted", "Aborted")]),
        (Status(), REST, [Became("Healthy", "Healthy")]),
    ],
)
def test_two_statuses_tell_what_happened_between_them(before: Status, after: Status, expected: list[Told]) -> None:
    assert list(transitions(before, after, NOW)) == expected


def test_a_clock_that_was_set_back_tells_no_negative_times() -> None:
    assert Ended("Success", 0.0) in transitions(PROMOTES, REST, BEGIN - timedelta(hours=1))
