"""Since when a held version waits: what the metric says, so that a freeze is seen from outside."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rollout_lws.api import Phase, RolloutStatus, StableRecord, Summary
from rollout_lws.controller.reconciler import pending_since

SINCE = datetime(2026, 3, 1, tzinfo=UTC)


def status(phase: Phase, observed: str | None) -> RolloutStatus:
    return RolloutStatus(
        phase=phase,
        observed_template_hash=observed,
        stable=StableRecord(template_hash="old", revision="r1", workload_uid="u"),
        summary=Summary(state="Stalled", since=SINCE),
    )


@pytest.mark.parametrize(
    ("phase", "observed", "since"),
    [
        (Phase.HEALTHY, "old", None),
        (Phase.HEALTHY, None, None),
        (Phase.HEALTHY, "new", SINCE),
        (Phase.ABORTED, "new", SINCE),
        (Phase.PROGRESSING, "new", None),
    ],
)
def test_a_version_waits_that_is_judged_and_not_released(
    phase: Phase, observed: str | None, since: datetime | None
) -> None:
    assert pending_since(status(phase, observed)) == since


def test_nothing_waits_before_there_is_a_status() -> None:
    assert pending_since(None) is None
    assert pending_since(RolloutStatus()) is None
