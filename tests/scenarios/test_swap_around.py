"""Swaps and what is around them: ways to share requests, autoscalers, people who edit, and groups that fail."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import (
    HTTP_ROUTES,
    INFERENCE_POOLS,
    LEADER_WORKER_SETS,
    LWS_NAME,
    POD_DISRUPTION_BUDGETS,
    PODS,
    SERVICES,
)
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.sandbox.patching.patches import APPLY_PATCH
from tests.scenarios.paired import set_ready
from tests.scenarios.paired_scaled import stalled
from tests.scenarios.routed import BY_POOLS, POOL, PROVIDERS, ROUTE, SERVICE, Provider, make
from tests.scenarios.scaled import create_autoscaler, scale, wants
from tests.scenarios.stories import CANARY, at_rest
from tests.scenarios.swapped import (
    SWAP,
    come_to,
    moved,
    plain_swap,
    released,
    replicas,
    stands_in,
    swapped,
    to_the_end,
)
from tests.scenarios.told import tells
from tests.scenarios.world import NAME, NAMESPACE, ROLLOUTS, World

pytestmark = pytest.mark.looptime

MOMENTS = pytest.mark.parametrize("moment", ["step 1", "step 2", "hand-over", "clean-up"])
WAYS = pytest.mark.parametrize("away", [False, True], ids=["from home", "back home"])


# Ways to share requests


@pytest.mark.one_in(4)
@pytest.mark.parametrize("by", PROVIDERS, ids=str)
async def test_requests_are_shared_by_any_router(by: Provider) -> None:
    async with swapped(by=by) as m:
        for tag, serves in (("v2", CANARY), ("v3", NAME)):
            await released(m.world, tag)
            assert await m.shares() == {serves: 1.0}
            assert replicas(m.world)[serves] == 4
        m.assert_unharmed()


async def test_without_a_route_requests_follow_the_groups(world: World) -> None:
    await at_rest(world, {"replicas": "50%", "pause": {}}, {"replicas": "100%", "pause": {}}, blueGreen=SWAP)
    world.checks.clear()
    for tag, serves in (("v2", CANARY), ("v3", NAME), ("v4", CANARY)):
        await released(world, tag)
        assert world.groups(serves) == dict.fromkeys(range(4), tag)
        assert replicas(world) == ({NAME: 0, CANARY: 4} if serves == CANARY else {NAME: 4})


@tells(
    {
        Reason.LEFT_BEHIND: "Service llama-api selects groups of llama only, by labels that the LeaderWorkerSet gives"
        " them, and llama and llama-canary serve in turn: select them by labels of the template, such as app"
    }
)
async def test_a_service_that_selects_one_of_them_is_refused(world: World) -> None:
    await plain_swap(world)
    world.patch(SERVICES, SERVICE, {"spec": {"selector": {LWS_NAME: NAME}}})
    world.set_image("v2")
    await world.until(lambda: stalled(world, Reason.LEFT_BEHIND), "refused")
    assert replicas(world) == {NAME: 4}
    world.patch(SERVICES, SERVICE, {"spec": {"selector": {LWS_NAME: None}}})
    await world.until_state("AwaitingApproval")
    await to_the_end(world)
    assert replicas(world) == {NAME: 0, CANARY: 4}


async def test_a_pool_that_selects_one_of_them_is_refused() -> None:
    async with swapped(by=BY_POOLS) as m:
        world = m.world
        world.patch(INFERENCE_POOLS, POOL, {"spec": {"selector": {"matchLabels": {LWS_NAME: NAME}}}})
        world.set_image("v2")
        await world.until(lambda: stalled(world, Reason.LEFT_BEHIND), "refused")
        assert "serve in turn" in world.status["message"]
        assert replicas(world) == {NAME: 4}


@pytest.mark.parametrize("what", ["another Service", "a budget"])
async def test_what_selects_one_of_them_by_its_name_would_be_left_behind(what: str) -> None:
    async with swapped(allowUnmanagedBackends=True) as m:
        world = m.world
        if what == "a budget":
            resource, spec = (
                POD_DISRUPTION_BUDGETS,
                {"selector": {"matchLabels": {LWS_NAME: NAME}}, "maxUnavailable": 1},
            )
        else:
            resource, spec = SERVICES, {"selector": {LWS_NAME: NAME}, "ports": [{"port": 80}]}
        make(world, resource, "by-name", spec=spec)
        world.set_image("v2")
        await world.until(lambda: stalled(world, Reason.LEFT_BEHIND), "refused")
        assert replicas(world) == {NAME: 4}
        world.delete(resource, "by-name")
        await world.until_state("AwaitingApproval", 60)


async def test_what_selects_by_name_is_refused_without_a_route_as_well(world: World) -> None:
    await at_rest(world, {"replicas": "100%", "pause": {}}, blueGreen=SWAP)
    make(world, SERVICES, "by-name", spec={"selector": {LWS_NAME: NAME}, "ports": [{"port": 80}]})
    world.set_image("v2")
    await world.until(lambda: stalled(world, Reason.LEFT_BEHIND), "refused")
    assert replicas(world) == {NAME: 4}


# Numbers


async def test_an_autoscaler_of_the_rollout_scales_whatever_serves() -> None:
    async with swapped() as m:
        world = m.world
        create_autoscaler(world, target=NAME, of=ROLLOUTS)
        wants(world, 5)
        await world.until(lambda: replicas(world) == {NAME: 5}, "scaled")
        await come_to(m, "step 1", "v2")
        wants(world, 6)
        await world.until(lambda: replicas(world)[NAME] == 6, "scaled in a release")
        wants(world, 3)
        await world.sleep(60)
        assert replicas(world)[NAME] == 6
        await to_the_end(world)
        await world.until(lambda: replicas(world) == {NAME: 0, CANARY: 3}, "scaled after it", 600)
        wants(world, 5)
        await world.until(lambda: replicas(world) == {NAME: 0, CANARY: 5}, "scaled")
        await released(world, "v3")
        assert replicas(world) == {NAME: 5}
        assert not m.meter.failures


async def test_an_autoscaler_of_the_workload_is_refused() -> None:
    async with swapped() as m:
        world = m.world
        create_autoscaler(world)
        world.set_image("v2")
        await world.until(lambda: stalled(world, Reason.AUTOSCALER_PROBLEM), "refused")
        assert "have it scale the Rollout" in world.status["message"] and replicas(world) == {NAME: 4}


@pytest.mark.one_in(4)
@WAYS
async def test_a_number_of_zero_waits_for_the_end_of_a_release(away: bool) -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=away)
        await come_to(m, "step 2", "v3")
        scale(world, 0)
        await world.sleep(60)
        assert replicas(world) == {NAME: 4, CANARY: 4}
        world.approve()
        await world.until(lambda: sum(replicas(world).values()) == 0, "no groups", 1200)
        scale(world, 4)
        await world.until(lambda: world.groups(NAME if away else CANARY) == dict.fromkeys(range(4), "v3"), "again", 600)


# People who edit


@pytest.mark.one_in(4)
@WAYS
@MOMENTS
@pytest.mark.parametrize("what", ["service", "route"])
async def test_manifests_of_the_route_are_applied_again(away: bool, moment: str, what: str) -> None:
    async with swapped() as m:
        world = m.world
        route = world.get(HTTP_ROUTES, ROUTE)
        assert route is not None
        await moved(m, away=away)
        await come_to(m, moment, "v3")
        for _ in range(3):
            if what == "service":
                world.patch(SERVICES, SERVICE, {"spec": {"selector": {LWS_NAME: None}}})
            else:
                world.patch(HTTP_ROUTES, ROUTE, {"spec": {"rules": route["spec"]["rules"]}})
            await world.sleep(10)
        await to_the_end(world)
        assert replicas(world) == ({NAME: 4} if away else {NAME: 0, CANARY: 4})
        assert not m.meter.failures


@pytest.mark.one_in(4)
@WAYS
@MOMENTS
async def test_the_workload_is_applied_again_by_another_manager(away: bool, moment: str) -> None:
    """Server-side, by force, with the template that is released and without a number of groups."""
    async with swapped() as m:
        world = m.world
        await moved(m, away=away)
        await come_to(m, moment, "v3")
        live = world.lws
        body: dict[str, Any] = {
            "apiVersion": LEADER_WORKER_SETS.api_version,
            "kind": LEADER_WORKER_SETS.kind,
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "spec": {"leaderWorkerTemplate": live["spec"]["leaderWorkerTemplate"]},
        }
        for _ in range(3):
            world.server.patch(
                LEADER_WORKER_SETS, NAMESPACE, NAME, body, APPLY_PATCH, field_manager="argocd", force=True
            )
            await world.sleep(10)
        await to_the_end(world)
        assert replicas(world) == ({NAME: 4} if away else {NAME: 0, CANARY: 4})
        m.assert_unharmed()


@pytest.mark.one_in(4)
@WAYS
async def test_a_version_that_is_applied_as_the_roles_change_is_the_next_release(away: bool) -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=away)
        await come_to(m, "clean-up", "v3")
        world.set_image("v4")
        await world.until(lambda: world.state == "AwaitingApproval", "the next release", 1200)
        serves = NAME if away else CANARY
        assert world.groups(serves) == dict.fromkeys(range(4), "v3")
        await to_the_end(world)
        assert world.groups(CANARY if away else NAME) == dict.fromkeys(range(4), "v4")
        m.assert_unharmed()


# Groups that fail


@pytest.mark.one_in(4)
@WAYS
@MOMENTS
async def test_what_serves_loses_its_groups(away: bool, moment: str) -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=away)
        await come_to(m, moment, "v3")
        world.checks.clear()
        for name in (NAME, CANARY):
            if world.groups(name):
                world.delete(PODS, f"{name}-0")
                await world.sleep(30)
        await to_the_end(world)
        assert replicas(world) == ({NAME: 4} if away else {NAME: 0, CANARY: 4})
        assert not m.meter.failures


@pytest.mark.one_in(4)
@WAYS
@pytest.mark.parametrize("moment", ["step 1", "step 2", "hand-over"])
async def test_a_new_version_that_stops_serving_gives_its_requests_back(away: bool, moment: str) -> None:
    async with swapped() as m:
        world = m.world
        serves = await moved(m, away=away)
        await come_to(m, moment, "v3")
        other = NAME if away else CANARY
        set_ready(world, other, False)
        await world.sleep(120)
        assert await m.shares() == {serves: 1.0}
        assert replicas(world)[serves] == 4
        set_ready(world, other, True)
        await to_the_end(world)
        assert replicas(world)[other] == 4


@pytest.mark.one_in(4)
@WAYS
async def test_a_version_that_never_becomes_ready_is_aborted_by_itself(away: bool) -> None:
    async with swapped() as m:
        world = m.world
        serves = await moved(m, away=away)
        world.patch_rollout({"strategy": {"onFailure": "Abort", "progressDeadlineSeconds": 60}})
        world.set_image("bad")
        await world.until_state("Aborted", 1200)
        await world.rest()
        assert replicas(world) == ({NAME: 0, CANARY: 4} if away else {NAME: 4})
        assert await m.shares() == {serves: 1.0}
        await released(world, "v4")
        assert replicas(world) == ({NAME: 4} if away else {NAME: 0, CANARY: 4})
        m.assert_unharmed()


async def test_no_event_says_what_is_not_so() -> None:
    async with swapped() as m:
        for tag in ("v2", "v3", "v4"):
            await released(m.world, tag)
        told = {each.reason for each in m.world.events}
        assert not told & {EventReason.HOLD_RESET.value, EventReason.SHARED_BACKEND.value}
        assert stands_in(m.world)


@pytest.mark.one_in(4)
@WAYS
async def test_a_version_that_is_applied_in_the_moment_of_the_change_is_released_next(away: bool) -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=away)
        await come_to(m, "hand-over", "v3")

        def apply_next(seen: World) -> None:
            if stands_in(seen) != away and apply_next in seen.checks:
                seen.checks.remove(apply_next)
                seen.set_image("v4")

        world.checks.append(apply_next)
        await world.until(lambda: world.state == "AwaitingApproval", "the next release", 1200)
        assert apply_next not in world.checks
        assert world.groups(NAME if away else CANARY) == dict.fromkeys(range(4), "v3")
        await to_the_end(world)
        assert world.groups(CANARY if away else NAME) == dict.fromkeys(range(4), "v4")
        m.assert_unharmed()


async def test_what_serves_in_the_place_of_another_is_released_by_one_rollout_only(world: World) -> None:
    await plain_swap(world)
    await released(world, "v2")
    world.stop_controller()
    world.name = "other"
    world.create_rollout({"replicas": 1}, name="other", workload=CANARY)
    world.start_controller()
    await world.until(lambda: world.status_of("other").get("message"), "told")
    assert "name llama instead" in world.status_of("other")["message"]
    assert replicas(world) == {NAME: 0, CANARY: 4}


async def test_a_service_that_selects_the_parked_one_is_told_at_rest() -> None:
    async with swapped() as m:
        world = m.world
        await moved(m, away=True)
        make(world, SERVICES, "by-name", spec={"selector": {LWS_NAME: NAME}, "ports": [{"port": 80}]})
        await world.until(lambda: "Service by-name selects groups of llama" in world.status.get("message", ""), "told")
        world.delete(SERVICES, "by-name")
        await world.until(lambda: "by-name" not in world.status.get("message", ""), "told no more")
