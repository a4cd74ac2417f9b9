"""Every way back: abort, restored template, third template, retry; before, in and after the promotion."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.rollout.reasons import EventReason
from tests.scenarios.invariants import always_serving
from tests.scenarios.stories import CANARY, STEPS, assert_clean, at_rest, mid_promotion, waiting_for_approval
from tests.scenarios.world import KEYS, NAME, World

pytestmark = pytest.mark.looptime


async def test_an_abort_leaves_stable_untouched_and_the_version_waiting(world: World) -> None:
    await at_rest(world)
    before = world.leader_uids()
    await waiting_for_approval(world)
    world.request("Abort", by="ann", reason="wrong prompts")
    await world.until_state("Aborted")
    await world.rest()
    assert_clean(world, "v1")
    assert world.leader_uids() == before
    assert world.status["phase"] == "Aborted"
    assert world.condition("Stalled")["reason"] == "Aborted"
    assert "wrong prompts" in world.condition("Stalled")["message"]
    assert (world.condition("Succeeded")["status"], world.condition("Succeeded")["reason"]) == ("False", "Aborted")
    assert world.status["lastAction"]["outcome"] == "Done"
    assert "Abort by ann: wrong prompts" in [event.note for event in world.events]
    assert "requestedAction" not in world.status
    assert KEYS.aborted in world.lws["metadata"]["annotations"]


async def test_nothing_of_an_abort_outlives_a_rollout_that_leaves_at_rest(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.request("Abort")
    await world.until_state("Aborted")
    world.set_image("v1")
    await world.until_state("Healthy")
    await world.rest()
    assert KEYS.aborted in world.lws["metadata"]["annotations"]
    world.delete(world.ROLLOUT, NAME)
    await world.until(lambda: world.get(world.ROLLOUT, NAME) is None)
    await world.rest()
    assert [key for key in world.lws["metadata"].get("annotations", {}) if KEYS.owns(key)] == []


async def test_a_leader_set_seen_late_is_not_told_of_as_a_renamed_version(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    before = list(world.view.stateful_sets(NAME))
    with monkeypatch.context() as late:
        late.setattr(world.view, "stateful_sets", lambda _: before)
        world.set_image("v1")
        await world.sleep(1)
    await world.until_state("Healthy")
    await world.rest()
    assert EventReason.REVISION_RENAMED not in [event.reason for event in world.events]


async def test_an_abort_in_mid_promotion_brings_stable_back_and_never_stops_serving(world: World) -> None:
    await at_rest(world)
    world.checks.append(always_serving)
    await mid_promotion(world)
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert_clean(world, "v1")


async def test_a_template_edited_inside_a_window_restarts_nothing_with_the_third_version(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.approve()
    await world.until(lambda: any(write.reason == "renew group 2" for write in world.writes))
    seen: set[str] = set()
    world.checks.append(lambda now: seen.update(now.groups().values()))
    world.set_image("v3")
    await world.until_state("AwaitingApproval")
    assert world.groups() == dict.fromkeys(range(4), "v1")
    assert sum(told.startswith("v3") for told in seen) <= 2


async def test_an_abort_after_the_promotion_is_refused(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.approve()
    await world.until(lambda: (world.status.get("finalising") or {}).get("task") == "CleanUp")
    world.request("Abort")
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")
    assert world.status["lastAction"]["outcome"] == "Refused"
    assert "undo" in world.status["lastAction"]["message"]


async def test_a_bad_version_never_reaches_stable_and_is_told_with_pod_and_container(world: World) -> None:
    await at_rest(world, *STEPS, progressDeadlineSeconds=120)
    before = world.leader_uids()
    world.set_image("bad-v2")
    await world.until(lambda: world.state == "Stalled", seconds=300)
    assert world.condition("Stalled")["reason"] == "ProgressDeadlineExceeded"
    assert world.leader_uids() == before
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert_clean(world, "v1")


async def test_a_crashing_version_is_found_by_its_groups_being_rebuilt(world: World) -> None:
    await at_rest(world, *STEPS)
    template = {
        "metadata": {
            "labels": {"app": "llama"},
            "annotations": {"sandbox.rollouts.kruise.io/fail": "CrashLoopBackOff"},
        },
        "spec": {"containers": [{"name": "vllm", "image": "vllm:v2"}]},
    }
    world.patch_lws({"leaderWorkerTemplate": {"workerTemplate": template}})
    await world.until(lambda: world.state == "Stalled", seconds=900)
    assert world.condition("Stalled")["reason"] == "GroupKeepsRestarting"
    assert f"group 0 of {CANARY}" in world.condition("Stalled")["message"]


async def test_on_failure_abort_goes_back_by_itself(world: World) -> None:
    await at_rest(world, *STEPS, progressDeadlineSeconds=60, onFailure="Abort")
    world.set_image("bad-v2")
    await world.until_state("Aborted", seconds=300)
    await world.rest()
    assert_clean(world, "v1")


async def test_a_stalled_step_gets_a_new_deadline_by_retry(world: World) -> None:
    await at_rest(world, *STEPS, progressDeadlineSeconds=60)
    world.set_image("bad-v2")
    await world.until_state("Stalled", seconds=300)
    world.request("Retry")
    await world.until_state("Loading")
    await world.until_state("Stalled", seconds=300)
    assert world.status["lastAction"]["type"] == "Retry"


async def test_a_forgotten_approval_times_out_and_still_counts_when_late(world: World) -> None:
    await at_rest(world, {"replicas": 1, "pause": {"approvalTimeoutSeconds": 3600}})
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    await world.until_state("Stalled", seconds=4000)
    assert world.condition("Stalled")["reason"] == "ApprovalTimeout"
    world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")


async def test_a_canary_deleted_by_hand_is_made_again(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    canary = world.get(LEADER_WORKER_SETS, CANARY)
    assert canary is not None
    world.delete(LEADER_WORKER_SETS, CANARY)
    await world.until(lambda: _uid(world, CANARY) not in ("", canary["metadata"]["uid"]), "a new canary")
    await world.until_state("AwaitingApproval")
    world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")


async def test_a_batch_release_deleted_by_hand_is_made_again(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.delete(world.RECORD, NAME)
    await world.until(lambda: world.state != "AwaitingApproval")
    await world.until_state("AwaitingApproval")
    world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")


async def test_an_id_that_was_filed_is_never_run_again(world: World) -> None:
    await at_rest(world, {"replicas": 1, "pause": {}}, {"replicas": 2, "pause": {}})
    await waiting_for_approval(world)
    world.request("Approve", id="once")
    await world.until(lambda: world.status["currentStepIndex"] == 2 and world.state == "AwaitingApproval")
    world.request("Approve", id="once")
    await world.rest()
    assert world.status["currentStepIndex"] == 2
    assert world.state == "AwaitingApproval"


async def test_an_approval_meant_for_another_step_is_refused(world: World) -> None:
    await at_rest(world, {"replicas": 1, "pause": {}}, {"replicas": 2, "pause": {}})
    await waiting_for_approval(world)
    world.request("Approve", step=2)
    await world.rest()
    assert world.status["lastAction"]["outcome"] == "Refused"
    assert world.status["currentStepIndex"] == 1


async def killed_in_the_last_window(world: World) -> None:
    """Every group is open to change, and nobody is there to close the window."""
    await mid_promotion(world)
    await world.until(lambda: world.lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] == 0)
    world.stop_controller()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("replicas", [1, 4])
async def test_a_third_template_that_rolled_through_an_open_window_is_stable(world: World, replicas: int) -> None:
    await at_rest(world, replicas=replicas)
    await killed_in_the_last_window(world)
    world.set_image("v3")
    await world.until(lambda: world.groups() == dict.fromkeys(range(replicas), "v3"))
    await world.rest()
    world.start_controller()
    await world.until(lambda: world.state == "Healthy" and "finalising" not in world.status)
    await world.rest()
    assert_clean(world, "v3", replicas=replicas)
    assert world.status["stable"]["templateHash"] == world.status["observedTemplateHash"]
    assert EventReason.ROLLED_OUT_NATIVELY in [event.reason for event in world.events]


async def test_a_third_template_that_began_in_an_open_window_waits_for_the_promoted_one(world: World) -> None:
    await at_rest(world)
    await killed_in_the_last_window(world)
    await world.until(lambda: world.groups() == dict.fromkeys(range(4), "v2"))
    await world.rest()
    world.set_image("v3")
    await world.until(lambda: world.groups()[3].startswith("v3"))
    world.checks += [always_serving]
    world.start_controller()
    await world.until_state("AwaitingApproval")
    assert world.groups() == dict.fromkeys(range(4), "v2")
    assert world.groups(CANARY) == {0: "v3", 1: "v3"}
    world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v3")


async def test_everything_at_once_on_request(world: World) -> None:
    await at_rest(world, {"replicas": 1, "pause": {}}, {"replicas": 2, "pause": {}}, {"replicas": 3, "pause": {}})
    await waiting_for_approval(world)
    world.request("PromoteFull")
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")


def _uid(world: World, name: str) -> str:
    found = world.get(LEADER_WORKER_SETS, name)
    return str(found["metadata"]["uid"]) if found else ""


async def test_an_abort_of_a_release_that_is_superseded_already_is_refused(world: World) -> None:
    await at_rest(world)
    await waiting_for_approval(world)
    world.set_image("v3")
    await world.until(lambda: (world.status.get("finalising") or {}).get("reason") == "Continuous")
    world.request("Abort")
    await world.until_state("AwaitingApproval")
    assert world.status["lastAction"]["outcome"] == "Refused"
    assert "another version was applied" in world.status["lastAction"]["message"]


async def test_a_retry_waits_for_the_end_of_the_way_back(world: World) -> None:
    await at_rest(world)
    await mid_promotion(world)
    world.request("Abort")
    await world.until(lambda: (world.status.get("finalising") or {}).get("task") == "RollBackPromotion")
    world.request("Retry")
    await world.until(lambda: "finalising" not in world.status)
    assert (world.status["phase"], world.groups()) == ("Aborted", dict.fromkeys(range(4), "v1"))
    await world.until_state("AwaitingApproval")
    assert world.status["lastAction"]["type"] == "Retry"
