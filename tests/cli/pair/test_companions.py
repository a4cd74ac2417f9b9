"""The picture, the gate, and what belongs to a pair with companions, from what a controller says of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rollout_lws.cli.events.scope import scope_of
from rollout_lws.cli.get.picture import release
from rollout_lws.cli.releases import assemble, typed
from rollout_lws.cli.sides import is_settled
from rollout_lws.cli.status.gate import Goal, Pin, Verdict, has_ended, judge, pin
from rollout_lws.metrics.rollouts import deadline
from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS, STATEFUL_SETS
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from tests.cli.pair.test_releases import picture
from tests.cli.pair.test_scaled import lws, metric
from tests.cli.pair.test_scaled import seen as glanced
from tests.scenarios.failures import cordon
from tests.scenarios.paired import BLUE, GREEN, approve_to_the_end
from tests.scenarios.paired_companions import PREFILL, SETS, apply_one, apply_set, at_rest, in_step
from tests.scenarios.world import KEYS, NAME, NAMESPACE, ROLLOUTS, World

pytestmark = [pytest.mark.looptime, pytest.mark.rare(3)]


def row(world: World, name: str) -> str:
    """The row of this workload; the title begins with the Rollout's name, which is one of them."""
    return " ".join([each for each in picture(world) if each.startswith(f"{name} ")][-1].split())


def commands(world: World) -> list[str]:
    told = picture(world)
    first = next((at for at, each in enumerate(told) if each.startswith("Next")), len(told))
    return [" ".join(each.removeprefix("Next").split()) for each in told[first:]]


async def reason(world: World, wanted: str) -> None:
    await world.until(lambda: (world.status.get("verdict") or {}).get("reason") == wanted, wanted)


def seen(world: World) -> dict[str, Any]:
    return world.server.get(ROLLOUTS, NAMESPACE, NAME)


def pinned(world: World, side: str = GREEN) -> Pin:
    workloads = {
        name: world.server.get(LEADER_WORKER_SETS, NAMESPACE, name) for names in SETS.values() for name in names
    }
    other = BLUE if side == GREEN else GREEN
    return pin(seen(world), workloads[side], workloads[other], workloads)


def verdict(world: World, of: Pin, goal: str = "healthy") -> Verdict | None:
    return judge(seen(world), Goal(goal), of)


async def test_between_releases_each_workload_is_told_with_its_side(world: World) -> None:
    await at_rest(world)
    groups = "llama 4/4 ready   llama-prefill 2/2 ready   llama-green parked   llama-prefill-green parked"
    assert f"Groups   {groups}   spec.replicas 4" in picture(world)
    revision = world.status["stable"]["revision"]
    assert row(world, PREFILL[BLUE]).startswith(f"llama-prefill active {revision} 2/2 ")
    assert row(world, PREFILL[BLUE]).endswith(" goes with llama")
    assert "%" not in row(world, PREFILL[BLUE]), "requests go to the side"
    assert row(world, PREFILL[GREEN]).endswith("parked, goes with llama-green")
    assert ("LeaderWorkerSet", PREFILL[GREEN]) in scope_of(seen(world)).objects


async def test_in_a_release_companions_have_groups_of_both_versions(world: World) -> None:
    await at_rest(world)
    await in_step(world)
    told = picture(world)
    assert [each.split()[2] for each in told if each.startswith("  group")] == ["old", "old", "new", "new"]
    assert any("After approval: +3 groups and +1 group of llama-prefill-green, 50% traffic" in each for each in told)
    assert commands(world)[1].endswith(
        "# all requests go back to llama, and llama-green and llama-prefill-green are scaled to 0"
    )
    world.approve()
    await world.until(lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval")
    assert any(each.endswith("and llama and llama-prefill are scaled to 0") for each in picture(world))
    await approve_to_the_end(world)
    assert commands(world) == [
        "rollout-lws start llama # releases the version of llama and llama-prefill, and loads 4 and 2 groups"
    ]


async def test_what_changes_is_told_of_each_workload(world: World) -> None:
    await at_rest(world)
    await in_step(world)
    kinds = (LEADER_WORKER_SETS, STATEFUL_SETS, PODS)
    shown = assemble(seen(world), *(world.server.list(kind, NAMESPACE) for kind in kinds))
    assert shown.stable is not None
    told = release(replace(shown, before=shown.stable.workload.version), world.now)
    (change,) = [each for each in told if each.startswith("Change ")]
    assert change.count("v1 -> v2") == 2 and "; llama-prefill-green: " in change


async def test_a_version_that_waits_for_the_rest_is_told_with_what_to_do(world: World) -> None:
    await at_rest(world)
    apply_one(world, PREFILL[GREEN], "v2")
    await reason(world, "VersionIncomplete")
    assert any(
        each.startswith("Message  the release begins when llama-green has another version") for each in picture(world)
    )
    assert [each.partition(" #")[0] for each in commands(world)] == ["rollout-lws start llama"]
    assert row(world, PREFILL[GREEN]).endswith("parked, goes with llama-green")


async def test_a_version_that_a_companion_of_the_active_side_holds_back_is_told(world: World) -> None:
    await at_rest(world)
    apply_one(world, PREFILL[BLUE], "v2")
    await reason(world, "ActiveSideEdited")
    await world.rest()
    assert " waits, goes with llama" in row(world, PREFILL[BLUE])
    assert " waits" not in row(world, BLUE)


# The gate of a pipeline


async def test_a_gate_ends_with_the_release_of_all(world: World) -> None:
    await at_rest(world)
    world.stop_controller()
    apply_set(world, "v2")
    of = pinned(world)
    assert verdict(world, of) is None and not has_ended(seen(world), of), "no controller has seen it"
    world.start_controller()
    await world.until(lambda: bool(world.status.get("arriving")), "the version is seen")
    assert verdict(world, of) is None and not has_ended(seen(world), of), "it settles"
    assert not is_settled(seen(world))
    await world.until_state("AwaitingApproval", 1200)
    assert (verdict(world, of) or Verdict(0, "", "")).code == 5
    await approve_to_the_end(world)
    found = verdict(world, of)
    assert found is not None and (found.code, found.word, found.warns) == (0, "healthy", False)
    assert has_ended(seen(world), of)


@pytest.mark.parametrize("goal", ["healthy", "paused", "aborted"])
async def test_a_gate_says_that_the_rest_of_a_version_is_missing(world: World, goal: str) -> None:
    await at_rest(world)
    apply_one(world, GREEN, "v2")
    of = pinned(world)
    await reason(world, "VersionIncomplete")
    found = verdict(world, of, goal)
    if goal == "aborted":
        assert found is None
        return
    assert found is not None and (found.code, found.word) == (5, "incomplete")
    assert "llama-prefill-green has another version as well" in found.text


async def test_a_gate_waits_for_a_controller_that_has_seen_half_of_its_version_only(world: World) -> None:
    await at_rest(world)
    apply_one(world, GREEN, "v2")
    await reason(world, "VersionIncomplete")
    world.stop_controller()
    apply_one(world, PREFILL[GREEN], "v2")
    assert verdict(world, pinned(world)) is None


@pytest.mark.parametrize("late", ["r3", ""])
async def test_ids_that_differ_are_told(world: World, late: str) -> None:
    await at_rest(world)
    apply_one(world, GREEN, "v2", release_id="r2")
    apply_one(world, PREFILL[GREEN], "v2", release_id=late)
    await reason(world, "VersionIncomplete")
    await world.rest()
    found = verdict(world, pinned(world))
    assert (
        found is not None and found.word == "incomplete" and f"llama-prefill-green has {late or 'none'}" in found.text
    )


async def test_one_id_that_no_controller_has_seen_yet_is_waited_for(world: World) -> None:
    """The templates are as they were when the controller saw them."""
    await at_rest(world)
    apply_one(world, GREEN, "v2", release_id="r2")
    apply_one(world, PREFILL[GREEN], "v2")
    await reason(world, "VersionIncomplete")
    await world.rest()
    world.stop_controller()
    world.patch(LEADER_WORKER_SETS, PREFILL[GREEN], {"metadata": {"labels": {KEYS.rollout_id: "r2"}}})
    assert verdict(world, pinned(world)) is None


async def test_a_watch_ends_with_a_later_version(world: World) -> None:
    await at_rest(world)
    apply_set(world, "v2")
    of = pinned(world)
    await world.until_state("AwaitingApproval", 1200)
    apply_set(world, "v3")
    await world.until(lambda: world.state != "AwaitingApproval")
    await world.until_state("AwaitingApproval", 1200)
    world.request("Abort")
    await world.until_state("Aborted")
    assert has_ended(seen(world), of)


# What Prometheus gets


async def test_a_version_that_waits_for_the_rest_is_pending(world: World) -> None:
    await at_rest(world)
    assert metric(world, "pending_since_timestamp_seconds") == {}
    apply_one(world, GREEN, "v2")
    await reason(world, "VersionIncomplete")
    assert len(metric(world, "pending_since_timestamp_seconds")) == 1
    apply_one(world, PREFILL[GREEN], "v2")
    await world.until_state("AwaitingApproval", 1200)
    assert metric(world, "pending_since_timestamp_seconds") == {}
    await approve_to_the_end(world)
    assert metric(world, "pending_since_timestamp_seconds") == {}, "the hashes are joined"


async def test_the_deadline_is_that_of_the_workload_that_takes_longest(world: World) -> None:
    await at_rest(world)
    cordon(world)
    slow = {"startupProbe": {"httpGet": {"path": "/", "port": 80}, "failureThreshold": 1000, "periodSeconds": 60}}
    template = lws(world, PREFILL[GREEN])["spec"]["leaderWorkerTemplate"]
    template["workerTemplate"]["spec"]["containers"][0] |= slow
    apply_set(world, "v2")
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": template["workerTemplate"]}}, PREFILL[GREEN])
    await world.until(lambda: world.status["phase"] == "Progressing", "a release", 1200)
    await world.until(lambda: deadline(glanced(world), None) is None and bool(world.status.get("step")))
    own, beside = (typed(lws(world, name), LeaderWorkerSet) for name in (GREEN, PREFILL[GREEN]))
    assert glanced(world).released_beside == (PREFILL[GREEN],)
    first, second = deadline(glanced(world), own), deadline(glanced(world), own, [beside, None])
    assert first is not None and second is not None and (second - first).total_seconds() > 3600
