"""The page of failures: what it says that a user reads is what some story has made a user read."""

from __future__ import annotations

import re

import pytest

from rollout_lws.rollout.reasons import Reason
from tests.docs.pages import ROOT
from tests.scenarios import (
    test_failures_controllers,
    test_failures_deadlines,
    test_failures_pods,
    test_restarts_exhausted,
    test_traffic_all_pods,
    told,
)
from tests.scenarios.stories import CANARY
from tests.scenarios.test_failures_churn import IN_PROMOTION
from tests.scenarios.test_failures_room import QUEUED
from tests.scenarios.test_multikueue import dispatched

PAGE = (ROOT / "docs/failures.md").read_text()
_ROW = re.compile(r"^\| .+ \| `(?P<reason>\w+)`: \"(?P<message>.+)\" \| .+ \|$", re.MULTILINE)
ROWS = [(match["reason"], match["message"]) for match in _ROW.finditer(PAGE)]


def heard() -> set[tuple[str, str]]:
    """Reasons with the messages that stories are held to, word by word."""
    queued = {
        (Reason.WAITING_FOR_QUOTA, f"waiting for quota: group 0 of {CANARY} {words}") for _, words, _ in QUEUED.values()
    }
    elsewhere = {(Reason.MULTIKUEUE, dispatched("cluster west"))}
    stories = (
        *(test_failures_controllers, test_failures_deadlines, test_failures_pods),
        *(test_restarts_exhausted, test_traffic_all_pods),
    )
    assert {each.__name__ for each in stories} < told.FILES
    return {*told.MESSAGES, *queued, *elsewhere, (Reason.CHURN, IN_PROMOTION)}


@pytest.mark.parametrize(("reason", "message"), ROWS)
def test_what_a_user_reads_by_the_page_some_story_has_shown(reason: str, message: str) -> None:
    pattern = re.compile(".*".join(re.escape(part) for part in message.split("…")))
    assert any(word == reason and pattern.fullmatch(text) for word, text in heard()), message


def test_every_failure_has_its_row() -> None:
    failures = {
        *(
            Reason.CHURN,
            Reason.RESTARTS_EXHAUSTED,
            Reason.DEADLINE,
            Reason.APPROVAL_TIMEOUT,
            Reason.CAPACITY_DEADLINE,
            Reason.WORKLOAD_UNRESPONSIVE,
        ),
        Reason.POD_STUCK_TERMINATING,
        *(Reason.WAITING_FOR_ACCELERATORS, Reason.WAITING_FOR_QUOTA, Reason.MULTIKUEUE),
    }
    assert {reason for reason, _ in ROWS} == failures
    assert len(ROWS) == len([line for line in PAGE.splitlines() if line.startswith("| ") and '`: "' in line])
