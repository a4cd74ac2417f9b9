"""Commands about a swap over HTTP: home, edits of the parked workload, the gate of a pipeline, and doctor's orphans."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.errors import RolloutLwsError
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from tests.cli.conftest import World
from tests.cli.test_pair import V1, V2, V3, failed, remember, stalled

CANARY = "llama-canary"
#: A release of v2 is over, and llama-canary serves.
AWAY: dict[str, Any] = {
    "phase": "Healthy",
    "stable": {"templateHash": V2, "workloadUID": "uid-of-the-canary"},
    "observedTemplateHash": V2,
    "observedRolloutID": "r2",
    "summary": {"state": "Healthy", "stable": "4/4"},
}
ON: dict[str, Any] = {
    **AWAY,
    "phase": "Progressing",
    "observedTemplateHash": V3,
    "currentStepIndex": 1,
    "currentStepState": "StepUpgrade",
    "summary": {"state": "Loading", "step": "1/2", "stable": "4/4"},
}


def away(world: World, *, asks: str = "v2", **status: Any) -> None:
    world.swap(asks=asks, serves="v2", **{**AWAY, **status})


# home


def test_home_asks_for_a_start(world: World) -> None:
    away(world)
    world.answer()
    result = world.run("home", "llama", "--reason", "an older controller comes back")
    assert (result.exit_code, result.stdout) == (
        0,
        "rollout/llama releases the version of leaderworkerset/llama, which loads 4 groups; then llama-canary is"
        " removed\n",
    )
    asked = world.status()["lastAction"]
    assert (asked["type"], asked["templateHash"], asked["reason"]) == ("Start", V2, "an older controller comes back")


@pytest.mark.parametrize("phase", ["Terminating", "Disabling"])
def test_home_is_what_a_rollout_that_cannot_leave_waits_for(world: World, phase: str) -> None:
    away(world, phase=phase, **stalled("StandInServes"))
    world.answer()
    assert world.run("home", "llama").exit_code == 0
    assert world.status()["lastAction"]["type"] == "Start"


def test_home_after_an_abort_releases_that_version(world: World) -> None:
    away(world, asks="v3", phase="Aborted", aborted={"templateHash": V3}, summary={"state": "Aborted"})
    world.answer()
    assert "releases the version of leaderworkerset/llama" in world.run("home", "llama").stdout


def test_a_home_that_was_asked_for_is_no_failure(world: World) -> None:
    away(world, startRequested=True, message="waiting for the LeaderWorkerSet controller")
    result = world.run("home", "llama")
    assert (result.exit_code, result.stdout) == (
        0,
        "rollout/llama was asked to bring its requests home already: waiting for the LeaderWorkerSet controller\n",
    )
    world.answer()
    assert world.run("abort", "llama").stdout == "rollout/llama is not started\n"


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({"active": None}, "rollout/llama: leaderworkerset/llama serves already, so there is nothing to bring home"),
        (ON, "rollout/llama has a release on already, to leaderworkerset/llama: look with `rollout-lws get llama`"),
        (
            {**ON, "finalising": {"reason": "Success", "task": "CleanUp"}},
            "rollout/llama has a release on already: look with `rollout-lws get llama`",
        ),
        (stalled("WorkloadNotFound"), "rollout/llama is Stalled (what is wrong)"),
    ],
)
def test_a_home_that_the_controller_would_refuse_writes_nothing(world: World, status: dict[str, Any], why: str) -> None:
    away(world, **status)
    assert failed(world, "home", "llama") == why
    assert "requestedAction" not in world.status()


def test_home_of_what_no_controller_has_seen_or_of_a_pair_is_refused(world: World) -> None:
    world.pair(active="llama", phase="Healthy")
    assert failed(world, "home", "llama") == (
        "rollout/llama is a pair, of which either workload may serve: `rollout-lws start llama` releases the version of"
        " leaderworkerset/llama-green"
    )


def test_home_of_a_rollout_that_no_controller_has_seen_is_refused(world: World) -> None:
    world.release()
    assert "is not seen by a controller yet: nothing can be released" in failed(world, "home", "llama")


def test_start_names_home(world: World) -> None:
    away(world)
    assert failed(world, "start", "llama").endswith("; `rollout-lws home llama` releases the one that it has")


# What edits the workload


def images(world: World, name: str = "llama") -> set[str]:
    live = world.do(lambda: world.server.get(LEADER_WORKER_SETS, "default", name))
    templates = live["spec"]["leaderWorkerTemplate"]
    return {templates[each]["spec"]["containers"][0]["image"] for each in ("leaderTemplate", "workerTemplate")}


LOADS = "it is released in steps and loads 4 groups, and the requests come back from leaderworkerset/llama-canary"


def test_undo_puts_the_version_before_into_the_users_workload(world: World) -> None:
    away(world)
    remember(world, "v1", 1)
    remember(world, "v2", 2)
    result = world.run("undo", "llama")
    assert (result.exit_code, result.stdout) == (
        0,
        f"leaderworkerset/llama has revision 1 again (vllm/vllm-openai:v1): {LOADS}\n",
    )
    assert images(world) == {"vllm/vllm-openai:v1"} and images(world, CANARY) == {"vllm/vllm-openai:v2"}


def test_undo_says_that_the_groups_are_still_there(world: World) -> None:
    ending = {"reason": "Success", "task": "CleanUp"}
    away(world, kept={"templateHash": V1, "since": "2026-01-01T00:00:00Z"}, finalising=ending)
    remember(world, "v1", 1)
    remember(world, "v2", 2)
    assert world.run("undo", "llama").stdout == (
        "leaderworkerset/llama has revision 1 again (vllm/vllm-openai:v1): its groups are still there, and get all"
        " requests without steps\n"
    )
    assert images(world) == {"vllm/vllm-openai:v1"}


def test_undo_in_a_release_puts_what_serves_into_it(world: World) -> None:
    world.swap(asks="v3", serves="v2", **ON)
    remember(world, "v2", 2)
    remember(world, "v3", 3)
    assert world.run("undo", "llama").stdout.endswith(": the release goes back to it\n")
    assert images(world) == {"vllm/vllm-openai:v2"}


def test_restart_and_set_image_edit_the_users_workload(world: World) -> None:
    away(world)
    assert world.run("restart", "llama").stdout == f"leaderworkerset/llama is to be restarted: {LOADS}\n"
    world.tell(**AWAY, active=CANARY)
    assert world.run("set", "image", "llama", "*=vllm:9").exit_code == 0
    assert images(world) == {"vllm:9"} and images(world, CANARY) == {"vllm/vllm-openai:v2"}


def test_an_edit_while_the_rollout_cannot_leave_says_what_it_waits_for(world: World) -> None:
    away(world, phase="Terminating", **stalled("StandInServes"))
    told = world.run("restart", "llama").stdout
    assert told == "leaderworkerset/llama is to be restarted: it waits for `rollout-lws home llama`\n"


def test_nothing_can_be_let_go_of(world: World) -> None:
    away(world)
    assert failed(world, "release-hold", "llama", "--yes") == (
        "leaderworkerset/llama-canary serves in place of leaderworkerset/llama, which has no groups that could roll:"
        " `rollout-lws home llama` brings the requests there first"
    )


def test_history_says_what_serves(world: World) -> None:
    away(world)
    remember(world, "v1", 1)
    remember(world, "v2", 2)
    lines = world.run("history", "llama").stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["2", "stable"], ["1", "v1"]]


def test_an_abort_after_the_change_of_roles_names_undo(world: World) -> None:
    away(world, **{**ON, "finalising": {"reason": "Success", "task": "CleanUp"}})
    assert "is already promoted: `rollout-lws undo llama` releases the old version" in failed(world, "abort", "llama")


# The gate of a pipeline


def uid(world: World) -> str:
    found: str = world.do(lambda: world.server.get(LEADER_WORKER_SETS, "default", "llama"))["metadata"]["uid"]
    return found


def test_a_gate_is_not_met_before_the_parked_workloads_version_is_released(world: World) -> None:
    away(world, asks="v3", observedWorkloadGeneration=0)
    assert world.run("status", "llama", "--timeout", "0").exit_code == 4
    world.tell(**{**AWAY, "observedTemplateHash": V3}, active=CANARY)
    assert world.run("status", "llama", "--timeout", "0").exit_code == 4
    world.tell(**AWAY, active=None)
    world.tell(
        active=None,
        phase="Healthy",
        observedTemplateHash=V3,
        stable={"templateHash": V3, "workloadUID": uid(world)},
    )
    assert world.run("status", "llama", "--timeout", "0").exit_code == 0


def test_a_gate_that_began_at_home_is_met_when_another_workload_serves(world: World) -> None:
    world.swap(asks="v2", serves="v2", **{**ON, "observedTemplateHash": V2}, active=None)
    world.tell(stable={"templateHash": V1, "workloadUID": uid(world)})
    world.later(0.3, lambda: _ends(world))
    result = world.run("status", "llama", "--timeout", "20s")
    assert (result.exit_code, result.stdout.splitlines()[-1].split()[0]) == (0, "result=healthy"), result.output


def test_a_gate_on_a_workload_that_is_recreated_while_another_one_serves_is_superseded(world: World) -> None:
    away(world, asks="v3", observedWorkloadGeneration=0)

    def recreate() -> None:
        live = world.server.get(LEADER_WORKER_SETS, "default", "llama")
        world.server.delete(LEADER_WORKER_SETS, "default", "llama")
        meta = {"name": "llama", "namespace": "default"}
        world.server.create(LEADER_WORKER_SETS, {**live, "metadata": meta})
        _tell(world, message="seen")

    world.later(0.3, recreate)
    result = world.run("status", "llama", "--timeout", "20s")
    assert result.exit_code == 6, result.output


def test_a_gate_waits_for_requests_that_are_to_be_brought_home(world: World) -> None:
    away(world, startRequested=True)
    assert world.run("status", "llama", "--timeout", "0").exit_code == 4


def _ends(world: World) -> None:
    stable = {"templateHash": V2, "workloadUID": "uid-of-the-canary"}
    _tell(world, phase="Healthy", finalising=None, active=CANARY, stable=stable, summary={"state": "Healthy"})


def _tell(world: World, **status: Any) -> None:
    world.server.patch(world.rollouts, "default", "llama", {"status": status}, subresource="status")


# get, and a workload whose Rollout is gone


def test_get_names_both_and_home_where_the_rollout_cannot_leave(world: World) -> None:
    away(world, phase="Terminating", **stalled("StandInServes"))
    shown = world.run("get", "llama").stdout
    assert "LeaderWorkerSet/llama-canary (active) and LeaderWorkerSet/llama (inactive)" in shown
    assert "rollout-lws home llama" in shown and "loads 4 groups" in shown


def test_doctor_names_what_serves_though_its_rollout_is_gone(world: World) -> None:
    away(world)
    world.do(lambda: world.server.delete(world.rollouts, "default", "llama"))
    result = world.run("doctor", "llama")
    assert isinstance(result.exception, RolloutLwsError)
    assert "there is no Rollout 'llama'" in str(result.exception)
    assert (
        "leaderworkerset/llama-canary serves in place of leaderworkerset/llama, and the Rollout that has made it is"
        " gone: apply that Rollout again, and `rollout-lws home` brings the requests back"
    ) in str(result.exception)


def test_doctor_of_another_name_is_not_told_of_what_is_in_care(world: World) -> None:
    away(world)
    result = world.run("doctor", "other")
    assert "there is no Rollout 'other'" in str(result.exception) and "in place of" not in str(result.exception)
