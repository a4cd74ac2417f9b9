"""Ways back, the hold and leaving: every reason of a condition and of an Event there, with the whole message."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    LEADER_WORKER_SETS,
    LWS_REVISION,
    STATEFUL_SETS,
)
from rollout_lws.rollout.reasons import EventReason, Reason
from tests.scenarios.insisting import Insisting
from tests.scenarios.stories import CANARY, STEPS, assert_clean, at_rest, mid_promotion, waiting_for_approval
from tests.scenarios.told import assert_stalled, tells
from tests.scenarios.world import KEYS, NAME, NAMESPACE, World

pytestmark = pytest.mark.looptime

#: The revisions that the sandbox gives to vllm:v1 and vllm:v2.
V1, V2 = "fcbccmmmkf", "jjghfhdkb"


# Ways back


ABORTED = (
    f"release {V2} was aborted (wrong prompts); revision {V1} serves. Apply another version, or start this one"
    " again: kubectl rollout-lws retry llama"
)
ZERO = (
    "LeaderWorkerSet llama has 0 groups and holds the aborted version: the next scale-up would start it; apply another"
    " version first"
)


@tells(
    {Reason.ABORTED: ABORTED, Reason.SCALED_TO_ZERO: ZERO},
    {
        EventReason.ABORTED: f"release {V2} is aborted; revision {V1} serves",
        EventReason.ACTION: "Abort by ann: wrong prompts",
    },
)
async def test_an_aborted_version_is_told_until_another_comes_and_loudly_at_zero_groups(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.checks.clear()
    world.request("Abort", by="ann", reason="wrong prompts")
    await world.until_state("Aborted")
    await world.rest()
    assert_stalled(world, Reason.ABORTED, ABORTED, phase="Aborted", state="Aborted")
    world.patch_lws({"replicas": 0})
    await world.rest()
    assert_stalled(world, Reason.SCALED_TO_ZERO, ZERO, phase="Aborted")


@tells(events={EventReason.ROLLED_BACK: f"release {V2} was taken back; revision {V1} serves"})
async def test_a_restored_template_is_told_as_taken_back(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.set_image("v1")
    await world.until_state("Healthy")
    assert world.condition("Succeeded")["status"] == "False"


@tells(
    events={
        EventReason.SUPERSEDED: "release build-7 ends: another version was applied",
        EventReason.ROLLOUT_ID_REUSED: "rollout-id build-7 named another version before: a gate on it cannot tell them"
        " apart",
    }
)
async def test_a_third_version_under_the_same_id_is_released_and_warned_of(world: World) -> None:
    await at_rest(world)
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"labels": {KEYS.rollout_id: "build-7"}}})
    await waiting_for_approval(world)
    world.set_image("v3")
    await world.until(lambda: world.groups(CANARY) == {0: "v3", 1: "v3"})


@tells(events={EventReason.ACTION_REFUSED: "Approve was refused: it was meant for step 3, the release is at step 2"})
async def test_a_late_click_is_refused_with_the_reason(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.request("Approve", step=3)
    await world.rest()
    assert world.state == "AwaitingApproval"


async def test_a_promotion_ends_when_the_lws_is_scaled_to_zero(world: World) -> None:
    await at_rest(world)
    await mid_promotion(world)
    world.checks.clear()
    world.patch_lws({"replicas": 0})
    await world.until_state("Healthy")
    world.request("Abort")
    await world.rest()
    assert world.status["lastAction"]["message"] == "no release is on"
    world.patch_lws({"replicas": 2})
    await world.rest()
    assert_clean(world, "v2", replicas=2)


# The hold


RESET = (
    "another client reset the hold of LeaderWorkerSet llama; it was put back: remove"
    " rollingUpdateConfiguration.partition from its manifest"
)
CONTESTED = (
    "another client resets the hold of LeaderWorkerSet llama within seconds each time that it is put back: it is left"
    " as it is for now; remove rollingUpdateConfiguration.partition from its manifest, or have another client leave the"
    " partition alone"
)


@tells(
    {
        Reason.HOLD_CONFLICT: "another client resets the partition of LeaderWorkerSet llama within seconds each time"
        " that the hold is put back, so a new version would roll by itself: remove"
        " rollingUpdateConfiguration.partition from its manifest, or have another client leave it alone; it is put"
        " back at 00:01:19 UTC, at once when another version is applied"
    },
    {EventReason.HOLD_RESET: RESET, EventReason.HOLD_CONFLICT: CONTESTED},
)
async def test_a_hold_given_up_at_rest_is_never_silent_and_comes_back(world: World) -> None:
    await at_rest(world)
    tool = Insisting(world)
    await world.sleep(60)
    tool.stop()
    assert (world.state, world.condition("Held")["status"]) == ("Stalled", "False")
    world.writes.clear()
    await world.until_state("Healthy", seconds=200)
    await world.sleep(3600)
    assert world.condition("Held")["status"] == "True"
    assert len([write for write in world.writes if write.resource == LEADER_WORKER_SETS]) == 1
    assert_clean(world, "v1")


@tells(
    {
        Reason.HOLD_CONFLICT: "another client resets the partition of LeaderWorkerSet llama within seconds each time"
        " that the hold is put back, so the new version rolls by itself now: remove"
        " rollingUpdateConfiguration.partition from its manifest, or have another client leave it alone; it is put"
        " back once that roll is over (0 of 4 groups have its version and are ready)"
    },
    {
        EventReason.ROLLED_OUT_NATIVELY: f"revision {V2} is stable: the LeaderWorkerSet rolled by itself",
        EventReason.ACTION_REFUSED: "Abort was refused: LeaderWorkerSet llama is not held now and rolls by itself,"
        " whatever is asked of the release: restore the stable template to go back",
    },
)
async def test_a_contest_in_mid_release_refuses_an_abort_that_it_could_not_carry_out(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.checks.clear()
    tool = Insisting(world, delay=1)
    await world.until(lambda: world.condition("Stalled").get("reason") == "HoldConflict")
    tool.stop()
    world.request("Abort")
    await world.until_state("Healthy")
    await world.until(lambda: world.condition("Held")["status"] == "True")
    await world.rest()
    assert_clean(world, "v2")


@tells(
    {
        Reason.HOLD_RELEASED: "the hold of LeaderWorkerSet llama was released by its annotation"
        " rollouts.kruise.io/release-hold: remove the annotation to have releases in steps again"
    },
    {EventReason.HOLD_RELEASED: "LeaderWorkerSet llama has its own strategy back"},
)
async def test_a_broken_glass_says_how_to_mend_it(world: World) -> None:
    await at_rest(world)
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"annotations": {KEYS.release_hold: "true"}}})
    await world.until_state("HoldReleased")
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"annotations": {KEYS.release_hold: None}}})
    await world.until_state("Healthy")


MISSING = (
    f"LeaderWorkerSet llama is held with groups of revision {V1}, but its ControllerRevision is gone: annotate it"
    " rollouts.kruise.io/release-hold=true to let the pending version roll"
)


@tells({Reason.REVISION_MISSING: MISSING})
async def test_a_held_lws_whose_running_version_nobody_remembers_is_not_guessed_at(world: World) -> None:
    await at_rest(world)
    before = world.leader_uids()
    await waiting_for_approval(world)
    world.delete(world.ROLLOUT, NAME)
    await world.until(lambda: world.get(world.ROLLOUT, NAME) is None)
    await world.rest()
    for record in world.server.list(CONTROLLER_REVISIONS, NAMESPACE):
        owner = record["metadata"]["ownerReferences"][0]["kind"]
        if owner == "LeaderWorkerSet" and V1 in record["metadata"]["labels"].values():
            world.delete(CONTROLLER_REVISIONS, record["metadata"]["name"])
    world.create_rollout(*STEPS)
    await world.until_state("Stalled")
    assert_stalled(world, Reason.REVISION_MISSING, MISSING, phase="Initial")
    assert world.leader_uids() == before


# Leaving


WAITS = (
    f"the version in the template of LeaderWorkerSet llama is not running: its groups stay at revision {V1}. To let"
    " it roll at once, set spec.rolloutStrategy.rollingUpdateConfiguration.partition to 0; to have it released in"
    " steps, let a Rollout name this LeaderWorkerSet"
)


@tells(
    {Reason.DISABLED: f"disabled; LeaderWorkerSet llama stays held: {WAITS}"},
    {EventReason.UPDATE_HELD: WAITS},
)
async def test_disabling_a_release_says_that_the_lws_stays_held(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.patch_rollout({"disabled": True})
    await world.until_state("Disabled")
    assert world.lws["metadata"]["annotations"][KEYS.held] == WAITS
    assert world.condition("Ready")["status"] == "True"
    world.patch_rollout({"disabled": False})
    await waiting_for_approval(world)
    assert KEYS.held not in world.lws["metadata"]["annotations"]


@tells(
    {Reason.DISABLED: "disabled: the LeaderWorkerSet rolls by its own strategy"},
    {EventReason.DETACHED: "LeaderWorkerSet llama has its own strategy back"},
)
async def test_disabling_at_rest_says_that_the_lws_is_free(world: World) -> None:
    await at_rest(world)
    world.patch_rollout({"disabled": True})
    await world.until_state("Disabled")


@tells({Reason.TERMINATING: "leaving the LeaderWorkerSet: canary llama-canary is going"})
async def test_a_deleted_rollout_tells_what_it_waits_for(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.delete(world.ROLLOUT, NAME)
    await world.until(lambda: world.get(world.ROLLOUT, NAME) is None)


RENAMED = f"LeaderWorkerSet calls the unchanged version newhash instead of {V1}; nothing is released"


@tells(events={EventReason.REVISION_RENAMED: RENAMED})
async def test_a_revision_that_only_lws_calls_differently_is_not_released(world: World) -> None:
    await at_rest(world)
    # An upgraded LeaderWorkerSet controller hashes the same template differently and labels its StatefulSet anew.
    world.cluster.runner.stop()
    world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"maxUnavailable": 2}}})
    world.patch(STATEFUL_SETS, NAME, {"metadata": {"labels": {LWS_REVISION: "newhash"}}})
    generation = world.lws["metadata"]["generation"]
    world.patch(LEADER_WORKER_SETS, NAME, {"status": {"observedGeneration": generation}}, "status")
    await world.rest()
    assert (world.state, world.status["phase"]) == ("Healthy", "Healthy")
