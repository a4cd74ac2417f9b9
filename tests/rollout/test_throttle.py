"""Which sentence is over before anybody could read it: one about what was just written or applied, and nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rollout_lws.api import (
    Condition,
    FinalisingRecord,
    Phase,
    RequestedAction,
    StableRecord,
    TrafficRecord,
    WriteConflict,
)
from rollout_lws.objects.meta import ManagedField
from rollout_lws.rollout.draft import Persist
from rollout_lws.rollout.reasons import EventReason
from rollout_lws.rollout.recent_writes import applied_lately, scaled_lately, written_lately
from rollout_lws.rollout.status.report import finish
from rollout_lws.rollout.status.throttle import LOOK_AGAIN_SECONDS, OUTDATED_SECONDS, can_wait, outdated
from tests.rollout.build import draft, held, in_step, rollout
from tests.workload.build import NOW, lws

OURS, ANOTHER = "rollout-lws/1.0", "kubectl"
TEMPLATE = msgspec.Raw(b'{"f:spec":{"f:leaderWorkerTemplate":{}}}')


def wrote(manager: str, age: float, fields: msgspec.Raw = TEMPLATE) -> ManagedField:
    return ManagedField(manager=manager, time=NOW - timedelta(seconds=age), fields=fields)


def live(manager: str, age: float | None) -> dict[str, Any]:
    time = "" if age is None else (NOW - timedelta(seconds=age)).isoformat()
    return {"metadata": {"managedFields": [{"manager": manager, "time": time}]}}


def test_what_is_over_in_a_moment_waits_for_a_second() -> None:
    d = draft(rollout(status=in_step())).but(persist=Persist.MAY_WAIT)
    assert can_wait(d)
    decision = finish(d.set(message="it is told in a second"))
    assert (decision.writes, decision.wake_at) == ((), NOW + timedelta(seconds=LOOK_AGAIN_SECONDS))


def test_what_lasts_is_told_at_once() -> None:
    assert not can_wait(draft(rollout(status=in_step())))


@pytest.mark.parametrize(
    "decided",
    [
        {"phase": Phase.HEALTHY},
        {"current_step_index": 2},
        {"finalising": FinalisingRecord(reason="Success", task="CleanUp")},
        {"stable": StableRecord(template_hash="b", revision="r2", workload_uid="u")},
        {"flaps": 1},
        {"traffic": TrafficRecord(conflicts=(WriteConflict(at=NOW, manager=ANOTHER, kind="Service", name="a"),))},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_is_decided_for_good_never_waits(decided: dict[str, Any]) -> None:
    d = draft(rollout(status=in_step()))
    d = d.but(persist=Persist.MAY_WAIT)
    d = d.set(**decided)
    assert not can_wait(d)


def test_a_request_that_somebody_waits_for_is_answered_at_once() -> None:
    d = draft(rollout(status=in_step(requested_action=RequestedAction(type="Pause", id="1"))))
    d = d.but(persist=Persist.MAY_WAIT)
    assert not can_wait(d)


def test_what_an_event_tells_is_on_record_at_once_so_that_it_is_told_once() -> None:
    d = draft(rollout(status=in_step()))
    d = d.but(persist=Persist.MAY_WAIT)
    d = d.event(EventReason.UNMANAGED_BACKEND, "Service stray sends requests to groups too", warning=True)
    assert not can_wait(d)


@pytest.mark.parametrize(
    ("written", "brief"),
    [
        (live(OURS, 0), True),
        (live(OURS, 3), False),
        (live(ANOTHER, 0), False),
        # A server whose clock is ahead of ours must not keep us silent.
        (live(OURS, -600), False),
        (live(OURS, None), False),
        ({"metadata": {}}, False),
        (None, False),
    ],
    ids=["now", "before", "another", "ahead", "untimed", "unmanaged", "gone"],
)
def test_what_we_have_written_a_moment_ago_is_about_to_take_effect(written: dict[str, Any] | None, brief: bool) -> None:
    assert (written_lately(draft(rollout(status=in_step())), written) is not None) is brief


@pytest.mark.parametrize(
    ("entry", "brief"),
    [(wrote(OURS, 1), True), (wrote(OURS, 3), False), (wrote(ANOTHER, 1), False)],
    ids=["now", "before", "another"],
)
def test_a_canary_that_we_have_scaled_a_moment_ago_is_about_to_follow(entry: ManagedField, brief: bool) -> None:
    assert (scaled_lately(draft(rollout(status=in_step())), lws(managed_fields=(entry,))) is not None) is brief


@pytest.mark.parametrize(
    ("entry", "brief"),
    [
        (wrote(ANOTHER, 1), True),
        (wrote(ANOTHER, 3), False),
        (wrote(ANOTHER, 1, msgspec.Raw(b'{"f:status":{}}')), False),
    ],
    ids=["now", "before", "not the template"],
)
def test_a_template_that_was_applied_a_moment_ago_is_about_to_be_looked_at(entry: ManagedField, brief: bool) -> None:
    d = draft(rollout(status=in_step()), stable=held(managed_fields=(entry,)))
    assert (applied_lately(d) is not None) is brief


@pytest.mark.parametrize(
    ("age", "expected"),
    [(10, (False, NOW + timedelta(seconds=OUTDATED_SECONDS - 10))), (60, (True, None))],
    ids=["soon", "now"],
)
def test_what_is_no_longer_true_is_corrected_at_one_moment_that_is_to_come(age: float, expected: Any) -> None:
    told = Condition(type="Ready", status="False", last_update_time=NOW - timedelta(seconds=age))
    d = draft(rollout(status=in_step(message="told", conditions=(told,))))
    before = d.status
    assert outdated(d, before, before.model_copy(update={"message": "true"})) == expected
