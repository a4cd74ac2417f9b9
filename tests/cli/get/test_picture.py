"""The whole picture of a release, word for word, and how it is fitted to a terminal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from rollout_lws.cli.get.caller import Caller
from rollout_lws.cli.get.listing import coloured, overview
from rollout_lws.cli.get.picture import release
from rollout_lws.cli.releases import Release
from rollout_lws.objects.meta import Condition
from rollout_lws.objects.workloads import PodSpec, PodStatus, SchedulingGate
from rollout_lws.targets.table import stored_version
from tests.cli.get import objects
from tests.cli.get.objects import NOW, canary, lws, pod, rollout, workers

STEPS = {
    "canary": {
        "steps": [
            {"replicas": 1, "traffic": "0%", "pause": {"duration": 60}},
            {"replicas": 1, "traffic": "20%", "pause": {}},
            {"replicas": 2, "traffic": "40%", "pause": {}},
            {"replicas": "75%", "traffic": "60%", "pause": {}},
            {"replicas": "100%"},
        ]
    }
}


def shown(strategy: dict[str, Any] | None = None, leaders: int = 1, **status: Any) -> Release:
    """Four groups of two pods with eight accelerators each, and one of a new version."""
    old = [pod("llama", group, "5f9c8", size=2) for group in range(4)]
    new = [pod("llama-canary", group, "8d21b", size=2) for group in range(leaders)]
    made = rollout(strategy or STEPS, stable={"revision": "5f9c8", "templateHash": "h"}, **status)
    live = lws(size=2, tag="v0.19.0")
    live["metadata"]["managedFields"] = [
        {"manager": "argocd", "time": "2026-01-01T11:28:00Z", "fieldsV1": {"f:spec": {"f:leaderWorkerTemplate": {}}}}
    ]
    workloads = [live, canary(leaders, size=2)] if leaders else [live]
    found = objects.release(made, workloads, [*old, *new], [workers(each, 1) for each in (*old, *new)])
    return replace(found, before=stored_version(lws(size=2)["spec"]))


PAUSED: dict[str, Any] = {
    "currentStepIndex": 2,
    "currentStepState": "StepPaused",
    "observedRolloutID": "7f3c",
    "longestStartupSeconds": 702,
    "message": "step 2 of 5 waits for approval",
    "traffic": {"desired": {"weight": 20}, "applied": {"weight": 20}},
    "summary": {
        "state": "AwaitingApproval",
        "step": "2/5",
        "traffic": "20%",
        "new": "1/1",
        "stable": "4/4",
        "accelerators": "40",
        "since": "2026-01-01T11:46:00Z",
    },
}


@pytest.mark.parametrize(
    "why",
    [
        {"spec": PodSpec(scheduling_gates=(SchedulingGate("kueue.x-k8s.io/admission"),))},
        {"status": PodStatus(phase="Pending", conditions=(Condition(type="PodScheduled", status="False"),))},
    ],
    ids=["gated", "Pending"],
)
def test_what_waits_for_room_holds_no_accelerator_and_an_abort_frees_none(why: dict[str, Any]) -> None:
    there = shown(**PAUSED)
    assert "(holding 8 GPU)" in "\n".join(release(there, NOW))
    assert there.canary is not None
    waits = replace(there.canary, leaders=tuple(msgspec.structs.replace(each, **why) for each in there.canary.leaders))
    told = "\n".join(release(replace(there, canary=waits), NOW))
    assert "holding" not in told
    assert "frees" not in told


def test_a_release_that_waits_for_a_person() -> None:
    assert (
        "\n".join(release(shown(**PAUSED), NOW))
        == """\
llama  LeaderWorkerSet/llama  ns prod   release 7f3c  workload generation 41
Status   AwaitingApproval step 2/5 for 14m (holding 8 GPU)
Message  step 2 of 5 waits for approval
Change   vllm-openai v0.18.1 -> v0.19.0 (leader, worker)   by argocd, 32m ago
Users    new 20% asked, 20% accepted
Groups   new 1/1 ready   stable 4/4 ready
GPU      40 now   56 at peak (step 4)
Steps    v 1  1 group 0%  > 2  1 group 20%    3  2 groups 40%    4  75% 60%    5  promote

NAME           ROLE     REV     READY   TRAFFIC   AGE   INFO
llama          stable   5f9c8   4/4     80%       1h
  groups 0-3   old      5f9c8   4/4               1h    2 pods each
llama-canary   canary           1/1     20%       1h
  group 0      new      8d21b   2/2               1h    loaded in 11m42s

After approval: +1 group (+8 GPU), 40% traffic, about 11m42s
Next     rollout-lws promote llama --step 2 --release-id 7f3c   # approves step 2 of 7f3c only
         rollout-lws abort llama --release-id 7f3c              # frees 8 GPU, stable untouched"""
    )


@pytest.mark.parametrize(
    ("timeline", "told"),
    [
        ([("11:00:00", 1), ("11:02:00", 1), ("11:40:03", 2)], "v 1  1 group 0% took 40m3s  > 2  1 group 20%    3"),
        # Gone back to by a jump: what it took in all.
        (
            [("11:00:00", 1), ("11:01:00", 2), ("11:02:00", 1), ("11:03:30", 2)],
            "v 1  1 group 0% took 2m30s  > 2  1 group 20%    3",
        ),
        ([("11:00:00", 2), ("11:01:00", 2)], "v 1  1 group 0%  > 2  1 group 20%    3"),
        ([("noon", 1), ("11:01:00", 2)], "v 1  1 group 0%  > 2  1 group 20%    3"),
    ],
    ids=["one", "twice", "unknown", "unreadable"],
)
def test_steps_that_are_over_tell_how_long_they_took(timeline: list[tuple[str, int]], told: str) -> None:
    entries = [{"at": f"2026-01-01T{at}Z", "step": step, "state": "StepUpgrade"} for at, step in timeline]
    (line,) = [each for each in release(shown(**PAUSED | {"timeline": entries}), NOW) if each.startswith("Steps")]
    assert line.startswith(f"Steps    {told}")


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ("Stable", "AFFECTED: no group is whole, only ready leaders of the stable version answer; "),
        ("New", "AFFECTED: no group is whole, only ready leaders of the new version answer; "),
        ("Both", "AFFECTED: no group is whole, only ready leaders answer; "),
        ("Neither", "AFFECTED: no group is whole, no version has a ready endpoint; "),
        ("Martians", ""),
        (None, ""),
    ],
)
def test_users_that_are_hit_because_no_group_is_whole(answers: str | None, told: str) -> None:
    traffic = {"desired": {"weight": 10}, "applied": {"weight": 0}, "message": "its share waits"}
    there = shown(**PAUSED | {"traffic": traffic | ({"answeredBy": answers} if answers else {})})
    (line,) = [each for each in release(there, NOW) if each.startswith("Users")]
    words = "new 10% asked, 0% accepted"
    assert line == f"Users    {told}{words}" + ("" if told else ": its share waits")


def test_a_release_that_has_failed() -> None:
    failed = shown(
        currentStepIndex=1,
        currentStepState="StepUpgrade",
        message="no group was ready for 1h (deadline 1h): nothing happens by itself",
        traffic={"desired": {"weight": 0}, "applied": {"weight": 0}},
        summary={"state": "Stalled", "step": "1/5", "traffic": "0%", "new": "0/1", "stable": "4/4"},
        notReadyGroups=[
            {
                "workload": "llama-canary",
                "group": "0",
                "pod": "llama-canary-0-1",
                "container": "vllm-worker",
                "previousLogs": True,
                "reason": "OOMKilled",
                "message": "pod llama-canary-0-1 (worker) container vllm-worker: CrashLoopBackOff; it ended last with"
                " OOMKilled (exit 137)",
            }
        ],
    )
    lines = release(failed, NOW, caller=Caller("kubectl rollout-lws"))
    assert lines[1:6] == [
        "Status   Stalled step 1/5 (holding 8 GPU)",
        "Message  no group was ready for 1h (deadline 1h): nothing happens by itself",
        "Cause    llama-canary group 0: OOMKilled pod llama-canary-0-1 (worker) container vllm-worker:"
        " CrashLoopBackOff; it ended last with OOMKilled (exit 137)",
        "Change   vllm-openai v0.18.1 -> v0.19.0 (leader, worker)   by argocd, 32m ago",
        "Users    NOT AFFECTED: new 0% asked, 0% accepted; stable 4/4 ready",
    ]
    assert lines[-3:] == [
        "Next     kubectl rollout-lws abort llama   # frees 8 GPU, stable untouched",
        "         kubectl logs llama-canary-0-1 -c vllm-worker -p -n prod",
        "         kubectl rollout-lws retry llama   # the same version again",
    ]
    # The pod that failed was replaced, and its successor has no container before this one.
    (cause,) = failed.rollout["status"]["notReadyGroups"]
    remade = "pod llama-canary-0-1 (worker) container vllm ended last with Error (exit 1); pod llama-canary-0 (leader)"
    cause |= {"reason": "NotReady", "message": f"{remade} is not ready", "container": "vllm", "previousLogs": False}
    lines = release(failed, NOW, caller=Caller("kubectl rollout-lws"))
    assert lines[-2] == "         kubectl logs llama-canary-0-1 -c vllm -n prod"


@pytest.mark.parametrize(
    ("strategy", "status", "told"),
    [
        (
            None,
            {"currentStepIndex": 4},
            "After approval: the stable groups are renewed, all requests end at the new version",
        ),
        (None, {"currentStepIndex": 1, "longestStartupSeconds": 0}, "After approval: no further group, 20% traffic"),
        (
            {"canary": {"capacity": "InPlace", "steps": [{"replicas": 1}, {"replicas": "100%", "traffic": "auto"}]}},
            {"currentStepIndex": 1, "capacity": "InPlace"},
            "After approval: 2 groups renewed, traffic auto, about 11m42s",
        ),
        (
            {"blueGreen": {"steps": [{"replicas": 1, "pause": {}}, {"replicas": "100%", "pause": {}}]}},
            {"currentStepIndex": 1},
            "After approval: +3 groups (+24 GPU), about 11m42s",
        ),
    ],
)
def test_what_an_approval_leads_to(strategy: dict[str, Any] | None, status: dict[str, Any], told: str) -> None:
    assert told in release(shown(strategy, **PAUSED | status), NOW)


@pytest.mark.parametrize(
    ("strategy", "told"),
    [
        ({"canary": {"capacity": "InPlace", "steps": [{"replicas": 1}]}}, "GPU      40 now"),
        (
            {"canary": {"capacity": "Surge", "steps": [{"replicas": 2}, {"replicas": 1}]}},
            "GPU      40 now   48 at peak (step 1)",
        ),
        ({"blueGreen": {"steps": [{"replicas": "100%"}]}}, "GPU      40 now   64 at peak (step 1)"),
        ({"blueGreen": {"steps": [{"replicas": 1}]}}, "GPU      40 now   64 at peak (at the end)"),
        ({"canary": {"steps": [{"replicas": "100%"}]}}, "GPU      40 now   64 at peak (step 1)"),
    ],
)
def test_what_a_release_takes_at_the_most(strategy: dict[str, Any], told: str) -> None:
    assert told in release(shown(strategy, **PAUSED), NOW)


@pytest.mark.parametrize(
    ("status", "commands"),
    [
        ({"phase": "Healthy", "summary": {"state": "Healthy"}}, []),
        ({"phase": "Aborted", "aborted": {"templateHash": "x"}, "summary": {"state": "Aborted"}}, ["retry"]),
        ({"paused": True, "summary": {"state": "Paused"}}, ["resume", "abort"]),
        ({"summary": {"state": "Loading"}}, ["abort"]),
        ({"finalising": {"reason": "Aborted", "task": "RollBackPromotion"}, "summary": {"state": "RollingBack"}}, []),
        ({"summary": {"state": "HoldReleased"}}, []),
    ],
)
def test_only_commands_that_make_sense_are_named(status: dict[str, Any], commands: list[str]) -> None:
    lines = release(shown(leaders=0, **{"currentStepIndex": 1} | status), NOW)
    assert [line.split("rollout-lws ")[1].split()[0] for line in lines if "rollout-lws " in line] == commands


@pytest.mark.parametrize("width", [60, 80])
def test_a_narrow_terminal_gets_folded_fields_and_cut_rows(width: int) -> None:
    wide, narrow = release(shown(**PAUSED), NOW), release(shown(**PAUSED), NOW, width=width)
    commands = [line for line in narrow if "rollout-lws " in line]
    assert max(len(line) for line in narrow if line not in commands) <= width
    assert commands == [line for line in wide if "rollout-lws " in line]
    assert " ".join("\n".join(narrow[:12]).split()).startswith(" ".join("\n".join(wide[:5]).split()))


def test_a_rollout_without_a_controller_or_an_lws_says_so() -> None:
    made = rollout(STEPS)
    made["status"] = {}
    assert release(objects.release(made, [], []), NOW)[:3] == [
        "llama  LeaderWorkerSet/llama  ns prod",
        "Status   Unknown",
        "Message  no controller has seen this Rollout yet; is one running?",
    ]


def test_a_plan_that_no_controller_would_take_is_no_reason_to_fail() -> None:
    broken = {"canary": {"steps": [{"replicas": "many"}]}}
    assert release(shown(broken, **PAUSED), NOW)[1].startswith("Status   AwaitingApproval")


def test_a_list_has_the_columns_of_kubectl() -> None:
    listed = [rollout(STEPS, **PAUSED)]
    assert [line.split() for line in overview(listed, NOW, namespaces=True)] == [
        ["NAMESPACE", "NAME", "STATUS", "STEP", "TRAFFIC", "NEW", "STABLE", "AGE"],
        ["prod", "llama", "AwaitingApproval", "2/5", "20%", "1/1", "4/4"],
    ]
    wide = overview(listed, NOW, namespaces=False, wide=True)
    assert wide[0].split()[-4:] == ["ACCELERATORS", "SINCE", "PHASE", "MESSAGE"]
    assert wide[1].endswith("40             14m     Progressing   step 2 of 5 waits for approval")


def test_states_have_colours_and_nothing_is_lost_by_them() -> None:
    line = "Status   Stalled step 1/5"
    assert coloured(line) == "Status   \x1b[31mStalled\x1b[0m step 1/5"
    assert coloured("NAME   ROLE") == "\x1b[1mNAME   ROLE\x1b[0m"
    assert coloured("  group 0   old") == "  group 0   old"


def test_commands_act_on_the_cluster_that_was_looked_at() -> None:
    caller = Caller(
        "rollout-lws", ("--kubeconfig", "my config", "--as", "jane"), ("--api-group", "rollouts.example.org")
    )
    commands = [line.partition("   #")[0].rstrip() for line in release(shown(**PAUSED), NOW, caller=caller)[-2:]]
    flags = "--kubeconfig 'my config' --as jane --api-group rollouts.example.org"
    assert commands == [
        f"Next     rollout-lws promote llama --step 2 --release-id 7f3c {flags}",
        f"         rollout-lws abort llama --release-id 7f3c {flags}",
    ]
    assert caller.kubectl("logs x") == "kubectl logs x --kubeconfig 'my config' --as jane"


def test_what_a_container_said_last_cannot_move_the_cursor() -> None:
    said = "Traceback\n  File x\x1b[2J\x1b[H\r killed"
    trouble = {"workload": "llama-canary", "group": "0", "reason": "Error", "message": said}
    lines = release(shown(message=said, notReadyGroups=[trouble]), NOW, pods=True)
    assert all(line.isprintable() for line in lines)
    assert "Message  Traceback   File x [2J [H  killed" in lines


GATED = {
    "canary": {
        "steps": [
            {
                "replicas": 1,
                "gates": [
                    {"name": "warm-up", "when": "BeforeTraffic", "http": {"each": "Group", "path": "/v1"}},
                    {"name": "first-token", "metric": {"signal": "TimeToFirstToken", "max": "1s"}, "window": 600},
                    {"name": "errors", "metric": {"signal": "ErrorRate", "max": "2%"}},
                    {"name": "evals", "job": {"fromCronJob": "chat-evals"}},
                ],
            },
            {"replicas": "100%", "gates": [{"name": "errors", "metric": {"signal": "ErrorRate", "max": "2%"}}]},
        ]
    }
}


def gated(state: str, *gates: dict[str, Any]) -> list[str]:
    """The picture of a release in its first step, which has these gates."""
    measured = shown(
        GATED,
        currentStepIndex=1,
        currentStepState="StepMetricsAnalysis",
        summary={"state": state, "step": "1/2", "new": "1/1", "stable": "4/4"},
        gates=list(gates),
    )
    return release(measured, NOW, caller=Caller("kubectl rollout-lws"))


def test_gates_of_the_release_are_shown_in_its_promotion_too() -> None:
    watched = {"metric": {"signal": "ErrorRate", "max": "2%"}}
    plan = {"steps": [{"replicas": 1}], "gates": [{"name": each, **watched} for each in ("errors", "compared", "late")]}
    measured = shown(
        {"canary": plan},
        summary={"state": "Promoting"},
        finalising={"reason": "Success", "task": "Promote"},
        releaseGates=[
            {"name": "errors", "since": "2026-01-01T11:50:00Z"},
            {"name": "compared", "finishedAt": "2026-01-01T11:55:00Z", "message": "stable takes no requests any more"},
        ],
    )
    assert [line for line in release(measured, NOW) if line.startswith("Gate")] == [
        "Gate     errors is measured for 10m: ErrorRate at most 2%",
        "Gate     compared has ended: stable takes no requests any more",
        "Gate     late is watched from the first requests on",
    ]


def test_gates_of_the_step_are_shown_with_their_figures_and_those_to_come() -> None:
    lines = gated(
        "Analyzing",
        {"name": "first-token", "since": "2026-01-01T11:50:00Z"},
        {"name": "errors", "result": "Passed", "message": "failed requests 0.1%, at most 2%"},
        {"name": "evals", "result": "Skipped", "by": "ann", "message": "they ran elsewhere"},
    )
    assert [line for line in lines if line.startswith("Gate")] == [
        "Gate     first-token is measured for 10m: TimeToFirstToken at most 1s, at least 10m long",
        "Gate     errors Passed: failed requests 0.1%, at most 2%",
        "Gate     evals Skipped by ann: they ran elsewhere",
        "Gate     warm-up begins when the step's groups are ready",
    ]
    assert "Steps    > 1  1 group (4 gates)    2  promote (1 gate)" in lines


@pytest.mark.parametrize(
    ("gate", "record", "told"),
    [
        ("evals", {}, "a Job of CronJob chat-evals"),
        ("evals", {"job": "llama-evals-x"}, "Job llama-evals-x"),
        ("warm-up", {}, "/v1 of each new group"),
        ("errors", {}, "ErrorRate at most 2%"),
    ],
)
def test_what_a_gate_asks_is_told_while_it_is_measured(gate: str, record: dict[str, Any], told: str) -> None:
    lines = gated("Analyzing", {"name": gate, "since": "2026-01-01T11:50:00Z", **record})
    assert f"Gate     {gate} is measured for 10m: {told}" in lines


def test_a_gate_without_a_verdict_says_what_to_type() -> None:
    lines = gated(
        "Stalled",
        {"name": "errors", "result": "Inconclusive", "message": "too few"},
        {"name": "evals", "result": "Failed", "job": "llama-evals-x", "message": "accuracy 0.61"},
        {"name": "first-token", "result": "Passed"},
    )
    commands = [line.partition("#")[0].removeprefix("Next").strip() for line in lines[-5:]]
    assert commands == [
        "kubectl rollout-lws abort llama",
        "kubectl rollout-lws skip llama errors",
        "kubectl logs job/llama-evals-x -n prod",
        "kubectl rollout-lws skip llama evals",
        "kubectl rollout-lws retry llama",
    ]
    assert any(line.endswith("# measures again what has not passed") for line in lines)


def test_a_gate_that_came_to_nothing_can_be_passed_while_others_are_measured() -> None:
    nothing = {"name": "errors", "result": "Error", "message": "pods cannot be read"}
    lines = gated("Analyzing", nothing, {"name": "evals", "since": "2026-01-01T11:50:00Z"})
    commands = [line.partition("#")[0].removeprefix("Next").strip() for line in lines]
    assert "kubectl rollout-lws skip llama errors" in commands
    assert "kubectl rollout-lws retry llama" in commands
    assert not [each for each in commands if each.endswith("skip llama evals")]


def test_at_rest_no_gate_is_shown() -> None:
    healthy = shown(GATED, phase="Healthy", currentStepIndex=1, gates=[{"name": "errors", "result": "Passed"}])
    assert not [line for line in release(healthy, NOW) if line.startswith("Gate")]
