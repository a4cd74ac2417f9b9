"""Others that requests of a release meet: Services that nobody named, budgets, and Rollouts that are gone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rollout_lws.objects.resources import (
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INGRESSES,
    LEADER_WORKER_SETS,
    LWS_NAME,
    LWS_WORKER_INDEX,
    POD_DISRUPTION_BUDGETS,
    SERVICES,
)
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.sandbox.meter import Client, TrafficMeter
from tests.scenarios.invariants import at_most_down, never_two_canaries, one_version_selected
from tests.scenarios.metered import ACCEPTED, LAG, metered
from tests.scenarios.routed import (
    AN_INGRESS,
    BY_GRPC,
    BY_INGRESS,
    BY_POOLS,
    BY_ROUTE,
    BY_SCRIPT,
    EACH,
    FIVE,
    INGRESS,
    MESHES,
    POOL,
    ROUTE,
    ROUTES,
    SERVICE,
    Provider,
    because,
    behind,
    by_each,
    hold_record,
    make,
    routed_at_rest,
    routing,
    told_only_with,
    told_with,
)
from tests.scenarios.stories import CANARY, waiting_for_approval
from tests.scenarios.told import tells
from tests.scenarios.world import KEYS, NAME, NAMESPACE, ROLLOUTS, World

pytestmark = pytest.mark.looptime

ONLY_OLD = {"app": "llama", LWS_WORKER_INDEX: "0", LWS_NAME: NAME}
UNLISTED = (
    "Service llama-internal sends requests to groups of LeaderWorkerSet llama too, whatever share a step says: its"
    " clients get the old version until the promotion renews the groups; use the one in trafficRoutings"
)


@tells(events={EventReason.UNMANAGED_BACKEND: UNLISTED})
@by_each(EACH)
async def test_a_service_of_stable_groups_that_nobody_named_is_told_once_also_when_it_comes_later(world: World) -> None:
    await routed_at_rest(world)
    ports = [{"port": 80}]
    make(world, SERVICES, "llama-internal", spec={"selector": ONLY_OLD, "ports": ports})
    await waiting_for_approval(world)
    make(
        world,
        INFERENCE_POOLS,
        "later",
        spec={
            "selector": {"matchLabels": ONLY_OLD},
            "targetPorts": [{"number": 8000}],
            "endpointPickerRef": {"name": SERVICE, "port": {"number": 80}},
        },
    )
    await world.rest()
    world.approve()
    await world.rest()
    told = [each.note.split(" sends")[0] for each in world.events if each.reason == EventReason.UNMANAGED_BACKEND]
    assert told == ["Service llama-internal", "InferencePool later"]


@by_each(EACH)
async def test_more_services_than_a_status_holds_stop_no_release(world: World) -> None:
    """Anybody in the namespace may make them; those that are on record are told once, and no others again and again."""
    await routed_at_rest(world)
    for number in range(70):
        make(world, SERVICES, f"other-{number:02}", spec={"selector": ONLY_OLD, "ports": [{"port": 80}]})
    covers = {"selector": {"matchLabels": {"app": "llama"}}, "maxUnavailable": 1}
    make(world, POD_DISRUPTION_BUDGETS, "llama", spec=covers)
    await waiting_for_approval(world)
    world.approve()
    await world.rest()
    assert world.status["currentStepIndex"] == 2
    told = [each.note.split(" sends")[0] for each in world.events if each.reason == EventReason.UNMANAGED_BACKEND]
    assert told == [f"Service other-{number:02}" for number in range(64)]


@by_each(EACH)
async def test_who_uses_such_a_service_is_served_through_a_promotion_that_goes_by_max_unavailable() -> None:
    async with metered({"replicas": 4, "traffic": "40%", "pause": {}}, replicas=4) as m:
        world = m.world
        make(world, SERVICES, "llama-internal", spec={"selector": ONLY_OLD, "ports": [{"port": 80}]})
        await world.rest()
        meter = TrafficMeter(world.server, [Client("unlisted", service="llama-internal")], lag=LAG)
        meter.start()
        await m.release()
        world.checks.append(at_most_down(1))
        await m.finish()
        assert (meter.failures, m.meter.failures) == ([], [])


@by_each(EACH)
async def test_a_budget_over_the_groups_is_told_not_to_limit_the_release(world: World) -> None:
    await routed_at_rest(world)
    covers = {"selector": {"matchLabels": {"app": "llama"}}, "maxUnavailable": 1}
    make(world, POD_DISRUPTION_BUDGETS, "llama", spec=covers)
    make(world, POD_DISRUPTION_BUDGETS, "other", spec={**covers, "selector": {"matchLabels": {"app": "other"}}})
    await waiting_for_approval(world)
    told = [each.note for each in world.events if each.reason == EventReason.UNMANAGED_BACKEND]
    assert told == [
        "PodDisruptionBudget llama covers groups of LeaderWorkerSet llama: it limits evictions, and a release makes"
        " none; how many groups are renewed at a time is up to maxUnavailable"
    ]


@told_only_with(BY_INGRESS, why="a tool's Ingress could be taken for what a release makes")
async def test_what_others_have_a_rollout_own_is_theirs_at_rest_and_when_a_release_gives_back(world: World) -> None:
    """Tools name a Rollout among the owners of what shall go with it, some as the controller."""
    await routed_at_rest(world, {"replicas": 1, "traffic": "20%", "pause": {}}, by=BY_INGRESS, replicas=2)
    picker = {"name": "tool", "port": {"number": 80}}
    spec = {"selector": {"matchLabels": {"app": "other"}}, "targetPorts": [{"number": 80}], "endpointPickerRef": picker}
    make(world, INFERENCE_POOLS, "tool", spec=spec)
    make(world, SERVICES, "metrics", spec={"selector": {"app": "other"}, "ports": [{"port": 80}]})
    make(world, SERVICES, "tool", spec={"selector": {"app": "other"}, "ports": [{"port": 80}]})
    make(world, INGRESSES, "tool", spec={"defaultBackend": {"service": {"name": "tool", "port": {"number": 80}}}})
    meta = world.rollout["metadata"]
    owner = {"apiVersion": ROLLOUTS.api_version, "kind": "Rollout", "name": NAME, "uid": meta["uid"]}
    owned = [(SERVICES, SERVICE), (SERVICES, "metrics"), (SERVICES, "tool"), (INGRESSES, "tool")]
    owned += [(HTTP_ROUTES, ROUTE), (INFERENCE_POOLS, "tool")]
    for resource, name in owned:
        reference = owner | {"controller": name != "metrics"}
        world.patch(resource, name, {"metadata": {"ownerReferences": [reference]}})
    uids = [world.server.get(resource, NAMESPACE, name)["metadata"]["uid"] for resource, name in owned]
    before = hold_record(world, BY_INGRESS)
    await world.rest()
    await waiting_for_approval(world)
    assert world.get(INGRESSES, f"{INGRESS}-canary") is not None
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert [world.server.get(resource, NAMESPACE, name)["metadata"]["uid"] for resource, name in owned] == uids
    assert hold_record(world, BY_INGRESS) == before
    assert [world.get(INGRESSES, f"{INGRESS}-canary"), world.get(SERVICES, f"{SERVICE}-canary")] == [None, None]


def vanish(world: World) -> None:
    """Delete the Rollout while no controller runs, its finalizer taken off by hand; the garbage collector follows."""
    world.stop_controller()
    world.checks.append(one_version_selected)
    world.patch(ROLLOUTS, NAME, {"metadata": {"finalizers": None}})
    world.delete(ROLLOUTS, NAME)


async def rolls_without_its_rollout(world: World) -> None:
    """The Rollout vanishes in mid-release, and both groups of the LWS go back to v1 by themselves."""
    vanish(world)
    world.checks.clear()
    world.set_image("v1")
    world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}})
    await world.until(lambda: world.groups() == dict.fromkeys(range(2), "v1"), "the LWS rolls by itself")


def again(world: World, *steps: dict[str, Any], by: Provider | None = None) -> None:
    world.create_rollout(*steps, canary={"trafficRoutings": routing(by)})
    world.start_controller()


LEFT = "carried what a deleted Rollout (UID {uid}) had written; it is restored"


@pytest.mark.parametrize("by", [BY_ROUTE, pytest.param(BY_POOLS, marks=pytest.mark.long)], ids=str)
@told_with(
    BY_ROUTE,
    BY_POOLS,
    but=because("test_traffic_providers_losses tells it of them", BY_GRPC, *AN_INGRESS, *MESHES, BY_SCRIPT),
)
async def test_what_a_rollout_that_is_gone_had_borrowed_is_given_back_before_its_canary_goes(by: Provider) -> None:
    async with metered(*FIVE, by=by) as m:
        world = m.world
        await m.release(2)
        uid = world.rollout["metadata"]["uid"]
        vanish(world)
        await world.sleep(5)
        begun = world.server.clock()
        again(world, *FIVE, by=by)
        await world.until(lambda: world.get(LEADER_WORKER_SETS, CANARY) is None, "the canary to go", 600)
        # The Service of the canary went with the Rollout; that its share fails ends as soon as there is a new one.
        assert {each.start < begun and each.end <= begun + LAG + ACCEPTED for each in m.meter.failures} <= {True}
        assert m.cuts == []
        failed = len(m.meter.failures)
        [first, *_] = [each.note for each in world.events if each.reason == EventReason.RESTORED]
        stays = (
            f"{f'Service {SERVICE}' if by is BY_ROUTE else f'InferencePool {POOL}'}, which it had pinned, stays pinned"
        )
        stays += f" to groups of LeaderWorkerSet {NAME} until pod {CANARY}-0, {CANARY}-1 of LeaderWorkerSet {CANARY} is"
        assert first == f"HTTPRoute {ROUTE} {LEFT.format(uid=uid)}; {stays} gone"
        # The new Rollout finds the version that the old one had begun, and releases it from the start.
        await m.step(1)
        # The Service last: by its annotation the others are found.
        [*_, last] = [each.note for each in world.events if each.reason == EventReason.RESTORED]
        assert last == f"Service {SERVICE} {LEFT.format(uid=uid)}"
        await m.finish()
        assert (len(m.meter.failures), m.cuts) == (failed, [])


@pytest.mark.each_change
@by_each(EACH)
async def test_groups_that_roll_natively_are_reached_where_a_rollout_that_is_gone_had_pinned_the_old_ones() -> None:
    async with metered({"replicas": 1, "pause": {}}, replicas=4, words={"capacity": "InPlace"}) as m:
        world = m.world
        await m.release()
        vanish(world)
        again(world, {"replicas": 1, "pause": {}})
        await world.until_state("Stalled")
        assert world.condition("Stalled")["reason"] == Reason.PARTITION_IN_USE
        await world.rest()
        before = len(m.meter.failures)
        world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}})
        await world.until_state("Healthy")
        await world.rest()
        assert (world.groups(), hold_record(world)) == (dict.fromkeys(range(4), "v2"), m.before)
        # A Service leads to pods that are terminating while it has no others.
        most = LAG if ROUTES.provider is BY_POOLS else 0
        assert [each for each in m.meter.failures[before:] if each.end - each.start > most] == []


@by_each(EACH)
async def test_a_rollout_of_another_lws_leaves_pinned_what_leads_to_two_versions_and_is_not_held_up(
    world: World,
) -> None:
    before = await routed_at_rest(world)
    await waiting_for_approval(world)
    vanish(world)
    world.checks.remove(never_two_canaries)
    world.create_workload(replicas=1, size=1, name="other")
    world.create_rollout({"replicas": 1, "pause": {}}, name="other", workload="other")
    world.name = "other"
    world.start_controller()
    await world.until(lambda: world.status_of("other").get("phase") == "Healthy")
    await world.rest()
    left = f"of a deleted Rollout: {behind()[0]}, which it had pinned, stays pinned to groups of LeaderWorkerSet"
    left += f" {NAME} until pod {CANARY}-0 of LeaderWorkerSet {CANARY} is gone; a Rollout for that LeaderWorkerSet ends"
    assert world.status_of("other")["message"] == f"{left} what it had begun"
    world.patch(LEADER_WORKER_SETS, CANARY, {"metadata": {"finalizers": None}})
    world.delete(LEADER_WORKER_SETS, CANARY)
    await world.until(lambda: hold_record(world) == before, "restored")


@by_each(EACH)
async def test_an_lws_that_is_only_called_like_a_canary_holds_up_no_release(world: World) -> None:
    steps = {"replicas": 1, "traffic": "20%", "pause": {}}
    before = await routed_at_rest(world, steps, replicas=2, words={"capacity": "InPlace"})
    # It is the user's own, and behind the same Service.
    world.create_workload(replicas=1, size=1, name=CANARY)
    await waiting_for_approval(world)
    await rolls_without_its_rollout(world)
    again(world, steps)
    await world.until(lambda: hold_record(world) == before, "restored")
    world.patch_rollout({"strategy": {"canary": {"capacity": "InPlace"}}})
    world.set_image("v3")
    await world.until_state("AwaitingApproval")
    assert world.groups() == {0: "v1", 1: "v3"}


@tells(
    events={
        EventReason.RESTORED: "Service llama-api carried what a deleted Rollout (UID an-old-one) had written; it"
        " is restored"
    }
)
@by_each(EACH)
async def test_a_service_that_was_left_pinned_is_freed_at_rest(world: World) -> None:
    before = await routed_at_rest(world)
    note = {"an-old-one": {"original": {LWS_NAME: None}, "written": {LWS_NAME: CANARY}}}
    marked = {"metadata": {"annotations": {KEYS.original: json.dumps(note)}}, "spec": {"selector": {LWS_NAME: CANARY}}}
    world.patch(SERVICES, SERVICE, marked)
    await world.rest()
    assert hold_record(world) == before


ONE_POOL = "inferencePool names llama-pool for both versions: make a second pool with an endpoint picker of its own"


@tells({Reason.POOL_PROBLEM: ONE_POOL})
@told_only_with(BY_POOLS, why="about pools alone")
async def test_one_pool_for_both_versions_is_refused(world: World) -> None:
    await routed_at_rest(world, by=BY_POOLS)
    before = hold_record(world, BY_POOLS)
    words = routing(BY_POOLS, gateway={"httpRouteName": ROUTE, "inferencePool": {"stable": POOL, "canary": POOL}})
    world.patch_rollout({"strategy": {"canary": {"trafficRoutings": words}}})
    world.set_image("v2")
    await world.until_state("Stalled")
    assert hold_record(world, BY_POOLS) == before
