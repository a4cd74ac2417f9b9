"""What commands say of a pair whose active side gives up groups as the other one gets some."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import World
from tests.cli.test_pair import BLUE, GREEN, ON, V2, failed

GIVEN_UP: dict[str, Any] = {"groups": {"stable": {"ready": 2, "total": 2}, "new": {"ready": 2, "total": 2}}}
WHOLE: dict[str, Any] = {"groups": {"stable": {"ready": 4, "total": 4}, "new": {"ready": 1, "total": 1}}}
TURNED: dict[str, Any] = {"active": GREEN, "finalising": {"reason": "Success", "task": "CleanUp"}}
LOADS = "leaderworkerset/llama loads the groups again that it has given up"


@pytest.mark.parametrize(
    ("shift", "groups", "loads"),
    [
        pytest.param({}, GIVEN_UP, True, id="groups are gone"),
        pytest.param({}, WHOLE, False, id="no group is gone yet"),
        pytest.param({}, {}, False, id="no group is counted yet"),
        pytest.param(None, GIVEN_UP, False, id="scaled by the user"),
    ],
)
def test_an_abort_says_what_it_loads(
    world: World, shift: dict[str, Any] | None, groups: dict[str, Any], loads: bool
) -> None:
    world.pair(scaled=True, shift=shift, **ON, **groups)
    world.answer()
    told = world.run("abort", "llama").stdout
    assert told == f"rollout/llama aborted at step 1/2; going back to stable{f'; {LOADS}' if loads else ''}\n"


def test_undo_in_such_a_release_says_it_too(world: World) -> None:
    world.pair(scaled=True, shift={}, **ON, **GIVEN_UP)
    assert failed(world, "undo", "llama") == (
        "rollout/llama is a pair whose release is on: `rollout-lws abort llama` sends all requests back to"
        f" leaderworkerset/{BLUE}, which loads the groups again that it has given up"
    )


#: The roles have changed, and the last group of the side that is active now is still to come.
CLEANING_UP: dict[str, Any] = {**ON, **TURNED, "stable": {"templateHash": V2}, "observedWorkloadGeneration": 7}


@pytest.mark.parametrize("scaled", [True, False], ids=["scaled by releases", "scaled by its owner"])
def test_a_gate_that_begins_once_the_roles_have_changed_is_about_the_version_that_serves(
    world: World, scaled: bool
) -> None:
    world.pair(serves="v1", beside="v2", scaled=scaled, **CLEANING_UP)
    assert world.run("status", "llama", "--timeout", "0").exit_code == 4
    world.later(0.3, lambda: _ends(world))
    result = world.run("status", "llama", "--timeout", "20s")
    assert (result.exit_code, result.stdout.splitlines()[-1].split()[0]) == (0, "result=healthy"), result.output


def test_a_version_that_is_applied_to_the_other_side_by_then_is_waited_for(world: World) -> None:
    world.pair(serves="v3", beside="v2", scaled=True, shift={}, **CLEANING_UP)
    assert world.run("status", "llama", "--timeout", "0").exit_code == 4
    world.later(0.3, lambda: _ends(world, observedWorkloadGeneration=0))
    # No controller has seen it yet.
    assert world.run("status", "llama", "--timeout", "1s").exit_code == 4


def _ends(world: World, **more: Any) -> None:
    summary = {"state": "Healthy", "step": None, "stable": "4/4"}
    ended = {"phase": "Healthy", "finalising": None, "summary": summary, **more}
    world.server.patch(world.rollouts, "default", "llama", {"status": ended}, subresource="status")


def test_once_the_roles_have_changed_there_is_nothing_to_go_back_to(world: World) -> None:
    world.pair(scaled=True, shift={"maxExtraGroups": 0, "maxUnavailableGroups": 1}, **{**ON, **GIVEN_UP, **TURNED})
    assert "`rollout-lws start llama` releases the old version" in failed(world, "abort", "llama")
    shown = world.run("get", "llama").stdout
    assert "LeaderWorkerSet/llama-green (active)" in shown and "rollout-lws abort" not in shown
