"""What OpenKruise Rollouts gets wrong about traffic, as whole releases: each story fails where we would do the same.

Flaws of single functions have their tests in tests/traffic, under names that begin alike.
"""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import HTTP_ROUTES, LEADER_WORKER_SETS, SERVICES
from rollout_lws.sandbox.api_resources import GATEWAYS
from rollout_lws.sandbox.behaviours.faults import PREFIX
from tests.scenarios.metered import NEW_ONLY, STABLE_ONLY, metered, shared
from tests.scenarios.routed import (
    GATEWAY,
    ROUTE,
    SERVICE,
    assert_given_back,
    hold_record,
    routed_at_rest,
    routes_of,
    share,
)
from tests.scenarios.shell import ShellWorld
from tests.scenarios.stories import CANARY, waiting_for_approval
from tests.scenarios.world import NAME, NAMESPACE, World

pytestmark = pytest.mark.looptime

HEADER = {"headers": [{"name": "x-canary", "value": "yes"}]}
GRACE, DRAIN = 20, 60


async def restart(world: World, after: float, down: float = 5) -> None:
    """A new controller process takes over ``after`` seconds, ``down`` seconds after the one before was killed."""
    await world.sleep(after)
    world.stop_controller()
    await world.sleep(down)
    world.start_controller()


async def test_kruise_flaw_a_restart_neither_cuts_a_grace_period_short_nor_begins_it_anew() -> None:
    world = ShellWorld()
    before = await routed_at_rest(world, gracePeriodSeconds=GRACE, drainSeconds=DRAIN)
    world.set_image("v2")
    await world.until(lambda: world.groups(CANARY) == {0: "v2"})
    ready = world.now
    await restart(world, after=GRACE / 2)
    await world.until(lambda: share(world) > 0)
    assert (world.now - ready).total_seconds() == pytest.approx(GRACE, abs=1)
    await world.until_state("AwaitingApproval")
    world.request("Abort")
    await world.until(lambda: share(world) == 0)
    taken = world.now
    await restart(world, after=GRACE / 2)
    await restart(world, after=GRACE + DRAIN / 2)
    await world.until(lambda: world.get_canary_replicas() in (0, None))
    assert (world.now - taken).total_seconds() == pytest.approx(GRACE + DRAIN, abs=1)
    await world.until_state("Aborted")
    await world.rest()
    assert_given_back(world, before)
    await world.gone()
    world.close()


async def test_kruise_flaw_a_grace_of_zero_is_none_at_the_first_share_as_at_the_end(world: World) -> None:
    await routed_at_rest(world, gracePeriodSeconds=0, drainSeconds=0)
    world.set_image("v2")
    await world.until(lambda: world.groups(CANARY) == {0: "v2"})
    ready = world.now
    await world.until(lambda: share(world) > 0)
    assert (world.now - ready).total_seconds() < 0.5
    await world.until_state("AwaitingApproval")
    world.request("Abort")
    asked = world.now
    await world.until(lambda: world.get_canary_replicas() in (0, None))
    assert (world.now - asked).total_seconds() < 0.5


@pytest.mark.one_in(4)
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize(
    "order",
    [(LEADER_WORKER_SETS, World.ROLLOUT), (World.ROLLOUT, LEADER_WORKER_SETS)],
    ids=["workload first", "Rollout first"],
)
async def test_kruise_flaw_a_workload_deleted_in_mid_release_leaves_nothing_edited_once_the_rollout_is_deleted(
    world: World, order: tuple[Any, Any], step: int
) -> None:
    before = await routed_at_rest(world)
    await waiting_for_approval(world)
    for _ in range(1, step):
        world.approve()
        await world.until(lambda: world.status["currentStepIndex"] == step and world.state == "AwaitingApproval")
    world.checks.clear()
    for resource in order:
        world.delete(resource, NAME)
        await world.sleep(10)
    await world.until(lambda: world.get(World.ROLLOUT, NAME) is None)
    await world.rest()
    assert hold_record(world) == before
    names = world.names()
    assert (names["leaderworkersets"], names["batchreleases"], names["services"]) == ([], [], [SERVICE])


async def test_kruise_flaw_a_jump_back_shrinks_the_canary_and_its_share(world: World) -> None:
    before = await routed_at_rest(world)
    await waiting_for_approval(world)
    world.request("Jump", toStep=4)
    await world.until(lambda: world.status["currentStepIndex"] == 4 and world.state == "AwaitingApproval")
    assert (world.groups(CANARY), share(world)) == (dict.fromkeys(range(4), "v2"), pytest.approx(0.4))
    world.patch(world.ROLLOUT, NAME, {"status": {"canaryStatus": {"nextStepIndex": 2}}}, "status")
    await world.until(lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval")
    await world.rest()
    assert (world.groups(CANARY), share(world)) == (dict.fromkeys(range(2), "v2"), pytest.approx(0.2))
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert_given_back(world, before)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("step", "own"), [(1, 2), (5, -1)])
@pytest.mark.parametrize("asked", [0, 6, -3])
async def test_kruise_flaw_an_impossible_next_step_is_put_right_in_the_cluster_by_one_write(
    world: World, step: int, own: int, asked: int
) -> None:
    await routed_at_rest(world)
    await waiting_for_approval(world)
    if step > 1:
        world.request("Jump", toStep=step)
        await world.until(lambda: world.status["currentStepIndex"] == step and world.state == "AwaitingApproval")
    await world.rest()
    world.writes.clear()
    world.patch(world.ROLLOUT, NAME, {"status": {"canaryStatus": {"nextStepIndex": asked}}}, "status")
    await world.sleep(600)
    assert world.status["canaryStatus"]["nextStepIndex"] == own
    assert (world.status["currentStepIndex"], world.state) == (step, "AwaitingApproval")
    assert len(world.writes) == 1


async def test_kruise_flaw_matches_and_a_share_of_one_step_both_hold_and_are_gone_at_the_next() -> None:
    first = {"replicas": 1, "traffic": "20%", "matches": [HEADER], "pause": {}}
    async with metered(first, {"replicas": 2, "traffic": "50%", "pause": {}}, replicas=4) as seen:
        await seen.release()
        assert await seen.all_shares() == {"users": shared(0.2), "tagged": NEW_ONLY, "direct": STABLE_ONLY}
        seen.world.approve()
        await seen.step(2)
        assert await seen.all_shares() == {"users": shared(0.5), "tagged": shared(0.5), "direct": STABLE_ONLY}
        assert len(routes_of(seen.world)) == 1
        seen.assert_unharmed()


async def test_kruise_flaw_matches_alone_give_no_share_to_others_and_are_gone_at_a_step_without_any() -> None:
    async with metered({"replicas": 1, "matches": [HEADER], "pause": {}}, {"replicas": 2, "pause": {}}) as seen:
        await seen.release()
        assert await seen.all_shares() == {"users": STABLE_ONLY, "tagged": NEW_ONLY, "direct": STABLE_ONLY}
        seen.world.approve()
        await seen.step(2)
        assert await seen.all_shares() == {"users": STABLE_ONLY, "tagged": STABLE_ONLY, "direct": STABLE_ONLY}
        seen.assert_unharmed()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("ending", ["Healthy", "Aborted"])
async def test_kruise_flaw_the_users_weights_come_back_though_none_was_one(world: World, ending: str) -> None:
    await routed_at_rest(world, {"replicas": 1, "traffic": "20%", "pause": {}}, replicas=2)
    refs = [{"name": SERVICE, "port": 80, "weight": 7}, {"name": "other", "port": 80, "weight": 3}]
    world.patch(HTTP_ROUTES, ROUTE, {"spec": {"rules": [{"backendRefs": refs}]}})
    spec = {"selector": {"app": "other"}, "ports": [{"port": 80}]}
    world.server.create(SERVICES, {"metadata": {"name": "other", "namespace": NAMESPACE}, "spec": spec})
    await world.rest()
    before = hold_record(world)
    await waiting_for_approval(world)
    (weights,) = routes_of(world)
    whole = sum(weights.values())
    assert {name: weight / whole for name, weight in weights.items()} == pytest.approx(
        {SERVICE: 0.56, f"{SERVICE}-canary": 0.14, "other": 0.3}
    )
    if ending == "Aborted":
        world.request("Abort")
    else:
        world.approve()
    await world.until_state(ending)
    await world.rest()
    assert hold_record(world) == before
    assert routes_of(world) == [{SERVICE: 7, "other": 3}]


def refuse(world: World, why: str | None) -> None:
    world.patch(GATEWAYS, GATEWAY, {"metadata": {"annotations": {PREFIX + "refuse-routes": why}}})


NOBODY = "no Gateway accepts HTTPRoute llama as it is: correct what its status.parents says"
REFUSED = "HTTPRoute llama: Gateway default/inference: Accepted is False (UnsupportedValue: no capacity)"


@pytest.mark.one_in(4)
@pytest.mark.parametrize("pause", [{}, {"duration": 10}], ids=["approval", "timer"])
@pytest.mark.parametrize("step", [1, 2], ids=["first", "second"])
async def test_kruise_flaw_a_step_whose_route_is_refused_never_counts_as_routed(
    world: World, step: int, pause: dict[str, Any]
) -> None:
    steps: list[dict[str, Any]] = [{"replicas": n, "traffic": f"{10 * n}%", "pause": {}} for n in range(1, 4)]
    steps[step - 1]["pause"] = pause
    await routed_at_rest(world, *steps)
    world.set_image("v2")
    if step == 2:
        await world.until_state("AwaitingApproval")
        world.approve()
    await world.until(lambda: world.get_canary_replicas() == step)
    refuse(world, "no capacity")
    await world.until_state("Routing")
    for _ in range(3):
        world.approve()
        await world.sleep(200)
        assert (world.status["currentStepIndex"], world.state) == (step, "Routing")
        assert world.condition("Reconciling")["message"] == REFUSED
        assert share(world) == pytest.approx(0 if step == 1 else 0.2)
    assert "routedAt" not in world.status["step"]
    assert (world.status["summary"].get("traffic") or "0%") == f"{10 * (step - 1)}%"
    refuse(world, None)
    accepted = world.now
    following = (step + 1 if pause else step, "AwaitingApproval")
    await world.until(lambda: (world.status["currentStepIndex"], world.state) == following)
    assert (world.now - accepted).total_seconds() >= pause.get("duration", 0)


async def test_kruise_flaw_a_route_attached_to_another_gateway_in_mid_release_is_not_taken_for_routed(
    world: World,
) -> None:
    before = await routed_at_rest(world)
    await waiting_for_approval(world)
    world.patch(HTTP_ROUTES, ROUTE, {"spec": {"parentRefs": [{"name": "missing"}]}})
    world.approve()
    await world.until_state("Routing")
    await world.sleep(600)
    assert (world.status["currentStepIndex"], world.condition("Reconciling")["message"]) == (1, NOBODY)
    world.patch(HTTP_ROUTES, ROUTE, {"spec": {"parentRefs": [{"name": GATEWAY}]}})
    await world.until(lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval")
    world.patch(HTTP_ROUTES, ROUTE, {"spec": {"parentRefs": [{"name": "missing"}]}})
    world.request("Abort")
    await world.until_state("Aborted", 120)
    world.patch(HTTP_ROUTES, ROUTE, {"spec": {"parentRefs": [{"name": GATEWAY}]}})
    await world.rest()
    assert_given_back(world, before)
