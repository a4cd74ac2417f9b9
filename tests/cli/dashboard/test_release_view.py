"""What the page shows of a release: steps with their times, groups, loads, accelerators, offers, as values."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rollout_lws.cli.dashboard.history_view import history_view
from rollout_lws.cli.dashboard.loads import loads
from rollout_lws.cli.dashboard.release_view import view
from rollout_lws.cli.dashboard.rows import row
from rollout_lws.cli.dashboard.timeline import timeline as timeline_of
from rollout_lws.cli.get.caller import Caller
from rollout_lws.cli.get.plan import planned_steps
from rollout_lws.cli.releases import Release, typed
from rollout_lws.cli.versions import Stored
from rollout_lws.objects.resources import LWS_NAME, LWS_REVISION
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from tests.cli.get.objects import NOW, canary, lws, pod, release, rollout

Object = dict[str, Any]
CALLER = Caller(flags=("--namespace", "prod"))
STEPS = [
    {"replicas": 1, "traffic": "10%", "pause": {}},
    {"replicas": "50%", "traffic": "30%", "pause": {"duration": 600}, "gates": [{"name": "ttft"}]},
    {"replicas": "100%"},
]
CANARY: Object = {"canary": {"steps": STEPS}}


def timeline(*entries: tuple[str, int | None, str]) -> list[Object]:
    return [{"at": f"2026-01-01T11:{at}:00Z", "step": step, "state": state} for at, step, state in entries]


PROMOTION: Object = {"reason": "Success", "task": "Promote"}
CLEAN_UP: Object = {"reason": "Success", "task": "CleanUp"}
SWAP: Object = {"blueGreen": {"steps": STEPS, "promotion": "Swap"}}
PROMOTED = timeline(("07", None, "Promote"))
BACK = timeline(("00", 1, "StepUpgrade"), ("05", 2, "StepUpgrade"), ("09", None, "CleanUp"), ("10", None, "Completed"))


def shown(plan: Object | None = None, pods: list[Object] | None = None, **status: Any) -> Release:
    found = pods if pods is not None else [pod("llama", group, "old") for group in range(4)]
    return release(rollout(plan or CANARY, **status), [lws(), canary()], found)


def seen(plan: Object | None = None, pods: list[Object] | None = None, **status: Any) -> Object:
    return view(shown(plan, pods, **status), NOW, CALLER)


def states(found: Object) -> list[str]:
    return [each["state"] for each in found["steps"]]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"currentStepIndex": 1}, ["current", "ahead", "ahead"]),
        ({"currentStepIndex": 2}, ["done", "current", "ahead"]),
        ({"currentStepIndex": 3, "finalising": PROMOTION}, ["done", "done", "current"]),
        ({"currentStepIndex": 3, "finalising": CLEAN_UP}, ["done"] * 3),
        (
            {"currentStepIndex": 2, "finalising": {"reason": "Aborted", "task": "RollBackSteps"}},
            ["done", "stopped", "ahead"],
        ),
        ({"phase": "Healthy"}, ["ahead"] * 3),
        ({"phase": "Healthy", "timeline": timeline(("00", 1, "StepUpgrade"), ("09", None, "Completed"))}, ["done"] * 3),
        ({"phase": "Aborted", "timeline": BACK}, ["done", "stopped", "ahead"]),
        # In the promotion.
        ({"phase": "Aborted", "timeline": [*BACK[:2], *PROMOTED, *BACK[2:]]}, ["done", "done", "stopped"]),
        ({"phase": "Aborted"}, ["ahead"] * 3),
        # What was applied instead was the stable version.
        (
            {"phase": "Healthy", "timeline": BACK, "conditions": [{"type": "Succeeded", "status": "False"}]},
            ["done", "stopped", "ahead"],
        ),
        ({"phase": "Healthy", "timeline": BACK, "conditions": [{"type": "Succeeded", "status": "True"}]}, ["done"] * 3),
    ],
)
def test_each_step_is_done_current_stopped_or_ahead(status: Object, expected: list[str]) -> None:
    assert states(seen(**status)) == expected


def test_steps_have_the_times_that_the_timeline_tells() -> None:
    told = timeline(
        ("00", 1, "StepUpgrade"), ("05", 1, "StepPaused"), ("20", 2, "StepUpgrade"), ("25", 2, "StepMetricsAnalysis")
    )
    found = seen(currentStepIndex=2, currentStepState="StepMetricsAnalysis", timeline=told)
    times = [(each["since"], each["until"]) for each in found["steps"]]
    assert times == [
        ("2026-01-01T11:00:00Z", "2026-01-01T11:20:00Z"),
        ("2026-01-01T11:20:00Z", ""),
        ("", ""),
    ]


@pytest.mark.parametrize("style", ["canaryStatus", "blueGreenStatus"])
def test_a_state_is_as_old_as_the_controller_says_and_a_pause_runs_from_before_the_gates(style: str) -> None:
    """The timeline has an entry for each change of a weight, too."""
    told = timeline(("20", 2, "StepUpgrade"), ("45", 2, "StepPaused"), ("50", 2, "StepPaused"))
    sub = {style: {"lastUpdateTime": "2026-01-01T11:45:00Z"}}
    status = {
        "currentStepIndex": 2,
        "currentStepState": "StepPaused",
        "timeline": told,
        "message": "goes on soon",
        **sub,
    }
    status |= {"step": {"pausedAt": "2026-01-01T11:40:00.5Z"}, "summary": {"state": "Pausing", "since": "old"}}
    assert seen(**status)["current"] == {
        "step": 2,
        "state": "StepPaused",
        "waitsFor": "goes on soon",
        "since": "2026-01-01T11:45:00Z",
        "pausedAt": "2026-01-01T11:40:00.5Z",
    }
    ending = {
        "finalising": {"reason": "Success", "task": "Promote"},
        "summary": {"state": "Promoting", "since": "then"},
    }
    found = seen(**status | ending)["current"]
    assert (found["step"], found["since"], found["pausedAt"]) == (0, "then", "")


def test_after_a_jump_back_a_step_has_the_times_of_its_last_turn() -> None:
    told = timeline(
        ("00", 1, "StepUpgrade"), ("10", 2, "StepUpgrade"), ("20", 1, "StepUpgrade"), ("30", 1, "StepPaused")
    )
    found = seen(currentStepIndex=1, timeline=told)
    times = [(each["since"], each["until"]) for each in found["steps"]]
    assert times[:2] == [("2026-01-01T11:20:00Z", ""), ("2026-01-01T11:10:00Z", "2026-01-01T11:20:00Z")]


def test_weights_over_time_are_told_as_asked_and_accepted() -> None:
    entry = {"at": "x", "step": 1, "state": "StepPaused", "desired": 10, "applied": 5, "new": 1, "stable": 4}
    assert seen(timeline=[entry])["timeline"] == [
        {
            "at": "x",
            "step": 1,
            "state": "StepPaused",
            "asked": 10,
            "accepted": 5,
            "new": {"ready": 1},
            "stable": {"ready": 4},
        }
    ]


def accepted(style: Object, *states: str) -> list[int | None]:
    """Shares that are told of a release that has ended with these states."""
    ways = [
        {"at": f"2026-01-01T11:0{minute}:00Z", "step": None, "state": state, "desired": 40, "applied": 40}
        for minute, state in enumerate(states)
    ]
    return [each["accepted"] for each in seen(style, timeline=ways)["timeline"]]


def test_the_groups_beside_the_own_ones_tell_no_share_once_those_have_the_new_version() -> None:
    assert accepted(CANARY, "Promote", "CleanUp", "CleanUp", "Completed") == [None, None, None, 40]
    assert accepted(CANARY, "RollBackSteps", "CleanUp") == [40, 40]
    assert accepted(CANARY, "Promote", "RollBackPromotion", "CleanUp") == [None, None, 40]
    assert accepted(SWAP, "Promote", "CleanUp", "Completed") == [40, None, 40]


def test_a_share_is_told_only_where_it_is_that_of_the_new_version() -> None:
    """Of promotions that renew the workload's own groups it is not, and of clean-ups neither."""
    applied: Object = {"traffic": {"desired": {"weight": 40}, "applied": {"weight": 40}}}
    whole: Object = {"traffic": {"desired": {"weight": 100}, "applied": {"weight": 100}}}
    back: Object = {"finalising": {"reason": "Aborted", "task": "CleanUp"}}

    def told(style: Object, **status: Any) -> tuple[int | None, int | None, str]:
        made = rollout(style, **status)
        found = view(release(made, [lws(), canary()], []), NOW, CALLER)
        return found["accepted"], row(made)["weight"], found["users"]

    assert told(CANARY, **applied) == (40, 40, "new 40% asked, 40% accepted")
    assert told(CANARY, **applied, **back) == (40, 40, "new 40% asked, 40% accepted")
    renewed = "40% go to new groups beside llama, the others to llama, whose groups are renewed"
    assert told(CANARY, **applied, finalising=PROMOTION) == (None, None, renewed)
    assert told(CANARY, **whole, finalising=PROMOTION) == (100, 100, "new 100% asked, 100% accepted")
    assert told(CANARY, **applied, finalising=PROMOTION | {"reason": "Aborted", "task": "RollBackPromotion"})[0] is None
    assert told(SWAP, **applied, finalising=PROMOTION) == (40, 40, "new 40% asked, 40% accepted")
    assert told(CANARY, **applied, finalising=CLEAN_UP) == (None, None, "all requests go to the new version")


def test_on_a_way_back_accelerators_are_those_of_the_old_version_and_no_peak_is_ahead() -> None:
    made = rollout(CANARY, currentStepIndex=1, summary={"state": "Loading", "accelerators": 99})
    forth = view(release(made, [lws(), canary()], []), NOW, CALLER)["accelerators"]
    made["status"]["finalising"] = {"reason": "Aborted", "task": "RollBackSteps"}
    found = view(release(made, [lws(), canary()], []), NOW, CALLER)["accelerators"]
    assert forth["peak"] and not found["peak"]
    assert (found["now"], found["after"]) == (0, forth["after"]), "no pod is there"


def test_no_load_is_told_once_the_new_version_serves_everywhere_but_that_of_the_last_place() -> None:
    assert seen(currentStepIndex=3, finalising=CLEAN_UP)["loads"] == {"done": 0, "toCome": 0}


def paired() -> Object:
    made = rollout({"canary": {"capacity": "Pair", "steps": STEPS}}, currentStepIndex=1)
    made["spec"]["counterpartRef"] = {**made["spec"]["workloadRef"], "name": "llama-green"}
    return made


def test_a_pair_names_both_workloads_with_their_companions() -> None:
    made = paired()
    made["spec"]["companions"] = [{"name": "prefill", "counterpart": "prefill-green"}]
    names = ("llama", "llama-green", "prefill", "prefill-green")
    found = view(release(made, [lws(each) for each in names], []), NOW, CALLER)
    both = "leaderworkerset/llama with prefill and leaderworkerset/llama-green with prefill-green"
    assert found["workload"] == both
    made["status"]["active"] = "llama-green"
    assert view(release(made, [lws(each) for each in names], []), NOW, CALLER)["workload"] == both


def test_of_a_side_that_its_owner_updates_only_groups_of_its_version_are_new() -> None:
    made = paired()
    made["spec"]["touch"] = "RouteOnly"
    labels = {LWS_NAME: "llama-green", LWS_REVISION: "new"}
    owner = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "llama-green"}
    meta = {"name": "llama-green", "namespace": "default", "uid": "set", "labels": labels, "generation": 1}
    meta["ownerReferences"] = [owner | {"uid": "llama-green", "controller": True}]
    of_green = {"metadata": meta, "spec": {"replicas": 4}, "status": {}}
    pods = [pod("llama-green", group, "new" if group == 3 else "before") for group in range(4)]
    found = view(release(made, [lws(), lws("llama-green")], pods, [of_green]), NOW, CALLER)["versions"]
    told = [(each["revision"], each["new"], len(each["groups"])) for each in found if each["workload"] == "llama-green"]
    assert told == [("before", False, 3), ("new", True, 1)]


def test_a_version_with_more_accelerators_reaches_its_peak_when_the_last_own_groups_are_renewed() -> None:
    pods = [pod("llama", group, "old") for group in range(4)]
    there = release(rollout(CANARY, currentStepIndex=1, summary={"accelerators": 9}), [lws(), canary()], pods)
    assert there.stable is not None
    new = there.stable.workload.version
    fewer = replace(there, before=typed(lws(size=1), LeaderWorkerSet).version)

    def peak(shown: Release) -> tuple[int, int]:
        told = view(shown, NOW, CALLER)["accelerators"]
        return told["peak"], told["peakStep"]

    assert new.accelerators == 4
    assert peak(fewer) == (6 * 4, 2), "as many as before"
    larger = lws(size=2)
    grown = release(rollout(CANARY, currentStepIndex=1, summary={"accelerators": 9}), [larger, canary(size=2)], pods)
    assert peak(replace(grown, before=new)) == (6 * 8, 0)


def test_sides_keep_the_share_that_they_have_at_the_end() -> None:
    told = paired()
    told["status"]["timeline"] = [{"at": "x", "state": each, "desired": 100} for each in ("Promote", "CleanUp")]
    assert [each["asked"] for each in timeline_of(told)] == [100, 100]


def test_without_a_timeline_the_controllers_summary_says_since_when() -> None:
    found = seen(currentStepIndex=1, summary={"state": "Loading", "since": "2026-01-01T11:50:00Z"})
    assert (found["timeline"], found["current"]["since"]) == ([], "2026-01-01T11:50:00Z")
    assert [(each["since"], each["until"]) for each in found["steps"]] == [("", "")] * 3


@pytest.mark.parametrize(
    ("ending", "word"),
    [
        (None, ""),
        ({"reason": "Success", "task": "Promote"}, "promotion"),
        ({"reason": "Success", "task": "CleanUp"}, "clean-up"),
        ({"reason": "Aborted", "task": "RollBackSteps"}, "way back"),
        ({"reason": "Rollback", "task": "CleanUp"}, "way back"),
    ],
)
def test_the_end_of_a_release_is_told_in_a_word(ending: Object | None, word: str) -> None:
    assert seen(**({"finalising": ending} if ending else {}))["ending"] == word


def test_a_plan_is_told_step_by_step() -> None:
    first, second, last = seen(currentStepIndex=1)["steps"]
    assert (first["groups"], first["traffic"], first["approval"], first["pause"]) == (1, "10%", True, None)
    assert (second["groups"], second["approval"], second["pause"], second["gates"]) == (2, False, 600, ["ttft"])
    assert last["promotes"]


def test_a_group_is_ready_loading_failed_draining_or_terminating() -> None:
    draining = pod("llama", 2, "old")
    draining["metadata"]["annotations"]["rollouts.kruise.io/draining"] = '{"since": "2026-01-01T11:58:00Z"}'
    going = pod("llama", 3, "old")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T11:59:00Z"
    waiting = {"name": "vllm", "ready": False, "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no"}}}
    pods = [
        pod("llama", 0, "old"),
        pod("llama", 1, "old", ready=False),
        draining,
        going,
        pod("llama-canary", 0, "new", ready=False, containerStatuses=[waiting]),
    ]
    found = seen(pods=pods)
    told = {(each["role"], group["index"]): group for each in found["versions"] for group in each["groups"]}
    assert {key: group["state"] for key, group in told.items()} == {
        ("stable", "0"): "ready",
        ("stable", "1"): "loading",
        ("stable", "2"): "draining",
        ("stable", "3"): "terminating",
        ("canary", "0"): "failed",
    }
    assert told[("canary", "0")]["why"] == "ImagePullBackOff"
    assert told[("stable", "2")]["since"].startswith("2026-01-01T11:58:00")
    assert [each["new"] for each in found["versions"]] == [False, True]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"reason": "NotReady"}, "loading"),
        ({"reason": "WorkersNotReady"}, "loading"),
        ({"reason": "NotReady", "container": "vllm", "message": "ended last with Error (exit 1)"}, "failed"),
        ({"reason": "Unschedulable"}, "failed"),
    ],
)
def test_a_group_that_is_told_as_not_ready_has_failed_only_if_something_is_at_fault(
    told: Object, expected: str
) -> None:
    pods = [pod("llama", 0, "old"), pod("llama-canary", 0, "new", ready=False)]
    found = seen(pods=pods, notReadyGroups=[{"workload": "llama-canary", "group": "0", **told}])
    (group,) = (each for version in found["versions"] if version["new"] for each in version["groups"])
    assert (group["state"], group["why"]) == (expected, told["reason"])


@pytest.mark.parametrize(
    ("gate", "least", "share"),
    [
        ({"metric": {"signal": "ErrorRate", "max": "1%"}}, False, True),
        ({"metric": {"signal": "TimeToFirstToken", "max": "1s"}}, False, False),
        # Its figure is the share of hits, its interval that of requests without.
        ({"metric": {"signal": "PrefixCacheHits", "min": "50%"}}, True, False),
        ({"metric": {"signal": "OfALaterController", "max": "1%"}}, False, False),
        ({"query": {"expr": "rate", "min": "900"}}, True, False),
        ({"http": {"path": "/health"}}, False, False),
    ],
)
def test_a_gate_tells_what_its_figure_and_its_limit_are(gate: Object, least: bool, share: bool) -> None:
    steps = [{"replicas": 1, "gates": [{"name": "speed", **gate}]}, {"replicas": "100%"}]
    (found,) = seen({"canary": {"steps": steps}}, currentStepIndex=1)["gates"]
    assert (found["least"], found["isShare"]) == (least, share)


def loaded(plan: Object, pods: list[Object], workloads: list[Object], **status: Any) -> tuple[int, int]:
    made = release(rollout(plan, **status), workloads, pods)
    found = loads(made, planned_steps(made.rollout, made.full_size))
    return found["done"], found["toCome"]


OLD = [pod("llama", group, "old") for group in range(4)]
NEW = [pod("llama-canary", 0, "new")]
SUCCESS = {"reason": "Success", "task": "Promote"}
ABORTED = {"reason": "Aborted", "task": "RollBackPromotion"}


@pytest.mark.parametrize(
    ("plan", "pods", "status", "expected"),
    [
        # A canary of 2 at most, then all 4 of the LWS.
        (CANARY, OLD, {}, (0, 6)),
        (CANARY, OLD + NEW, {}, (1, 5)),
        (CANARY, [*OLD, pod("llama-canary", 0, "new", ready=False)], {}, (0, 6)),
        (CANARY, OLD[1:] + NEW + [pod("llama", 0, "new")], {"finalising": SUCCESS}, (2, 3)),
        (CANARY, OLD, {"finalising": {"reason": "Success", "task": "CleanUp"}}, (0, 0)),
        (CANARY, [*OLD[1:], pod("llama", 0, "new")], {"finalising": ABORTED}, (1, 1)),
        (CANARY, OLD, {"phase": "Healthy"}, (0, 0)),
        # Each group once.
        ({"canary": {**CANARY["canary"], "capacity": "InPlace"}}, OLD, {"capacity": "InPlace"}, (0, 4)),
        ({"canary": {**CANARY["canary"], "capacity": "Surge"}}, OLD, {"capacity": "Surge"}, (0, 6)),
        ({"blueGreen": {"steps": STEPS}}, OLD, {"capacity": "BlueGreen"}, (0, 8)),
        ({"blueGreen": {"steps": STEPS, "promotion": "Swap"}}, OLD + NEW, {"capacity": "Swap"}, (1, 3)),
    ],
)
def test_loads_are_what_the_rest_of_the_plan_makes(
    plan: Object, pods: list[Object], status: Object, expected: tuple[int, int]
) -> None:
    assert loaded(plan, pods, [lws(), canary()], **status) == expected


def test_accelerators_are_told_now_at_the_peak_and_after() -> None:
    def with_gpus(made: Object, count: str) -> Object:
        for template in ("leaderTemplate", "workerTemplate"):
            limits = {"resources": {"limits": {"nvidia.com/gpu": count}}}
            made["spec"]["leaderWorkerTemplate"][template]["spec"]["containers"][0] |= limits
        return made

    summary = {"state": "Loading", "accelerators": 16}
    made = release(rollout(CANARY, summary=summary), [with_gpus(lws(), "4"), with_gpus(canary(), "4")], OLD)
    found = view(made, NOW, CALLER)["accelerators"]
    assert found == {"now": 16, "extra": 0, "peak": 24, "peakStep": 2, "after": 16}
    at_rest = release(rollout(CANARY, phase="Healthy", summary={"state": "Healthy"}), [with_gpus(lws(), "4")], OLD)
    found = view(at_rest, NOW, CALLER)["accelerators"]
    assert found == {"now": None, "extra": 0, "peak": None, "peakStep": None, "after": None}


def offered(found: Object) -> dict[str, Object]:
    return {f"{each['action']}{each.get('toStep', '')}{each.get('gate', '')}": each for each in found["offers"]}


AWAITING = {
    "currentStepIndex": 2,
    "currentStepState": "StepPaused",
    "observedRolloutID": "r7",
    "gates": [{"name": "ttft", "result": "Failed", "message": "too slow"}],
    "summary": {"state": "AwaitingApproval", "step": "2/3"},
}


def test_what_may_be_done_is_offered_with_a_question_and_its_effect() -> None:
    found = offered(seen(**AWAITING))
    assert found["approve"]["question"] == "Approve step 2/3 of llama?"
    assert found["approve"]["effect"] == "the stable groups are renewed, all requests end at the new version"
    assert found["abort"]["question"] == "Abort release r7 of llama?"
    assert found["jump1"]["question"] == "Go to step 1 of llama?"
    assert found["jump1"]["effect"] == "1 group of the new version, 10% traffic"
    assert found["jump3"]["effect"] == "promotes the new version"
    assert found["skipttft"]["question"] == "Pass gate ttft of llama by hand?"
    assert all(each["question"] and not each["refused"] for each in found.values())
    assert "jump2" not in found and "resume" not in found


def test_what_makes_no_sense_is_offered_with_the_reason_and_nothing_is_asked() -> None:
    found = offered(seen(phase="Healthy", currentStepState="Completed"))
    assert found["approve"] == {
        "action": "approve",
        "label": "Approve",
        "question": "",
        "effect": "",
        "refused": "rollout/llama is Healthy: nothing waits for approval",
    }
    assert found["undo"]["question"] == "Put the version before into leaderworkerset/llama?"
    assert not any(key.startswith(("jump", "skip", "home", "start")) for key in found)


LIVE = typed(lws(), LeaderWorkerSet).version.template_hash
OTHER = {"templateHash": "that of another version"}
ITSELF = {"templateHash": LIVE}
KEPT: Object = {
    "finalising": {"reason": "Success", "task": "CleanUp"},
    "kept": {"templateHash": "that of the version before", "since": "2026-01-01T11:00:00Z"},
}
IN_STABLE = "the stable version is in the template again: "
IN_BEFORE = "the version before is in the template again: "


@pytest.mark.parametrize(
    ("status", "aborts", "effect"),
    [
        ({**AWAITING, "stable": OTHER}, False, f"{IN_STABLE}the release goes back to it"),
        (
            {**AWAITING, "stable": OTHER, "capacity": "Surge"},
            True,
            f"the release is aborted; then {IN_STABLE}the release goes back to it",
        ),
        ({"phase": "Aborted", "stable": OTHER}, False, f"{IN_STABLE}it is what serves, so nothing restarts"),
        ({"phase": "Healthy", "stable": ITSELF}, False, f"{IN_BEFORE}it is released in steps"),
        # The stable template is back already, and the release goes back to it.
        (
            {
                **AWAITING,
                "stable": ITSELF,
                "capacity": "Surge",
                "finalising": {"reason": "Rollback", "task": "CleanUp"},
            },
            False,
            f"{IN_BEFORE}it is released in steps",
        ),
        (
            {"phase": "Healthy", "stable": ITSELF, **KEPT},
            False,
            f"{IN_BEFORE}its groups are still there, and get all requests without steps",
        ),
    ],
    ids=["in steps", "surge", "aborted", "at rest", "going back", "kept"],
)
def test_undo_says_which_version_comes_back_and_what_becomes_of_it(status: Object, aborts: bool, effect: str) -> None:
    found = offered(seen(**status))["undo"]
    assert (found["aborts"], found["effect"]) == (aborts, effect)


def undos(**status: Any) -> dict[str, Object]:
    """What is said of an undo to each of four versions of a history, by hash."""
    known = [
        Stored(number, known, f"r{number}", "", {})
        for number, known in enumerate(("bad", "new", "stable", ""), start=1)
    ]
    told = rollout(CANARY, stable={"templateHash": "stable"}, aborted={"templateHash": "bad"}, **status)
    return {each["version"]: each["undo"] for each in history_view(known, told)["versions"]}


def test_the_history_says_what_an_undo_to_each_version_does() -> None:
    again = "is in the template again: "
    assert undos(**AWAITING, capacity="Surge") == {
        "bad": {
            "effect": f"version 1 {again}it was aborted, so it waits for `rollout-lws retry llama`",
            "aborts": False,
        },
        "new": {"effect": f"version 2 {again}it is released in steps", "aborts": False},
        "stable": {
            "effect": f"the release is aborted; then version 3 {again}the release goes back to it",
            "aborts": True,
        },
        "": {"effect": f"version 4 {again}it is released in steps", "aborts": False},
    }
    at_rest = undos(phase="Healthy")
    assert at_rest["stable"] == {"effect": f"version 3 {again}it is what serves, so nothing restarts", "aborts": False}
    assert at_rest["new"]["effect"] == f"version 2 {again}it is released in steps"


def test_undo_is_not_offered_for_a_pair() -> None:
    made = rollout(CANARY, active="llama")
    made["spec"]["counterpartRef"] = {**made["spec"]["workloadRef"], "name": "llama-green"}
    found = offered(view(release(made, [lws(), lws("llama-green")], OLD), NOW, CALLER))
    assert "rollout/llama is a pair, whose workloads are not edited" in found["undo"]["refused"]
    assert found["start"]["refused"]


def test_commands_act_on_the_namespace_of_the_release() -> None:
    assert seen(**AWAITING)["commands"][0].startswith(
        "rollout-lws promote llama --step 2 --release-id r7 --namespace prod "
    )


def test_the_change_is_told_without_a_time_that_passes() -> None:
    before = shown(**AWAITING)
    assert before.stable is not None
    other = release(rollout(CANARY), [lws(tag="v0.17.0")], [])
    assert other.stable is not None
    found = replace(before, before=other.stable.workload.version)
    told = view(found, NOW, CALLER)
    assert "v0.17.0 -> v0.18.1 (leader, worker)" in told["change"]
    assert json.dumps(told) == json.dumps(view(found, NOW.replace(hour=20), CALLER))


def test_a_row_tells_a_rollout_that_no_controller_has_seen() -> None:
    made = rollout(CANARY)
    del made["status"]
    found = row(made)
    assert (found["state"], found["steps"], found["weight"]) == ("", 3, None)
    assert found["message"] == "no controller has seen this Rollout yet; is one running?"
