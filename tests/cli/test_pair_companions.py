"""Commands about a pair with companions over HTTP: what they say of both workloads of a side, and the gate."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.cli.demo import manifests
from rollout_lws.objects.resources import CONTROLLER_REVISIONS, LEADER_WORKER_SETS
from tests.cli.conftest import World
from tests.cli.test_pair import BLUE, GREEN, V1, V2, V3, failed, last, lws, put, remember

PREFILL = {BLUE: "llama-prefill", GREEN: "llama-prefill-green"}
HOLD = "rollouts.kruise.io/release-hold"


def joint(*hashes: str) -> str:
    return "-".join(hashes)


#: A release of v2 to the second side is over, and the first side still has v1.
AFTER: dict[str, Any] = {
    "observedGeneration": 2,
    "phase": "Healthy",
    "active": GREEN,
    "stable": {"templateHash": joint(V2, V2)},
    "inactiveHash": joint(V1, V1),
    "observedTemplateHash": joint(V2, V2),
    "observedRolloutID": "r2",
    "summary": {"state": "Healthy", "stable": "4/4"},
}
#: The first side is the active one.
BEFORE = {**AFTER, "active": BLUE, "stable": {"templateHash": joint(V1, V1)}, "observedTemplateHash": joint(V1, V1)}
INCOMPLETE = {"verdict": {"condition": "Reconciling", "reason": "VersionIncomplete", "since": "2026-01-01T00:00:00Z"}}


def sets(world: World, tags: dict[str, str], **status: Any) -> None:
    """Both sides, of which each has a companion; the workloads' images have these tags, v1 by default."""
    world.pair(
        serves=tags.get(BLUE, "v1"), beside=tags.get(GREEN, "v1"), scaled=True, active=status.get("active", BLUE)
    )
    for name in PREFILL.values():
        made = lws(tags.get(name, "v1"))
        made["metadata"]["name"] = name
        world.do(lambda made=made: world.server.create(LEADER_WORKER_SETS, made))  # type: ignore[misc]
    companions = [{"name": PREFILL[BLUE], "counterpart": PREFILL[GREEN], "replicas": 2}]
    body = {"spec": {"companions": companions}}
    world.do(lambda: world.server.patch(world.rollouts, "default", manifests.NAME, body))
    world.tell(**status)


V2_ON_GREEN = {GREEN: "v2", PREFILL[GREEN]: "v2"}


def test_a_start_names_all_workloads_of_the_side(world: World) -> None:
    sets(world, V2_ON_GREEN, **AFTER)
    world.answer()
    result = world.run("start", "llama")
    assert result.stdout == "rollout/llama releases the version of leaderworkerset/llama with llama-prefill\n"


def test_a_start_of_a_version_that_one_companion_has_is_sent(world: World) -> None:
    """The workload of the side itself has what serves."""
    sets(world, {PREFILL[GREEN]: "v2"}, **BEFORE, **INCOMPLETE)
    world.answer()
    assert world.run("start", "llama").exit_code == 0


def test_a_start_of_what_serves_is_refused(world: World) -> None:
    sets(world, {}, **BEFORE)
    assert failed(world, "start", "llama") == (
        "rollout/llama: leaderworkerset/llama-green with llama-prefill-green has the version that leaderworkerset/llama"
        " with llama-prefill runs: apply another one to llama-green"
    )


def test_nothing_is_started_while_a_companion_is_missing(world: World) -> None:
    missing = {"verdict": {"condition": "Stalled", "reason": "CompanionMissing", "since": "2026-01-01T00:00:00Z"}}
    sets(world, V2_ON_GREEN, **{**AFTER, "summary": {"state": "Stalled"}}, **missing, message="what is wrong")
    assert "is Stalled (what is wrong): nothing can be released" in failed(world, "start", "llama")


def test_undo_says_that_companions_versions_are_not_stored(world: World) -> None:
    sets(world, {**V2_ON_GREEN, BLUE: "v3"}, **AFTER)
    remember(world, "v1", 1)
    assert "leaderworkerset/llama with llama-prefill has another version than revision" in told_of_undo(world)
    assert told_of_undo(world).endswith("prints it, of companions only their own manifests have it")


def told_of_undo(world: World) -> str:
    return failed(world, "undo", "llama", "--to-revision", "1")


@pytest.mark.parametrize("command", [("restart", "llama"), ("set", "image", "llama", "*=x:1")])
def test_what_edits_no_side_says_when_a_release_begins(world: World, command: tuple[str, ...]) -> None:
    sets(world, V2_ON_GREEN, **AFTER)
    told = failed(world, *command)
    assert "leaderworkerset/llama with llama-prefill, the inactive side" in told
    assert "when each of these has" in told and told.endswith("or by `rollout-lws start llama`")


def test_the_holds_of_the_whole_side_are_let_go(world: World) -> None:
    sets(world, {**V2_ON_GREEN, PREFILL[BLUE]: "v2"}, **BEFORE)
    told = world.run("release-hold", "llama", "--yes").stdout
    assert "leaderworkerset/llama and leaderworkerset/llama-prefill are let go of: the version that waits rolls" in told
    assert told.endswith(f"kubectl annotate lws llama llama-prefill {HOLD}-\n")
    for name, marked in ((BLUE, True), (PREFILL[BLUE], True), (GREEN, False), (PREFILL[GREEN], False)):
        assert (marks(world, name).get(HOLD) == "true") is marked, name
    assert world.run("release-hold", "llama", "--yes").stdout.endswith("are let go of already\n")


def marks(world: World, name: str) -> dict[str, str]:
    found = world.do(lambda: world.server.get(LEADER_WORKER_SETS, "default", name))
    return dict(found["metadata"].get("annotations") or {})


def test_history_shows_the_beginnings_of_hashes_that_are_joined(world: World) -> None:
    sets(world, V2_ON_GREEN, **AFTER)
    remember(world, "v1", 1)
    assert V1 in world.run("history", "llama").stdout
    record = world.do(lambda: world.server.list(CONTROLLER_REVISIONS, "default"))[0]["metadata"]["name"]
    body = {"metadata": {"annotations": {"rollouts.kruise.io/template-hash": joint(V1, V2)}}}
    world.do(lambda: world.server.patch(CONTROLLER_REVISIONS, "default", record, body))
    assert f" {V1[:5]}-{V2[:5]} " in world.run("history", "llama").stdout
    assert f'"{joint(V1, V2)}"' in world.run("history", "llama", "-o", "json").stdout


# The gate


def test_a_gate_is_pinned_to_the_version_of_all(world: World) -> None:
    sets(world, V2_ON_GREEN, **AFTER)
    assert last(world)[:2] == (0, "result=healthy rollout=default/llama release=r2 exit=0")


def test_a_gate_that_begins_before_a_controller_has_seen_a_companion_waits(world: World) -> None:
    """The generation that the status counts is of the workload that has not changed."""
    sets(world, {PREFILL[GREEN]: "v2"}, **BEFORE)
    assert last(world, "--timeout", "0")[:2] == (4, "result=timeout rollout=default/llama release=r2 exit=4")
    arriving = {"templateHash": joint(V1, V2), "since": "2026-01-01T00:00:00Z"}
    world.tell(**BEFORE, **INCOMPLETE, arriving=arriving, message="what lacks")
    code, line, told = last(world)
    assert (code, line) == (5, "result=incomplete rollout=default/llama release=r2 exit=5")
    assert told == "rollout-lws: rollout/llama waits for the rest of a version: what lacks\n"


def test_a_gate_for_an_id_waits_until_all_workloads_have_it(world: World) -> None:
    sets(world, V2_ON_GREEN, **BEFORE, **INCOMPLETE, message="llama-prefill-green has none")
    body = {"metadata": {"labels": {"rollouts.kruise.io/rollout-id": "r3"}}}
    world.do(lambda: world.server.patch(LEADER_WORKER_SETS, "default", GREEN, body))
    code, _, told = last(world, "--release-id", "r3", "--timeout", "0")
    assert code == 4 and told.endswith("llama-prefill-green has none\n")


def test_a_version_that_a_companion_has_no_more_is_superseded(world: World) -> None:
    sets(world, V2_ON_GREEN, **BEFORE)
    changed = lws("v3")["spec"]["leaderWorkerTemplate"]
    body = {"spec": {"leaderWorkerTemplate": changed}}
    world.later(0.2, lambda: world.server.patch(LEADER_WORKER_SETS, "default", PREFILL[GREEN], body))
    world.later(0.4, lambda: put(world, **BEFORE, arriving={"templateHash": joint(V2, V3)}))
    assert last(world, "--timeout", "20s")[0] == 6
