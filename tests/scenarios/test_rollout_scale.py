"""The Rollout is scaled, by people and by autoscalers, at rest and in a release, and the workload follows."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS
from rollout_lws.rollout.reasons import EventReason
from tests.scenarios.crashes import PARTS, kill_after_every_write
from tests.scenarios.names import ROLLOUTS
from tests.scenarios.routed import routed_at_rest
from tests.scenarios.scaled import (
    AUTOSCALER,
    asked_at_rest,
    autoscaled_at_rest,
    autoscaler,
    create_autoscaler,
    finish,
    has,
    replicas,
    scale,
    scale_lws,
    scalings,
    wants,
)
from tests.scenarios.stories import CANARY, assert_clean, at_rest, waiting_for_approval
from tests.scenarios.test_autoscalers_told import create_scaled_object
from tests.scenarios.told import tells
from tests.scenarios.world import World

pytestmark = pytest.mark.looptime

#: Long enough for an autoscaler to do all that it wants.
A_WHILE = 60
IN_PLACE = {"canary": {"capacity": "InPlace"}}
SURGE = {"canary": {"capacity": "Surge"}}
APART = ({"canary": {}}, {"blueGreen": {}})
STYLES, STYLE_NAMES = (*APART, IN_PLACE, SURGE), ["canary", "blue-green", "in place", "surge"]


# At rest


@tells(events={EventReason.SCALED: "spec.replicas of LeaderWorkerSet llama was set to 6 instead of 4"})
async def test_the_lws_gets_the_number_of_groups_that_the_rollout_is_scaled_to(world: World) -> None:
    await at_rest(world)
    for groups in (6, 2):
        scale(world, groups)
        await world.until(has(world, groups))
        await world.rest()
        assert world.status["replicas"] == groups
    assert scalings(world) == [6, 2]
    leaders = "leaderworkerset.sigs.k8s.io/worker-index=0,leaderworkerset.sigs.k8s.io/name in (llama-canary,llama)"
    assert world.status["selector"] == leaders


async def test_a_number_that_the_lws_has_is_not_written(world: World) -> None:
    await asked_at_rest(world)
    assert (scalings(world), world.status["replicas"]) == ([], 4)


async def test_an_autoscaler_scales_the_rollout_up_and_down(world: World) -> None:
    await autoscaled_at_rest(world)
    for groups in (7, 3):
        wants(world, groups)
        await world.until(has(world, groups))
        await world.rest()
    assert autoscaler(world)["status"]["currentReplicas"] == 3


async def test_an_autoscaler_cannot_scale_a_rollout_without_a_number(world: World) -> None:
    await at_rest(world)
    create_autoscaler(world, of=ROLLOUTS)
    await world.rest()
    (condition,) = autoscaler(world)["status"]["conditions"]
    assert (condition["reason"], condition["message"]) == (
        "FailedGetScale",
        'the spec replicas field ".spec.replicas" does not exist',
    )


async def test_a_number_taken_out_of_the_rollout_stays_in_the_lws_and_is_no_longer_ours(world: World) -> None:
    await asked_at_rest(world)
    world.patch_rollout({"replicas": None})
    await world.rest()
    assert not {"replicas", "selector", "scaling"} & set(world.status)
    scale_lws(world, 2)
    await world.rest()
    assert (replicas(world), scalings(world)) == (2, [])


# In a release


@pytest.mark.parametrize("style", APART, ids=["canary", "blue-green"])
async def test_in_a_release_an_autoscaler_adds_groups_and_takes_none_away_until_it_is_over(
    world: World, style: dict[str, object]
) -> None:
    await autoscaled_at_rest(world, **style)
    await waiting_for_approval(world)
    wants(world, 6)
    await world.until(has(world, 6))
    wants(world, 2)
    await world.sleep(A_WHILE)
    assert replicas(world) == 6
    assert "spec.replicas 2 waits for the end of the release" in world.status["message"]
    await finish(world)
    await world.until(has(world, 2, "v2"))
    assert scalings(world) == [6, 2]


@pytest.mark.parametrize("style", [IN_PLACE, SURGE], ids=["in place", "surge"])
async def test_where_groups_of_one_lws_have_both_versions_an_autoscaler_waits_with_every_number(
    world: World, style: dict[str, object]
) -> None:
    await autoscaled_at_rest(world, **style)
    await waiting_for_approval(world)
    for groups in (6, 3):
        wants(world, groups)
        await world.sleep(A_WHILE)
        assert replicas(world) == 4
    wants(world, 6)
    await finish(world)
    await world.until(has(world, 6, "v2"))


async def test_an_autoscaler_that_has_gone_in_mid_release_has_asked_for_its_number_all_the_same(world: World) -> None:
    await autoscaled_at_rest(world)
    await waiting_for_approval(world)
    wants(world, 2)
    await world.until(lambda: world.rollout["spec"]["replicas"] == 2)
    await world.rest()
    world.delete(HORIZONTAL_POD_AUTOSCALERS, AUTOSCALER)
    await world.sleep(A_WHILE)
    assert replicas(world) == 4
    scale(world, 3)
    await world.until(lambda: replicas(world) == 3, "a person may")
    await finish(world)


async def test_in_a_release_a_person_takes_groups_away_at_once(world: World) -> None:
    await asked_at_rest(world)
    await waiting_for_approval(world)
    scale(world, 3)
    await world.until(lambda: len(world.groups()) == 3)
    assert world.state == "AwaitingApproval"
    await finish(world)
    await world.rest()
    assert_clean(world, "v2", 3)


async def test_fewer_groups_that_came_with_a_version_wait_for_the_end_of_its_release(world: World) -> None:
    await autoscaled_at_rest(world)
    world.stop_controller()
    wants(world, 2)
    await world.until(lambda: world.rollout["spec"]["replicas"] == 2)
    world.set_image("v2")
    world.start_controller()
    await world.until_state("AwaitingApproval")
    assert (replicas(world), scalings(world)) == (4, [])
    await finish(world)
    await world.until(has(world, 2, "v2"))


async def test_a_scaled_object_of_keda_that_names_the_rollout_needs_no_pause(world: World) -> None:
    await asked_at_rest(world)
    create_scaled_object(world, of=ROLLOUTS)
    await waiting_for_approval(world)
    wants(world, 2)
    await world.sleep(A_WHILE)
    assert replicas(world) == 4
    await finish(world)
    await world.until(has(world, 2, "v2"))


@pytest.mark.parametrize("tag", ["v1", "v3"])
async def test_on_the_way_back_and_to_the_next_version_no_group_is_taken_away(world: World, tag: str) -> None:
    await autoscaled_at_rest(world)
    await waiting_for_approval(world)
    wants(world, 2)
    await world.sleep(A_WHILE)
    taken: list[str] = []
    world.checks.append(lambda seen: taken.append(seen.state) if replicas(seen) < 4 else None)
    world.set_image(tag)
    await world.until(lambda: world.state != "AwaitingApproval")
    await world.until(lambda: world.state in ("Healthy", "AwaitingApproval"))
    assert taken == []
    await finish(world, tag)
    await world.until(has(world, 2, tag))


async def test_an_abort_lets_the_autoscaler_take_groups_away_while_the_bad_version_is_still_in_the_lws(
    world: World,
) -> None:
    await autoscaled_at_rest(world)
    await waiting_for_approval(world)
    wants(world, 2)
    await world.sleep(A_WHILE)
    assert replicas(world) == 4
    world.request("Abort")
    await world.until_state("Aborted")
    await world.until(has(world, 2))


# None at all


async def test_no_groups_are_asked_for_while_a_version_waits(world: World) -> None:
    await asked_at_rest(world)
    await waiting_for_approval(world)
    scale(world, 0)
    await world.sleep(A_WHILE)
    assert (replicas(world), world.state) == (4, "AwaitingApproval")
    assert "spec.replicas 0 waits until no version but the stable one" in world.status["message"]
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert replicas(world) == 4
    world.checks.clear()
    world.set_image("v1")
    await world.until(lambda: world.groups() == {})
    scale(world, 2)
    await world.until(has(world, 2))


async def test_an_aborted_version_is_not_started_from_no_groups(world: World) -> None:
    await asked_at_rest(world)
    world.checks.clear()
    scale(world, 0)
    await world.until(lambda: world.groups() == {})
    scale(world, 4)
    await world.until(has(world, 4))
    await world.rest()
    await waiting_for_approval(world)
    world.request("Abort")
    await world.until_state("Aborted")
    world.stop_controller()
    scale_lws(world, 0)
    await world.until(lambda: world.groups() == {})
    world.start_controller()
    await world.sleep(A_WHILE)
    assert (replicas(world), world.state) == (0, "Stalled")
    stays = "LeaderWorkerSet llama stays at 0 replicas: all groups would start at a version that no release has brought"
    assert stays in world.status["message"]
    world.set_image("v1")
    await world.until(has(world, 4))


async def test_a_version_that_nobody_approved_is_not_started_from_no_groups(world: World) -> None:
    half = {"replicas": "50%", "traffic": "50%", "pause": {}}
    await routed_at_rest(world, half, {"replicas": "100%", "traffic": "100%", "pause": {}})
    scale(world, replicas(world))
    await waiting_for_approval(world)
    world.checks.clear()
    world.stop_controller()
    scale_lws(world, 0)
    await world.until(lambda: world.groups() == {})
    world.start_controller()
    await world.sleep(A_WHILE)
    assert (replicas(world), world.groups(), world.state) == (0, {}, "Stalled")
    assert set(world.groups(CANARY).values()) == {"v2"}, "the canary serves"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("style", STYLES, ids=STYLE_NAMES)
async def test_no_groups_in_a_release_are_put_back_before_any_has_gone(world: World, style: dict[str, object]) -> None:
    await autoscaled_at_rest(world, **style)
    await waiting_for_approval(world)
    world.checks.clear()
    for _ in range(2):
        scale_lws(world, 0, "helm")
        await world.sleep(1.2)
        assert replicas(world) == 4
    await world.sleep(A_WHILE)
    assert set(world.groups()) >= set(range(4))
    assert {world.groups()[0], world.groups()[1]} == {"v1"}


# Restarts


async def _scaled_in_a_release(world: World, _: None) -> None:
    world.set_image("v2")
    scale(world, 5)
    await world.until_state("AwaitingApproval", 3600)
    wants(world, 3)
    await finish(world)
    await world.until(has(world, 3, "v2"), seconds=3600)


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_killed_after_any_write_the_lws_gets_its_number(part: int) -> None:
    assert kill_after_every_write(autoscaled_at_rest, _scaled_in_a_release, part) > 0
