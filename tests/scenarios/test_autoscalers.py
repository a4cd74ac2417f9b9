"""Autoscalers while a version is released: no group is taken away, more may come, and the user's bounds come back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS, LEADER_WORKER_SETS
from rollout_lws.objects.writes import Create
from tests.scenarios.crashes import PARTS, kill_after_every_write
from tests.scenarios.invariants import always_serving
from tests.scenarios.routed import assert_given_back, routed_at_rest
from tests.scenarios.scaled import (
    AUTOSCALER,
    autoscaler,
    bounds,
    create_autoscaler,
    edit,
    finish,
    kept,
    replicas,
    wants,
    written,
)
from tests.scenarios.stories import CANARY, at_rest, mid_promotion, waiting_for_approval
from tests.scenarios.world import NAME, World

pytestmark = pytest.mark.looptime

#: Long enough for an autoscaler to do all that it wants.
A_WHILE = 60
SHIFTED = {"replicas": "75%", "traffic": "75%", "pause": {}}, {"replicas": "100%", "traffic": "90%", "pause": {}}
STEPS = {"replicas": "50%", "pause": {}}, {"replicas": "100%", "pause": {}}


async def scaled_at_rest(world: World, low: int | None = 1, style: str = "canary") -> str:
    """An LWS of four groups at rest with an autoscaler; gives what has to come back."""
    create_autoscaler(world, low)
    await at_rest(world, *STEPS, **{style: {}})
    return kept(world)


# In a release


async def test_groups_that_requests_have_left_are_not_taken_away_until_the_release_is_over(world: World) -> None:
    create_autoscaler(world)
    before = await routed_at_rest(world, *SHIFTED, replicas=4)
    own = kept(world)
    await waiting_for_approval(world)
    wants(world, 1)
    await world.sleep(10 * A_WHILE)
    assert (replicas(world), bounds(world)) == (4, (4, 10))
    assert autoscaler(world)["status"]["desiredReplicas"] == 4
    await finish(world)
    await world.sleep(A_WHILE)
    assert kept(world) == own
    assert_given_back(world, before)
    assert replicas(world) == 1


@pytest.mark.one_in(2)
@pytest.mark.parametrize("style", ["canary", "blueGreen"])
async def test_more_groups_may_come_in_mid_release_and_stay_until_it_is_over(world: World, style: str) -> None:
    own = await scaled_at_rest(world, style=style)
    await waiting_for_approval(world)
    wants(world, 6)
    await world.until(lambda: world.groups() == dict.fromkeys(range(6), "v1"), "the autoscaler adds groups")
    assert bounds(world) == (6, 10)
    assert world.get_canary_replicas() == 3
    wants(world, 2)
    await world.sleep(A_WHILE)
    assert replicas(world) == 6
    await finish(world)
    assert (replicas(world), kept(world)) == (6, own)
    await world.sleep(A_WHILE)
    assert replicas(world) == 2


async def test_an_autoscaler_is_held_before_any_group_of_the_new_version_is_made_and_written_twice_at_all(
    world: World,
) -> None:
    await scaled_at_rest(world)
    assert written(world) == []
    await waiting_for_approval(world)
    (hold,) = written(world)
    made = next(each for each in world.writes if isinstance(each, Create) and each.resource == LEADER_WORKER_SETS)
    assert world.writes.index(hold) < world.writes.index(made)
    await finish(world)
    await world.rest()
    assert len(written(world)) == 2
    assert "autoscalers" not in world.status


async def test_an_autoscaler_that_would_take_nothing_away_is_not_written(world: World) -> None:
    own = await scaled_at_rest(world, low=4)
    await waiting_for_approval(world)
    assert kept(world) == own
    await finish(world)
    assert written(world) == []


async def test_a_paused_release_still_holds(world: World) -> None:
    await scaled_at_rest(world)
    await waiting_for_approval(world)
    world.request("Pause")
    await world.until_state("Paused")
    wants(world, 5)
    await world.until(lambda: bounds(world) == (5, 10), "the hold follows")


async def test_autoscalers_that_come_go_and_turn_elsewhere_in_mid_release_are_followed(world: World) -> None:
    own = await scaled_at_rest(world)
    create_autoscaler(world, name="other", target="another")
    await waiting_for_approval(world)
    assert bounds(world, "other") == (1, 10)
    create_autoscaler(world, name="late")
    await world.rest()
    assert bounds(world, "late") == (4, 10)
    world.delete(HORIZONTAL_POD_AUTOSCALERS, "late")
    edit(world, scaleTargetRef={"name": "another"})
    await world.rest()
    assert kept(world) == own.replace(f'"name": "{NAME}"', '"name": "another"')
    await finish(world)


async def test_an_lws_without_groups_has_nothing_to_hold(world: World) -> None:
    own = await scaled_at_rest(world)
    world.patch_lws({"replicas": 0})
    await world.until(lambda: world.groups() == {})
    world.set_image("v2")
    await world.rest()
    assert (kept(world), written(world)) == (own, [])


async def test_one_that_loses_its_last_group_in_mid_release_is_given_back_all_the_same(world: World) -> None:
    own = await scaled_at_rest(world)
    await waiting_for_approval(world)
    world.patch_lws({"replicas": 0})
    await world.until_state("Healthy")
    await world.rest()
    assert kept(world) == own
    assert replicas(world) == 0


# Whichever way it ends


async def finished(world: World) -> None:
    await waiting_for_approval(world)
    await finish(world)


async def aborted(world: World) -> None:
    await waiting_for_approval(world)
    world.request("Abort")
    await world.until_state("Aborted")


async def aborted_in_mid_promotion(world: World) -> None:
    await waiting_for_approval(world)
    while world.state == "AwaitingApproval":
        world.approve()
        await world.until(lambda: world.state in ("AwaitingApproval", "Promoting"))
        await world.rest(0.3)
    world.request("Abort")
    await world.until(lambda: world.state in ("Aborted", "Healthy"))


async def rolled_back(world: World) -> None:
    await waiting_for_approval(world)
    world.set_image("v1")
    await world.until_state("Healthy")


async def superseded(world: World) -> None:
    await waiting_for_approval(world)
    wants(world, 1)
    lowest = []
    world.checks.append(lambda seen: lowest.append(bounds(seen)[0]))
    world.set_image("v3")
    await world.until(lambda: world.groups(CANARY).get(0) == "v3", "groups of the third version")
    world.checks.clear()
    assert set(lowest) == {4}, "no moment in between takes a group away"
    await finish(world, "v3")


async def deleted(world: World) -> None:
    await waiting_for_approval(world)
    world.delete(world.ROLLOUT, NAME)
    await world.until(lambda: world.get(world.ROLLOUT, NAME) is None)


async def deleted_in_mid_promotion(world: World) -> None:
    await mid_promotion(world)
    world.delete(world.ROLLOUT, NAME)
    await world.until(lambda: world.get(world.ROLLOUT, NAME) is None)


async def disabled(world: World) -> None:
    await waiting_for_approval(world)
    world.patch_rollout({"disabled": True})
    await world.until_state("Disabled")


async def deleted_after_its_lws(world: World) -> None:
    await waiting_for_approval(world)
    world.checks.clear()
    world.delete(LEADER_WORKER_SETS, NAME)
    await world.until(lambda: world.condition("Stalled").get("reason") == "WorkloadNotFound")
    await world.rest()
    assert bounds(world) == (4, 10)
    world.delete(world.ROLLOUT, NAME)
    await world.until(lambda: world.get(world.ROLLOUT, NAME) is None)


async def lws_made_anew(world: World) -> None:
    await waiting_for_approval(world)
    world.checks.clear()
    world.delete(LEADER_WORKER_SETS, NAME)
    await world.until(lambda: world.condition("Stalled").get("reason") == "WorkloadNotFound")
    world.create_workload(tag="v5")
    await world.until_state("Healthy")


async def refused_in_between(world: World) -> None:
    """A version that cannot be released follows one that is being released."""
    await waiting_for_approval(world)
    world.patch_lws({"leaderWorkerTemplate": {"size": 3}})
    await world.until(lambda: world.condition("Stalled").get("reason") == "UnsafePending")


Way = Callable[[World], Awaitable[None]]
WAYS: tuple[Way, ...] = (
    finished,
    aborted,
    aborted_in_mid_promotion,
    rolled_back,
    superseded,
    deleted,
    disabled,
    deleted_after_its_lws,
    lws_made_anew,
    refused_in_between,
)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("style", ["canary", pytest.param("blueGreen", marks=pytest.mark.long)])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_the_users_bounds_come_back_whichever_way_a_release_ends(world: World, way: Way, style: str) -> None:
    own = await scaled_at_rest(world, style=style)
    await way(world)
    await world.rest()
    assert kept(world) == own
    if world.get(world.ROLLOUT, NAME) is not None:
        assert "autoscalers" not in world.status


async def test_they_come_back_when_the_rollout_is_deleted_in_mid_promotion(world: World) -> None:
    own = await scaled_at_rest(world)
    await deleted_in_mid_promotion(world)
    await world.rest()
    assert kept(world) == own


# Users in between


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("spec", "held", "afterwards"),
    [
        ({"minReplicas": 2}, (4, 10), (2, 10)),
        ({"minReplicas": 6}, (6, 10), (6, 10)),
        ({"maxReplicas": 20}, (4, 20), (1, 20)),
        ({"minReplicas": 2, "maxReplicas": 3}, (4, 4), (2, 3)),
    ],
)
async def test_what_a_user_sets_in_mid_release_is_what_there_is_afterwards(
    world: World, spec: dict[str, Any], held: tuple[int, int], afterwards: tuple[int, int]
) -> None:
    await scaled_at_rest(world)
    await waiting_for_approval(world)
    edit(world, **spec)
    await world.until(lambda: bounds(world) == held, "the hold stands again")
    await world.sleep(A_WHILE)
    assert replicas(world) == max(4, held[0])
    assert world.state == "AwaitingApproval"
    world.request("Abort")
    await world.until_state("Aborted")
    assert bounds(world) == afterwards
    assert autoscaler(world)["metadata"]["annotations"] == {"team": "chat"}


async def test_one_that_is_deleted_in_mid_release_is_not_missed(world: World) -> None:
    await scaled_at_rest(world)
    await waiting_for_approval(world)
    world.delete(HORIZONTAL_POD_AUTOSCALERS, AUTOSCALER)
    await finish(world)
    assert "autoscalers" not in world.status


# Crashes


async def begun(world: World) -> str:
    create_autoscaler(world)
    await at_rest(world, {"replicas": 1, "pause": {}}, replicas=2)
    world.checks.append(always_serving)
    return kept(world)


async def rolled_back_while_nobody_looks(world: World) -> None:
    """The old template is restored while a killed controller is down."""
    world.set_image("v2")
    await world.until(lambda: not world.running or world.state == "AwaitingApproval")
    world.set_image("v1")
    await world.until(lambda: world.running and world.state == "Healthy")


LATER = [pytest.param(way, marks=pytest.mark.long) for way in (aborted, deleted, rolled_back_while_nobody_looks)]


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, PARTS))])
@pytest.mark.parametrize("way", [finished, *LATER], ids=lambda way: way.__name__)
def test_a_controller_killed_after_any_write_gives_them_back_as_well(way: Way, part: int) -> None:
    async def tell(world: World, own: str) -> None:
        await way(world)
        await world.rest()
        assert kept(world) == own

    kill_after_every_write(begun, tell, part)
