"""Questions about a release that ends change nothing and set no timer: what has to be kept has a name of its own."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from rollout_lws.api import FinalisingRecord, RestartRecord, StepRecord, TrafficRecord
from rollout_lws.objects.meta import Condition
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.groups.crash_loops import churning
from rollout_lws.rollout.groups.health import waits_for_capacity
from rollout_lws.rollout.lifecycle.finalize_common import keep_time, overdue
from rollout_lws.rollout.reasons import Ending, Reason, Task
from rollout_lws.rollout.routing.selector_pinning import await_unreached, unreached
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.names import ManagedRef, Names
from tests.rollout.build import KEYS, canary, draft, in_step, rollout
from tests.workload.build import NAMESPACE, NEW, NOW, pod

POOLS = Names(
    service="llama-api",
    refs=(
        ManagedRef(kind="HTTPRoute", name="llama"),
        ManagedRef(kind="InferencePool", name="llama", version="stable"),
        ManagedRef(kind="InferencePool", name="llama-canary", version="canary"),
    ),
)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def taken_back(**status: Any) -> Draft:
    """A release that goes back for a minute, with a deadline of 90 s and a canary whose pod fits nowhere."""
    ending = FinalisingRecord(reason=Ending.ABORTED.value, task=Task.ROLL_BACK_PROMOTION.value, since=ago(60))
    alone = Condition(type="PodScheduled", status="False", reason="Unschedulable", message="no room")
    fitting = pod(0, revision=NEW, since=None, workload="llama-canary", conditions=(alone,))
    given = rollout(status=in_step(finalising=ending, **status), progressDeadlineSeconds=90)
    return draft(given, canary=canary(fitting), routing=RoutingFacts(POOLS, NAMESPACE, "uid-rollout", KEYS))


def rebuilt(*ages: float) -> tuple[RestartRecord, ...]:
    return tuple(
        RestartRecord(workload="llama-canary", group="0", uid=str(number), at=ago(age))
        for number, age in enumerate(ages)
    )


@pytest.mark.parametrize(
    "status",
    [
        {"step": StepRecord(started_at=ago(200))},
        {"step": StepRecord(started_at=ago(200), waiting_since=ago(30))},
        {"step": StepRecord(started_at=ago(200)), "restarts": rebuilt(300, 200, 100, 50)},
        {"step": StepRecord(started_at=ago(200)), "traffic": TrafficRecord(step=1)},
    ],
    ids=["a clock that runs", "a wait that ended", "a crash loop", "pickers that have to hear"],
)
def test_no_question_leaves_a_trace(status: dict[str, Any]) -> None:
    d = taken_back(**status)
    before = d.status
    for question in (overdue, churning, waits_for_capacity, unreached):
        assert question(d) == question(d)
    assert (d.status, d.wake_at, d.writes, d.events) == (before, None, (), ())


def test_what_is_kept_tells_the_same_answer_and_when_it_may_be_another() -> None:
    d = taken_back(step=StepRecord(started_at=ago(200), waiting_since=ago(30)), conditions=())
    told = overdue(d)
    d = keep_time(d)
    assert (overdue(d), d.status.step and d.status.step.waiting_since) == (told, None)
    assert d.wake_at == NOW + timedelta(seconds=90), "the clock starts anew after a wait for room"
    worn = taken_back(step=StepRecord(started_at=ago(200)), restarts=rebuilt(300, 200, 100, 50))
    keep_time(worn)
    passed = overdue(worn)
    assert passed is not None
    assert passed[0] is Reason.CHURN


def test_that_the_last_pod_is_gone_is_put_on_record_once_by_whoever_waits_for_it() -> None:
    d = taken_back(traffic=TrafficRecord(step=1))
    d, answer = await_unreached(d)
    assert (answer.done, answer.until) == (False, NOW + timedelta(seconds=3))
    assert (d.status.traffic and d.status.traffic.last_pod_gone_at, d.wake_at) == (NOW, answer.until)
    later = taken_back(traffic=TrafficRecord(step=1, last_pod_gone_at=ago(3)))
    later, answer = await_unreached(later)
    assert answer.done
    assert (later.status.traffic and later.status.traffic.last_pod_gone_at, later.wake_at) == (ago(3), None)
