"""What is told of one Rollout, from what it says of itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from rollout_lws.metrics.glance import Glance, glance
from rollout_lws.metrics.rollouts import deadline, exposition, pending_since, samples
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet

SINCE = datetime(2026, 3, 1, tzinfo=UTC)
LATER = SINCE + timedelta(minutes=7)
STEPS = [{"replicas": 1, "pause": {"approvalTimeoutSeconds": 600}}, {"replicas": "100%"}]
LWS = msgspec.json.decode(
    b'{"metadata": {"name": "llama"}, "spec": {"leaderWorkerTemplate": {"workerTemplate": {}}}}', type=LeaderWorkerSet
)


def rollout(status: dict[str, Any] | None = None, style: dict[str, Any] | None = None, **strategy: Any) -> Glance:
    strategy = {"canary": {"steps": STEPS, **(style or {})}, **strategy}
    body = {
        "metadata": {"name": "llama", "namespace": "prod"},
        "spec": {"workloadRef": {"name": "llama-lws"}, "strategy": strategy},
        "status": status or {},
    }
    found = glance(msgspec.json.encode(body))
    assert found is not None
    return found


def releasing(state: str = "Loading", reason: str = "Loading", **more: Any) -> dict[str, Any]:
    """The status of a release in its first step."""
    return {
        "phase": "Progressing",
        "conditions": [
            {"type": "Reconciling", "status": "True", "reason": reason},
            {"type": "Stalled", "status": "False", "reason": reason},
            {"type": "Progressing", "status": "True", "reason": "InRolling", "lastTransitionTime": SINCE},
        ],
        "summary": {
            "state": state,
            "since": SINCE,
            "accelerators": 96,
            "newAccelerators": 32,
        },
        "groups": {"stable": {"ready": 4, "total": 4}, "new": {"ready": 1, "total": 2}},
        "canaryStatus": {"currentStepIndex": 1, "replicas": 6},
        "step": {"startedAt": SINCE},
        **more,
    }


def told(seen: Glance, lws: LeaderWorkerSet | None = None) -> dict[str, Any]:
    """Value by name without prefix, in a dictionary by labels where there are any."""
    found: dict[str, Any] = {}
    for each in samples(seen, lws):
        name = each.name.removeprefix("rollout_lws_")
        if each.labels:
            found.setdefault(name, {})[",".join(value for _, value in each.labels)] = each.value
        else:
            found[name] = each.value
    return found


def test_a_rollout_that_nobody_has_judged_yet_is_there_and_says_what_it_is() -> None:
    assert told(rollout()) == {"info": {"canary,ExtraWorkload,llama-lws,": 1}}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ({"capacity": "Surge"}, "canary,Surge,llama-lws,"),
        ({"enableExtraWorkloadForCanary": False}, "canary,InPlace,llama-lws,"),
        ({"trafficRoutings": [{"service": "s", "gateway": {"httpRouteName": "r"}}]}, "…,HTTPRoute"),
        ({"trafficRoutings": [{"service": "s", "ingress": {"name": "i"}}]}, "…,Ingress"),
        ({"trafficRoutings": [{"service": "s", "gateway": {"inferencePool": {"stable": "a"}}}]}, "…,InferencePool"),
        ({"trafficRoutings": [{"service": "s"}]}, "…,Service"),
    ],
)
def test_what_it_is_says_how_groups_are_made_and_what_shares_requests(strategy: dict[str, Any], expected: str) -> None:
    full = expected.replace("…", "canary,ExtraWorkload,llama-lws")
    assert told(rollout(style=strategy))["info"] == {full: 1}


def test_blue_green_makes_a_second_set() -> None:
    seen = rollout(canary=None, blueGreen={"steps": STEPS})
    assert told(seen)["info"] == {"blueGreen,ExtraWorkload,llama-lws,": 1}


def test_a_release_tells_its_step_its_groups_and_their_accelerators() -> None:
    found = told(rollout(releasing(longestStartupSeconds=700)), LWS)
    assert found == {
        "info": {"canary,ExtraWorkload,llama-lws,": 1},
        "state": {"Progressing,Loading,Loading": 1},
        "state_since_timestamp_seconds": SINCE.timestamp(),
        "release_since_timestamp_seconds": SINCE.timestamp(),
        "step": 1,
        "steps": 2,
        "groups": {"stable": 4, "new": 2},
        "groups_ready": {"stable": 4, "new": 1},
        "accelerators": {"stable": 64, "new": 32},
        "longest_startup_seconds": 700,
        "deadline_timestamp_seconds": SINCE.timestamp() + 3600,
    }


@pytest.mark.parametrize(
    ("state", "waiting"),
    [
        ("Loading", None),
        ("Pausing", None),
        ("Promoting", None),
        ("AwaitingApproval", 32),
        ("Paused", 32),
        ("Stalled", 32),
    ],
)
def test_accelerators_wait_while_a_person_is_waited_for(state: str, waiting: int | None) -> None:
    assert told(rollout(releasing(state))).get("accelerators_waiting") == waiting


def test_at_rest_no_accelerators_wait_whoever_is_waited_for() -> None:
    assert "accelerators_waiting" not in told(rollout({**releasing("Paused"), "phase": "Healthy"}))


@pytest.mark.parametrize(
    ("traffic", "wanted", "accepted"),
    [
        (None, None, None),
        ({"desired": {"weight": 20}}, 0.2, None),
        ({"desired": {"weight": 20, "matches": 1}, "applied": {"weight": 0}}, 0.2, 0.0),
        ({"desired": {"weight": 100}, "applied": {"weight": 100}}, 1.0, 1.0),
    ],
)
def test_weights_are_told_as_far_as_they_are_known(
    traffic: dict[str, str] | None, wanted: float | None, accepted: float | None
) -> None:
    found = told(rollout(releasing("Routing", "Routing", traffic=traffic)))
    assert (found.get("weight_desired_ratio"), found.get("weight_applied_ratio")) == (wanted, accepted)


def test_how_the_last_release_ended_is_told_until_the_next_one_begins() -> None:
    ended = {"type": "Succeeded", "status": "False", "reason": "Aborted", "lastTransitionTime": SINCE}
    status = {"phase": "Aborted", "conditions": [ended], "summary": {"state": "Aborted", "since": SINCE}}
    assert told(rollout(status))["last_release_timestamp_seconds"] == {"Aborted": SINCE.timestamp()}


def test_since_when_somebody_has_paused_it() -> None:
    paused = {"type": "Paused", "status": "True", "reason": "Paused", "lastTransitionTime": LATER}
    status = {"phase": "Healthy", "conditions": [paused], "summary": {"state": "Healthy", "since": SINCE}}
    assert told(rollout(status))["paused_since_timestamp_seconds"] == LATER.timestamp()


def test_groups_that_are_not_ready_are_counted_by_reason() -> None:
    groups = [{"reason": "ImagePullBackOff"}, {"reason": "NotReady"}, {"reason": "ImagePullBackOff"}]
    found = told(rollout(releasing(notReadyGroups=groups)))
    assert found["groups_not_ready"] == {"ImagePullBackOff": 2, "NotReady": 1}


@pytest.mark.parametrize(
    ("phase", "observed", "since"),
    [
        ("Healthy", "old", None),
        ("Healthy", None, None),
        ("Healthy", "new", SINCE),
        ("Aborted", "new", SINCE),
        ("Progressing", "new", None),
    ],
)
def test_a_version_waits_that_is_judged_and_not_released(
    phase: str, observed: str | None, since: datetime | None
) -> None:
    status = {
        "phase": phase,
        "observedTemplateHash": observed,
        "stable": {"templateHash": "old"},
        "summary": {"state": "Stalled", "since": SINCE},
    }
    assert pending_since(rollout(status)) == since


@pytest.mark.parametrize(
    ("phase", "on_record", "asked", "since"),
    [
        ("Healthy", "before", None, None),
        ("Healthy", "before", True, SINCE),
        ("Healthy", "another", None, SINCE),
        ("Aborted", "before", None, SINCE),
    ],
)
def test_the_version_before_on_the_inactive_side_of_a_pair_waits_for_nothing(
    phase: str, on_record: str, asked: bool | None, since: datetime | None
) -> None:
    status = {
        "phase": phase,
        "observedTemplateHash": "before",
        "inactiveHash": on_record,
        "startRequested": asked,
        "stable": {"templateHash": "now"},
        "summary": {"state": "Healthy", "since": SINCE},
    }
    seen = rollout(status)
    paired = msgspec.structs.replace(
        seen, spec=msgspec.structs.replace(seen.spec, counterpart_ref=seen.spec.workload_ref)
    )
    assert pending_since(paired) == since
    assert pending_since(seen) == SINCE


def pair(status: dict[str, Any], **strategy: Any) -> Glance:
    seen, other = rollout(status, **strategy), msgspec.json.encode({"name": "llama-green"})
    named = msgspec.json.decode(other, type=type(seen.spec.workload_ref))
    return msgspec.structs.replace(seen, spec=msgspec.structs.replace(seen.spec, counterpart_ref=named))


def test_a_version_on_the_active_side_of_a_pair_waits() -> None:
    status = {
        "phase": "Healthy",
        "active": "llama-lws",
        "observedTemplateHash": "now",
        "inactiveHash": "now",
        "stable": {"templateHash": "now"},
        "summary": {"state": "Stalled", "since": SINCE},
        "conditions": [{"type": "Stalled", "status": "True", "reason": "ActiveSideEdited"}],
    }
    assert pending_since(pair(status)) == SINCE
    assert pending_since(pair({**status, "conditions": []})) is None


@pytest.mark.parametrize(
    ("active", "of", "known"),
    [
        ("llama-lws", "llama-green", True),
        ("llama-lws", "llama-lws", False),
        ("llama-green", "llama-lws", True),
        ("llama-green", "llama-green", False),
    ],
)
def test_the_default_deadline_of_a_pair_is_that_of_its_inactive_side(active: str, of: str, known: bool) -> None:
    lws = msgspec.structs.replace(LWS, metadata=msgspec.structs.replace(LWS.metadata, name=of))
    seen = pair(releasing(active=active))
    assert (deadline(seen, lws) is not None) == known
    assert deadline(pair(releasing(active=active), progressDeadlineSeconds=60), lws) == SINCE + timedelta(seconds=60)


def test_nothing_waits_before_there_is_a_status() -> None:
    assert pending_since(rollout()) is None


GATES = [
    {"name": "evals", "job": {"fromCronJob": "evals"}},
    {"name": "errors", "metric": {"signal": "ErrorRate", "max": "2%"}, "window": 60},
]
MEASURED = {
    "gates": [
        {"name": "evals", "hash": "a", "since": SINCE, "result": "Error", "finishedAt": LATER},
        {"name": "errors", "hash": "b", "since": LATER},
        {"name": "gone", "hash": "c", "since": LATER},
    ]
}


def test_gates_of_the_step_tell_their_results_and_when_one_is_due() -> None:
    seen = rollout(releasing("Analyzing", "Analyzing", **MEASURED), {"steps": [{**STEPS[0], "gates": GATES}]})
    assert told(seen)["gates"] == {"evals,job,Error": 1, "errors,metric,Measuring": 1}
    due = LATER + timedelta(seconds=120)
    assert told(seen)["gate_deadline_timestamp_seconds"] == {"errors,metric": due.timestamp()}


@pytest.mark.parametrize("more", [{"finalising": {"reason": "Aborted", "task": "Restore", "since": LATER}}, "paused"])
def test_no_gate_is_due_while_deadlines_stand_still(more: dict[str, Any] | str) -> None:
    status = releasing("Paused", "Paused", **MEASURED)
    if isinstance(more, str):
        paused = {"type": "Paused", "status": "True", "reason": "Paused", "lastTransitionTime": LATER}
        status["conditions"].append(paused)
    else:
        status |= more
    found = told(rollout(status, {"steps": [{**STEPS[0], "gates": GATES}]}))
    assert set(found["gates"]) == {"evals,job,Error", "errors,metric,Measuring"}
    assert "gate_deadline_timestamp_seconds" not in found


def test_gates_of_the_release_are_told_and_are_never_due() -> None:
    watched = {"name": "all-through", "metric": {"signal": "ErrorRate", "max": "2%"}}
    record = {"name": "all-through", "hash": "d", "since": SINCE}
    seen = rollout(
        releasing("Analyzing", "Analyzing", releaseGates=[record]), {"steps": [STEPS[0]], "gates": [watched]}
    )
    assert told(seen)["gates"] == {"all-through,metric,Measuring": 1}
    assert "gate_deadline_timestamp_seconds" not in told(seen)


def test_a_gate_is_due_later_by_the_time_in_which_the_release_was_paused() -> None:
    halted = {"gates": [{**MEASURED["gates"][1], "halted": 60}]}
    seen = rollout(releasing("Analyzing", "Analyzing", **halted), {"steps": [{**STEPS[0], "gates": GATES}]})
    due = LATER + timedelta(seconds=180)
    assert told(seen)["gate_deadline_timestamp_seconds"] == {"errors,metric": due.timestamp()}


def test_at_rest_no_gate_is_told() -> None:
    status = {**releasing("Healthy", "Ready", **MEASURED), "phase": "Healthy"}
    assert "gates" not in told(rollout(status, {"steps": [{**STEPS[0], "gates": GATES}]}))


FINALISING = {"reason": "Success", "task": "Promote", "since": LATER}


@pytest.mark.parametrize(
    ("status", "strategy", "expected"),
    [
        (releasing(), {"progressDeadlineSeconds": 60}, SINCE + timedelta(seconds=60)),
        (
            releasing(step={"startedAt": SINCE, "bestReadyAt": LATER}),
            {"progressDeadlineSeconds": 60},
            LATER + timedelta(seconds=60),
        ),
        (
            releasing("Promoting", "Promoting", finalising=FINALISING),
            {"progressDeadlineSeconds": 60},
            LATER + timedelta(seconds=60),
        ),
        (releasing(), {}, SINCE + timedelta(hours=1)),
        (releasing("Stalled", "ProgressDeadlineExceeded"), {}, SINCE + timedelta(hours=1)),
        (releasing("WaitingForQuota", "WaitingForQuota"), {}, None),
        (
            releasing("WaitingForQuota", "WaitingForQuota"),
            {"capacityDeadlineSeconds": 90},
            SINCE + timedelta(seconds=90),
        ),
        (
            releasing("AwaitingApproval", "AwaitingApproval", step={"startedAt": SINCE, "pausedAt": LATER}),
            {},
            LATER + timedelta(seconds=600),
        ),
        (releasing("Pausing", "Pausing"), {}, None),
        (releasing("Paused", "Paused"), {"progressDeadlineSeconds": 60}, None),
        ({**releasing(), "phase": "Healthy"}, {"progressDeadlineSeconds": 60}, None),
    ],
)
def test_the_deadline_is_the_one_that_runs_now(
    status: dict[str, Any], strategy: dict[str, Any], expected: datetime | None
) -> None:
    assert deadline(rollout(status, **strategy), LWS) == expected


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00"])
def test_a_moment_that_no_clock_shows_takes_nobody_s_metrics_away(moment: str) -> None:
    """One status may be anybody's to write, and all of them are told in one answer."""
    seen = rollout(releasing(step={"startedAt": moment}), progressDeadlineSeconds=3600)
    assert told(seen, LWS)["state_since_timestamp_seconds"] == SINCE.timestamp()
    waits = rollout(
        releasing("WaitingForQuota", "WaitingForQuota", summary={"state": "WaitingForQuota", "since": moment})
    )
    assert "info" in told(waits, LWS)


def test_no_deadline_by_default_is_known_without_the_lws() -> None:
    assert deadline(rollout(releasing()), None) is None


def test_the_text_is_what_prometheus_reads_back() -> None:
    body = msgspec.json.encode(
        {
            "metadata": {"name": "llama", "namespace": "prod"},
            "spec": {"workloadRef": {"name": 'a "quoted" \\ name\n'}, "strategy": {"canary": {"steps": STEPS}}},
            "status": releasing(),
        }
    )
    text = b"".join(exposition(lambda: [(body, lambda _: LWS)] * 250)).decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert {len(family.samples) for family in families.values()} == {250, 500}
    assert all(family.type == "gauge" and family.documentation for family in families.values())
    assert families["rollout_lws_info"].samples[0].labels["workload"] == 'a "quoted" \\ name\n'


@pytest.mark.parametrize(
    "status",
    [
        {"summary": 5},
        {"summary": {"state": "Healthy", "since": "2026-03-01T00:00:00"}},
        {"groups": {"stable": {"ready": "all"}}},
        {"summary": {"state": "Healthy", "accelerators": "some"}},
    ],
)
def test_a_rollout_that_cannot_be_read_costs_its_own_series_only(status: dict[str, Any]) -> None:
    good = msgspec.json.encode({"metadata": {"name": "llama", "namespace": "prod"}})
    bad = msgspec.json.encode({"metadata": {"name": "bad", "namespace": "prod"}, "status": status})
    text = b"".join(exposition(lambda: [(bad, lambda _: None), (good, lambda _: None)])).decode()
    assert 'rollout="llama"' in text
    assert 'rollout="bad"' not in text
