"""Pairs that releases scale: a number of groups that has to wait costs no request, and what is told at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS, LEADER_WORKER_SETS, Resource
from rollout_lws.observe.cache_types import StoredObject
from rollout_lws.rollout.reasons import Reason
from tests.scenarios.measured import MeasuredWorld
from tests.scenarios.obstacles import refused
from tests.scenarios.paired import (
    BLUE,
    GREEN,
    all_ready,
    apply,
    create_sides,
    forge,
    handing_over,
    in_step,
    metered_pair,
    pair_at_rest,
    rollout,
    scaled_pair,
    share,
    weights,
)
from tests.scenarios.paired_scaled import come_to, replicas, stalled
from tests.scenarios.routed import OF_PAIRS
from tests.scenarios.scaled import create_autoscaler, scale, wants
from tests.scenarios.store_world import StoreWorld
from tests.scenarios.test_drains import FREE, Drains
from tests.scenarios.test_release_gates import FIRST_TOKEN, slow_down
from tests.scenarios.world import ROLLOUTS, World

pytestmark = [pytest.mark.looptime, *OF_PAIRS]


def keeps(world: World, least: int, most: int) -> None:
    """From now on the new side has so many groups."""

    def check(seen: World) -> None:
        assert least <= replicas(seen)[GREEN] <= most, replicas(seen)

    world.checks.append(check)


def keeps_weights(world: World) -> None:
    """From now on requests are shared as they are."""
    before = weights(world)

    def check(seen: World) -> None:
        assert weights(seen) == before, weights(seen)

    world.checks.append(check)


# A smaller number that waits, in the hand-over


async def test_zero_in_the_hand_over_does_not_end_the_side_that_has_all_requests() -> None:
    async with metered_pair(scaled=True) as pair:
        world = pair.world
        await handing_over(world)
        await world.sleep(10)
        scale(world, 0)
        await world.sleep(20)
        pair.assert_unharmed()


async def test_a_number_that_waits_for_autoscalers_that_are_not_known_costs_no_stream_in_the_hand_over() -> None:
    async with metered_pair(scaled=True) as pair:
        world = pair.world
        await handing_over(world)
        await world.sleep(10)
        refused(HORIZONTAL_POD_AUTOSCALERS)(world)
        scale(world, 3)
        await world.sleep(20)
        pair.assert_unharmed()


async def test_an_autoscaler_takes_no_group_of_the_side_that_has_all_requests_in_the_hand_over(world: World) -> None:
    await scaled_pair(world)
    create_autoscaler(world, of=ROLLOUTS)
    await world.rest()
    await handing_over(world)
    keeps(world, 4, 4)
    wants(world, 2)
    await world.sleep(20)


async def test_zero_while_the_hand_over_loads_does_not_end_the_new_side(world: World) -> None:
    await scaled_pair(world)
    await in_step(world)
    world.request("PromoteFull")
    await world.until(lambda: replicas(world)[GREEN] == 4, "R groups are asked for")
    keeps(world, 4, 4)
    scale(world, 0)
    await world.sleep(20)


# A smaller number that waits, in a step


@pytest.mark.one_in(2)
@pytest.mark.parametrize("who", ["an autoscaler", "a person to zero"])
@pytest.mark.parametrize("moment", ["step 1", "step 2"])
async def test_a_number_that_waits_takes_no_requests_in_a_step(world: World, moment: str, who: str) -> None:
    await scaled_pair(world, replicas=6)
    if who == "an autoscaler":
        create_autoscaler(world, of=ROLLOUTS)
    await world.rest()
    await come_to(world, moment)
    keeps_weights(world)
    if who == "an autoscaler":
        wants(world, 2)
    else:
        scale(world, 0)
    await world.sleep(60)


# No groups at all, while the active side still has some


def gives_no_requests_to_none(world: World) -> None:
    def check(seen: World) -> None:
        found, shared = replicas(seen), weights(seen)
        assert not (shared[GREEN] and not found[GREEN] and found[BLUE]), (found, shared)

    world.checks.append(check)


async def test_a_zero_that_waits_turns_no_roles_while_the_active_side_has_groups(world: World) -> None:
    await scaled_pair(world)
    apply(world, BLUE, "v9")
    await world.until(lambda: stalled(world, Reason.ACTIVE_SIDE_EDITED), "told")
    world.stop_controller()
    apply(world, GREEN, "v2")
    scale(world, 0)
    gives_no_requests_to_none(world)
    world.start_controller()
    await world.sleep(30)


class _Unlisted(StoreWorld):
    """Autoscalers are being listed."""

    def every(self, asked: Resource) -> Any:
        none: list[StoredObject] = []
        return none if asked == HORIZONTAL_POD_AUTOSCALERS else super().every(asked)

    def unknown(self, asked: Resource) -> str | None:
        return super().unknown(asked) or ("" if asked == HORIZONTAL_POD_AUTOSCALERS else None)


async def test_zero_turns_no_roles_before_autoscalers_are_listed(world: World) -> None:
    await scaled_pair(world)
    world.stop_controller()
    apply(world, GREEN, "v2")
    scale(world, 0)
    world.view = _Unlisted(world.server)
    gives_no_requests_to_none(world)
    world.start_controller()
    await world.sleep(5)


# A status that another client has written


@pytest.mark.one_in(3)
@pytest.mark.parametrize("moment", ["step 1", "step 2", "hand-over"])
async def test_a_forged_number_makes_no_groups(world: World, moment: str) -> None:
    await scaled_pair(world)
    await come_to(world, moment)
    keeps(world, 1, 4)
    blue = world.get(LEADER_WORKER_SETS, BLUE)
    assert blue is not None
    waiting = {"replicas": 3, "waitsFor": "ReleaseEnd"}
    uid = blue["metadata"]["uid"]
    forge(world, scaling={"workloadUID": uid, "replicas": 60, "seen": True, "waiting": waiting})
    await world.sleep(20)


# More groups, while the hand-over stands still


async def test_r_that_grows_in_a_paused_hand_over_is_loaded(world: World) -> None:
    await scaled_pair(world)
    await handing_over(world)
    world.request("Pause")
    await world.until_state("Paused")
    scale(world, 6)
    await world.sleep(120)
    assert 6 in replicas(world).values(), (replicas(world), world.status["message"])


@pytest.fixture
async def drains() -> AsyncIterator[Drains]:
    made = Drains()
    yield made
    made.close()


async def test_r_that_grows_while_a_gate_stops_the_hand_over_is_loaded(drains: Drains) -> None:
    world: MeasuredWorld = drains
    create_sides(world, beside=0)
    for name in (BLUE, GREEN):
        world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": world.serve(FREE)}}, name)
    made = rollout(routing={"drain": {"until": "Idle", "maxSeconds": 1800}}, spec={}, onFailure="Pause")
    made["spec"]["strategy"]["canary"]["gates"] = [FIRST_TOKEN]
    world.server.create(ROLLOUTS, made)
    await all_ready(world, BLUE)
    world.start_controller()
    await world.until_state("Healthy")
    await world.rest()
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": world.serve(FREE, "v2")}}, GREEN)
    for step in (1, 2):
        await world.until(
            lambda step=step: world.state == "AwaitingApproval" and world.status["currentStepIndex"] == step,  # type: ignore[misc]
            f"step {step}",
            1200,
        )
        world.approve()
    await world.until(lambda: share(world, GREEN) == 1, "all requests", 1200)
    drains.work(3, *(f"{BLUE}-{group}" for group in range(4)))
    for _ in range(8):
        slow_down(world, GREEN)
        await world.sleep(15)
    assert "The hand-over waits" in world.status["message"]
    scale(world, 6)
    await world.sleep(120)
    assert 6 in replicas(world).values(), (replicas(world), world.status["message"])


# What is told


@pytest.mark.parametrize("scaled", [True, False])
async def test_what_is_told_of_a_rollout_that_leaves_after_an_abort_says_what_to_do(world: World, scaled: bool) -> None:
    await (scaled_pair if scaled else pair_at_rest)(world)
    await in_step(world, 2)
    world.request("Abort")
    await world.sleep(5)
    world.patch_rollout({"disabled": True})
    # The judge of sentences reads each status.
    await world.until_state("Disabled", 1200)
