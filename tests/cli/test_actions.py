"""promote, pause, resume, abort and retry over HTTP: what they write, what they say, and their exit codes."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.errors import RolloutLwsError
from tests.cli.conftest import World
from tests.cli.states import AWAITING, HASH, HEALTHY, LOADING


def failed(world: World, *arguments: str) -> str:
    """Why the command failed with 1 and one line."""
    result = world.run(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert isinstance(result.exception, RolloutLwsError)
    return str(result.exception)


def test_promote_asks_for_the_approval_of_the_very_step_and_version_it_saw(world: World) -> None:
    world.release(**AWAITING)
    world.answer()
    result = world.run("promote", "llama")
    assert (result.exit_code, result.stdout) == (0, "rollout/llama step 2/3 approved\n")
    asked = world.status()["lastAction"]
    assert (asked["type"], asked["step"], asked["templateHash"]) == ("Approve", 2, HASH)
    assert asked["by"] and asked["at"]


def test_an_abort_is_about_the_release_whatever_its_step(world: World) -> None:
    world.release(**LOADING)
    world.answer()
    assert world.run("abort", "llama", "--reason", "too slow").exit_code == 0
    asked = world.status()["lastAction"]
    assert (asked["type"], asked["reason"], asked["templateHash"]) == ("Abort", "too slow", HASH)
    assert "step" not in asked and "force" not in asked


@pytest.mark.parametrize(
    ("arguments", "kind", "fields"),
    [
        (["promote", "--full"], "PromoteFull", {}),
        (["promote", "--to-step", "3"], "Jump", {"toStep": 3, "step": 2}),
        (["abort", "--force"], "Abort", {"force": True}),
        (["retry"], "Retry", {}),
        (["pause", "--reason", "lunch"], "Pause", {"reason": "lunch"}),
    ],
)
def test_each_command_has_a_request_of_its_own(
    world: World, arguments: list[str], kind: str, fields: dict[str, Any]
) -> None:
    world.release(**AWAITING)
    world.answer()
    assert world.run(*arguments, "llama").exit_code == 0
    asked = world.status()["lastAction"]
    assert (asked["type"], {name: asked[name] for name in fields}) == (kind, fields)


def test_a_retry_names_the_gates_that_are_measured_again(world: World) -> None:
    of_step = [("warm", "Passed"), ("first-token", "Inconclusive"), ("evals", "Error"), ("skipped", "Skipped")]
    gates = [{"name": name, "result": result} for name, result in of_step] + [{"name": "runs"}]
    world.release(**AWAITING, gates=gates, releaseGates=[{"name": "errors", "result": "Failed"}, {"name": "watched"}])
    world.answer()
    result = world.run("retry", "llama")
    assert "has its whole deadline again, and measures again: first-token, evals, errors" in result.stdout


@pytest.mark.parametrize(("status", "why"), [(LOADING, "not waiting for approval"), (HEALTHY, "nothing waits")])
def test_what_makes_no_sense_now_writes_nothing(world: World, status: dict[str, Any], why: str) -> None:
    world.release(**status)
    assert why in failed(world, "promote", "llama")
    assert "requestedAction" not in world.status()


def test_what_is_so_already_is_no_failure(world: World) -> None:
    world.release(phase="Aborted")
    result = world.run("abort", "llama")
    assert (result.exit_code, result.stdout) == (0, "rollout/llama is aborted already\n")


def test_what_the_controller_refuses_is_told_with_its_reason(world: World) -> None:
    world.release(**AWAITING)
    world.answer("it was meant for step 2, the release is at step 3")
    assert failed(world, "promote", "llama") == (
        "rollout/llama: not done: it was meant for step 2, the release is at step 3"
    )


def test_a_controller_that_does_not_answer_is_told(world: World) -> None:
    world.release(**AWAITING)
    assert "no controller has answered within 0.2 s: is it running?" in failed(
        world, "promote", "llama", "--timeout", "200ms"
    )
    assert world.status()["requestedAction"]["type"] == "Approve"


def test_whoever_does_not_want_to_wait_does_not(world: World) -> None:
    world.release(**AWAITING)
    result = world.run("promote", "llama", "--timeout", "0")
    assert result.exit_code == 0
    assert result.stdout == "rollout/llama: asked for (Approve); check the result with `rollout-lws get llama`\n"


def test_a_promotion_in_full_may_wait_for_the_groups_of_its_step(world: World) -> None:
    world.release(**LOADING)
    result = world.run("promote", "llama", "--full", "--timeout", "200ms")
    assert result.exit_code == 0
    assert "asked for; it is promoted as soon as the groups of step 2/3 are ready" in result.stdout


def test_a_second_request_is_refused_while_one_waits(world: World) -> None:
    world.release(**AWAITING)
    world.run("promote", "llama", "--timeout", "0")
    told = failed(world, "promote", "llama")
    assert "that waits (Approve): is the controller running?" in told


@pytest.mark.parametrize("command", ["abort", "pause"])
def test_nobody_has_to_wait_to_stop_a_promotion_that_waits_for_groups(world: World, command: str) -> None:
    world.release(**LOADING)
    world.run("promote", "llama", "--full", "--timeout", "0")
    world.answer()
    assert world.run(command, "llama").exit_code == 0
    assert world.status()["lastAction"]["type"] == command.title()


def test_the_request_that_took_its_place_is_told(world: World) -> None:
    world.release(**LOADING)
    other = {"type": "Abort", "id": "theirs", "by": "jane"}
    world.later(
        0.3,
        lambda: world.server.patch(
            world.rollouts, "default", "llama", {"status": {"requestedAction": other}}, subresource="status"
        ),
    )
    assert "not done: jane asked for Abort instead" in failed(world, "promote", "llama", "--full")


def test_several_releases_are_acted_on_and_each_refusal_is_told(world: World) -> None:
    world.release(**AWAITING)
    world.answer()
    result = world.run("promote", "mistral", "llama")
    assert (result.exit_code, result.stdout) == (1, "rollout/llama step 2/3 approved\n")
    assert "there is no Rollout 'mistral'" in result.stderr


def test_releases_are_chosen_by_label(world: World) -> None:
    world.release(**AWAITING)
    world.answer()
    world.do(lambda: world.server.patch(world.rollouts, "default", "llama", {"metadata": {"labels": {"team": "chat"}}}))
    assert world.run("pause", "-l", "team=chat").stdout.startswith("rollout/llama paused")
    assert "no Rollout in namespace 'default' has the labels team=search" in failed(world, "pause", "-l", "team=search")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["promote"], "write NAME, rollout/NAME or -l SELECTOR"),
        (["promote", "llama", "-l", "a=b"], "leave out either"),
    ],
)
def test_somebody_has_to_be_meant(world: World, arguments: list[str], told: str) -> None:
    assert told in failed(world, *arguments)


def test_an_old_screen_promotes_nothing(world: World) -> None:
    world.release(**AWAITING)
    assert "is at step 2/3 now, not 1" in failed(world, "promote", "llama", "--step", "1")
    assert "requestedAction" not in world.status()


@pytest.mark.parametrize("code", [500, 410])
def test_an_answer_is_waited_for_though_the_watch_breaks(
    world: World, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr("rollout_lws.cli.watch.stream.RECONNECT", 0.05)
    world.release(**AWAITING)
    world.http.gate.faults.refuse(code, "watch", "rollouts", nth=1)
    world.later(0.5, lambda: world.file("Done"))
    assert world.run("promote", "llama").stdout == "rollout/llama step 2/3 approved\n"


@pytest.mark.parametrize("conflicts", [1, 20])
def test_a_status_that_changes_all_the_time_keeps_nobody_from_an_abort(world: World, conflicts: int) -> None:
    world.release(**LOADING)
    world.http.gate.faults.refuse(409, "patch", "rollouts", count=conflicts)
    world.answer()
    result = world.run("abort", "llama")
    assert (result.exit_code, result.stdout) == (0, "rollout/llama aborted at step 2/3; going back to stable\n")


def test_a_status_that_never_holds_still_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rollout_lws.cli.actions.action_client._PERSISTENCE", 0.2)
    world.release(**LOADING)
    world.http.gate.faults.refuse(409, "patch", "rollouts", count=None)
    assert failed(world, "abort", "llama") == (
        "rollout/llama: its status changed each time before it could be asked for Abort, for 0.2 s; nothing was"
        " changed, try again"
    )


def overtaken(world: World, monkeypatch: pytest.MonkeyPatch, status: dict[str, Any]) -> None:
    """Have the Rollout get this status between the first look and the first write, which is a conflict then."""
    patch = world.server.patch
    moved: list[bool] = []

    def overtake(*arguments: Any, **options: Any) -> Any:
        if not moved:
            moved.append(True)
            patch(world.rollouts, "default", "llama", {"status": status}, subresource="status")
        return patch(*arguments, **options)

    monkeypatch.setattr(world.server, "patch", overtake)


NEXT_STEP = {"currentStepIndex": 3, "summary": {"step": "3/3"}}


def test_a_step_that_was_left_between_look_and_deed_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.release(**AWAITING)
    overtaken(world, monkeypatch, NEXT_STEP)
    assert failed(world, "promote", "llama") == (
        "rollout/llama moved on to step 3/3 meanwhile, nothing was changed: look with `rollout-lws get` and decide"
        " again"
    )
    assert "requestedAction" not in world.status()


def test_a_step_that_was_named_is_looked_for_again_after_a_conflict(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.release(**AWAITING)
    overtaken(world, monkeypatch, NEXT_STEP)
    assert failed(world, "promote", "llama", "--full", "--step", "2") == (
        "rollout/llama is at step 3/3 now, not 2: look with `rollout-lws get llama`"
    )
    assert "requestedAction" not in world.status()


def test_a_release_that_was_named_is_looked_for_again_after_a_conflict(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.release(**LOADING | {"observedRolloutID": "r7"})
    overtaken(world, monkeypatch, {"observedRolloutID": "r8"})
    assert "is about release r8 now, not r7" in failed(world, "abort", "llama", "--release-id", "r7")
    assert "requestedAction" not in world.status()


def test_what_makes_no_sense_any_more_after_a_conflict_is_not_asked_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.release(**LOADING)
    overtaken(world, monkeypatch, {"finalising": {"reason": "Success", "task": "CleanUp"}})
    assert "is already promoted: `rollout-lws undo llama`" in failed(world, "abort", "llama")
    assert "requestedAction" not in world.status()


def test_what_another_has_done_meanwhile_is_no_failure(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.release(**LOADING)
    overtaken(world, monkeypatch, {"paused": True})
    result = world.run("pause", "llama")
    assert (result.exit_code, result.stdout) == (0, "rollout/llama is paused already\n")
    assert "requestedAction" not in world.status()


def test_the_answer_is_about_the_step_at_which_it_was_asked_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.release(**LOADING)
    world.answer()
    overtaken(world, monkeypatch, NEXT_STEP)
    assert world.run("abort", "llama").stdout == "rollout/llama aborted at step 3/3; going back to stable\n"
