"""Argo CD's scripts are run: health of every state that a release may be in, and actions that the controller takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rollout_lws.cli.actions import action_rules
from rollout_lws.errors import UsageError
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from tests.cli.test_requests import JUDGES, STATES
from tests.cli.test_requests import rollout as in_state
from tests.gitops import argocd
from tests.scenarios.names import NAMESPACE, ROLLOUTS
from tests.scenarios.shell import ShellWorld
from tests.scenarios.stories import PROMOTED_STEPS, at_rest, waiting_for_approval
from tests.scenarios.world import NAME

ROLLOUT = argocd.scripts("rollouts.kruise.io_Rollout")
BATCH = argocd.scripts("rollouts.kruise.io_BatchRelease")
LWS = argocd.scripts("leaderworkerset.x-k8s.io_LeaderWorkerSet")
ID = "rollouts.kruise.io/rollout-id"


def told(kind: str, state: str, message: str = "as it is", **more: Any) -> dict[str, Any]:
    """A status whose one condition of the three is True."""
    others = [{"type": each, "status": "False"} for each in ("Ready", "Reconciling", "Stalled") if each != kind]
    condition = {"type": kind, "status": "True", "message": message}
    return {
        "observedGeneration": 2,
        "conditions": [*others, condition],
        "summary": {"state": state},
        "message": message,
        **more,
    }


def rollout(status: Mapping[str, Any] | None, **labels: str) -> dict[str, Any]:
    obj: dict[str, Any] = {"metadata": {"name": NAME, "generation": 2, "labels": labels}, "spec": {}}
    return obj if status is None else {**obj, "status": dict(status)}


@pytest.mark.parametrize(
    ("status", "health", "message"),
    [
        (None, "Progressing", "no controller has seen this Rollout yet"),
        ({"observedGeneration": 1}, "Progressing", "the controller has not seen this change of the Rollout yet"),
        (told("Ready", "Healthy", ""), "Healthy", ""),
        (told("Ready", "Disabled"), "Healthy", "as it is"),
        (told("Ready", "Healthy", "", paused=True), "Healthy", ""),
        (told("Reconciling", "Adopting"), "Progressing", "as it is"),
        (told("Reconciling", "Loading"), "Progressing", "as it is"),
        (told("Reconciling", "Routing"), "Progressing", "as it is"),
        (told("Reconciling", "Pausing"), "Progressing", "as it is"),
        (told("Reconciling", "WaitingForQuota"), "Progressing", "as it is"),
        (told("Reconciling", "WaitingForAccelerators"), "Progressing", "as it is"),
        (told("Reconciling", "Promoting"), "Progressing", "as it is"),
        (told("Reconciling", "RollingBack"), "Progressing", "as it is"),
        (told("Reconciling", "HoldReleased"), "Progressing", "as it is"),
        (told("Reconciling", "Terminating"), "Progressing", "as it is"),
        (told("Reconciling", "AwaitingApproval"), "Suspended", "as it is"),
        (told("Reconciling", "Paused"), "Suspended", "as it is"),
        (told("Stalled", "Aborted"), "Degraded", "as it is"),
        (told("Stalled", "Stalled"), "Degraded", "as it is"),
    ],
)
def test_health_of_a_rollout(status: dict[str, Any] | None, health: str, message: str) -> None:
    assert argocd.health(ROLLOUT.health, rollout(status)) == (health, message)


@pytest.mark.parametrize("seen", ["build-1", None])
@pytest.mark.parametrize("kind", ["Ready", "Stalled"])
def test_a_rollout_that_carries_an_id_is_judged_for_that_release_only(kind: str, seen: str | None) -> None:
    status = told(kind, "Healthy", observedRolloutID=seen)
    assert argocd.health(ROLLOUT.health, rollout(status, **{ID: "build-2"})) == (
        "Progressing",
        "release build-2 has not begun yet",
    )
    now = rollout(status | {"observedRolloutID": "build-2"}, **{ID: "build-2"})
    assert argocd.health(ROLLOUT.health, now)[0] == {"Ready": "Healthy", "Stalled": "Degraded"}[kind]


@pytest.mark.parametrize(
    ("status", "health", "message"),
    [
        (None, "Progressing", "no controller has seen this batch yet"),
        ({"observedGeneration": 1}, "Progressing", "no controller has seen this batch yet"),
        ({"phase": "Preparing"}, "Progressing", "batch 1: 0 of 0 groups are ready"),
        (
            {
                "phase": "Progressing",
                "canaryStatus": {
                    "currentBatch": 1,
                    "batchState": "Upgrading",
                    "updatedReplicas": 3,
                    "updatedReadyReplicas": 2,
                },
            },
            "Progressing",
            "batch 2: 2 of 3 groups are ready",
        ),
        (
            {"phase": "Progressing", "canaryStatus": {"currentBatch": 1, "batchState": "Ready"}},
            "Healthy",
            "all groups of batch 2 are ready",
        ),
        (
            {"phase": "Finalizing", "canaryStatus": {"currentBatch": 1, "batchState": "Ready"}},
            "Progressing",
            "batch 2: 0 of 0 groups are ready",
        ),
        ({"phase": "Completed"}, "Healthy", "completed"),
    ],
)
def test_health_of_a_batch_release(status: dict[str, Any] | None, health: str, message: str) -> None:
    assert argocd.health(BATCH.health, rollout(None if status is None else {"observedGeneration": 2, **status})) == (
        health,
        message,
    )


def test_actions_are_those_that_the_command_line_finds_fit() -> None:
    names = {
        "promote": "promote",
        "promote --full": "promote-full",
        "abort": "abort",
        "retry": "retry",
        "pause": "pause",
        "resume": "resume",
    }
    assert set(names.values()) == set(ROLLOUT.actions or ())
    for state, status in STATES.items():
        obj = in_state(status)
        fit = {names[command] for command, judge in JUDGES.items() if command in names and _asks(judge, obj)}
        assert argocd.offered(ROLLOUT.discovery, obj) == fit, state


def _asks(judge: action_rules.Judge, obj: dict[str, Any]) -> bool:
    try:
        return isinstance(judge(obj), action_rules.Ask)
    except UsageError:
        return False


@pytest.mark.parametrize(("pending", "left"), [("PromoteFull", {"abort", "pause"}), ("Abort", set()), ("Pause", set())])
def test_while_a_request_waits_only_what_stops_it_is_offered(pending: str, left: set[str]) -> None:
    obj = in_state(STATES["awaiting"] | {"requestedAction": {"type": pending, "id": "1"}})
    assert argocd.offered(ROLLOUT.discovery, obj) == left


def test_a_spec_that_pauses_offers_neither_pause_nor_resume() -> None:
    obj = in_state(STATES["loading"], paused=True)
    assert argocd.offered(ROLLOUT.discovery, obj) == {"promote-full", "abort", "retry"}


def click(world: ShellWorld, action: str) -> dict[str, Any]:
    """Press a button of Argo CD's, which must be there; the request that it makes."""
    obj = world.server.get(ROLLOUTS, NAMESPACE, NAME)
    assert action in argocd.offered(ROLLOUT.discovery, obj)
    patch = argocd.patch_of((ROLLOUT.actions or {})[action], obj)
    assert list(patch) == ["status"]
    assert list(patch["status"]) == ["requestedAction"]
    world.patch(ROLLOUTS, NAME, patch, "status")
    request: dict[str, Any] = patch["status"]["requestedAction"]
    return request


async def filed(world: ShellWorld, request: Mapping[str, Any]) -> None:
    """Return when the controller has done it."""
    await world.until(lambda: (world.status.get("lastAction") or {}).get("id") == request["id"], request["type"])
    assert world.status["lastAction"]["outcome"] == "Done", world.status["lastAction"]


@pytest.mark.looptime
@pytest.mark.parametrize("style", [pytest.param("canary", marks=pytest.mark.long), "blueGreen"])
async def test_a_release_is_led_by_clicks(style: str) -> None:
    world = ShellWorld()
    await at_rest(world, *PROMOTED_STEPS, **{style: {}})
    for action in ("pause", "resume"):
        await filed(world, click(world, action))
    await waiting_for_approval(world)
    healths = [argocd.health(ROLLOUT.health, world.server.get(ROLLOUTS, NAMESPACE, NAME))[0]]
    await filed(world, click(world, "promote"))
    await world.until(lambda: world.state == "AwaitingApproval" and world.status["currentStepIndex"] == 2)
    await filed(world, click(world, "abort"))
    await world.until_state("Aborted")
    healths.append(argocd.health(ROLLOUT.health, world.server.get(ROLLOUTS, NAMESPACE, NAME))[0])
    await filed(world, click(world, "retry"))
    await world.until_state("AwaitingApproval")
    await filed(world, click(world, "promote-full"))
    await world.until_state("Healthy")
    healths.append(argocd.health(ROLLOUT.health, world.server.get(ROLLOUTS, NAMESPACE, NAME))[0])
    assert healths == ["Suspended", "Degraded", "Healthy"]
    assert set(world.groups().values()) == {"v2"}
    await world.gone()
    world.close()


@pytest.mark.looptime
async def test_a_click_a_step_too_late_is_refused_and_one_sent_twice_is_one() -> None:
    world = ShellWorld()
    await at_rest(world, *PROMOTED_STEPS)
    await waiting_for_approval(world)
    seen = world.server.get(ROLLOUTS, NAMESPACE, NAME)
    patch = argocd.patch_of((ROLLOUT.actions or {})["promote"], seen)
    world.patch(ROLLOUTS, NAME, patch, "status")
    await world.until(lambda: world.state == "AwaitingApproval" and world.status["currentStepIndex"] == 2)
    world.patch(ROLLOUTS, NAME, patch, "status")
    await world.rest()
    assert world.status["currentStepIndex"] == 2
    late = {**patch["status"]["requestedAction"], "id": "argocd-late"}
    world.patch(ROLLOUTS, NAME, {"status": {"requestedAction": late}}, "status")
    await filed_as_refused(world, "it was meant for step 1, the release is at step 2")
    assert world.status["currentStepIndex"] == 2
    await world.gone()
    world.close()


async def filed_as_refused(world: ShellWorld, why: str) -> None:
    await world.until(lambda: (world.status.get("lastAction") or {}).get("id") == "argocd-late", "an answer")
    assert (world.status["lastAction"]["outcome"], world.status["lastAction"]["message"]) == ("Refused", why)


@pytest.mark.looptime
async def test_a_held_lws_with_a_version_that_waits_is_healthy_and_never_degraded() -> None:
    world = ShellWorld()
    found: list[str] = []

    def look(event: Any) -> None:
        if event.resource == LEADER_WORKER_SETS and event.type != "DELETED":
            found.append(argocd.health(LWS.health, event.object)[0])

    world.server.store.subscribe(look)
    await at_rest(world, *PROMOTED_STEPS)
    await waiting_for_approval(world)
    held = world.server.get(LEADER_WORKER_SETS, NAMESPACE, NAME)
    assert argocd.health(LWS.health, held) == ("Healthy", "4 of 4 groups are ready")
    world.request("Abort")
    await world.until_state("Aborted")
    held = world.server.get(LEADER_WORKER_SETS, NAMESPACE, NAME)
    assert argocd.health(LWS.health, held)[0] == "Healthy"
    assert set(found) == {"Healthy", "Progressing"}
    await world.gone()
    world.close()
