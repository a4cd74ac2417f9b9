"""What every command says when it lacks a permission, and when there is no API server."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from rollout_lws.errors import ApiError, RolloutLwsError
from rollout_lws.sandbox.faults import Effect
from tests.cli.conftest import World
from tests.cli.states import AWAITING

ASK = "ask an administrator for that permission"
ACTIONS = ["promote", "abort", "retry", "pause"]
EDITS: list[list[str]] = [["set", "image", "llama", "*=vllm:9"], ["restart", "llama"], ["release-hold", "llama", "-y"]]
LOOKS = [["get"], ["get", "llama"], ["status", "llama"], ["history", "llama"], ["undo", "llama"]]


def forbid(world: World, verb: str, plural: str, resource: str, group: str) -> str:
    """Have the server refuse as RBAC does; what it says."""
    name = f"{plural}.{group}" if group else plural
    said = (
        f'{name} "llama" is forbidden: User "jane" cannot {verb} resource "{resource}" in API group "{group}" in the'
        ' namespace "default"'
    )
    effect = Effect(refusal=ApiError(403, "Forbidden", said))
    world.do(lambda: world.http.gate.faults.add(effect, verb, plural, count=None))
    return said


def failed(world: World, arguments: list[str]) -> str:
    result = world.run(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert isinstance(result.exception, RolloutLwsError)
    return str(result.exception)


@pytest.mark.parametrize("command", ACTIONS)
def test_an_action_without_permission_says_which_and_that_looking_goes_on(world: World, command: str) -> None:
    world.release(**AWAITING)
    said = forbid(world, "patch", "rollouts", "rollouts/status", "rollouts.kruise.io")
    assert failed(world, [command, "llama"]) == f"{said}; {ASK}"
    assert world.run("get", "llama").exit_code == 0
    assert world.run("status", "llama").exit_code == 5


@pytest.mark.parametrize("arguments", EDITS, ids=lambda arguments: arguments[0])
def test_an_edit_without_permission_says_which_and_that_actions_go_on(world: World, arguments: list[str]) -> None:
    world.release(**(AWAITING | {"phase": "Healthy", "stable": {"templateHash": AWAITING["observedTemplateHash"]}}))
    said = forbid(world, "patch", "leaderworkersets", "leaderworkersets", "leaderworkerset.x-k8s.io")
    assert failed(world, arguments) == f"{said}; {ASK}"
    world.answer()
    assert world.run("pause", "llama").exit_code == 0


@pytest.mark.parametrize("arguments", [*([each, "llama"] for each in ACTIONS), *LOOKS[1:], *EDITS], ids=" ".join)
def test_whoever_may_not_even_look_is_told(world: World, arguments: list[str]) -> None:
    world.release(**AWAITING)
    said = forbid(world, "get", "rollouts", "rollouts", "rollouts.kruise.io")
    assert failed(world, arguments) == f"{said}; {ASK}"


def test_whoever_may_not_list_is_told(world: World) -> None:
    said = forbid(world, "list", "rollouts", "rollouts", "rollouts.kruise.io")
    assert failed(world, ["get"]) == f"{said}; {ASK}"


def test_a_gate_that_may_not_watch_ends_and_says_so(world: World) -> None:
    world.release(**(AWAITING | {"summary": {"state": "Loading"}, "currentStepState": "StepUpgrade"}))
    forbid(world, "watch", "rollouts", "rollouts", "rollouts.kruise.io")
    result = world.run("status", "llama", "--timeout", "20s")
    assert result.exit_code == 1
    assert (
        f'cannot watch resource "rollouts" in API group "rollouts.kruise.io" in the namespace "default"; {ASK}'
        in str(result.exception)
    )


@pytest.fixture
def nowhere() -> Any:
    """The address of a server that is not there: nobody else can take the port meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize(
    "arguments", [*([each, "llama"] for each in (*ACTIONS, "resume")), *LOOKS, *EDITS], ids=" ".join
)
def test_an_api_server_that_is_away_is_named(world: World, nowhere: str, arguments: list[str]) -> None:
    assert failed(world, ["--server", nowhere, *arguments]) == (
        f"no answer from {nowhere}: Connection refused; is it up? check the kubeconfig and the network"
    )
