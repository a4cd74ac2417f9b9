"""What a status says: a refused write, a sentence that is no longer true, and conditions that exclude each other."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from rollout_lws.api import SummaryState, VerdictRecord
from rollout_lws.objects.meta import Condition as PodCondition
from rollout_lws.objects.workloads import Pod
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout.decision import Decision
from rollout_lws.rollout.observation import RefusedWrite
from rollout_lws.rollout.reasons import Reason
from rollout_lws.rollout.status.report import finish, report_refusal
from rollout_lws.rollout.status.throttle import OUTDATED_SECONDS
from rollout_lws.workload.facts import NamedObject
from tests.rollout.build import at_rest, draft, held, in_step, rollout
from tests.workload.build import NOW, pod

GPUS = {"spec": {"containers": [{"name": "vllm", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]}}
UNPLACED = PodCondition(type="PodScheduled", status="False", reason="Unschedulable")
REFUSED = RefusedWrite("create LeaderWorkerSet llama-canary", "exceeded quota.", "To go on, raise it")
MESSAGE = "the API server refuses to create LeaderWorkerSet llama-canary: exceeded quota. To go on, raise it"


def status_of(decision: Decision) -> dict[str, Any]:
    """The status that a decision writes; {} when it writes none."""
    found = [write.body["status"] for write in decision.writes if isinstance(write, Patch) and write.subresource]
    return dict(found[0]) if found else {}


def test_a_refused_write_is_told_before_anything_else_is_tried() -> None:
    decision = report_refusal(draft(rollout(status=in_step()), refused=REFUSED).o)
    assert decision is not None
    assert decision.aside
    assert len(decision.writes) == 1
    status = status_of(decision)
    stalled = next(each for each in status["conditions"] if each["type"] == "Stalled")
    assert (stalled["status"], stalled["reason"], stalled["message"]) == ("True", "WriteRefused", MESSAGE)
    assert status["message"] == MESSAGE
    assert not {"stable", "finalising", "step"} & set(status), "what did not happen is not recorded"


def test_a_refusal_that_is_told_already_is_tried_again() -> None:
    told = {"verdict": VerdictRecord(condition="Stalled", reason="WriteRefused"), "message": MESSAGE}
    assert report_refusal(draft(rollout(status=in_step(**told)), refused=REFUSED).o) is None


def test_another_refusal_is_told_as_well() -> None:
    verdict = VerdictRecord(condition="Stalled", reason="WriteRefused")
    told = {"verdict": verdict, "message": "the API server refuses to …"}
    assert report_refusal(draft(rollout(status=in_step(**told)), refused=REFUSED).o) is not None


def test_nothing_refused_is_nothing_to_tell() -> None:
    assert report_refusal(draft(rollout(status=in_step())).o) is None


def concluded(before: dict[str, Any], kind: str, message: str) -> Decision:
    d = draft(rollout(status=before))
    return finish(d.conclude(kind, Reason.HEALTHY, SummaryState.HEALTHY, message))


@pytest.mark.parametrize("kind", ["Ready", "Reconciling", "Stalled"])
def test_exactly_one_of_ready_reconciling_and_stalled_is_true(kind: str) -> None:
    conditions = status_of(concluded(at_rest(), kind, "so it is"))["conditions"]
    true = [each["type"] for each in conditions if each["status"] == "True"]
    assert [each for each in true if each in ("Ready", "Reconciling", "Stalled")] == [kind]
    assert {each["observedGeneration"] for each in conditions} == {1}


def told(age: float) -> dict[str, Any]:
    """The status that a first decision left behind ``age`` seconds ago."""
    first = status_of(concluded(at_rest(), "Reconciling", "waiting for group 3"))
    before = rollout(status={**at_rest(), **first}).status
    assert before is not None
    moment = NOW - timedelta(seconds=age)
    conditions = tuple(each.model_copy(update={"last_update_time": moment}) for each in before.conditions)
    return {**before.model_dump(), "conditions": conditions}


def test_a_sentence_that_is_no_longer_true_is_corrected_when_it_is_half_a_minute_old() -> None:
    fresh = concluded(told(OUTDATED_SECONDS - 4), "Reconciling", "waiting for group 2")
    assert status_of(fresh) == {}
    assert fresh.wake_at == NOW + timedelta(seconds=4)
    assert status_of(concluded(told(OUTDATED_SECONDS), "Reconciling", "waiting for group 2"))["message"] == (
        "waiting for group 2"
    )


def test_a_sentence_that_is_still_true_is_never_written_again() -> None:
    same = concluded(told(9_999), "Reconciling", "waiting for group 3")
    assert (same.writes, same.wake_at) == ((), None)


def test_a_release_that_is_over_says_what_of_its_canary_still_ends() -> None:
    d = draft(rollout(status=at_rest()), remains=(NamedObject("Pod", "llama-canary-1-2", terminating=True),))
    d = d.ready(Reason.HEALTHY, SummaryState.HEALTHY)
    assert status_of(finish(d))["message"] == "group 1 of llama-canary still ends"


@pytest.mark.parametrize(
    ("pods", "unknown", "taken"),
    [
        # Their workers are taken to be there for as long as nobody has listed them, the StatefulSet says.
        ((), {"llama-canary": ""}, 8),
        ((pod(1, workload="llama-canary", terminating=True),), {"llama-canary": ""}, 16),
        ((pod(1, 1, workload="llama-canary", terminating=True),), {}, 8),
        ((), {}, 0),
        ((pod(1, workload="llama-canary", conditions=(UNPLACED,)),), {"llama-canary": ""}, 0),
    ],
    ids=["a leader that is gone", "a leader", "a worker", "neither", "a leader without a node"],
)
def test_what_still_ends_is_told_with_the_accelerators_that_it_holds(
    pods: tuple[Pod, ...], unknown: dict[str, str], taken: int
) -> None:
    asking = held(2, template={"size": 2, "workerTemplate": GPUS})
    left = (NamedObject("StatefulSet", "llama-canary-1"),)
    d = draft(rollout(status=at_rest()), stable=asking, remains=left, pods_left=pods, unknown_pods=unknown)
    d = d.ready(Reason.HEALTHY, SummaryState.HEALTHY)
    told = status_of(finish(d))
    ends = "group 1 of llama-canary still ends"
    assert told["message"] == (f"{ends} and holds accelerators: {taken}" if taken else ends)
    assert told["summary"]["accelerators"] == 32 + taken


def test_groups_that_were_scaled_away_are_none_of_stables() -> None:
    standing = held(4)
    shrunk = dataclasses.replace(standing, workload=held(2).workload)
    d = draft(rollout(status=at_rest()), stable=shrunk)
    d = d.ready(Reason.HEALTHY, SummaryState.HEALTHY)
    assert status_of(finish(d))["summary"]["stable"] == "2/2"


def test_what_the_last_of_a_canary_held_is_told_as_free_at_once() -> None:
    asking = held(2, template={"size": 2, "workerTemplate": GPUS})
    left = (NamedObject("StatefulSet", "llama-canary-1"),)
    ending = draft(rollout(status=at_rest()), stable=asking, remains=left, unknown_pods={"llama-canary": ""})
    told = status_of(finish(ending.ready(Reason.HEALTHY, SummaryState.HEALTHY)))
    over = draft(rollout(status={**at_rest(), **told}), stable=asking)
    told = status_of(finish(over.ready(Reason.HEALTHY, SummaryState.HEALTHY)))
    assert (told["message"], told["summary"]["accelerators"]) == (None, 32)
