"""The picture, the gate, the metrics and doctor of swaps, from what a controller says of whole releases."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.cli.doctor.links import Name, State, first
from rollout_lws.cli.releases import typed
from rollout_lws.cli.status.gate import Goal, Pin, Verdict, judge, pin
from rollout_lws.metrics.rollouts import deadline
from rollout_lws.objects.resources import LEADER_WORKER_SETS, LWS_NAME, SERVICES
from rollout_lws.rollout.reasons import Reason
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from tests.cli.doctor.looking import assert_whole, links, told
from tests.cli.doctor.test_doctor_scaled import of, of_workload
from tests.cli.pair.test_releases import picture
from tests.cli.pair.test_scaled import lws, metric, row, seen
from tests.scenarios.paired_scaled import stalled
from tests.scenarios.routed import SERVICE
from tests.scenarios.stories import CANARY
from tests.scenarios.swapped import plain_swap, released, stands_in, to_the_end
from tests.scenarios.world import NAME, NAMESPACE, ROLLOUTS, World

pytestmark = [pytest.mark.looptime, pytest.mark.rare(3)]
WAYS = pytest.mark.parametrize("away", [False, True], ids=["from home", "back home"])


async def begun(world: World, away: bool) -> None:
    await plain_swap(world)
    if away:
        await released(world, "v2")


async def at_step(world: World, number: int) -> None:
    await world.until(
        lambda: world.state == "AwaitingApproval" and world.status["currentStepIndex"] == number, "the step", 600
    )


def title(world: World) -> str:
    return picture(world)[0].split("  ns ")[0]


def line(world: World, beginning: str) -> str:
    return next((each for each in picture(world) if each.startswith(beginning)), "")


# get


async def test_at_rest_away_from_home_the_one_that_serves_is_active_and_the_other_one_is_parked(world: World) -> None:
    await begun(world, away=True)
    assert title(world) == "llama  LeaderWorkerSet/llama-canary (active) and LeaderWorkerSet/llama (inactive)"
    assert f"workload generation {lws(world, NAME)['metadata']['generation']}" in picture(world)[0]
    assert line(world, "Users") == "Users    all requests go to llama-canary"
    assert line(world, "Groups") == "Groups   llama-canary 4/4 ready   llama parked   spec.replicas 4"
    assert row(world, CANARY)[1:5] == ["active", world.status["stable"]["revision"], "4/4", "100%"]
    assert row(world, NAME)[3:5] == ["0/0", "0%"] and row(world, NAME)[-1] == "parked"
    assert not line(world, "Next") and "50%" in line(world, "Steps")


async def test_a_release_from_home_says_what_approvals_do(world: World) -> None:
    await begun(world, away=False)
    world.set_image("v2")
    await at_step(world, 1)
    assert title(world) == "llama  LeaderWorkerSet/llama" and row(world, CANARY)[1] == "green"
    assert line(world, "After approval").startswith("After approval: +2 groups, 50% traffic")
    world.approve()
    await at_step(world, 2)
    assert line(world, "After approval") == (
        "After approval: all requests go to llama-canary, which serves from then on, and llama is scaled to 0"
    )
    world.approve()
    await world.until(lambda: world.state == "Promoting", "the hand-over")
    assert picture(world)[-1].endswith("# stable untouched")
    await world.until(lambda: stands_in(world), "the change of roles")
    await world.sleep(1)
    assert row(world, CANARY)[1] == "active" and row(world, NAME)[1] == "inactive"
    assert not any("abort" in each for each in picture(world)), "nothing is left to go back from"


async def test_a_release_back_home_says_what_approvals_and_an_abort_do(world: World) -> None:
    await begun(world, away=True)
    world.set_image("v3")
    await at_step(world, 1)
    assert row(world, NAME)[1:4] == ["inactive", lws_revision(world), "2/2"] and row(world, CANARY)[1] == "active"
    assert line(world, "After approval").startswith("After approval: +2 groups, 50% traffic")
    assert any(
        each.endswith("# all requests go back to llama-canary, and llama is scaled to 0") for each in picture(world)
    )
    world.approve()
    await at_step(world, 2)
    assert line(world, "After approval") == "After approval: all requests go to llama, and llama-canary is removed"
    world.approve()
    await world.until(lambda: not stands_in(world), "the change of roles", 600)
    await world.sleep(1)
    assert line(world, "Users") == "Users    all requests go to llama"
    assert row(world, CANARY)[1] == "old" and not any("loaded in" in each for each in picture(world))
    await to_the_end(world)
    assert title(world) == "llama  LeaderWorkerSet/llama"


def lws_revision(world: World) -> str:
    return str(world.status["canaryStatus" if "canaryStatus" in world.status else "blueGreenStatus"]["updatedRevision"])


async def test_a_rollout_that_cannot_leave_is_told_with_home(world: World) -> None:
    await begun(world, away=True)
    world.delete(ROLLOUTS, NAME)
    await world.until(lambda: stalled(world, Reason.STANDS_IN), "told")
    assert picture(world)[-1] == (
        "Next     rollout-lws home llama   # releases the version of llama, which loads 4 groups"
    )
    assert line(world, "Users") == "Users    all requests go to llama-canary"


# status


def rollout(world: World) -> dict[str, Any]:
    return world.server.get(ROLLOUTS, NAMESPACE, NAME)


def pinned_to(world: World) -> Pin:
    return pin(rollout(world), lws(world, NAME))


def verdict(world: World, pinned: Pin, goal: str = "healthy") -> Verdict | None:
    return judge(rollout(world), Goal(goal), pinned)


async def to_the_end_of(world: World, pinned: Pin, serves: str) -> None:
    """Approves; before the release is over, no look says that it is."""
    early = list[Verdict]()

    def look(_: World) -> None:
        found = verdict(world, pinned)
        if found is not None and not found.code and world.status.get("phase") != "Healthy":
            early.append(found)

    world.checks.append(look)
    await to_the_end(world)
    world.checks.remove(look)
    assert not early
    found = verdict(world, pinned)
    assert found is not None and (found.code, found.word) == (0, "healthy")
    assert world.groups(serves) == dict.fromkeys(range(4), "v3")


@WAYS
async def test_a_gate_is_met_when_its_version_serves_whichever_workload_that_is(world: World, away: bool) -> None:
    await begun(world, away)
    world.set_image("v3")
    pinned = pinned_to(world)
    assert verdict(world, pinned) is None
    await at_step(world, 1)
    found = verdict(world, pinned, "paused")
    assert found is not None and found.code == 0
    found = verdict(world, pinned)
    assert found is not None and found.word == "approval"
    await to_the_end_of(world, pinned, NAME if away else CANARY)


@WAYS
async def test_a_gate_on_a_version_that_is_replaced_says_so(world: World, away: bool) -> None:
    await begun(world, away)
    world.set_image("v3")
    pinned = pinned_to(world)
    await at_step(world, 1)
    world.set_image("v4")
    await world.until(lambda: world.state != "AwaitingApproval", "it goes back")
    await at_step(world, 1)
    found = verdict(world, pinned)
    assert found is not None and found.word == "superseded"


@WAYS
async def test_a_gate_on_a_version_that_is_aborted_says_so(world: World, away: bool) -> None:
    await begun(world, away)
    world.set_image("v3")
    pinned = pinned_to(world)
    await at_step(world, 1)
    world.request("Abort")
    await world.until_state("Aborted", 600)
    await world.rest()
    found = verdict(world, pinned)
    assert found is not None and (found.code, found.word) == (3, "aborted")
    # One that begins now is about the same version.
    found = verdict(world, pinned_to(world))
    assert found is not None and (found.code, found.word) == (3, "aborted")


async def test_a_gate_that_begins_after_the_request_waits_until_the_requests_are_home(world: World) -> None:
    await begun(world, away=True)
    world.request("Start")
    pinned = pinned_to(world)
    await world.until(lambda: bool(world.status.get("startRequested")), "accepted")
    assert verdict(world, pinned) is None
    await at_step(world, 1)
    await to_the_end(world)
    found = verdict(world, pinned)
    assert found is not None and found.code == 0
    assert world.groups() == dict.fromkeys(range(4), "v2") and not stands_in(world)


# Metrics


@WAYS
async def test_metrics_of_a_release_are_those_of_its_version(world: World, away: bool) -> None:
    await begun(world, away)
    assert metric(world, "groups") == {"stable": 4} and metric(world, "groups_ready") == {"stable": 4}
    assert not metric(world, "pending_since_timestamp_seconds")
    assert list(metric(world, "info")) == ["blueGreen,Swap,llama,HTTPRoute"]
    world.set_image("v3")
    await world.until(lambda: world.state == "Loading" and bool(world.status["groups"].get("new")), "it loads")
    # The deadline is that of the version in the template of the user's workload.
    assert deadline(seen(world), typed(lws(world, NAME), LeaderWorkerSet)) is not None
    await at_step(world, 1)
    assert metric(world, "groups") == {"stable": 4, "new": 2}
    await to_the_end(world)
    assert metric(world, "groups") == {"stable": 4}


@WAYS
async def test_a_version_that_is_refused_or_aborted_is_pending(world: World, away: bool) -> None:
    await begun(world, away)
    world.set_image("v3")
    await at_step(world, 1)
    assert not metric(world, "pending_since_timestamp_seconds")
    world.request("Abort")
    await world.until_state("Aborted", 600)
    await world.rest()
    assert list(metric(world, "pending_since_timestamp_seconds")) == [""]


# doctor


async def test_nothing_is_broken_in_two_releases_and_between_them(world: World) -> None:
    await begun(world, away=False)
    for tag in ("v2", "v3"):
        await assert_whole(world)
        world.set_image(tag)
        for number in (1, 2):
            while (world.state, world.status.get("currentStepIndex")) != ("AwaitingApproval", number):
                await assert_whole(world)
            world.approve()
        while world.state != "Healthy":
            await assert_whole(world)
        await world.rest()
        found = await links(world)
        assert {each.state for each in found} == {State.OK}, told(found)
        if tag == "v2":
            canary, users = of_workload(found, CANARY).found, of_workload(found, NAME).found
            assert canary.endswith("4 groups, the active side, in place of llama")
            assert users.endswith("0 groups, the inactive side, parked")
            assert of(found, Name.ROLLOUT)["Rollout/llama"].found.endswith("; llama-canary serves in its place")


async def test_a_users_workload_that_is_missing_is_broken_and_the_other_one_serves_on(world: World) -> None:
    await begun(world, away=True)
    world.delete(LEADER_WORKER_SETS, NAME)
    await world.until(lambda: stalled(world, Reason.WORKLOAD_NOT_FOUND), "told")
    found = await links(world)
    one = first(found, State.BROKEN)
    assert one is not None and one is of_workload(found, NAME), told(found)
    assert "llama-canary serves on: create it" in one.found and one.affected.startswith("no user yet")
    assert of_workload(found, CANARY).state is State.OK


async def test_a_rollout_that_cannot_leave_is_broken_with_both_ways_out(world: World) -> None:
    await begun(world, away=True)
    world.delete(ROLLOUTS, NAME)
    await world.until(lambda: stalled(world, Reason.STANDS_IN), "told")
    found = await links(world)
    one = first(found, State.BROKEN)
    assert one is not None and one is of(found, Name.ROLLOUT)["Rollout/llama"], told(found)
    assert one.next == (
        "kubectl rollout-lws home llama",
        "kubectl annotate rollouts.rollouts.kruise.io llama rollouts.kruise.io/leave-as-is=true",
    )


async def test_groups_of_the_parked_workload_that_no_controller_takes_are_broken(world: World) -> None:
    await begun(world, away=True)
    world.stop_controller()
    world.patch_lws({"replicas": 2})
    await world.sleep(30)
    found = of_workload(await links(world), NAME)
    assert found.state is State.BROKEN and "has 2 groups, though it is the inactive side" in found.found


async def test_what_selects_by_the_name_of_one_of_them_is_named_before_a_release(world: World) -> None:
    await begun(world, away=False)
    world.patch(SERVICES, SERVICE, {"spec": {"selector": {LWS_NAME: NAME}}})
    one = first(await links(world), State.BROKEN)
    assert one is not None and one.about == f"Service/{SERVICE}"
    assert "llama and llama-canary serve in turn: select them by labels of the template" in one.found
