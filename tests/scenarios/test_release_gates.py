"""Stories of gates of the whole release: none has to pass, and one that fails stops it wherever it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from copy import deepcopy
from typing import Any

import pytest

from rollout_lws.objects.resources import LWS_NAME, PODS
from rollout_lws.rollout.reasons import EventReason
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import CUT_OFF, Timing
from rollout_lws.sandbox.behaviours.faults import PREFIX as BEHAVIOUR
from rollout_lws.sandbox.model_servers import PREFIX
from tests.scenarios.measured import SLOW, WELL, MeasuredWorld
from tests.scenarios.names import NAMESPACE
from tests.scenarios.routed import create_route, routing
from tests.scenarios.stories import CANARY, assert_clean
from tests.scenarios.told import tells

pytestmark = pytest.mark.looptime

FIRST_TOKEN = {"name": "first-token", "metric": {"signal": "TimeToFirstToken", "max": "1s"}, "window": 60}
COMPARED = {"name": "compared", "metric": {"signal": "TimeToFirstToken", "maxToStable": "150%"}, "window": 60}
IN_ALL_STYLES = pytest.mark.parametrize(
    "style",
    [{"canary": {}}, {"canary": {"capacity": "InPlace"}}, {"canary": {"capacity": "Surge"}}, {"blueGreen": {}}],
    ids=["canary", "in-place", "surge", "blue-green"],
)


@pytest.fixture
async def world() -> AsyncIterator[MeasuredWorld]:
    # A group takes its time, so that a promotion is long enough to be watched.
    made = MeasuredWorld(Options(timing=Timing(ready_after=120)))
    yield made
    made.close()


async def released(
    world: MeasuredWorld,
    version: Mapping[str, str],
    *gates: dict[str, Any],
    pause: Any = None,
    steps: int = 2,
    share: str = "",
    replicas: int = 4,
    **strategy: Any,
) -> None:
    """Steps of one group, of two, and so on, and a last one of all unless there is one only; the release has begun."""
    world.create_workload(replicas=replicas)
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": world.serve(WELL)}})
    style = "blueGreen" if "blueGreen" in strategy else "canary"
    given = {style: {**strategy.pop(style, {}), "gates": deepcopy(list(gates))}}
    ends = {"duration": 0} if pause is None else pause
    routed = {"traffic": share} if share else {}
    plan = [{"replicas": number, "pause": ends, **routed} for number in range(1, max(2, steps))]
    if steps > 1:
        plan.append({"replicas": "100%", "pause": {"duration": 0}, **routed})
    world.create_rollout(*plan, **given, **strategy)
    await world.rest()
    world.start_controller()
    await world.until_state("Healthy")
    await world.rest()
    await applied(world, version)


async def applied(world: MeasuredWorld, version: Mapping[str, str]) -> None:
    world.apply(version, "v2")
    await world.until(lambda: world.state != "Healthy")


def gate(world: MeasuredWorld, name: str = "first-token") -> dict[str, Any]:
    return next((each for each in world.status.get("releaseGates", ()) if each["name"] == name), {})


def slow_down(world: MeasuredWorld, workload: str = CANARY, seconds: str = "0.9") -> None:
    for pod in world.server.list(PODS, NAMESPACE, label_selector=f"{LWS_NAME}={workload}"):
        changed = {"metadata": {"annotations": {f"{PREFIX}first-token-seconds": seconds}}}
        world.patch(PODS, pod["metadata"]["name"], changed)


async def slowed_down_until_it_ends(world: MeasuredWorld) -> None:
    """All pods are slow, also those that come meanwhile; for two hours at most."""
    for _ in range(480):
        if world.state in ("Aborted", "Healthy"):
            return
        slow_down(world)
        slow_down(world, world.name)
        await world.sleep(15)
    raise AssertionError(f"comes to no end\n{world.describe()}")


@pytest.mark.one_in(2)
@IN_ALL_STYLES
async def test_a_good_version_is_promoted_and_the_gate_has_no_result(
    world: MeasuredWorld, style: dict[str, Any]
) -> None:
    await released(world, WELL, FIRST_TOKEN, COMPARED, onFailure="Abort", **style)
    await world.until_state("Healthy", 7200)
    await world.rest()
    assert_clean(world, "v2")
    assert {each["name"]: each.get("result") for each in world.status["releaseGates"]} == {
        "first-token": None,
        "compared": None,
    }


@pytest.mark.long
async def test_nothing_is_written_from_window_to_window(world: MeasuredWorld) -> None:
    await released(world, WELL, FIRST_TOKEN, pause={})
    await world.until_state("AwaitingApproval")
    await world.until(lambda: "since" in gate(world))
    before = len(world.writes)
    await world.sleep(3600)
    assert len(world.writes) == before


async def test_a_version_that_turns_slow_while_it_waits_goes_back_by_itself(world: MeasuredWorld) -> None:
    await released(world, WELL, FIRST_TOKEN, pause={}, onFailure="Abort")
    await world.until_state("AwaitingApproval")
    await world.sleep(1800)
    slow_down(world)
    await world.until_state("Aborted", 600)
    await world.rest()
    assert world.groups() == dict.fromkeys(range(4), "v1")
    assert world.groups(CANARY) == {}
    assert "gate first-token: p95" in world.status["aborted"]["message"]


@pytest.mark.one_in(2)
@IN_ALL_STYLES
async def test_a_version_that_turns_slow_after_its_first_step_goes_back(
    world: MeasuredWorld, style: dict[str, Any]
) -> None:
    await released(world, WELL, FIRST_TOKEN, onFailure="Abort", **style)
    await world.until(lambda: world.status["currentStepIndex"] == 2, seconds=3600)
    await slowed_down_until_it_ends(world)
    assert world.state == "Aborted"
    await world.rest()
    assert world.groups() == dict.fromkeys(range(4), "v1")
    assert gate(world)["result"] == "Failed"


async def test_a_promotion_stands_still_for_a_user(world: MeasuredWorld) -> None:
    await in_promotion_that_failed(world)
    # The group whose turn it was comes back.
    await world.sleep(300)
    stands = world.groups()
    assert "v1" in stands.values()
    await world.sleep(1800)
    assert world.groups() == stands
    assert "The promotion waits, to measure it again: kubectl rollout-lws retry llama" in world.status["message"]
    world.request("Abort")
    await world.until_state("Aborted", 7200)
    await world.rest()
    assert world.groups() == dict.fromkeys(range(4), "v1")


async def in_promotion_that_failed(world: MeasuredWorld) -> None:
    """The controller waits for a user, with a gate of the release that has failed."""
    await released(world, WELL, FIRST_TOKEN)
    await world.until_state("Promoting", 3600)
    slow_down(world)
    await world.until_state("Stalled", 3600)
    assert world.condition("Stalled")["reason"] == "GateFailed"
    assert world.status["finalising"]["task"] == "Promote"


async def test_a_promotion_goes_on_without_a_gate_that_is_skipped(world: MeasuredWorld) -> None:
    await in_promotion_that_failed(world)
    world.request("SkipGate", gate="first-token", by="ann", reason="the load test was wrong")
    await world.until_state("Healthy", 7200)
    await world.rest()
    assert_clean(world, "v2")
    assert (gate(world)["result"], gate(world)["by"]) == ("Skipped", "ann")


async def test_a_promotion_goes_on_while_its_gate_is_measured_again(world: MeasuredWorld) -> None:
    await in_promotion_that_failed(world)
    slow_down(world, seconds="0.3")
    world.request("Retry")
    await world.until_state("Healthy", 7200)
    await world.rest()
    assert_clean(world, "v2")
    assert "result" not in gate(world)


@tells({}, {EventReason.GATE_SKIPPED: "the release goes on without gate first-token"})
async def test_a_full_promotion_goes_on_without_a_gate_that_has_failed(world: MeasuredWorld) -> None:
    await released(world, SLOW, FIRST_TOKEN, pause={})
    await world.until_state("Stalled", 3600)
    world.request("PromoteFull", by="ann")
    await world.until_state("Healthy", 7200)
    await world.rest()
    assert_clean(world, "v2")


async def test_paused_it_is_recorded_and_not_acted_on(world: MeasuredWorld) -> None:
    await released(world, SLOW, FIRST_TOKEN, pause={}, onFailure="Abort")
    await world.until(lambda: "since" in gate(world))
    world.request("Pause")
    await world.until_state("Paused")
    await world.until(lambda: gate(world).get("result") == "Failed", seconds=1200)
    assert world.state == "Paused"
    assert world.groups(CANARY) == {0: "v2"}
    world.request("Resume")
    await world.until_state("Aborted", 600)


async def test_servers_without_requests_stop_nothing(world: MeasuredWorld) -> None:
    await released(world, {**WELL, "requests-per-second": "0"}, FIRST_TOKEN, onFailure="Abort")
    await world.until_state("Healthy", 7200)


@pytest.mark.long
async def test_pods_that_cannot_be_read_stop_nothing_and_are_told_of(world: MeasuredWorld) -> None:
    await released(world, {**WELL, "engine": "none"}, FIRST_TOKEN, pause={}, onFailure="Abort")
    await world.until(lambda: "cannot be read" in gate(world).get("message", ""))
    await world.sleep(1800)
    world.approve()
    await world.until_state("Healthy", 7200)


async def test_what_is_compared_ends_with_stables_requests(world: MeasuredWorld) -> None:
    await released(world, WELL, COMPARED, onFailure="Abort", blueGreen={})
    await world.until(lambda: "finishedAt" in gate(world, "compared"), seconds=7200)
    assert "result" not in gate(world, "compared")
    assert gate(world, "compared")["message"].startswith("the stable version takes no requests any more")


async def test_what_is_compared_is_watched_while_stable_has_requests_by_the_route(world: MeasuredWorld) -> None:
    create_route(world)
    plan = {"trafficRoutings": routing()}
    await released(world, SLOW, COMPARED, pause={}, share="20%", onFailure="Abort", canary=plan)
    await world.until_state("Aborted", 3600)
    assert gate(world, "compared")["result"] == "Failed"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("capacity", ["InPlace", "Surge"])
async def test_a_retry_of_a_promotion_watches_a_version_that_is_still_bad(world: MeasuredWorld, capacity: str) -> None:
    create_route(world)
    plan = {"capacity": capacity, "trafficRoutings": routing()}
    await released(world, WELL, FIRST_TOKEN, share="auto", steps=1, canary=plan)
    await world.until(lambda: world.status.get("finalising", {}).get("task") == "Promote", seconds=3600)
    slow_down(world, world.name)
    await world.until_state("Stalled", 3600)
    world.request("Retry")
    await world.until(lambda: "result" not in gate(world))
    slow_down(world, world.name)
    await world.until_state("Stalled", 3600)
    assert set(world.groups().values()) != {"v2"}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("replicas", [2, 4])
@IN_ALL_STYLES
async def test_a_promotion_whose_gate_fails_with_its_last_group_neither_completes_nor_wavers(
    world: MeasuredWorld, style: dict[str, Any], replicas: int
) -> None:
    await released(world, WELL, FIRST_TOKEN, steps=1, replicas=replicas, onFailure="Abort", **style)
    await world.until(lambda: world.status.get("finalising", {}).get("task") == "Promote", seconds=3600)
    await slowed_down_until_it_ends(world)
    assert world.state == "Aborted"
    await world.rest()
    assert world.groups() == dict.fromkeys(range(replicas), "v1")
    reasons = [event.reason for event in world.events]
    assert (reasons.count("Promoting"), reasons.count("RollingBack")) == (1, 1)


async def in_promotion_of_its_last_group(world: MeasuredWorld) -> None:
    await released(world, WELL, FIRST_TOKEN)
    await world.until(lambda: list(world.groups().values()).count("v2") == 3, seconds=3600)
    await world.until(lambda: world.groups().get(0) == "v2!", seconds=600)
    slow_down(world)
    slow_down(world, world.name)
    await world.until_state("Stalled", 600)


async def test_a_promotion_that_failed_is_taken_back_while_its_last_group_is_on_its_way(world: MeasuredWorld) -> None:
    await in_promotion_of_its_last_group(world)
    world.request("Abort")
    await world.until_state("Aborted", 7200)
    await world.rest()
    assert world.groups() == dict.fromkeys(range(4), "v1")


async def test_a_promotion_that_failed_says_so_where_its_last_group_has_come(world: MeasuredWorld) -> None:
    await in_promotion_of_its_last_group(world)
    await world.until_state("Healthy", 600)
    told = next(event for event in world.events if event.reason == "Promoted")
    assert "although it failed when the last of them was on its way: gate first-token: p95" in told.note
    assert told.type == "Warning"


async def test_a_full_promotion_that_waits_passes_no_gate_by_before_it_goes_on(world: MeasuredWorld) -> None:
    await released(world, WELL, FIRST_TOKEN, pause={}, onFailure="Abort")
    await world.until_state("AwaitingApproval")
    world.request("Pause")
    await world.until_state("Paused")
    world.request("PromoteFull", by="ann")
    slow_down(world)
    await world.until(lambda: gate(world).get("result") == "Failed", seconds=1200)
    assert world.state == "Paused"
    assert "requestedAction" in world.status
    world.request("Resume")
    await world.until_state("Aborted", 600)


async def test_a_jump_back_gives_a_version_that_failed_fewer_requests_and_watches_it_again(
    world: MeasuredWorld,
) -> None:
    await released(world, WELL, FIRST_TOKEN, pause={}, steps=3)
    await world.until_state("AwaitingApproval")
    world.approve()
    await world.until(lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval", seconds=600)
    slow_down(world)
    await world.until_state("Stalled", 600)
    world.request("Jump", toStep=1)
    await world.until(lambda: world.status["currentStepIndex"] == 1 and len(world.groups(CANARY)) == 1)
    await world.until_state("Stalled", 1200)
    assert gate(world)["result"] == "Failed"


async def test_a_gate_that_is_edited_is_watched_anew(world: MeasuredWorld) -> None:
    await released(world, SLOW, FIRST_TOKEN, pause={})
    await world.until_state("Stalled", 3600)
    higher = {**FIRST_TOKEN, "metric": {"signal": "TimeToFirstToken", "max": "10s"}}
    world.patch_rollout({"strategy": {"canary": {"gates": [higher]}}})
    await world.until_state("AwaitingApproval", 60)
    assert "result" not in gate(world)


async def test_a_controller_that_was_restarted_watches_on(world: MeasuredWorld) -> None:
    await released(world, WELL, FIRST_TOKEN, pause={}, onFailure="Abort")
    await world.until_state("AwaitingApproval")
    world.stop_controller()
    await world.sleep(600)
    slow_down(world)
    world.start_controller()
    await world.until_state("Aborted", 600)


async def test_a_way_back_that_would_take_the_last_serving_group_waits_and_promotes_nothing(
    world: MeasuredWorld,
) -> None:
    await released(world, WELL, FIRST_TOKEN, replicas=2, onFailure="Abort")
    await world.until(lambda: set(world.groups()) == {0, 1} and world.groups()[1].startswith("v2"), seconds=7200)
    world.patch_rollout({"strategy": {"paused": True}})
    await world.until(lambda: world.groups()[1] == "v2")
    # What runs is bad, and what could take its place cannot be reached.
    slow_down(world, world.name)
    slow_down(world)
    await world.until(lambda: gate(world).get("result") == "Failed", seconds=3600)
    for pod in world.server.list(PODS, NAMESPACE):
        if not pod["metadata"]["name"].startswith("llama-1"):
            world.patch(PODS, pod["metadata"]["name"], {"metadata": {"annotations": {f"{BEHAVIOUR}{CUT_OFF}": "true"}}})
    await world.until(lambda: world.groups()[0] == "v1!", seconds=3600)
    world.patch_rollout({"strategy": {"paused": False}})
    await world.until(lambda: "is the only one that serves" in world.status.get("message", ""), seconds=3600)
    await world.sleep(60)
    assert world.groups()[1] == "v2"
    assert world.status["finalising"]["reason"] == "Aborted"
    for pod in world.server.list(PODS, NAMESPACE):
        world.patch(PODS, pod["metadata"]["name"], {"metadata": {"annotations": {f"{BEHAVIOUR}{CUT_OFF}": None}}})
    await world.until_state("Aborted", 7200)
    await world.rest()
    assert world.groups() == {0: "v1", 1: "v1"}
