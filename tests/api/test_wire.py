"""From JSON to models and back: what Kruise's tools and kubectl wrote is what they read again."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from rollout_lws.api import (
    BatchRelease,
    CanaryStatus,
    Condition,
    FinalisingRecord,
    Phase,
    Rollout,
    RolloutStatus,
    StableRecord,
    StepRecord,
    StepState,
)
from rollout_lws.objects.json_patch import merge_patch

CANARY = """
workloadRef: {apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: vllm-405b}
disabled: false
strategy:
  paused: false
  progressDeadlineSeconds: 5400
  minReadySeconds: 0
  onFailure: Abort
  canary:
    capacity: ExtraWorkload
    enableExtraWorkloadForCanary: true
    failureThreshold: 25%
    patchPodTemplateMetadata:
      labels: {track: canary}
      annotations: {prometheus.io/scrape: "true"}
    trafficRoutings:
      - service: vllm-405b-leader
        gracePeriodSeconds: 0
        drainSeconds: 120
        target: Leaders
        gateway: {httpRouteName: vllm-405b, inferencePool: {stable: pool-a, canary: pool-b}}
        customNetworkRefs: [{apiVersion: networking.istio.io/v1, kind: VirtualService, name: vllm-405b}]
    steps:
      - {replicas: 1, traffic: 5%, pause: {duration: 0}}
      - replicas: 20%
        traffic: auto
        pause: {approvalTimeoutSeconds: 86400}
        matches:
          - path: {type: PathPrefix, value: /v1/chat}
            headers: [{type: Exact, name: x-user-group, value: beta}]
            queryParams: [{type: RegularExpression, name: model, value: "llama-.*"}]
        requestHeaderModifier:
          set: [{name: x-version, value: new}]
          add: [{name: x-canary, value: ""}]
          remove: [x-debug]
      - {replicas: 100%}
"""

BLUE_GREEN = """
workloadRef: {apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: sglang}
strategy:
  blueGreen:
    failureThreshold: 0
    promotion: InPlace
    disableGenerateCanaryService: true
    trafficRoutings:
      - service: sglang
        ingress: {classType: nginx, name: sglang}
        gracePeriodSeconds: 3
        drainSeconds: 30
        target: AsSelected
    steps:
      - {replicas: 100%, traffic: 0%}
      - {replicas: 100%, traffic: 100%, pause: {duration: 3600}}
"""

STATUS = """
observedGeneration: 3
phase: Progressing
message: step 1 of 3 waits for approval
currentStepIndex: 1
currentStepState: StepPaused
observedRolloutID: "2026-03-01.1"
conditions:
  - {type: Progressing, status: "True", reason: InRolling, message: "", observedGeneration: 3,
     lastTransitionTime: "2026-03-01T12:00:00Z", lastUpdateTime: "2026-03-01T12:00:05Z"}
  - {type: Succeeded, status: "False", reason: "", message: ""}
canaryStatus:
  observedWorkloadGeneration: 8
  observedRolloutID: "2026-03-01.1"
  rolloutHash: 0123456789abcdef
  stableRevision: 6d4cf56db6
  canaryRevision: 7f9b8c6d5
  podTemplateHash: 7f9b8c6d5
  canaryReplicas: 1
  canaryReadyReplicas: 0
  currentStepIndex: 1
  nextStepIndex: 2
  finalisingStep: ""
  currentStepState: StepPaused
  lastUpdateTime: "2026-03-01T12:00:00Z"
stable: {templateHash: 0a1b2c3d4e, revision: 6d4cf56db6, workloadUID: "4711"}
step: {startedAt: "2026-03-01T12:00:00.000000Z", pausedAt: "2026-03-01T12:00:01.250000Z", partitionAttempts: {"3": 1}}
requestedAction: {type: Jump, id: a-1, toStep: 2, force: false, at: "2026-03-01T12:00:02.000001Z"}
summary: {state: AwaitingApproval, step: 1/3, new: 1/1, stable: 4/4, since: "2026-03-01T12:00:01.250000Z"}
"""


def document(spec: str) -> dict[str, Any]:
    return {
        "apiVersion": "rollouts.kruise.io/v1beta1",
        "kind": "Rollout",
        "metadata": {"name": "a", "namespace": "prod", "uid": "u", "resourceVersion": "9", "generation": 3},
        "spec": yaml.safe_load(spec),
    }


@pytest.mark.parametrize("spec", [CANARY, BLUE_GREEN], ids=["canary", "blueGreen"])
def test_a_spec_is_written_as_it_was_read(spec: str) -> None:
    assert Rollout.model_validate(document(spec)).spec.to_json_dict() == yaml.safe_load(spec)


def test_a_status_is_written_as_it_was_read() -> None:
    wanted = yaml.safe_load(STATUS)
    body = document(CANARY) | {"status": wanted}
    status = Rollout.model_validate(body).status
    assert status is not None
    assert status.to_json_dict() == wanted


@pytest.mark.parametrize(
    ("wire", "written"),
    [
        ({}, {}),
        ({"pause": {}}, {}),
        ({"pause": {"duration": 0}}, {"pause": {"duration": 0}}),
        ({"matches": []}, {}),
        ({"traffic": None}, {}),
        ({"traffic": "0%"}, {"traffic": "0%"}),
        ({"unheardOf": 1}, {}),
    ],
)
def test_empty_members_of_a_step_are_left_out(wire: dict[str, Any], written: dict[str, Any]) -> None:
    body = document("workloadRef: {apiVersion: a, kind: b, name: c}\nstrategy: {canary: {steps: []}}")
    body["spec"]["strategy"]["canary"]["steps"] = [{"replicas": 1, **wire}]
    spec = Rollout.model_validate(body).spec.to_json_dict()
    assert spec["strategy"]["canary"]["steps"] == [{"replicas": 1, **written}]


def test_numbers_stay_numbers_and_percentages_texts() -> None:
    canary = Rollout.model_validate(document(CANARY)).spec.strategy.canary
    assert canary is not None
    assert [type(step.replicas) for step in canary.steps] == [int, str, str]


def test_a_manifest_of_openkruise_is_read_without_what_only_it_has() -> None:
    body = document(CANARY)
    body["spec"]["strategy"]["canary"]["trafficRoutingRef"] = "routing"
    body["spec"]["rolloutID"] = "7"
    body["status"] = {"phase": "Healthy", "canaryStatus": {"unheardOf": 1}, "unheardOf": {"a": 1}}
    rollout = Rollout.model_validate(body)
    assert rollout.status is not None
    assert rollout.status.phase is Phase.HEALTHY
    assert "trafficRoutingRef" not in rollout.spec.to_json_dict()["strategy"]["canary"]


def test_a_status_write_leaves_members_alone_that_it_does_not_know() -> None:
    # Another release of the controller may have written them: a patch must not mention what was not read.
    before = RolloutStatus.model_validate({"phase": "Healthy", "unheardOf": {"a": 1}})
    after = before.model_copy(update={"phase": Phase.PROGRESSING})
    assert merge_patch(before.to_json_dict(), after.to_json_dict()) == {"phase": "Progressing"}


def test_what_kruise_always_serialises_is_written_even_when_empty() -> None:
    assert CanaryStatus().to_json_dict() == {
        "podTemplateHash": "",
        "currentStepIndex": 0,
        "nextStepIndex": -1,
        "finalisingStep": "",
        "currentStepState": "Completed",
    }
    assert RolloutStatus().to_json_dict() == {"currentStepIndex": 0, "currentStepState": "Completed"}
    assert Condition(type="Succeeded", status="True").to_json_dict() == {
        "type": "Succeeded",
        "status": "True",
        "reason": "",
        "message": "",
    }


def test_other_empty_texts_are_left_out() -> None:
    assert StableRecord(template_hash="0123456789", revision="").to_json_dict() == {"templateHash": "0123456789"}


def test_a_member_that_became_empty_is_removed_by_the_patch() -> None:
    before = RolloutStatus(step=StepRecord(best_ready=2), message="a")
    after = before.model_copy(update={"step": None, "message": None})
    assert merge_patch(before.to_json_dict(), after.to_json_dict()) == {"step": None, "message": None}


def test_times_are_written_in_utc_seconds_or_microseconds() -> None:
    east = timezone(timedelta(hours=2))
    moment = datetime(2026, 3, 1, 14, 0, 0, 250_500, tzinfo=east)
    assert StepRecord(paused_at=moment).to_json_dict() == {"pausedAt": "2026-03-01T12:00:00.250500Z"}
    condition = Condition(type="Ready", status="True", last_transition_time=moment).to_json_dict()
    assert condition["lastTransitionTime"] == "2026-03-01T12:00:00Z"
    read = StepRecord.model_validate({"pausedAt": "2026-03-01T12:00:00.250500Z"})
    assert read.paused_at == moment


@pytest.mark.parametrize(
    "moment",
    [
        *("9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00"),
        *("0000-01-01T00:00:00Z", "2026-01-01T00:00:00+99:99", "2026-01-01T00:00:00.12345678901234567890Z"),
    ],
)
def test_a_moment_that_no_clock_shows_makes_no_status_unreadable(moment: str) -> None:
    """The API server takes all of these, whoever writes a status."""
    read = RolloutStatus.model_validate(
        {"holdReleasedAt": moment, "conditions": [{"type": "Ready", "status": "True", "lastUpdateTime": moment}]}
    )
    assert read.hold_released_at is not None
    assert RolloutStatus.model_validate(read.to_json_dict()).to_json_dict() == read.to_json_dict()


def test_words_are_written_as_plain_texts() -> None:
    status = RolloutStatus(phase=Phase.ABORTED, current_step_state=StepState.STEP_PAUSED)
    written = status.to_json_dict()
    assert (type(written["phase"]), written["phase"]) == (str, "Aborted")
    assert type(written["currentStepState"]) is str


def test_models_are_never_changed_in_place() -> None:
    with pytest.raises(ValueError, match="frozen"):
        FinalisingRecord(reason="Success", task="Promote").task = "CleanUp"  # type: ignore[misc]


def test_a_batch_release_of_openkruise_is_read_and_written_as_it_is() -> None:
    spec = {
        "workloadRef": {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "llama"},
        "releasePlan": {
            "batches": [{"canaryReplicas": 1}, {"canaryReplicas": "50%"}, {"canaryReplicas": 0}],
            "batchPartition": 0,
            "rolloutID": "7",
            "failureThreshold": 0,
            "finalizingPolicy": "WaitResume",
            "rollingStyle": "Canary",
            "enableExtraWorkloadForCanary": False,
        },
    }
    status = {
        "phase": "Progressing",
        "observedWorkloadReplicas": -1,
        "observedRolloutID": "7",
        "canaryStatus": {"batchState": "Upgrading", "currentBatch": 0, "updatedReplicas": 0},
    }
    record = BatchRelease.model_validate({"metadata": {"name": "a"}, "spec": spec, "status": status})
    assert record.spec.to_json_dict() == spec
    assert record.status is not None
    assert record.status.to_json_dict() == status


@pytest.mark.parametrize(
    ("stored", "read"), [(-(2**62), 0), (-1, 0), (0, 0), (7, 7), (2**31, 2**31 - 1), (2**62, 2**31 - 1)]
)
def test_a_number_of_a_status_that_no_controller_wrote_is_read_as_the_nearest_that_one_can_write(
    stored: int, read: int
) -> None:
    """A Rollout whose status cannot be read would be carried out by nobody."""
    document = {
        "longestStartupSeconds": stored,
        "flaps": stored,
        "localPods": stored,
        "step": {"bestReady": stored, "partitionAttempts": {"0": stored}},
        "evictions": [{"workload": "a", "count": stored}],
        "traffic": {"step": stored, "desired": {"weight": stored, "matches": stored}},
        "groups": {"new": {"ready": stored, "total": stored}},
        "summary": {"accelerators": stored},
    }
    status = RolloutStatus.model_validate_json(json.dumps(document))
    assert status.step is not None and status.traffic is not None and status.traffic.desired is not None
    assert status.groups is not None and status.groups.new is not None and status.summary is not None
    assert status.traffic.desired.weight == min(read, 100)
    numbers = [
        *(status.longest_startup_seconds, status.flaps, status.local_pods),
        *(status.step.best_ready, *(status.step.partition_attempts or {}).values()),
        *(status.evictions[0].count, status.traffic.step, status.traffic.desired.matches),
        *(status.groups.new.ready, status.groups.new.total, status.summary.accelerators),
    ]
    assert numbers == [read] * 11


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00Z", "0999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"])
def test_a_moment_of_any_year_is_written_as_it_was_read(moment: str) -> None:
    """A time that was never set is year 1 to Go."""
    condition = {"type": "Ready", "status": "True", "reason": "", "message": "", "lastTransitionTime": moment}
    assert Condition.model_validate(condition).to_json_dict() == condition
    record = {"startedAt": f"{moment[:-1]}.250000Z"}
    assert StepRecord.model_validate(record).to_json_dict() == record


def test_metadata_is_read_with_what_a_decision_needs() -> None:
    body = document(CANARY)
    body["metadata"] |= {
        "creationTimestamp": "2026-03-01T11:00:00Z",
        "deletionTimestamp": "2026-03-01T12:00:00Z",
        "finalizers": ["a/b"],
        "managedFields": [{"manager": "kubectl"}],
        "ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u", "controller": True}],
    }
    meta = Rollout.model_validate(body).metadata
    assert (meta.name, meta.namespace, meta.resource_version, meta.generation) == ("a", "prod", "9", 3)
    assert meta.creation_timestamp == datetime(2026, 3, 1, 11, tzinfo=UTC)
    assert meta.deletion_timestamp == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert (meta.finalizers, meta.owner_references[0].controller) == (("a/b",), True)


@pytest.mark.parametrize(
    "members",
    [
        {"spec": {"strategy": {"canary": {"steps": [{}] * 3000}}}},
        {"spec": {"strategy": {"canary": {"steps": [{"replicas": 1, "matches": [{"headers": [{}] * 3000}]}]}}}},
        {"metadata": {"labels": {str(number): number for number in range(3000)}}},
        {"status": {"restarts": [1] * 3000}},
    ],
    ids=["steps", "headers", "labels", "restarts"],
)
def test_thousands_of_wrong_items_are_not_told_one_by_one(members: dict[str, Any]) -> None:
    """A record of each takes a hundred times the room of the item."""
    ref = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "m"}
    spec = {"workloadRef": ref, "strategy": {"canary": {"steps": [{"replicas": 1}]}}} | members.get("spec", {})
    document = {"metadata": {"name": "m"}} | members | {"spec": spec}
    with pytest.raises(ValidationError) as raised:
        Rollout.model_validate_json(json.dumps(document))
    assert raised.value.error_count() <= 3
