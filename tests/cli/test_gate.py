"""status as the gate of a release by its id, for capacity, and its lines for machines, over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from tests.cli.conftest import World
from tests.cli.states import AWAITING, HEALTHY, LOADING

pytestmark = pytest.mark.rare(3)

ID = "rollouts.kruise.io/rollout-id"


def label(world: World, release: str | None) -> None:
    """Give the LWS another id, on the server's own thread."""
    body = {"metadata": {"labels": {ID: release}}}
    world.server.patch(LEADER_WORKER_SETS, "default", "llama", body)


def tell(world: World, **status: Any) -> None:
    world.server.patch(world.rollouts, "default", "llama", {"status": status}, subresource="status")


def released(world: World, carried: str, **status: Any) -> None:
    world.release(**status)
    world.do(lambda: label(world, carried))


def test_the_release_of_that_id_is_judged(world: World) -> None:
    released(world, "b2", **HEALTHY, observedRolloutID="b2")
    result = world.run("status", "llama", "--release-id", "b2")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (
        0,
        "result=healthy rollout=default/llama release=b2 exit=0",
    )


def test_a_status_that_speaks_of_another_id_is_none_of_its_business(world: World) -> None:
    released(world, "b2", **HEALTHY, observedRolloutID="b1")
    world.later(0.2, lambda: tell(world, **AWAITING, observedRolloutID="b2"))
    result = world.run("status", "llama", "--release-id", "b2", "--timeout", "20s")
    assert result.exit_code == 5


def test_an_id_that_is_not_applied_yet_is_waited_for(world: World) -> None:
    released(world, "b1", **HEALTHY, observedRolloutID="b1")

    def deploy() -> None:
        label(world, "b2")
        tell(world, observedRolloutID="b2")

    world.later(0.2, deploy)
    assert world.run("status", "llama", "--release-id", "b2", "--timeout", "20s").exit_code == 0


@pytest.mark.parametrize("asked", [(), ("--release-id", "b2")], ids=["of the version", "of its id"])
def test_a_rollout_that_is_refused_before_its_first_release_is_not_waited_for(
    world: World, asked: tuple[str, ...]
) -> None:
    why = "LeaderWorkerSet llama is made by DisaggregatedSet llama"
    stalled = {"type": "Stalled", "status": "True", "reason": "WorkloadOwned", "message": why, "observedGeneration": 9}
    unseen = {"observedWorkloadGeneration": None, "observedTemplateHash": None}
    released(world, "b2", **unseen, phase="Initial", conditions=[stalled])
    result = world.run("status", "llama", *asked, "--timeout", "20s")
    assert (result.exit_code, result.stderr) == (3, f"rollout-lws: rollout/llama is stalled: {why}\n")


@pytest.mark.parametrize("told", ["b2", "b1"], ids=["seen", "never seen"])
def test_an_id_whose_place_another_took_is_superseded(world: World, told: str) -> None:
    released(world, "b2", **LOADING, observedRolloutID=told)

    def deploy() -> None:
        label(world, "b3")
        tell(world, observedRolloutID="b3")

    world.later(0.2, deploy)
    result = world.run("status", "llama", "--release-id", "b2", "--timeout", "20s")
    assert result.exit_code == 6
    assert result.stderr == "rollout-lws: rollout/llama: release b3 took the place of b2\n"


@pytest.mark.parametrize(
    ("carried", "why"),
    [
        ("b1", "leaderworkerset/llama carries release b1, not b2: has it been applied?"),
        (None, "leaderworkerset/llama carries no rollout-id, not b2: has it been applied?"),
        ("b2", "no controller has seen release b2 yet; is one running?"),
    ],
)
def test_a_timeout_says_on_whom_it_waited(world: World, carried: str | None, why: str) -> None:
    world.release(**HEALTHY, observedRolloutID="b1")
    world.do(lambda: label(world, carried))
    result = world.run("status", "llama", "--release-id", "b2", "--timeout", "0")
    assert result.exit_code == 4
    assert result.stderr == f"rollout-lws: rollout/llama is not healthy yet: {why}\n"


def test_waiting_for_capacity_fails_only_those_who_ask_for_it(world: World) -> None:
    full = {"summary": {"state": "WaitingForQuota", "step": "2/3"}, "message": "quota team-a is used up"}
    world.release(**(LOADING | full))
    assert world.run("status", "llama", "--timeout", "0").exit_code == 4
    result = world.run("status", "llama", "--fail-on-capacity")
    assert result.exit_code == 7
    assert result.stderr == "rollout-lws: rollout/llama waits for capacity: quota team-a is used up\n"


def test_json_lines_have_all_members_always(world: World) -> None:
    gate = {"name": "errors", "result": "Passed", "value": "0.1%", "limit": "2%"}
    world.release(**(AWAITING | {"message": "step 2 waits"}), observedRolloutID="b2", gates=[gate | {"hash": "x"}])
    result = world.run("status", "llama", "-o", "jsonl")
    seen, last = (json.loads(line) for line in result.stdout.splitlines())
    assert seen.pop("time").endswith("Z") and last.pop("time").endswith("Z")
    identity = {"namespace": "default", "name": "llama", "release": "b2"}
    assert seen == {
        **identity,
        "state": "AwaitingApproval",
        "step": "2/3",
        "traffic": "",
        "new": "2/2",
        "stable": "4/4",
        "accelerators": "",
        "since": "",
        "message": "step 2 waits",
        "gates": [gate],
    }
    told = "rollout/llama waits for approval of step 2: `rollout-lws promote llama`"
    assert last == {"result": "approval", **identity, "exit": 5, "message": told, "gates": [gate]}
    alone = json.loads(world.run("status", "llama", "-o", "json").stdout)
    assert alone == last


@pytest.mark.parametrize("code", [429, 503])
def test_a_gate_that_has_begun_outlives_a_server_that_is_busy_with_the_lws(
    world: World, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollout_lws.cli.watch.stream.RECONNECT", 0.05)
    released(world, "b1", **LOADING, observedRolloutID="b1")
    rule = world.http.gate.faults.refuse(code, "get", "leaderworkersets", nth=2)

    def arrive() -> None:
        label(world, "b2")
        tell(world, **HEALTHY, observedRolloutID="b2")

    world.later(0.3, arrive)
    result = world.run("status", "llama", "--release-id", "b2", "--timeout", "20s")
    assert result.exit_code == 0
    assert rule.seen >= rule.nth
