"""The picture, the gate and the metrics of pairs that their releases scale, from what a controller says of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rollout_lws.cli.releases import typed
from rollout_lws.cli.status.gate import Goal, Verdict, judge, pin
from rollout_lws.metrics.glance import Glance, glance
from rollout_lws.metrics.rollouts import deadline, samples
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from tests.cli.pair.test_releases import picture
from tests.scenarios.paired import BLUE, GREEN, apply, approve_to_the_end, in_step, released, scaled_pair
from tests.scenarios.world import NAME, NAMESPACE, ROLLOUTS, World

pytestmark = pytest.mark.looptime


def seen(world: World) -> Glance:
    found = glance(msgspec.json.encode(world.get(ROLLOUTS, NAME)))
    assert found is not None
    return found


def metric(world: World, name: str) -> dict[str, float]:
    """The values of a family, by the values of its labels."""
    return {
        ",".join(value for _, value in each.labels): each.value
        for each in samples(seen(world), None)
        if each.name == f"rollout_lws_{name}"
    }


def row(world: World, name: str) -> list[str]:
    """The words of the row of this workload; the title begins with the Rollout's name, which is one of them."""
    return [each for each in picture(world) if each.startswith(f"{name} ")][-1].split()


def lws(world: World, name: str) -> dict[str, Any]:
    return world.server.get(LEADER_WORKER_SETS, NAMESPACE, name)


def gate(world: World, active: str, goal: str = "healthy") -> Verdict | None:
    """What a gate says that begins now."""
    made = world.server.get(ROLLOUTS, NAMESPACE, NAME)
    other = GREEN if active == BLUE else BLUE
    return judge(made, Goal(goal), pin(made, lws(world, other), lws(world, active)))


async def test_between_releases_one_side_is_parked(world: World) -> None:
    await scaled_pair(world)
    assert "Users    all requests go to llama" in picture(world)
    assert "Groups   llama 4/4 ready   llama-green parked   spec.replicas 4" in picture(world)
    assert row(world, GREEN)[1:5] == ["inactive", world.status["stable"]["revision"], "0/0", "0%"]
    assert row(world, GREEN)[-1] == "parked"
    assert metric(world, "groups") == {"stable": 4} and metric(world, "groups_ready") == {"stable": 4}
    assert not metric(world, "pending_since_timestamp_seconds")


async def test_a_release_adds_groups_and_the_old_side_is_parked_after_it(world: World) -> None:
    await scaled_pair(world)
    await in_step(world)
    assert "Groups   llama 4/4 ready   llama-green 1/1 ready   spec.replicas 4" in picture(world)
    assert any(each.startswith("After approval: +3 groups, 50% traffic") for each in picture(world))
    assert any(
        each.endswith("# all requests go back to llama, and llama-green is scaled to 0") for each in picture(world)
    )
    assert metric(world, "groups") == {"stable": 4, "new": 1}
    await approve_to_the_end(world)
    assert "Users    all requests go to llama-green" in picture(world)
    assert row(world, BLUE)[-1] == "parked"
    assert (
        picture(world)[-1]
        == "Next     rollout-lws start llama   # releases the version of llama, and loads its 4 groups"
    )
    assert metric(world, "groups") == {"stable": 4}


async def test_an_aborted_version_is_parked(world: World) -> None:
    await scaled_pair(world)
    await in_step(world)
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert row(world, GREEN)[3:5] == ["0/0", "0%"] and row(world, GREEN)[-1] == "parked"
    assert picture(world)[-1] == "Next     rollout-lws retry llama   # the same version again"


async def test_a_version_on_the_active_side_waits_there_and_is_told_everywhere(world: World) -> None:
    await scaled_pair(world)
    runs = world.status["stable"]["revision"]
    apply(world, BLUE, "v2")
    # Before a controller has looked, too.
    assert gate(world, BLUE) is None
    await world.until(lambda: world.condition("Stalled").get("reason") == "ActiveSideEdited")
    await world.rest()
    assert row(world, BLUE)[1:4] == ["active", runs, "4/4"]
    assert row(world, BLUE)[-3] == "revision" and row(world, BLUE)[-1] == "waits"
    assert "Users    all requests go to llama" in picture(world)
    assert not any(each.startswith("Next") for each in picture(world))
    verdict = gate(world, BLUE)
    assert verdict is not None and (verdict.code, verdict.word) == (3, "stalled")
    assert "apply it to llama-green" in verdict.text
    assert list(metric(world, "pending_since_timestamp_seconds")) == [""]
    apply(world, BLUE, "v1")
    await world.until_state("Healthy")
    await world.rest()
    verdict = gate(world, BLUE)
    assert verdict is not None and verdict.code == 0
    assert not metric(world, "pending_since_timestamp_seconds")


async def test_a_gate_on_the_parked_side_is_met_when_the_roles_have_changed(world: World) -> None:
    await scaled_pair(world)
    apply(world, GREEN, "v2")
    made = world.server.get(ROLLOUTS, NAMESPACE, NAME)
    pinned = pin(made, lws(world, GREEN), lws(world, BLUE))
    assert judge(made, Goal("healthy"), pinned) is None
    await world.until_state("AwaitingApproval")
    paused = judge(world.server.get(ROLLOUTS, NAMESPACE, NAME), Goal("paused"), pinned)
    assert paused is not None and paused.code == 0
    await approve_to_the_end(world)
    verdict = judge(world.server.get(ROLLOUTS, NAMESPACE, NAME), Goal("healthy"), pinned)
    assert verdict is not None and (verdict.code, verdict.warns) == (0, False)


async def test_a_gate_is_met_where_neither_side_has_groups(world: World) -> None:
    """No release begins: the side that is edited becomes the active one."""
    await scaled_pair(world)
    world.patch(ROLLOUTS, NAME, {"spec": {"replicas": 0}})
    await world.until(lambda: lws(world, BLUE)["spec"]["replicas"] == 0, "scaled")
    await world.rest()
    apply(world, GREEN, "v2")
    made = world.server.get(ROLLOUTS, NAMESPACE, NAME)
    pinned = pin(made, lws(world, GREEN), lws(world, BLUE))
    await world.until(lambda: world.status["active"] == GREEN and world.state == "Healthy")
    await world.rest()
    verdict = judge(world.server.get(ROLLOUTS, NAMESPACE, NAME), Goal("healthy"), pinned)
    assert verdict is not None and verdict.code == 0
    assert picture(world)[-1] == "Next     rollout-lws start llama   # releases the version of llama"


@pytest.mark.parametrize("first", [BLUE, GREEN])
async def test_the_default_deadline_is_that_of_the_version_that_is_released(world: World, first: str) -> None:
    await scaled_pair(world)
    if first == GREEN:
        await released(world)
    side = GREEN if first == BLUE else BLUE
    apply(world, side, "v3")
    await world.until(lambda: world.state == "Loading" and bool(world.status["groups"].get("new")))
    of = {name: typed(lws(world, name), LeaderWorkerSet) for name in (BLUE, GREEN)}
    assert deadline(seen(world), of[side]) is not None
    assert deadline(seen(world), of[first]) is None
