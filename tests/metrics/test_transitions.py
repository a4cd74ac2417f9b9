"""What two statuses in a row tell of a release that went on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from rollout_lws.metrics import Metrics
from rollout_lws.metrics.glance import Status
from rollout_lws.metrics.transitions import count

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


def counted(before: Status, after: Status, now: datetime = NOW) -> dict[str, float]:
    """What is counted and observed, by its name and labels; times in seconds."""
    metrics, found = Metrics(), {}
    count(metrics, before, after, now)
    for family in metrics.registry.collect():
        for each in family.samples:
            number = each.name.endswith(("_total", "_sum")) and each.name.startswith("rollout_lws_")
            if number and each.value:
                name = each.name.removeprefix("rollout_lws_").removesuffix("_total").removesuffix("_seconds_sum")
                found[" ".join((name, *each.labels.values()))] = each.value
    return found


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (REST, REST, {}),
        (FIRST, FIRST, {}),
        (REST, FIRST, {"releases_started": 1, "transitions Loading Loading": 1}),
        (FIRST, WAITS, {"transitions AwaitingApproval AwaitingApproval": 1}),
        (WAITS, SECOND, {"step": 1800, "manual_wait AwaitingApproval": 1200, "transitions Loading Loading": 1}),
        (FIRST, SECOND, {"step": 1800}),
        (SECOND, PROMOTES, {"step": 1200, "transitions Promoting Promoting": 1}),
        (PROMOTES, REST, {"releases_ended Success": 1, "release Success": 1800, "transitions Healthy Healthy": 1}),
        (
            SUPERSEDED,
            REST,
            {"releases_ended Continuous": 1, "release Continuous": 1800, "transitions Healthy Healthy": 1},
        ),
        (
            SUPERSEDED,
            FIRST,
            {
                "releases_ended Continuous": 1,
                "release Continuous": 1800,
                "releases_started": 1,
                "transitions Loading Loading": 1,
            },
        ),
        (
            FIRST,
            ABORTED,
            {"releases_ended Aborted": 1, "release Aborted": 1800, "step": 1800, "transitions Aborted Aborted": 1},
        ),
        (Status(), REST, {"transitions Healthy Healthy": 1}),
    ],
)
def test_two_statuses_tell_what_happened_between_them(
    before: Status, after: Status, expected: dict[str, float]
) -> None:
    assert counted(before, after) == expected


def test_a_clock_that_was_set_back_tells_no_negative_times() -> None:
    told = {"releases_ended Success": 1, "transitions Healthy Healthy": 1}
    assert counted(PROMOTES, REST, BEGIN - timedelta(hours=1)) == told
