"""A decision under way: what it knows of the release, and the one moment at which it wakes."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest

from rollout_lws.api import SummaryState
from rollout_lws.rollout.reasons import Reason
from tests.rollout.build import draft, held, in_step, rollout
from tests.workload.build import KEYS, NOW, OLD


@pytest.mark.parametrize(
    ("labels", "annotations", "expected"),
    [
        ({KEYS.rollout_id: "build-7"}, {KEYS.rollout_id: "note"}, "build-7"),
        ({}, {KEYS.rollout_id: "note"}, "note"),
        ({}, {}, OLD),
    ],
    ids=["label", "annotation", "revision"],
)
def test_a_release_is_called_as_its_user_calls_it(
    labels: dict[str, str], annotations: dict[str, str], expected: str
) -> None:
    assert draft(rollout(), stable=held(labels=labels, annotations=annotations)).release_id == expected


def test_of_several_moments_the_earliest_wakes() -> None:
    d = draft(rollout())
    assert d.yet_to_come(NOW, 0) is None
    assert d.wake(None).wake_at is None
    for seconds in (60, 30, 45):
        d = d.wake(d.yet_to_come(NOW, seconds))
    assert d.wake_at == NOW + timedelta(seconds=30)


def test_a_draft_never_changes() -> None:
    d = draft(rollout(status=in_step()))
    told = d.set(message="told").ready(Reason.HEALTHY, SummaryState.HEALTHY)
    assert (d.status.message, d.verdict, told.status.message) == (None, None, "told")
    with pytest.raises(dataclasses.FrozenInstanceError):
        d.verdict = told.verdict  # type: ignore[misc]


def test_the_same_trouble_is_one_event_however_often_it_is_found() -> None:
    first = draft(rollout(status=in_step())).stalled(Reason.DEADLINE, "late")
    assert [event.note for event in first.events] == ["late"]
    told = {"condition": "Stalled", "reason": "ProgressDeadlineExceeded"}
    again = draft(rollout(status=in_step(verdict=told))).stalled(Reason.DEADLINE, "later")
    assert again.events == ()


@pytest.mark.parametrize(("spec", "action", "expected"), [(True, None, True), (None, True, True), (None, None, False)])
def test_a_rollout_is_paused_by_its_spec_or_on_request(spec: bool | None, action: bool | None, expected: bool) -> None:
    assert draft(rollout(paused=spec, status=in_step() | {"paused": action})).paused is expected
