"""Pairs of workloads that their releases scale: the side without requests has no groups; a release loads R, once."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from tests.scenarios.gauge import Gauge
from tests.scenarios.paired import (
    BLUE,
    GREEN,
    apply,
    approve_to_the_end,
    in_step,
    left,
    metered_pair,
    released,
    scaled_pair,
    share,
    weights,
    wipe,
)
from tests.scenarios.paired_scaled import come_to, partitions, replicas, roles
from tests.scenarios.routed import OF_PAIRS
from tests.scenarios.scaled import scale
from tests.scenarios.world import World

pytestmark = [pytest.mark.looptime, *OF_PAIRS]

MOMENTS = pytest.mark.parametrize("moment", ["step 1", "step 2", "hand-over"])


async def test_a_release_loads_the_other_side_and_the_roles_change(world: World) -> None:
    await scaled_pair(world)
    assert roles(world) == {BLUE: "active", GREEN: "parked"}
    assert replicas(world) == {BLUE: 4, GREEN: 0}
    assert world.rollout["spec"]["replicas"] == 4
    apply(world, GREEN, "v2")
    await world.until_state("AwaitingApproval")
    assert replicas(world) == {BLUE: 4, GREEN: 1}
    assert share(world, GREEN) == pytest.approx(0.2)
    world.approve()
    await world.until(lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval")
    assert replicas(world) == {BLUE: 4, GREEN: 4}
    await approve_to_the_end(world)
    assert weights(world) == {BLUE: 0, GREEN: 100}
    assert replicas(world) == {BLUE: 0, GREEN: 4}
    assert roles(world) == {BLUE: "parked", GREEN: "active"}
    assert world.status["active"] == GREEN
    await world.sleep(3600)
    assert replicas(world) == {BLUE: 0, GREEN: 4}
    assert world.status["active"] == GREEN and world.state == "Healthy"


async def test_roles_alternate_and_nothing_is_left(world: World) -> None:
    await scaled_pair(world)
    for number, (side, other) in enumerate(((GREEN, BLUE), (BLUE, GREEN), (GREEN, BLUE)), 2):
        await released(world, side=side, tag=f"v{number}")
        assert replicas(world) == {side: 4, other: 0}
        assert roles(world) == {side: "active", other: "parked"}
        assert world.names()["batchreleases"] == []
        assert {each.rstrip("!") for each in world.groups(side).values()} == {f"v{number}"}


@pytest.mark.one_in(3)
@MOMENTS
async def test_an_abort_takes_the_groups_that_were_made(moment: str) -> None:
    async with metered_pair(scaled=True) as pair:
        world = pair.world
        await come_to(world, moment)
        await world.sleep(10 if moment == "hand-over" else 40)
        world.request("Abort")
        await world.until_state("Aborted", 1200)
        await world.rest()
        assert replicas(world) == {BLUE: 4, GREEN: 0} and roles(world) == {BLUE: "active", GREEN: "parked"}
        await world.sleep(600)
        assert await pair.shares() == {BLUE: 1.0}
        world.request("Retry")
        await world.until_state("AwaitingApproval", 1200)
        await approve_to_the_end(world)
        assert replicas(world) == {BLUE: 0, GREEN: 4}
        await world.sleep(60)
        pair.assert_unharmed()


@pytest.mark.one_in(3)
@MOMENTS
async def test_a_third_version_starts_on_an_empty_side(moment: str) -> None:
    async with metered_pair(scaled=True) as pair:
        world = pair.world
        await come_to(world, moment)
        await world.sleep(10 if moment == "hand-over" else 40)
        apply(world, GREEN, "v3")
        seen: set[str] = set()

        def judge(seen_world: World) -> None:
            if share(seen_world, GREEN):
                seen.update(each.rstrip("!") for each in seen_world.groups(GREEN).values())

        await world.until(lambda: share(world, GREEN) == 0, "requests go back", 1200)
        world.checks.append(judge)
        await world.until(lambda: set(world.groups(GREEN).values()) == {"v3"}, "the third version", 1200)
        await world.until_state("AwaitingApproval", 1200)
        await approve_to_the_end(world)
        assert seen == {"v3"} and world.status["active"] == GREEN
        await world.sleep(60)
        pair.assert_unharmed()


@pytest.mark.one_in(3)
@MOMENTS
async def test_the_stable_template_takes_the_release_back(moment: str) -> None:
    async with metered_pair(scaled=True) as pair:
        world = pair.world
        await come_to(world, moment)
        apply(world, GREEN, "v1")
        await world.until(lambda: replicas(world)[GREEN] == 0, "groups go", 1200)
        await world.until_state("Healthy", 1200)
        assert replicas(world) == {BLUE: 4, GREEN: 0} and weights(world) == {BLUE: 100, GREEN: 0}
        await world.sleep(60)
        pair.assert_unharmed()


@pytest.mark.one_in(3)
@MOMENTS
@pytest.mark.parametrize("count", [2, 6])
async def test_the_rollout_is_scaled_in_a_release(moment: str, count: int) -> None:
    async with metered_pair(scaled=True) as pair:
        world = pair.world
        await come_to(world, moment)
        scale(world, count)
        await world.until(lambda: replicas(world)[BLUE] == count or world.status["active"] == GREEN, "scaled", 600)
        await world.sleep(60)
        await approve_to_the_end(world)
        await world.until(lambda: replicas(world) == {BLUE: 0, GREEN: count}, "scaled", 600)
        await world.sleep(60)
        # Streams on groups that a person has scaled away are that person's.
        assert not pair.meter.failures and not (pair.meter.cuts and count > 4)


async def test_the_rollout_is_scaled_at_rest_and_to_zero_and_back(world: World) -> None:
    await scaled_pair(world)
    await released(world)
    for count in (6, 2, 0, 3):
        scale(world, count)
        await world.until(lambda count=count: replicas(world) == {BLUE: 0, GREEN: count}, "scaled", 600)  # type: ignore[misc]
        await world.rest()
        assert world.status["active"] == GREEN and weights(world) == {BLUE: 0, GREEN: 100}
    await world.until_state("Healthy")


async def test_zero_waits_for_the_end_of_a_release(world: World) -> None:
    await scaled_pair(world)
    await in_step(world, 2)
    scale(world, 0)
    await world.sleep(60)
    assert replicas(world) == {BLUE: 4, GREEN: 4}
    assert "spec.replicas 0 waits for the end of the release" in world.status["message"]
    await approve_to_the_end(world)
    await world.until(lambda: replicas(world) == {BLUE: 0, GREEN: 0}, "scaled", 600)


async def test_without_groups_the_edited_side_becomes_the_active_one(world: World) -> None:
    await scaled_pair(world)
    scale(world, 0)
    await world.until(lambda: replicas(world) == {BLUE: 0, GREEN: 0}, "scaled")
    await world.rest()
    apply(world, GREEN, "v2")
    await world.until(lambda: world.status["active"] == GREEN and world.state == "Healthy", "the roles")
    await world.rest()
    assert weights(world) == {BLUE: 0, GREEN: 100} and roles(world) == {BLUE: "parked", GREEN: "active"}
    scale(world, 3)
    await world.until(lambda: set(world.groups(GREEN).values()) == {"v2"}, "groups", 600)
    assert replicas(world) == {BLUE: 0, GREEN: 3} and not world.groups(BLUE)


async def test_groups_of_a_parked_side_go_at_once(world: World) -> None:
    await scaled_pair(world)
    await world.sleep(60)
    for _ in range(5):
        world.patch_lws({"replicas": 3}, GREEN)
        await world.sleep(1)
        assert replicas(world) == {BLUE: 4, GREEN: 0}
    await world.until_state("Healthy")


async def test_the_number_of_the_active_side_is_put_back(world: World) -> None:
    await scaled_pair(world)
    world.patch_lws({"replicas": 1}, BLUE)
    await world.sleep(1)
    assert replicas(world) == {BLUE: 4, GREEN: 0}
    await in_step(world)
    world.patch_lws({"replicas": 0}, BLUE)
    await world.sleep(1)
    assert replicas(world) == {BLUE: 4, GREEN: 1} and world.status["active"] == BLUE


async def test_a_template_applied_to_the_active_side_waits(world: World) -> None:
    await scaled_pair(world)
    apply(world, BLUE, "v2")
    await world.until(lambda: world.condition("Stalled").get("reason") == "ActiveSideEdited", "told")
    await world.sleep(600)
    assert set(world.groups(BLUE).values()) == {"v1"}
    await released(world, tag="v2")
    assert replicas(world) == {BLUE: 0, GREEN: 4}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("moment", ["rest", "step 2", "hand-over"])
@pytest.mark.parametrize("how", ["deleted", "disabled"])
async def test_a_rollout_that_leaves_gives_the_workloads_back(moment: str, how: str) -> None:
    async with metered_pair(scaled=True) as pair:
        world = pair.world
        if moment != "rest":
            await come_to(world, moment)
        if how == "deleted":
            await left(world)
        else:
            world.patch_rollout({"disabled": True})
            await world.until_state("Disabled", 1200)
        await world.sleep(60)
        assert replicas(world) == {BLUE: 4, GREEN: 0} and roles(world) == {BLUE: None, GREEN: None}
        assert partitions(world) == {BLUE: 0, GREEN: 0}
        for name in (BLUE, GREEN):
            lws = world.get(LEADER_WORKER_SETS, name) or {}
            assert not any(key.startswith("rollouts.kruise.io") for key in lws["metadata"].get("annotations") or {})
        assert await pair.shares() == {BLUE: 1.0}
        pair.assert_unharmed()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("moment", ["rest", "step 2", "hand-over"])
async def test_a_wiped_status_starts_nothing(moment: str) -> None:
    async with metered_pair(scaled=True) as pair:
        world = pair.world
        if moment != "rest":
            await come_to(world, moment)
        wipe(world)
        await world.until_state("Healthy", 1200)
        await world.sleep(120)
        assert replicas(world) == {BLUE: 4, GREEN: 0} and world.status["active"] == BLUE
        pair.assert_unharmed()


async def test_loads_are_r_once(world: World) -> None:
    await scaled_pair(world)
    gauge = Gauge(world, 4)
    await released(world)
    await world.sleep(60)
    assert gauge.loads == 4
