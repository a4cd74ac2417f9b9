"""Selectors that a release has pinned stay so from its first group to its last, whoever writes over them, and when."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import INFERENCE_POOLS, LEADER_WORKER_SETS, LWS_NAME, SERVICES, Resource
from rollout_lws.objects.writes import Confirm, Write
from rollout_lws.rollout.reasons import EventReason, Reason
from tests.scenarios.metered import metered
from tests.scenarios.routed import (
    AND_SCRIPTS,
    BY_POOLS,
    BY_ROUTE,
    CANARY_POOL,
    EACH,
    POOL,
    SERVICE,
    Provider,
    assert_given_back,
    by_each,
    hold_record,
    routed_at_rest,
    share,
    told_only_with,
)
from tests.scenarios.stories import CANARY, waiting_for_approval
from tests.scenarios.world import KEYS, NAME, World

pytestmark = pytest.mark.looptime


def pin(world: World, resource: Resource, name: str) -> str | None:
    """The LWS that it is pinned to."""
    found = world.get(resource, name)
    assert found is not None
    selector: dict[str, Any] = found["spec"]["selector"]
    return (selector if resource == SERVICES else selector["matchLabels"]).get(LWS_NAME)


def unpin(world: World, resource: Resource, name: str) -> None:
    selector = {LWS_NAME: None}
    world.patch(resource, name, {"spec": {"selector": selector if resource == SERVICES else {"matchLabels": selector}}})


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("by", "resource", "name", "to"),
    [
        (BY_ROUTE, SERVICES, SERVICE, NAME),
        *(pytest.param(each, SERVICES, SERVICE, NAME, marks=pytest.mark.long) for each in AND_SCRIPTS[1:]),
        (BY_POOLS, INFERENCE_POOLS, POOL, NAME),
        (BY_POOLS, INFERENCE_POOLS, CANARY_POOL, CANARY),
    ],
    ids=str,
)
async def test_a_paused_release_keeps_its_pins(
    world: World, by: Provider, resource: Resource, name: str, to: str
) -> None:
    before = await routed_at_rest(world, by=by)
    await waiting_for_approval(world)
    world.patch_rollout({"strategy": {"paused": True}})
    await world.until_state("Paused")
    unpin(world, resource, name)
    await world.until(lambda: pin(world, resource, name) == to, "pinned again")
    assert world.state == "Paused"
    [note] = [each.note for each in world.events if each.reason == EventReason.ROUTE_RESET]
    assert note.startswith(f"another client wrote over {resource.kind} {name}; it was put back: ")
    unpin(world, resource, name)
    await world.sleep(30)
    assert (pin(world, resource, name), world.state) == (None, "Paused"), "who does it again is not raced"
    world.patch_rollout({"strategy": {"paused": False}})
    await world.until_state("Stalled")
    assert world.condition("Stalled")["reason"] == Reason.ROUTE_CONFLICT
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert_given_back(world, before, by)


@by_each(EACH)
async def test_a_release_that_is_paused_before_it_begins_pins_nothing(world: World) -> None:
    before = await routed_at_rest(world)
    world.patch_rollout({"strategy": {"paused": True}})
    world.set_image("v2")
    await world.until_state("Paused")
    await world.rest()
    assert_given_back(world, before)


@pytest.mark.parametrize("groups", [pytest.param(2, marks=pytest.mark.long), 4])
@told_only_with(BY_POOLS, why="about pools alone")
async def test_a_canary_pool_stays_pinned_while_stable_groups_are_renewed(groups: int) -> None:
    async with metered({"replicas": groups, "traffic": "50%", "pause": {}}, replicas=4, by=BY_POOLS) as m:
        world = m.world
        await m.release()
        await world.sleep(30)
        world.approve()
        await world.until(lambda: "v2" in world.groups().values(), "a renewed group")
        unpin(world, INFERENCE_POOLS, CANARY_POOL)
        await world.until(lambda: pin(world, INFERENCE_POOLS, CANARY_POOL) == CANARY, "pinned again", 10)
        await m.finish()
        m.assert_unharmed()


def forbidden(write: Write) -> ApiError | None:
    """Somebody has not allowed us to write Services yet."""
    writes = write.resource == SERVICES and not isinstance(write, Confirm)
    return ApiError(403, "Forbidden", "not allowed") if writes else None


async def begun_without_permission(world: World) -> dict[str, Any]:
    before = await routed_at_rest(world, {"replicas": 1, "traffic": "20%", "pause": {}}, {"replicas": "100%"})
    world.refuse = forbidden
    world.set_image("v2")
    await world.until_state("Stalled")
    await world.rest()
    return before


@by_each(EACH)
async def test_a_release_that_is_paused_before_it_could_pin_anything_pins_nothing(world: World) -> None:
    before = await begun_without_permission(world)
    world.patch_rollout({"strategy": {"paused": True}})
    await world.until_state("Paused")
    world.refuse = lambda _: None
    await world.sleep(900)
    assert hold_record(world) == before and f"{SERVICE}-canary" not in world.names()["services"]
    assert EventReason.ROUTE_RESET not in [event.reason for event in world.events]


@by_each(EACH)
async def test_what_was_never_pinned_may_be_named_otherwise(world: World) -> None:
    before = await begun_without_permission(world)
    steps = [{"replicas": 1, "pause": {}}, {"replicas": "100%"}]
    world.patch_rollout({"strategy": {"canary": {"trafficRoutings": None, "steps": steps}}})
    await world.until_state("AwaitingApproval")
    world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_given_back(world, before)


def replace(world: World) -> None:
    """A tool writes the Service as it has it, without the note and the pin of the release."""
    words = {"metadata": {"annotations": {KEYS.original: None}}, "spec": {"selector": {LWS_NAME: None}}}
    world.patch(SERVICES, SERVICE, words)


def notes(world: World) -> dict[str, Any]:
    """What the release has noted on the Service."""
    found = world.get(SERVICES, SERVICE)
    assert found is not None
    read: dict[str, Any] = json.loads(found["metadata"]["annotations"][KEYS.original])
    return next(iter(read.values()))


def note_no_names(world: World) -> None:
    """The note as an earlier version of the controller wrote it."""
    found = world.get(SERVICES, SERVICE)
    assert found is not None
    read = json.loads(found["metadata"]["annotations"][KEYS.original])
    for each in read.values():
        del each["names"]
    world.patch(SERVICES, SERVICE, {"metadata": {"annotations": {KEYS.original: json.dumps(read)}}})


@pytest.mark.parametrize("loading", [False, True])
@by_each(EACH)
async def test_a_later_step_that_cannot_be_carried_any_more_leaves_no_version_unpinned(
    world: World, loading: bool
) -> None:
    steps = {"replicas": 1, "traffic": "5%", "pause": {}}, {"replicas": 4, "traffic": "100%", "pause": {}}
    await routed_at_rest(world, *steps, replicas=4)
    world.checks.clear()
    if loading:
        world.set_image("v2")
        await world.until(lambda: world.groups(CANARY), "a group of the new version")
    else:
        await waiting_for_approval(world)
    world.patch_lws({"replicas": 6})
    await world.sleep(1)
    replace(world)
    await world.until(lambda: pin(world, SERVICES, SERVICE) == NAME, "pinned again", 60)
    await world.until_state("AwaitingApproval")
    assert share(world) == 0.05
    reached = [pod for each in world.view.endpoint_slices(SERVICE) for pod in each.ready_addresses]
    assert not [pod for pod in reached if pod.startswith(CANARY)]


HALF = ({"replicas": 2, "traffic": "50%", "pause": {}}, {"replicas": "100%", "pause": {}})


def leave_alone(world: World) -> None:
    steps = [{"replicas": 2, "pause": {}}, {"replicas": "100%"}]
    world.patch_rollout({"strategy": {"canary": {"trafficRoutings": None, "steps": steps}}})


async def assert_withdrawn_before_the_canary_goes(world: World) -> None:
    world.request("Abort")
    await world.until(lambda: share(world) == 0, "no share")
    await world.sleep(30)
    canary = world.get(LEADER_WORKER_SETS, CANARY)
    assert canary is not None, "what runs has its time to end"
    assert (canary["spec"]["replicas"], share(world)) == (2, 0)
    await world.until_state("Aborted")
    await world.rest()


@by_each(EACH)
async def test_a_pin_that_an_earlier_version_noted_without_names_has_those_of_the_spec(world: World) -> None:
    before = await routed_at_rest(world, *HALF, replicas=4)
    await waiting_for_approval(world)
    names = notes(world)["names"]
    note_no_names(world)
    await world.until(lambda: notes(world).get("names") == names, "names")
    await world.rest()
    assert (share(world), world.state) == (0.5, "AwaitingApproval")
    await assert_withdrawn_before_the_canary_goes(world)
    assert_given_back(world, before)


@pytest.mark.parametrize("lose", [replace, note_no_names])
@by_each(EACH)
async def test_a_share_that_nothing_names_any_more_is_withdrawn_by_what_the_route_notes(
    world: World, lose: Any
) -> None:
    before = await routed_at_rest(world, *HALF, replicas=4)
    await waiting_for_approval(world)
    world.checks.clear()
    world.stop_controller()
    leave_alone(world)
    lose(world)
    world.start_controller()
    await world.rest()
    assert share(world) == 0.5
    await assert_withdrawn_before_the_canary_goes(world)
    assert_given_back(world, before)
