"""Commands about a pair over HTTP: start, what edits no workload, the gate of a pipeline, and what belongs to it."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.api.resources import keys
from rollout_lws.cli.demo import manifests
from rollout_lws.cli.events.scope import scope_of
from rollout_lws.cli.releases import version_hash
from rollout_lws.errors import ApiError, RolloutLwsError
from rollout_lws.objects.resources import CONTROLLER_REVISIONS, LEADER_WORKER_SETS
from rollout_lws.sandbox.faults import Effect
from rollout_lws.targets.table import stored_version
from rollout_lws.workload.revisions import history_body
from tests.cli.conftest import World

pytestmark = pytest.mark.rare(3)

BLUE, GREEN = "llama", "llama-green"
ID = "rollouts.kruise.io/rollout-id"


def lws(tag: str) -> dict[str, Any]:
    made = manifests.workload()
    for template in ("leaderTemplate", "workerTemplate"):
        made["spec"]["leaderWorkerTemplate"][template]["spec"]["containers"][0]["image"] = f"{manifests.IMAGE}:{tag}"
    return made


V1, V2, V3 = (version_hash(lws(tag)) for tag in ("v1", "v2", "v3"))
#: A release of v2 to the second side is over, and the first side still has v1.
AFTER: dict[str, Any] = {
    "phase": "Healthy",
    "active": GREEN,
    "stable": {"templateHash": V2},
    "inactiveHash": V1,
    "observedTemplateHash": V2,
    "observedRolloutID": "r2",
    "summary": {"state": "Healthy", "stable": "4/4"},
}
ON: dict[str, Any] = {
    "phase": "Progressing",
    "active": BLUE,
    "stable": {"templateHash": V1},
    "inactiveHash": V1,
    "observedTemplateHash": V2,
    "observedRolloutID": "r2",
    "currentStepIndex": 1,
    "currentStepState": "StepUpgrade",
    "summary": {"state": "Loading", "step": "1/2", "stable": "4/4"},
}


def pair(world: World, *, beside: str = "v2", **status: Any) -> None:
    """The first side has v1."""
    world.pair(serves="v1", beside=beside, **status)


def failed(world: World, *arguments: str) -> str:
    result = world.run(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert isinstance(result.exception, RolloutLwsError)
    return str(result.exception)


def remember(world: World, tag: str, number: int) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u"}
    version = stored_version(lws(tag)["spec"])
    body = history_body(version, keys(), rollout=BLUE, namespace="default", owner=owner, number=number, revision=tag)
    world.do(lambda: world.server.create(CONTROLLER_REVISIONS, body))


# start


def test_start_asks_for_the_other_side_of_what_it_saw(world: World) -> None:
    pair(world, **AFTER)
    world.answer()
    result = world.run("start", "llama", "--reason", "worse answers")
    assert (result.exit_code, result.stdout) == (0, "rollout/llama releases the version of leaderworkerset/llama\n")
    asked = world.status()["lastAction"]
    assert (asked["type"], asked["templateHash"], asked["reason"]) == ("Start", V2, "worse answers")
    assert "step" not in asked


def test_start_after_an_abort_releases_that_version_again(world: World) -> None:
    status = {
        **ON,
        "phase": "Aborted",
        "aborted": {"templateHash": V2},
        "inactiveHash": V2,
        "summary": {"state": "Aborted"},
    }
    pair(world, **status)
    world.answer()
    assert "releases the version of leaderworkerset/llama-green" in world.run("start", "llama").stdout


def test_a_start_of_what_is_paused_says_so(world: World) -> None:
    pair(world, **AFTER, paused=True)
    world.answer()
    assert "it stays paused until `rollout-lws resume llama`" in world.run("start", "llama").stdout


def test_a_start_that_waits_already_is_no_failure(world: World) -> None:
    pair(world, **AFTER, startRequested=True, message="LeaderWorkerSet llama has 0 groups")
    result = world.run("start", "llama")
    assert (result.exit_code, result.stdout) == (
        0,
        "rollout/llama was asked to release leaderworkerset/llama already: LeaderWorkerSet llama has 0 groups\n",
    )


def stalled(reason: str) -> dict[str, Any]:
    return {
        "verdict": {"condition": "Stalled", "reason": reason, "since": "2026-01-01T00:00:00Z"},
        "summary": {"state": "Stalled"},
        "message": "what is wrong",
    }


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (ON, "has a release on already, to leaderworkerset/llama-green"),
        ({**AFTER, **stalled("CounterpartMissing")}, "is Stalled (what is wrong): nothing can be released"),
        ({**AFTER, **stalled("ActiveSideUnknown")}, "is Stalled (what is wrong): nothing can be released"),
        ({}, "is not seen by a controller yet: nothing can be released"),
    ],
)
def test_a_start_that_the_controller_would_refuse_writes_nothing(
    world: World, status: dict[str, Any], why: str
) -> None:
    pair(world, **status)
    assert why in failed(world, "start", "llama")
    assert "requestedAction" not in world.status()


def test_a_start_of_the_version_that_serves_is_refused(world: World) -> None:
    """Whatever the status says, which is not renewed for that."""
    world.pair(serves="v2", beside="v2", **AFTER)
    assert failed(world, "start", "llama") == (
        "rollout/llama: leaderworkerset/llama has the version that leaderworkerset/llama-green runs: apply another one"
        " to llama"
    )


def test_a_start_without_a_workload_names_it(world: World) -> None:
    pair(world, **AFTER)
    world.do(lambda: world.server.delete(LEADER_WORKER_SETS, "default", BLUE))
    assert "refers to LeaderWorkerSet 'llama', which does not exist" in failed(world, "start", "llama")


def test_who_may_not_read_workloads_leaves_it_to_the_controller(world: World) -> None:
    pair(world, **AFTER)
    effect = Effect(refusal=ApiError(403, "Forbidden", "no"))
    world.do(lambda: world.http.gate.faults.add(effect, "get", "leaderworkersets", count=None))
    world.answer("llama has the version that llama-green runs: apply another one to it")
    assert failed(world, "start", "llama").startswith("rollout/llama: not done: llama has the version")


def test_what_is_no_pair_is_not_started(world: World) -> None:
    world.release(phase="Healthy")
    assert failed(world, "start", "llama") == (
        "rollout/llama is no pair, so its release starts by itself when another template is applied to"
        " leaderworkerset/llama"
    )


def test_an_abort_after_the_hand_over_names_start(world: World) -> None:
    ending = {"reason": "Success", "task": "CleanUp", "since": "2026-01-01T00:00:00Z"}
    pair(world, **{**ON, "active": GREEN}, finalising=ending)
    assert "`rollout-lws start llama` releases the old version" in failed(world, "abort", "llama")


# What edits the workloads of other Rollouts


@pytest.mark.parametrize(
    ("beside", "arguments", "why"),
    [
        ("v2", (), "leaderworkerset/llama still has revision 1 (vllm/vllm-openai:v1): `rollout-lws start llama`"),
        ("v2", ("--to-revision", "1"), "still has revision 1"),
        ("v2", ("--to-revision", "3"), "there is no revision 3"),
    ],
)
def test_undo_of_a_pair_names_the_way_back(world: World, beside: str, arguments: tuple[str, ...], why: str) -> None:
    pair(world, beside=beside, **AFTER)
    remember(world, "v1", 1)
    remember(world, "v2", 2)
    before = generations(world)
    assert why in failed(world, "undo", "llama", *arguments)
    assert generations(world) == before


def test_undo_of_a_pair_whose_other_side_has_another_version_by_now_says_what_to_apply(world: World) -> None:
    world.pair(serves="v3", beside="v2", **AFTER)
    remember(world, "v1", 1)
    remember(world, "v2", 2)
    told = failed(world, "undo", "llama")
    assert (
        "leaderworkerset/llama has another version than revision 1 (vllm/vllm-openai:v1): apply that one to it" in told
    )
    assert "`rollout-lws history llama --revision 1` prints it" in told


def test_undo_in_a_release_of_a_pair_names_abort(world: World) -> None:
    pair(world, **ON)
    assert failed(world, "undo", "llama") == (
        "rollout/llama is a pair whose release is on: `rollout-lws abort llama` sends all requests back to"
        " leaderworkerset/llama"
    )


@pytest.mark.parametrize("command", [("restart", "llama"), ("set", "image", "llama", "*=x:1")])
@pytest.mark.parametrize(
    ("status", "where"),
    [(AFTER, "leaderworkerset/llama, the inactive side"), ({}, "the side without requests, leaderworkerset/llama or")],
)
def test_no_side_of_a_pair_is_edited(
    world: World, command: tuple[str, ...], status: dict[str, Any], where: str
) -> None:
    pair(world, **status)
    before = generations(world)
    assert where in failed(world, *command)
    assert generations(world) == before


def test_a_pair_has_no_hold(world: World) -> None:
    pair(world, **AFTER)
    assert "there is no hold to open" in failed(world, "release-hold", "llama", "--yes")


def test_history_says_which_version_the_inactive_side_has(world: World) -> None:
    pair(world, **AFTER)
    remember(world, "v1", 1)
    remember(world, "v2", 2)
    lines = world.run("history", "llama").stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["2", "stable"], ["1", "inactive"]]


def generations(world: World) -> list[int]:
    return [
        world.do(lambda: world.server.list(LEADER_WORKER_SETS, "default"))[at]["metadata"]["generation"]
        for at in (0, 1)
    ]


# status


def last(world: World, *arguments: str) -> tuple[int, str, str]:
    result = world.run("status", "llama", *arguments)
    return result.exit_code, result.stdout.splitlines()[-1], result.stderr


def test_at_rest_a_pair_is_healthy_and_what_the_inactive_side_has_is_told(world: World) -> None:
    pair(world, **AFTER)
    code, line, told = last(world)
    assert (code, line) == (0, "result=healthy rollout=default/llama release=r2 exit=0")
    assert "llama-green has all requests: the version of llama is released by `rollout-lws start llama` only" in told


def test_with_one_version_on_both_sides_there_is_nothing_to_tell(world: World) -> None:
    world.pair(serves="v2", beside="v2", **AFTER)
    assert last(world) == (0, "result=healthy rollout=default/llama release=r2 exit=0", "")


def test_the_id_of_a_version_that_was_never_released_is_not_that_of_what_serves(world: World) -> None:
    pair(world, **{**AFTER, "observedTemplateHash": V1, "observedRolloutID": "r1"})
    assert last(world)[:2] == (0, "result=healthy rollout=default/llama release=- exit=0")


def test_a_start_that_waits_for_groups_is_not_over(world: World) -> None:
    status = {**AFTER, "startRequested": True, "summary": {"state": "Preparing"}, "message": "llama has 0 groups"}
    pair(world, **status)
    assert last(world, "--timeout", "0")[0] == 4


def test_a_gate_that_begins_before_the_release_ends_when_the_roles_have_changed(world: World) -> None:
    """The status is about the other side from then on, which has another generation."""
    pair(world, **{**ON, "observedWorkloadGeneration": 0, "phase": "Healthy", "observedTemplateHash": V1})
    ending = {"reason": "Success", "task": "CleanUp", "since": "2026-01-01T00:00:00Z"}
    world.later(0.2, lambda: put(world, **ON, observedWorkloadGeneration=1))
    world.later(0.4, lambda: put(world, active=GREEN, stable={"templateHash": V2}, finalising=ending))
    world.later(0.6, lambda: put(world, **AFTER, finalising=None))
    code, line, told = last(world, "--timeout", "20s")
    assert (code, line, told) == (0, "result=healthy rollout=default/llama release=r2 exit=0", "")


@pytest.mark.parametrize(
    ("release", "code", "word"), [("r2", 0, "healthy"), ("r1", 6, "superseded"), ("r3", 4, "timeout")]
)
def test_a_release_is_found_by_its_id_after_its_end(world: World, release: str, code: int, word: str) -> None:
    pair(world, **AFTER)
    for name, carried in ((BLUE, "r1"), (GREEN, "r2")):
        label(world, name, carried)
    found = last(world, "--release-id", release, "--timeout", "0")
    assert found[:2] == (
        code,
        f"result={word} rollout=default/llama release=r2 exit={code}",
    )


def test_a_release_by_its_id_is_waited_for_to_its_end(world: World) -> None:
    pair(world, **ON)
    label(world, GREEN, "r2")
    world.later(0.2, lambda: put(world, **AFTER))
    assert last(world, "--release-id", "r2", "--timeout", "20s")[0] == 0


def test_a_version_that_another_one_replaced_is_superseded(world: World) -> None:
    pair(world, **ON)
    world.later(0.2, lambda: put(world, **{**AFTER, "stable": {"templateHash": V3}}))
    assert last(world, "--timeout", "20s")[0] == 6


def test_sides_that_cannot_be_told_apart_end_the_wait(world: World) -> None:
    told = "requests go to both llama and llama-green"
    condition = {
        "type": "Stalled",
        "status": "True",
        "reason": "ActiveSideUnknown",
        "message": told,
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    pair(world, phase="Initial", conditions=[condition], summary={"state": "Stalled"})
    code, line, why = last(world)
    assert (code, line.split()[0]) == (3, "result=stalled") and told in why


def label(world: World, name: str, release: str) -> None:
    body = {"metadata": {"labels": {ID: release}}}
    world.do(lambda: world.server.patch(LEADER_WORKER_SETS, "default", name, body))


def put(world: World, **status: Any) -> None:
    world.server.patch(world.rollouts, "default", "llama", {"status": status}, subresource="status")


# A pair whose releases scale its workloads

EDITED: dict[str, Any] = {
    **AFTER,
    "verdict": {"condition": "Stalled", "reason": "ActiveSideEdited", "since": "2026-01-01T00:00:00Z"},
    "summary": {"state": "Stalled", "stable": "4/4"},
    "message": "the version in its template waits",
    "conditions": [
        {
            "type": "Stalled",
            "status": "True",
            "reason": "ActiveSideEdited",
            "message": "the version in its template waits",
            "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ],
}


def edited(world: World, **status: Any) -> None:
    """v3 was applied to the second side, which serves v2."""
    world.pair(serves="v1", beside="v3", scaled=True, **status)


def test_of_a_scaled_pair_start_is_the_way_back_and_nothing_is_to_be_scaled(world: World) -> None:
    world.pair(serves="v1", beside="v2", scaled=True, **AFTER)
    remember(world, "v1", 1)
    remember(world, "v2", 2)
    before = generations(world)
    assert "`rollout-lws start llama` releases it" in failed(world, "undo", "llama")
    for command in (("undo", "llama"), ("restart", "llama"), ("set", "image", "llama", "*=x:1")):
        assert "scale" not in failed(world, *command)
    assert generations(world) == before
    world.answer()
    assert world.run("start", "llama").exit_code == 0


def test_undo_of_an_edit_of_the_active_side_says_what_to_restore(world: World) -> None:
    edited(world, **EDITED)
    remember(world, "v1", 1)
    remember(world, "v2", 2)
    assert failed(world, "undo", "llama") == (
        "rollout/llama is a pair, and leaderworkerset/llama-green, the active side, runs revision 2"
        " (vllm/vllm-openai:v2) and has another version in its template: apply that revision to it; `rollout-lws"
        " history llama --revision 2` prints it"
    )
    assert "leaderworkerset/llama still has revision 1" in failed(world, "undo", "llama", "--to-revision", "1")


def test_the_hold_of_the_active_side_is_released(world: World) -> None:
    edited(world, **EDITED)
    told = world.run("release-hold", "llama", "--yes").stdout
    assert told.startswith("leaderworkerset/llama-green is let go of: the version that waits rolls at once")
    marks = {
        each["metadata"]["name"]: each["metadata"].get("annotations") or {}
        for each in world.do(lambda: world.server.list(LEADER_WORKER_SETS, "default"))
    }
    mark = "rollouts.kruise.io/release-hold"
    assert (marks[GREEN].get(mark), mark in marks[BLUE]) == ("true", False)
    assert world.run("release-hold", "llama").stdout == "leaderworkerset/llama-green is let go of already\n"


def test_before_the_sides_are_known_no_hold_is_released(world: World) -> None:
    world.pair(serves="v1", beside="v2", scaled=True)
    assert "no side is held yet: `rollout-lws get llama` says why" in failed(world, "release-hold", "llama", "--yes")


def test_a_version_on_the_active_side_fails_the_gate(world: World) -> None:
    edited(world, **EDITED)
    code, line, why = last(world)
    assert (code, line.split()[0]) == (3, "result=stalled")
    assert "the version in its template waits" in why


@pytest.mark.parametrize("release", [(), ("--release-id", "r3")], ids=["of the version", "of its id"])
def test_a_version_that_was_just_applied_to_the_active_side_is_not_healthy(
    world: World, release: tuple[str, ...]
) -> None:
    """The status does not say so yet: it observes the other side."""
    edited(world, **AFTER)
    label(world, GREEN, "r3")
    assert last(world, *release, "--timeout", "0")[0] == 4
    assert "no controller has judged the version in the template of leaderworkerset/llama-green" in last(
        world, "--timeout", "0"
    )[2].replace("\n", " ")
    world.later(0.2, lambda: put(world, **EDITED))
    code, line, why = last(world, *release, "--timeout", "20s")
    assert (code, line.split()[0]) == (3, "result=stalled"), why


@pytest.mark.parametrize("goal", ["healthy", "paused"])
def test_an_edit_of_the_active_side_that_is_known_already_fails_the_gate_of_its_id(world: World, goal: str) -> None:
    edited(world, **EDITED)
    label(world, GREEN, "r3")
    assert last(world, "--release-id", "r3", "--for", goal, "--timeout", "20s")[0] == 3


def test_the_same_version_on_both_sides_is_waited_for_to_its_release(world: World) -> None:
    world.pair(serves="v3", beside="v3", scaled=True, **{**AFTER, "observedWorkloadGeneration": 0})
    turned = {"active": BLUE, "stable": {"templateHash": V3}, "inactiveHash": V2, "observedTemplateHash": V3}
    world.later(0.2, lambda: put(world, **{**AFTER, **turned, "observedWorkloadGeneration": 1}))
    assert last(world, "--timeout", "20s")[0] == 0


def test_the_end_of_a_release_waits_until_the_other_side_is_parked(world: World) -> None:
    ending = {"reason": "Success", "task": "CleanUp", "since": "2026-01-01T00:00:00Z"}
    world.pair(serves="v1", beside="v2", scaled=True, **{**ON, "observedWorkloadGeneration": 0})
    world.later(0.2, lambda: put(world, active=GREEN, stable={"templateHash": V2}, finalising=ending))
    assert last(world, "--timeout", "1s")[0] == 4
    world.later(0.2, lambda: put(world, **AFTER, finalising=None, observedWorkloadGeneration=1))
    assert last(world, "--timeout", "20s")[:2] == (0, "result=healthy rollout=default/llama release=r2 exit=0")


# events


def test_the_events_of_both_sides_and_of_both_services_belong_to_it(world: World) -> None:
    pair(world, **AFTER)
    scope = scope_of(world.do(lambda: world.server.get(world.rollouts, "default", "llama")))
    assert scope.has("LeaderWorkerSet", GREEN) and scope.has("Pod", f"{GREEN}-0-1")
    assert scope.has("Service", "llama-green") and scope.has("HTTPRoute", manifests.ROUTE)
    assert not scope.has("LeaderWorkerSet", "llama-canary")
