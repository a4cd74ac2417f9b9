"""The picture of a pair whose releases scale its workloads: what a release adds, and what goes when it ends."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.cli.get.picture import release
from rollout_lws.cli.releases import Release
from tests.cli.get import objects
from tests.cli.get.objects import NOW, lws, pod, rollout, workers

STEPS = [{"replicas": 1, "traffic": "10%", "pause": {}}, {"replicas": "50%", "traffic": "50%", "pause": {}}]
AWAITING: dict[str, Any] = {
    "active": "llama",
    "stable": {"revision": "5f9c8", "templateHash": "h"},
    "currentStepIndex": 1,
    "currentStepState": "StepPaused",
    "observedRolloutID": "r7",
    "longestStartupSeconds": 702,
    "traffic": {"desired": {"weight": 10}, "applied": {"weight": 10}},
    "summary": {"state": "AwaitingApproval", "step": "1/2", "new": "1/1", "stable": "4/4", "accelerators": "48"},
    "capacity": "Pair",
}
AT_REST: dict[str, Any] = {
    "phase": "Healthy",
    "active": "llama",
    "stable": {"revision": "5f9c8", "templateHash": "h"},
    "verdict": {"condition": "Ready", "reason": "Healthy"},
    "summary": {"state": "Healthy", "stable": "4/4"},
    "traffic": None,
}


def shown(
    standing: int,
    *,
    touch: str = "",
    asked: int | None = 4,
    size: int = 4,
    stay: int = 4,
    shift: dict[str, Any] | None = None,
    **status: Any,
) -> Release:
    """Four groups of two pods with eight accelerators each on the active side, or ``stay`` of them, ``standing`` ones
    of twice the pods on the other one.
    """
    old = [pod("llama", group, "5f9c8", size=2) for group in range(stay)]
    new = [pod("llama-green", group, "8d21b", size=size) for group in range(standing)]
    made = rollout({"canary": {"capacity": "Pair", "steps": STEPS}}, **status)
    made["spec"] |= {"counterpartRef": {**made["spec"]["workloadRef"], "name": "llama-green"}}
    made["spec"] |= {"touch": touch} if touch else {"replicas": asked}
    if shift is not None:
        made["spec"]["strategy"]["canary"]["shift"] = shift
    active = lws(size=2, replicas=stay)
    active["metadata"]["annotations"] = {"rollouts.kruise.io/replicas": "4"} if stay < 4 else {}
    workloads = [active, lws("llama-green", size=size, replicas=standing, tag="v0.19.0")]
    sets = [workers(each, 1) for each in old] + [workers(each, size - 1) for each in new]
    return objects.release(made, workloads, [*old, *new], sets)


def line(there: Release, beginning: str) -> str:
    (found,) = [each for each in release(there, NOW) if each.startswith(beginning)]
    return found


def test_a_release_holds_what_the_new_side_has_and_an_abort_frees_it() -> None:
    there = shown(1, **AWAITING)
    each = there.edited.workload.version.accelerators if there.edited is not None else 0
    assert each == 16
    assert line(there, "Status").endswith("(holding 16 GPU)")
    assert line(there, "GPU") == "GPU      48 now   96 at peak (at the end)"
    assert line(there, "Groups") == "Groups   llama 4/4 ready   llama-green 1/1 ready   spec.replicas 4"
    assert line(there, "After approval") == "After approval: +1 group (+16 GPU), 50% traffic, about 11m42s"
    assert line(there, "         rollout-lws abort").endswith(
        "# all requests go back to llama, and llama-green is scaled to 0, which frees 16 GPU"
    )


def test_of_workloads_that_their_owner_scales_nothing_is_held_nor_freed() -> None:
    told = release(shown(1, touch="RouteOnly", **AWAITING), NOW)
    assert not any("holding" in each or "frees" in each or "at peak" in each or "scaled" in each for each in told)


def test_the_last_approval_makes_the_rest_of_the_groups_and_parks_the_old_side() -> None:
    status = AWAITING | {"currentStepIndex": 2}
    assert line(shown(2, **status), "After approval") == (
        "After approval: +2 groups (+32 GPU), then all requests go to llama-green, which becomes the active side, and"
        " llama is scaled to 0"
    )


@pytest.mark.parametrize(("asked", "told"), [(4, "+1 group"), (8, "+3 groups"), (2, "+1 group")])
def test_steps_are_parts_of_what_the_rollout_asks_for(asked: int, told: str) -> None:
    """And of what the active side still has, if that is more."""
    assert line(shown(1, asked=asked, size=1, **AWAITING), "After approval").startswith(f"After approval: {told} (")


def test_between_releases_a_side_without_groups_is_parked() -> None:
    there = shown(0, **AT_REST)
    assert line(there, "Users") == "Users    all requests go to llama"
    assert line(there, "Groups") == "Groups   llama 4/4 ready   llama-green parked   spec.replicas 4"
    assert line(there, "llama-green").split() == ["llama-green", "inactive", "0/0", "0%", "1h", "parked"]


@pytest.mark.parametrize(
    "status",
    [
        {"message": "LeaderWorkerSet llama is being labelled"},
        {"message": "spec.replicas 2 waits"},
        {"verdict": {"condition": "Stalled", "reason": "ActiveSideEdited"}, "summary": {"state": "Stalled"}},
        {"phase": "Aborted", "summary": {"state": "Aborted"}, "message": "release r7 was aborted"},
    ],
)
def test_what_is_told_otherwise_takes_no_request_away(status: dict[str, Any]) -> None:
    there = shown(0, **AT_REST | status)
    assert line(there, "Users") == "Users    all requests go to llama"


@pytest.mark.parametrize("reason", ["Routing", "RouteNotUsable", "RouteConflict"])
def test_while_the_route_says_something_else_no_share_is_claimed(reason: str) -> None:
    there = shown(0, **AT_REST | {"verdict": {"condition": "Reconciling", "reason": reason}})
    assert not any(each.startswith("Users") for each in release(there, NOW))


def test_groups_of_the_inactive_side_at_rest_are_not_parked() -> None:
    there = shown(2, **AT_REST)
    assert not any("parked" in each or each.startswith("Users") for each in release(there, NOW))
