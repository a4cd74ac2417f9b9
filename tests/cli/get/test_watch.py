"""get -w, at a terminal and in a pipe, against an API server on which things happen, also to itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS
from tests.cli.conftest import World
from tests.cli.get.objects import pod
from tests.cli.states import AWAITING, HEALTHY, LOADING
from tests.terminal import Program

MAIN = (sys.executable, "-c", "from rollout_lws.cli.main import main; main()")


def watching(world: World, *arguments: str, **size: int) -> Program:
    return Program([*MAIN, "--kubeconfig", str(world.kubeconfig), "get", *arguments, "-w"], os.environ, **size)


def pods_of(world: World, *groups: int, ready: bool = True) -> None:
    for group in groups:
        made = pod("llama", group, "old", ready=ready)
        del made["metadata"]["uid"], made["metadata"]["creationTimestamp"]
        status = made.pop("status")
        world.do(lambda made=made: world.server.create(PODS, made))  # type: ignore[misc]
        at = made["metadata"]["name"]
        world.do(
            lambda at=at, status=status: world.server.patch(  # type: ignore[misc]
                PODS, "default", at, {"status": status}, subresource="status"
            )
        )


def test_the_picture_at_a_terminal_follows_every_object_and_ends_with_the_release(world: World) -> None:
    world.release(**LOADING)
    pods_of(world, 0)
    with watching(world, "llama") as program:
        program.shows(lambda text: "Loading" in text and "group 0" in text)
        pods_of(world, 1, 2)
        program.shows(lambda text: "groups 0-2" in text)
        world.do(lambda: world.server.delete(PODS, "default", "llama-2"))
        program.shows(lambda text: "groups 0-1" in text)
        world.tell(**AWAITING)
        program.shows(lambda text: "AwaitingApproval" in text and "promote llama" in text)
        world.tell(**HEALTHY | {"currentStepState": "Completed"})
        program.shows(lambda text: "Status   Healthy" in text)
        assert program.process.wait(30) == 0
    assert program.text().count("Status") == 1


def test_the_canary_is_followed_from_when_it_is_made(world: World) -> None:
    world.release(**LOADING)
    stable = world.do(lambda: world.server.get(LEADER_WORKER_SETS, "default", "llama"))
    labels = {"rollouts.kruise.io/canary-leaderworkerset": "llama"}
    canary = {**stable, "metadata": {"name": "llama-canary", "namespace": "default", "labels": labels}}
    with watching(world, "llama") as program:
        program.shows(lambda text: "Loading" in text)
        world.do(lambda: world.server.create(LEADER_WORKER_SETS, canary))
        program.shows(lambda text: "llama-canary   canary" in text)


@pytest.mark.long
def test_an_api_server_that_is_away_is_told_and_what_is_known_stays(world: World) -> None:
    world.release(**LOADING)
    with watching(world, "llama") as program:
        program.shows(lambda text: "Loading" in text)
        faults = world.http.gate.faults
        faults.refuse(503, "list", "rollouts")
        world.do(lambda: faults.refuse(503, "watch", "rollouts") and faults.cut_watches())
        program.shows(lambda text: "Old: " in text and "Loading" in text)
        world.tell(**AWAITING)
        program.shows(lambda text: "Old: " not in text and "AwaitingApproval" in text)


def test_a_rollout_that_is_deleted_ends_the_watch(world: World) -> None:
    world.release(**LOADING)
    with watching(world, "llama") as program:
        program.shows(lambda text: "Loading" in text)
        world.do(lambda: world.server.delete(world.rollouts, "default", "llama"))
        assert program.process.wait(30) == 1
    assert "rollout/llama was deleted" in program.text()


def test_a_small_window_gets_what_fits(world: World) -> None:
    world.release(**LOADING)
    pods_of(world, 0, 2)
    with watching(world, "llama", "-o", "wide", columns=60, lines=6) as program:
        program.shows(lambda text: "more lines: make the window taller" in text)


def test_a_list_is_drawn_again_as_it_changes(world: World) -> None:
    world.release(**LOADING)
    with watching(world) as program:
        program.shows(lambda text: "llama   Loading" in text)
        world.tell(**AWAITING)
        program.shows(lambda text: "llama   AwaitingApproval   2/3" in text)


def piped(world: World, *arguments: str, then: dict[str, Any]) -> list[str]:
    """The lines of a watch that ends; ``then`` is what the status gets once the first has been read."""
    run = [*MAIN, "--kubeconfig", str(world.kubeconfig), "get", *arguments, "-w"]
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline().rstrip("\n")
        world.do(lambda: world.server.patch(*where(world), {"status": then}, subresource="status"))
        rest = process.stdout.read().splitlines()
    assert process.returncode == 0
    return [first, *rest]


@pytest.mark.parametrize("status", [HEALTHY, HEALTHY | {"phase": "Aborted", "summary": {"state": "Aborted"}}])
def test_in_a_pipe_there_is_one_line_a_change_and_none_has_control_codes(world: World, status: dict[str, Any]) -> None:
    world.release(**LOADING)
    lines = piped(world, "llama", then=status)
    assert [line.split()[1] for line in lines] == ["Loading", status["summary"]["state"]]
    assert "\x1b" not in "".join(lines)


def test_for_machines_each_change_is_the_rollout_as_the_server_has_it(world: World) -> None:
    world.release(**LOADING)
    found = [json.loads(line) for line in piped(world, "llama", "-o", "jsonl", then=HEALTHY)]
    assert [each["status"]["summary"]["state"] for each in found] == ["Loading", "Healthy"]
    assert found[-1] == world.do(lambda: world.server.get(*where(world)))


def where(world: World) -> tuple[Any, str, str]:
    return world.rollouts, "default", "llama"


def test_an_end_that_the_controller_told_of_the_version_before_is_none(world: World) -> None:
    world.release(**HEALTHY)
    world.do(lambda: world.server.patch(LEADER_WORKER_SETS, "default", "llama", {"spec": {"replicas": 3}}))
    lines = piped(world, "llama", "-o", "jsonl", then={"observedWorkloadGeneration": 2})
    assert [json.loads(line)["status"]["observedWorkloadGeneration"] for line in lines] == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["llama", "-A"], "leave out either NAME, or -A and -l"),
        (["llama", "-l", "a=b"], "leave out either NAME, or -A and -l"),
        (["llama", "-w", "-o", "yaml"], "use -o jsonl, a line a change"),
    ],
)
def test_what_makes_no_sense_together_is_told(world: World, arguments: list[str], told: str) -> None:
    result = world.run("get", *arguments)
    assert result.exit_code == 2
    assert told in result.stderr


def test_a_list_is_chosen_by_labels(world: World) -> None:
    world.release(**HEALTHY)
    assert world.run("get", "-l", "team=chat").stderr == "No Rollouts found in namespace default\n"
    labels = {"metadata": {"labels": {"team": "chat"}}}
    world.do(lambda: world.server.patch(*where(world), labels))
    assert world.run("get", "-l", "team=chat", "-o", "name").stdout == "rollout.rollouts.kruise.io/llama\n"
    line = world.run("get", "-l", "team=chat", "-o", "jsonl").stdout
    assert json.loads(line)["kind"] == "Rollout"
