"""Before a release writes an object of somebody else for the first time everything is checked, whenever that is."""

from __future__ import annotations

from typing import Any, cast

import pytest

from rollout_lws.objects.resources import (
    INFERENCE_POOLS,
    LWS_NAME,
    LWS_WORKER_INDEX,
    SERVICES,
    Resource,
)
from rollout_lws.rollout.reasons import EventReason, Reason
from tests.scenarios.borders import FOREIGN, marks
from tests.scenarios.routed import (
    AND_SCRIPTS,
    BY_POOLS,
    EACH,
    FIVE,
    POOL,
    ROUTES,
    SERVICE,
    Provider,
    by_each,
    create_provider,
    hold_record,
    kind,
    make,
    not_by_pools,
    routed_at_rest,
    routing,
    share,
    told_only_with,
)
from tests.scenarios.stories import PROMOTED_STEPS, at_rest, waiting_for_approval
from tests.scenarios.told import assert_stalled, tells
from tests.scenarios.world import NAME, NAMESPACE, ROLLOUTS, World

pytestmark = pytest.mark.looptime

LEADERS = {"app": "llama", LWS_WORKER_INDEX: "0"}
OTHER = "prefill"


def say(world: World, by: Provider | None = None, **more: Any) -> None:
    """Have the Rollout share requests from now on."""
    world.patch_rollout({"strategy": {"canary": {"trafficRoutings": routing(by, **more), "steps": list(FIVE)}}})


def left_marked(world: World) -> list[str]:
    """Objects of others that still bear a note of a release."""
    found = ((kind, each) for kind in FOREIGN for each in world.server.list(kind, NAMESPACE))
    return [f"{kind.kind} {each['metadata']['name']}" for kind, each in found if marks(each)]


def mine(name: str = NAME) -> dict[str, Any]:
    return {**LEADERS, LWS_NAME: name}


def lead_to_mine(world: World) -> None:
    """The Service, and pools where there are some, select leaders of the one LWS only."""
    world.patch(SERVICES, SERVICE, {"spec": {"selector": mine()}})
    for resource, name in ROUTES.provider.hold_record:
        if resource == INFERENCE_POOLS:
            world.patch(resource, name, {"spec": {"selector": {"matchLabels": mine()}}})


async def begun_without(world: World, by: Provider) -> None:
    """A release of a Rollout that leaves requests alone waits in its first step; another LWS serves behind them too."""
    create_provider(world, by)
    world.create_workload(name=OTHER, replicas=1)
    await at_rest(world, *PROMOTED_STEPS, replicas=5)
    world.checks.clear()
    await waiting_for_approval(world)


SHARED = (
    "Service llama-api selects leaders of LeaderWorkerSet prefill besides llama and would lose them when pinned; add"
    ' "leaderworkerset.sigs.k8s.io/name: llama" to its selector, or use one for each LeaderWorkerSet. Where requests'
    " need both, as with prefill and decode, leave trafficRoutings out: they follow the groups then"
)


@tells({Reason.SERVICE_PROBLEM: SHARED})
@by_each(EACH)
async def test_a_service_of_two_lws_is_not_pinned_when_a_share_is_asked_for_in_mid_release(world: World) -> None:
    await begun_without(world, ROUTES.provider)
    before = hold_record(world)
    say(world)
    await world.until_state("Stalled")
    await world.sleep(60)
    assert_stalled(world, Reason.SERVICE_PROBLEM, SHARED, phase="Progressing")
    assert hold_record(world) == before
    lead_to_mine(world)
    await world.until(lambda: share(world) == 0.1, "the share that the step says")
    world.request("Abort")
    await world.until_state("Aborted", 1200)
    assert left_marked(world) == []


@told_only_with(BY_POOLS, why="about pools alone")
async def test_a_pool_of_two_lws_is_not_pinned_either(world: World) -> None:
    await begun_without(world, BY_POOLS)
    lead_to_mine(world)
    before = hold_record(world, BY_POOLS)
    say(world, BY_POOLS)
    await world.until_state("Stalled")
    assert world.condition("Stalled")["reason"] == Reason.POOL_PROBLEM
    assert f"InferencePool {POOL} selects leaders of LeaderWorkerSet {OTHER}" in world.condition("Stalled")["message"]
    assert hold_record(world, BY_POOLS) == before


@by_each(EACH)
@pytest.mark.parametrize("listed", [True, False], ids=["all listed", "not all listed yet"])
async def test_clients_of_a_backend_that_nobody_named_are_not_sent_to_the_new_version_in_mid_release(
    world: World, listed: bool
) -> None:
    await at_rest(world, *PROMOTED_STEPS, replicas=5)
    create_provider(world, ROUTES.provider)
    make(world, SERVICES, "llama-internal", spec={"selector": LEADERS, "ports": [{"port": 80}]})
    await waiting_for_approval(world)
    before = hold_record(world)
    unlisted = cast(dict[Resource, str], world.view.refused)
    if not listed:
        # Until the first list of routes nothing is known of who leads to the groups.
        unlisted[kind()] = ""
    say(world)
    await world.sleep(5)
    unlisted.clear()
    world.patch_rollout({"strategy": {"minReadySeconds": 1}})
    await world.until_state("Stalled")
    await world.sleep(60)
    assert "Service llama-internal would select groups of the new version too" in world.condition("Stalled")["message"]
    assert hold_record(world) == before


@pytest.mark.one_in(2)
@pytest.mark.parametrize("promoted", [False, True], ids=["in a step", "in the promotion"])
@by_each(EACH)
async def test_a_service_that_is_made_anew_for_two_lws_stays_as_it_is(world: World, promoted: bool) -> None:
    await routed_at_rest(world)
    world.checks.clear()
    world.create_workload(name=OTHER, replicas=1)
    lead_to_mine(world)
    await waiting_for_approval(world)
    if promoted:
        world.request("PromoteFull")
        await world.until_state("Promoting")
    world.delete(SERVICES, SERVICE)
    make(world, SERVICES, SERVICE, spec={"selector": LEADERS, "ports": [{"port": 80, "targetPort": 8000}]})
    await world.sleep(120)
    assert world.get(SERVICES, SERVICE)["spec"]["selector"] == LEADERS  # type: ignore[index]
    assert f"selects leaders of LeaderWorkerSet {OTHER}" in world.status["message"]
    lead_to_mine(world)
    world.request("Abort")
    await world.until_state("Aborted", 2400)
    assert left_marked(world) == []


@by_each(not_by_pools("its share goes by a pool, and not by that Service"))
async def test_another_service_of_the_copys_name_stops_the_release(world: World) -> None:
    await routed_at_rest(world)
    await waiting_for_approval(world)
    world.stop_controller()
    world.delete(SERVICES, f"{SERVICE}-canary")
    make(world, SERVICES, f"{SERVICE}-canary", spec={"selector": {"app": "bank"}, "ports": [{"port": 80}]})
    world.start_controller()
    await world.until_state("Stalled")
    assert f"Service {SERVICE}-canary exists and is not ours" in world.condition("Stalled")["message"]
    await world.until(lambda: share(world) == 0, "no share by a Service of somebody else")


SHUT_OUT = (
    "LeaderWorkerSet prefill behind Service llama-api gets no requests from it until the release of LeaderWorkerSet"
    " llama is over, for which it is pinned: give it one of its own"
)


@tells(events={EventReason.SHARED_BACKEND: SHUT_OUT})
@by_each(EACH)
async def test_another_lws_that_comes_up_behind_a_pinned_service_is_told_of_once(world: World) -> None:
    await routed_at_rest(world)
    await waiting_for_approval(world)
    world.checks.clear()
    world.create_workload(name=OTHER, replicas=1)
    await world.rest()
    world.approve()
    await world.rest()
    pinned = [(SERVICES, SERVICE), *(each for each in ROUTES.provider.hold_record if each[0] == INFERENCE_POOLS)]
    told = [SHUT_OUT.replace(f"Service {SERVICE}", f"{resource.kind} {name}") for resource, name in pinned]
    notes = [each.note for each in world.events if each.reason == EventReason.SHARED_BACKEND]
    assert sorted(notes) == sorted(told)


# What was written is found again, whatever a status says


def wipe(world: World) -> None:
    world.patch(ROLLOUTS, NAME, {"status": {"traffic": None}}, "status")


def wipe_all(world: World) -> None:
    world.patch(ROLLOUTS, NAME, {"status": dict.fromkeys(world.status)}, "status")


def leave_alone(world: World) -> None:
    world.patch_rollout({"strategy": {"canary": {"trafficRoutings": None, "steps": list(PROMOTED_STEPS)}}})


def name_another(world: World) -> None:
    words = [{"service": "other", "gateway": {"httpRouteName": "other"}}]
    world.patch_rollout({"strategy": {"canary": {"trafficRoutings": words}}})


@pytest.mark.one_in(8)
@pytest.mark.parametrize("edit", [leave_alone, name_another])
@pytest.mark.parametrize("forge", [wipe, wipe_all])
@pytest.mark.parametrize("by", AND_SCRIPTS, ids=str)
async def test_what_a_release_wrote_is_given_back_though_neither_status_nor_spec_name_it(
    world: World, by: Provider, forge: Any, edit: Any
) -> None:
    before = await routed_at_rest(world, by=by)
    await waiting_for_approval(world)
    world.checks.clear()
    world.stop_controller()
    edit(world)
    forge(world)
    world.start_controller()
    await world.sleep(30)
    forge(world)
    world.delete(ROLLOUTS, NAME)
    await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "gone", 1200)
    await world.sleep(30)
    assert left_marked(world) == []
    assert_unshared(world, before, by)


def assert_unshared(world: World, before: dict[str, Any], by: Provider) -> None:
    assert hold_record(world, by) == before
    assert f"{SERVICE}-canary" not in world.names()["services"]
