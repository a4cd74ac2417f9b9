"""The BatchRelease of a release: made while that is in its steps, and never by the decision that ends it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rollout_lws.api import Phase, StepRecord, VerdictRecord
from rollout_lws.api.resources import batch_releases
from rollout_lws.objects.writes import Create, Patch
from rollout_lws.rollout.decide import decide
from rollout_lws.workload.hold import HOLD
from tests.rollout.build import draft, held, in_step, rollout
from tests.workload.build import NEW, NOW, leader_set


@pytest.mark.parametrize(("loading", "phase"), [(30, None), (600, Phase.ABORTED)], ids=["in time", "too late"])
def test_one_that_was_deleted_is_made_again_unless_the_release_ends_meanwhile(loading: float, phase: Any) -> None:
    status = in_step(
        paused=False,
        verdict=VerdictRecord(condition="Reconciling", reason="Loading"),
        step=StepRecord(started_at=NOW - timedelta(seconds=loading)),
    )
    stable = replace(held(), leader_set=leader_set(NEW, partition=HOLD, update="set-new"))
    seen = draft(rollout(status=status, progressDeadlineSeconds=60, onFailure="Abort"), stable=stable).o
    writes = decide(seen).writes
    made = [each for each in writes if isinstance(each, Create) and each.resource == batch_releases()]
    told = [each.body["status"].get("phase") for each in writes if isinstance(each, Patch) and each.subresource]
    assert (bool(made), *filter(None, told)) == (phase is None, *filter(None, (phase,)))
