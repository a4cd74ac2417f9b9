"""Whoever writes his own manifest over what is borrowed is answered once, then named; also one who wipes our marks."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import (
    LWS_NAME,
    SERVICES,
    Resource,
)
from rollout_lws.objects.writes import Patch, Write
from rollout_lws.sandbox.store import Event
from tests.scenarios.invariants import pinned_while_reachable
from tests.scenarios.metered import metered
from tests.scenarios.routed import (
    BY_GRPC,
    BY_POOLS,
    BY_ROUTE,
    BY_SCRIPT,
    BY_SUBSET,
    BY_VIRTUAL_SERVICE,
    EACH,
    NO_WEIGHTS,
    ROUTE,
    ROUTES,
    SERVICE,
    WEIGHTS,
    advice,
    assert_given_back,
    because,
    by_each,
    called,
    each_router,
    hold_record,
    kind,
    routed_at_rest,
    share,
)
from tests.scenarios.stories import waiting_for_approval
from tests.scenarios.test_traffic import revert
from tests.scenarios.world import KEYS, NAME, World

pytestmark = pytest.mark.looptime

BORROWED = pytest.mark.parametrize("what", ["route", "service"])


def borrowed(what: str) -> tuple[Resource, str, str]:
    """Kind and name of what is borrowed, and what messages advise who writes over it."""
    if what == "route":
        return kind(), ROUTE, f"{called()}: {advice()}"
    return SERVICES, SERVICE, f"Service {SERVICE}: let it ignore the selector of the Service"


def replace(world: World, resource: Resource, name: str, before: dict[str, Any]) -> None:
    """What an operator does that owns the object: its own manifest, and of what is there nothing."""
    spec, labels, annotations = before[f"{resource.kind} {name}"]
    live = world.get(resource, name)
    assert live is not None
    meta = {**live["metadata"], "labels": {**labels, "operator": "yes"}, "annotations": annotations}
    world.server.replace(resource, {**live, "metadata": meta, "spec": spec}, field_manager="operator")


def spec_of(world: World, resource: Resource, name: str) -> dict[str, Any]:
    found = world.get(resource, name)
    assert found is not None
    return dict(found["spec"])


@pytest.mark.one_in(2)
@BORROWED
@by_each(WEIGHTS)
async def test_who_replaces_what_is_borrowed_and_our_mark_with_it_is_answered_once_and_then_named(
    world: World, what: str
) -> None:
    resource, name, deed = borrowed(what)
    before = await routed_at_rest(world)
    await waiting_for_approval(world)
    ours, theirs = spec_of(world, resource, name), before[f"{resource.kind} {name}"][0]
    replace(world, resource, name, before)
    await world.until(lambda: spec_of(world, resource, name) == ours)
    (told,) = [event.note for event in world.events if event.reason == "RouteReset"]
    assert told.endswith(f" wrote over {deed.replace(':', '; it was put back:')}")
    await world.rest()
    replace(world, resource, name, before)
    await world.until_state("Stalled")
    assert world.condition("Stalled")["reason"] == "RouteConflict"
    assert f"keeps writing over {deed}; " in world.condition("Stalled")["message"]
    await world.sleep(50)
    assert spec_of(world, resource, name) == theirs
    await world.until_state("AwaitingApproval")
    assert (spec_of(world, resource, name), share(world)) == (ours, pytest.approx(0.1))


def race(world: World, resource: Resource, name: str, before: dict[str, Any]) -> list[Event]:
    """Have each write of ours replaced at once; gives those writes."""
    writes: list[Event] = []

    def answer(event: Event) -> None:
        meta = event.object["metadata"]
        if (event.resource, meta["name"]) == (resource, name) and KEYS.original in (meta.get("annotations") or {}):
            writes.append(event)
            replace(world, resource, name, before)

    world.server.store.subscribe(answer)
    # Who writes over a pin each time has requests go where they like.
    world.checks.remove(pinned_while_reachable)
    return writes


@pytest.mark.one_in(2)
@BORROWED
@by_each(WEIGHTS)
async def test_who_replaces_it_at_each_write_of_ours_is_not_raced(world: World, what: str) -> None:
    resource, name, deed = borrowed(what)
    before = await routed_at_rest(world)
    writes = race(world, resource, name, before)
    world.set_image("v2")
    await world.until_state("Stalled")
    await world.sleep(600)
    assert len(writes) <= 7
    assert f"keeps writing over {deed}; " in world.condition("Stalled")["message"]
    assert spec_of(world, resource, name) == before[f"{resource.kind} {name}"][0]
    world.request("Abort")
    await world.until_state("Aborted", 120)
    await world.rest()
    assert_given_back(world, with_label(before, f"{resource.kind} {name}"))


def with_label(before: dict[str, Any], what: str) -> dict[str, Any]:
    spec, labels, annotations = before[what]
    return {**before, what: (spec, {**labels, "operator": "yes"}, annotations)}


@by_each(EACH)
async def test_who_has_the_copy_of_the_service_lead_elsewhere_each_time_is_not_raced(world: World) -> None:
    await routed_at_rest(world)
    await waiting_for_approval(world)
    copy = f"{SERVICE}-canary"
    ours = spec_of(world, SERVICES, copy)["selector"]
    writes: list[Event] = []
    elsewhere = {"spec": {"selector": {LWS_NAME: NAME}}}

    def answer(event: Event) -> None:
        if (event.resource, event.object["metadata"]["name"]) != (SERVICES, copy):
            return
        if event.object["spec"]["selector"] == ours and len(writes) < 100:
            writes.append(event)
            world.patch(SERVICES, copy, elsewhere)

    world.server.store.subscribe(answer)
    world.checks.remove(pinned_while_reachable)
    world.patch(SERVICES, copy, elsewhere)
    await world.sleep(600)
    assert 1 <= len(writes) <= 7
    told = [event.note for event in world.events if event.reason == "RouteReset"]
    assert len(told) == 1 and f"wrote over Service {copy}; it was put back: its selector is" in told[0]
    assert spec_of(world, SERVICES, copy)["selector"] != ours


@pytest.mark.one_in(2)
@BORROWED
@by_each(WEIGHTS)
async def test_an_abort_waits_for_nobody_who_keeps_writing_over_a_share_that_was_given(world: World, what: str) -> None:
    resource, name, deed = borrowed(what)
    before = await routed_at_rest(world)
    await waiting_for_approval(world)
    writes = race(world, resource, name, before)
    replace(world, resource, name, before)
    await world.until_state("Stalled")
    assert f"keeps writing over {deed}; " in world.condition("Stalled")["message"]
    world.request("Abort")
    await world.until_state("Aborted", 120)
    await world.rest()
    assert_given_back(world, with_label(before, f"{resource.kind} {name}"))
    assert len(writes) <= 7


@by_each(
    each_router(
        BY_ROUTE,
        BY_POOLS,
        BY_GRPC,
        BY_VIRTUAL_SERVICE,
        BY_SCRIPT,
        but=NO_WEIGHTS | because("the user's DestinationRule is not written", BY_SUBSET),
    )
)
async def test_who_reverts_everything_at_once_has_reverted_each_once_and_is_answered_for_each() -> None:
    async with metered({"replicas": 2, "traffic": "20%", "pause": {}}, replicas=4) as m:
        world = m.world
        await m.release()
        objects = ((SERVICES, SERVICE), *ROUTES.provider.hold_record)
        ours = hold_record(world)
        for resource, name in objects:
            revert(world, resource, name, m.before[f"{resource.kind} {name}"][0])
        await world.rest()
        assert (hold_record(world), world.state) == (ours, "AwaitingApproval")
        told = [event.note for event in world.events if event.reason == "RouteReset"]
        assert len(told) == len(objects)
        # A second time for one of them is a second time.
        revert(world, *objects[-1], m.before[f"{objects[-1][0].kind} {objects[-1][1]}"][0])
        await world.until_state("Stalled")
        assert world.condition("Stalled")["reason"] == "RouteConflict"
        await m.abort()


@pytest.mark.parametrize("conflicts", [0, 2])
@by_each(WEIGHTS)
async def test_a_first_share_that_comes_too_late_has_been_written_over_by_nobody(world: World, conflicts: int) -> None:
    """The groups of this step are there already, so its share is the first that it writes."""
    steps = (
        {"replicas": 1, "pause": {"duration": 5}},
        {"replicas": 1, "traffic": "10%", "pause": {}},
        {"replicas": "100%", "traffic": "100%"},
    )
    await routed_at_rest(world, *steps, replicas=3)
    left = [ApiError(409, "Conflict", "the object has been modified")] * conflicts

    def refuse(write: Write) -> ApiError | None:
        return left.pop() if left and isinstance(write, Patch) and write.resource == kind() else None

    world.refuse = refuse
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    assert [each.note for each in world.events if each.reason == "RouteReset"] == []
    assert not left
