"""What is told of autoscalers: who cannot be held, who writes over a hold, and what a deleted Rollout has left."""

from __future__ import annotations

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.permissions import SOURCE
from rollout_lws.objects.resources import (
    HORIZONTAL_POD_AUTOSCALERS,
    LEADER_WORKER_SETS,
    Resource,
)
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.sandbox.store import Event
from tests.scenarios.routed import make
from tests.scenarios.scaled import AUTOSCALER, autoscaler, bounds, create_autoscaler, edit, kept, wants, written
from tests.scenarios.stories import at_rest, waiting_for_approval
from tests.scenarios.told import assert_only_held, assert_stalled, tells
from tests.scenarios.world import KEYS, NAME, ROLLOUTS, World

pytestmark = pytest.mark.looptime

STEPS = {"replicas": "50%", "pause": {}}, {"replicas": "100%", "pause": {}}
SCALED_OBJECTS = Resource("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects")


def create_scaled_object(world: World, of: Resource = LEADER_WORKER_SETS) -> None:
    """A ScaledObject that scales an object of this kind, and the autoscaler that KEDA makes for it."""
    world.define(SCALED_OBJECTS)
    make(world, SCALED_OBJECTS, "chat")
    made = world.get(SCALED_OBJECTS, "chat")
    assert made is not None
    owner = {key: made[key] for key in ("apiVersion", "kind")} | {"name": "chat", "uid": made["metadata"]["uid"]}
    create_autoscaler(world, of=of, ownerReferences=[{**owner, "controller": True}])


# KEDA

KEDA = (
    "HorizontalPodAutoscaler llama-hpa is written by ScaledObject chat of KEDA, which would undo a hold of it: pause it"
    " until the release is over (kubectl annotate scaledobject chat -n default autoscaling.keda.sh/paused=true), or let"
    " a HorizontalPodAutoscaler of your own scale the LeaderWorkerSet"
)


@tells({Reason.AUTOSCALER_PROBLEM: KEDA}, {EventReason.RELEASE_REFUSED: f"the new version waits: {KEDA}"})
async def test_a_version_waits_while_keda_scales_its_lws_and_is_released_when_that_is_paused(world: World) -> None:
    create_scaled_object(world)
    await at_rest(world, *STEPS)
    own, before = kept(world), world.leader_uids()
    world.set_image("v2")
    await world.rest()
    assert_stalled(world, Reason.AUTOSCALER_PROBLEM, KEDA, phase="Healthy")
    assert_only_held(world, before)
    assert kept(world) == own
    # That is what KEDA does when it is paused.
    world.delete(HORIZONTAL_POD_AUTOSCALERS, AUTOSCALER)
    await world.until_state("AwaitingApproval")


async def test_keda_that_comes_in_mid_release_stops_it_where_it_is_until_it_goes(world: World) -> None:
    await at_rest(world, *STEPS)
    await waiting_for_approval(world)
    create_scaled_object(world)
    await world.rest()
    world.approve()
    await world.sleep(60)
    assert_stalled(world, Reason.AUTOSCALER_PROBLEM, KEDA, phase="Progressing")
    assert (world.get_canary_replicas(), written(world)) == (2, [])
    world.request("Abort")
    await world.until_state("Aborted")


# Others who write


RESET = (
    "argocd wrote over HorizontalPodAutoscaler llama-hpa; it was put back: what it wrote counts after the release, and"
    " a tool that writes again and again must ignore minReplicas and maxReplicas"
)


@tells(events={EventReason.AUTOSCALER_RESET: RESET})
async def test_a_tool_that_writes_over_a_hold_again_and_again_is_named_and_the_release_goes_on(world: World) -> None:
    create_autoscaler(world)
    await at_rest(world, *STEPS)
    own = kept(world)
    await waiting_for_approval(world)

    def revert(event: Event) -> None:
        if event.resource == HORIZONTAL_POD_AUTOSCALERS and event.object["spec"]["minReplicas"] == 4:
            edit(world, manager="argocd", minReplicas=1)

    stop = world.server.store.subscribe(revert)
    edit(world, manager="argocd", minReplicas=1)
    await world.until(lambda: "keeps writing" in world.status["message"])
    assert world.status["message"] == (
        "step 1 of 2 waits for approval: kubectl rollout-lws promote llama; argocd keeps writing over"
        " HorizontalPodAutoscaler llama-hpa: what it wrote counts after the release, and a tool that writes again and"
        " again must ignore minReplicas and maxReplicas; it is put back at 00:01:05 UTC"
    )
    await world.sleep(600)
    # At the start, at once, and after 60, 120 and 240 seconds.
    assert len(written(world)) == 5
    assert [each.reason for each in world.events].count(EventReason.AUTOSCALER_RESET) == 1
    world.approve()
    await world.until_state("Healthy", 900)
    await world.rest()
    stop()
    assert set(world.groups().values()) == {"v2"}
    assert kept(world) == own


async def test_a_tool_that_replaces_the_object_with_our_mark_is_answered_in_the_same_way(world: World) -> None:
    create_autoscaler(world)
    await at_rest(world, *STEPS)
    own = autoscaler(world)
    await waiting_for_approval(world)

    def replace() -> None:
        live = autoscaler(world)
        meta = {**live["metadata"], "annotations": own["metadata"]["annotations"]}
        body = {**live, "metadata": meta, "spec": own["spec"]}
        world.server.replace(HORIZONTAL_POD_AUTOSCALERS, body, field_manager="operator")

    replace()
    await world.until(lambda: bounds(world) == (4, 10))
    assert [each.reason for each in world.events].count(EventReason.AUTOSCALER_RESET) == 1
    replace()
    await world.sleep(50)
    assert bounds(world) == (1, 10)
    await world.until(lambda: bounds(world) == (4, 10), seconds=20)
    world.request("Abort")
    await world.until_state("Aborted")
    assert bounds(world) == (1, 10)


# Rollouts that are gone


def vanish(world: World) -> str:
    """Delete the Rollout while no controller runs, its finalizer taken off by hand; gives its UID."""
    uid = str(world.rollout["metadata"]["uid"])
    world.stop_controller()
    world.patch(ROLLOUTS, NAME, {"metadata": {"finalizers": None}})
    world.delete(ROLLOUTS, NAME)
    return uid


@pytest.mark.one_in(2)
@pytest.mark.parametrize("restored", [True, False])
async def test_what_a_rollout_that_is_gone_held_the_next_one_gives_back(world: World, restored: bool) -> None:
    create_autoscaler(world)
    await at_rest(world, *STEPS)
    own = kept(world)
    await waiting_for_approval(world)
    uid = vanish(world)
    assert bounds(world) == (4, 10)
    if restored:
        world.set_image("v1")
    await world.rest()
    world.create_rollout(*STEPS)
    world.start_controller()
    told = f"{AUTOSCALER} carried what a deleted Rollout (UID {uid}) had written; it is restored"
    if restored:
        await world.until_state("Healthy")
        await world.rest()
    else:
        await world.until_state("AwaitingApproval")
        assert uid not in autoscaler(world)["metadata"]["annotations"][KEYS.original]
        assert bounds(world) == (4, 10)
        world.request("Abort")
        await world.until_state("Aborted")
    assert [each.note for each in world.events if each.reason == EventReason.RESTORED] == [
        f"HorizontalPodAutoscaler {told}"
    ]
    assert kept(world) == own
    assert "autoscalers" not in world.status


async def test_groups_are_not_taken_away_from_a_release_that_is_refused_to_hold_them(world: World) -> None:
    """A write that is refused stops the release before it has begun to make groups, and says why."""
    create_autoscaler(world)
    await at_rest(world, *STEPS)
    refused = ApiError(403, "Forbidden", "horizontalpodautoscalers is forbidden")
    world.refuse = lambda write: refused if write.resource == HORIZONTAL_POD_AUTOSCALERS else None
    world.set_image("v2")
    await world.until_state("Stalled")
    assert world.status["message"] == (
        "the API server refuses to patch HorizontalPodAutoscaler llama-hpa: horizontalpodautoscalers is forbidden. To"
        " go on, allow the controller's account to patch horizontalpodautoscalers.autoscaling in namespace default"
        f" ({SOURCE}); it is tried again until then"
    )
    wants(world, 4)
    await world.rest(40)
    assert world.names()["leaderworkersets"] == [NAME]
    world.refuse = lambda _: None
    await world.until_state("AwaitingApproval")
