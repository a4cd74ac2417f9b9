"""A policy refuses to let a route be written that a Rollout which is gone has left behind."""

from __future__ import annotations

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import (
    LEADER_WORKER_SETS,
    PODS,
)
from rollout_lws.objects.writes import Patch, Write
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.workload.hold import HOLD
from tests.scenarios.routed import (
    BY_GRPC,
    BY_POOLS,
    BY_ROUTE,
    BY_SCRIPT,
    MESHES,
    NO_WEIGHTS,
    WEIGHTS,
    by_each,
    called,
    each_router,
    hold_record,
    kind,
    routed_at_rest,
    share,
)
from tests.scenarios.stories import waiting_for_approval
from tests.scenarios.test_traffic_others import again, rolls_without_its_rollout, vanish
from tests.scenarios.world import NAME, ROLLOUTS, World

pytestmark = pytest.mark.looptime

STEP, CANARY = {"replicas": 1, "traffic": "20%", "pause": {}}, f"{NAME}-canary"


def frozen(write: Write) -> ApiError | None:
    if isinstance(write, Patch) and write.resource == kind():
        return ApiError(403, "Forbidden", "admission webhook denied the request: the route is frozen")
    return None


def partition(world: World, name: str) -> int:
    lws = world.get(LEADER_WORKER_SETS, name)
    assert lws is not None
    return int(lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"])


@by_each(each_router(BY_POOLS, BY_ROUTE, BY_GRPC, *MESHES, BY_SCRIPT, but=NO_WEIGHTS))
async def test_a_route_that_may_not_be_given_back_keeps_no_other_lws_from_being_held_and_released(world: World) -> None:
    before = await routed_at_rest(world, STEP, replicas=2)
    await waiting_for_approval(world)
    vanish(world)
    # The canary of the one that is gone, and the route, which names its Service, are left as they are.
    world.checks.clear()
    await world.sleep(5)
    world.refuse = frozen
    world.create_workload(replicas=2, size=1, name="other")
    world.create_rollout({"replicas": 1, "pause": {}}, name="other", workload="other")
    world.name = "other"
    world.start_controller()
    await world.until(lambda: world.status_of("other").get("phase") == "Healthy", "the other LWS is adopted")
    assert partition(world, "other") == HOLD
    await world.rest()
    told = f"of a deleted Rollout: {called()} still carries what it had written"
    assert world.status_of("other")["message"].startswith(told)
    template = {"spec": {"containers": world.containers.of("v2")}}
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": template}}, "other")
    await world.until(lambda: world.state == "AwaitingApproval", "it waits for approval")
    assert EventReason.RESTORED not in {each.reason for each in world.events}
    world.patch(LEADER_WORKER_SETS, CANARY, {"metadata": {"finalizers": None}})
    world.delete(LEADER_WORKER_SETS, CANARY)
    assert hold_record(world) != before
    world.refuse = lambda _: None
    abort = {"status": {"requestedAction": {"type": "Abort", "id": "enough"}}}
    world.patch(ROLLOUTS, "other", abort, "status")
    await world.until(lambda: hold_record(world) == before, "restored")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("stays", [True, False], ids=["stays", "deleted"])
@by_each(WEIGHTS)
async def test_an_lws_that_is_made_anew_in_mid_release_is_held_while_its_route_may_not_be_written(
    world: World, stays: bool
) -> None:
    await routed_at_rest(world, STEP, replicas=2)
    await waiting_for_approval(world)
    world.checks.clear()
    world.refuse = frozen
    world.delete(LEADER_WORKER_SETS, NAME)
    await world.until(lambda: world.get(PODS, f"{NAME}-0") is None, "its groups are gone")
    world.create_workload(replicas=2, tag="v3")
    await world.until(lambda: partition(world, NAME) == HOLD, "it is held")
    await world.rest()
    assert world.groups() == dict.fromkeys(range(2), "v3")
    if stays:
        world.set_image("v4")
        await world.sleep(300)
        assert world.groups() == dict.fromkeys(range(2), "v3")
        world.refuse = lambda _: None
        await world.until_state("AwaitingApproval")
        assert world.groups() == dict.fromkeys(range(2), "v3")
        return
    world.refuse = lambda _: None
    world.delete(ROLLOUTS, NAME)
    await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "the Rollout is gone")
    assert (partition(world, NAME), world.groups()) == (0, dict.fromkeys(range(2), "v3"))


@by_each(WEIGHTS)
async def test_requests_of_the_own_groups_are_given_back_before_a_release_begins(world: World) -> None:
    """Its LWS is held all the same, though the route that may not be written is the one that it shares requests by."""
    await routed_at_rest(world, STEP, replicas=2, words={"capacity": "InPlace"})
    await waiting_for_approval(world)
    await rolls_without_its_rollout(world)
    world.refuse = frozen
    again(world, STEP)
    await world.until(lambda: partition(world, NAME) == HOLD, "it is held")
    world.set_image("v2")
    await world.sleep(120)
    assert (world.groups(), world.condition("Stalled")["reason"]) == (
        dict.fromkeys(range(2), "v1"),
        Reason.WRITE_REFUSED,
    )
    world.refuse = lambda _: None
    await world.until_state("AwaitingApproval")
    assert share(world) == 0.2
