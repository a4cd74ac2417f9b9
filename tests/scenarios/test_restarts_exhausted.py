"""LeaderWorkerSet after 0.10 with ``maxGroupRestarts``: a group that has used it up is ended, keeps its pods, and does
not come back by itself. No step, window, promotion or way back waits for it in silence, or for ever.
"""

from __future__ import annotations

import pytest

from rollout_lws.objects.released import RECOVER, RESTARTS_EXHAUSTED
from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.workload.hold import HOLD
from tests.scenarios.count import partition
from tests.scenarios.failures import GO_BACK, apply, pods
from tests.scenarios.one_workload import IN_PLACE, STYLES, Style, in_care, over, step
from tests.scenarios.stories import CANARY, STEPS, assert_clean, at_rest, waiting_for_approval
from tests.scenarios.told import tells
from tests.scenarios.world import NAME, World

pytestmark = pytest.mark.looptime

ONE = ({"replicas": 1, "pause": {}}, {"replicas": "100%"})
TWO = ({"replicas": 2, "pause": {}}, {"replicas": "100%"})


@pytest.fixture
def world(world: World) -> World:
    world.upgrade_lws()
    return world


def limit(world: World, restarts: int) -> None:
    world.patch_lws({"leaderWorkerTemplate": {"maxGroupRestarts": restarts}})


async def end(world: World, group: int, lws: str = NAME, tag: str = "v2") -> None:
    """A worker of the group at this version is lost, and the group may not be made again."""
    leader, worker = f"{lws}-{group}", f"{lws}-{group}-1"

    def runs() -> bool:
        found = [pods(world, lws).get(name) for name in (leader, worker)]
        return all(
            each is not None
            and each["spec"]["containers"][0]["image"].endswith(tag)
            and each.get("status", {}).get("phase") == "Running"
            for each in found
        )

    await world.until(runs, f"{leader} at {tag}")
    world.delete(PODS, worker)
    await world.until(lambda: RESTARTS_EXHAUSTED in (pods(world, lws)[leader]["metadata"].get("annotations") or {}))


def recover(world: World, pod: str) -> None:
    world.patch(PODS, pod, {"metadata": {"annotations": {RECOVER: "true"}}})


def ended(workload: str, group: int, why: str = "") -> str:
    return (
        f"group {group} of {workload} has used up its restarts, and is made again only when asked for{why}; when that"
        f" is fixed: kubectl annotate pod {workload}-{group} leaderworkerset.sigs.k8s.io/recover=true -n default"
    )


STOPS = f"The release waits, to have it made again: kubectl rollout-lws retry llama; {GO_BACK}"
CRASHED = ended(CANARY, 0, f": pod {CANARY}-0 (leader) container vllm ended last with Error (exit 1)")


@tells({Reason.RESTARTS_EXHAUSTED: f"{CRASHED}. {STOPS}"})
async def test_a_canary_whose_restarts_are_used_up_is_told_at_once_and_goes_at_an_abort(world: World) -> None:
    await at_rest(world)
    limit(world, 1)
    apply(world, faults={"fail": "CrashLoopBackOff"})
    await world.until_state("Stalled")
    assert world.now.minute == 0, "not the deadline has found that out"
    (told,) = world.status["notReadyGroups"]
    assert (told["group"], told["reason"], told["pod"]) == ("0", "RestartsExhausted", f"{CANARY}-0")
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert world.get(LEADER_WORKER_SETS, CANARY) is None
    assert pods(world, CANARY) == {}
    assert world.groups() == dict.fromkeys(range(4), "v1")


async def test_where_failures_abort_the_release_is_taken_back_at_once(world: World) -> None:
    await at_rest(world, *STEPS, onFailure="Abort")
    limit(world, 0)
    apply(world, faults={"fail": "CrashLoopBackOff"})
    await world.until_state("Aborted", seconds=60)
    await world.rest()
    assert pods(world, CANARY) == {}


async def test_a_blue_green_release_is_tried_again_and_ends(world: World) -> None:
    await at_rest(world, {"replicas": "100%", "pause": {}}, blueGreen={})
    limit(world, 0)
    world.set_image("v2")
    await end(world, 2, CANARY)
    await world.until_state("Stalled")
    assert world.condition("Stalled")["reason"] == Reason.RESTARTS_EXHAUSTED
    world.request("Retry")
    await world.until_state("AwaitingApproval")
    world.approve()
    await world.until_state("Healthy")
    await world.rest()
    assert_clean(world, "v2")


async def test_a_group_that_may_fail_holds_nothing_up(world: World) -> None:
    await at_rest(world, {"replicas": 2, "pause": {}}, {"replicas": "100%"}, canary={"failureThreshold": 1})
    limit(world, 0)
    world.set_image("v2")
    await end(world, 1, CANARY)
    await world.until_state("AwaitingApproval")
    assert world.groups(CANARY)[0] == "v2"


@tells({Reason.RESTARTS_EXHAUSTED: f"{ended(NAME, 3)}. {STOPS}"})
async def test_in_place_the_window_closes_and_the_release_is_tried_again(world: World) -> None:
    windows = await in_care(world, IN_PLACE, *TWO)
    limit(world, 0)
    world.set_image("v2")
    await end(world, 3)
    await world.until_state("Stalled")
    assert partition(world.lws) == HOLD
    assert not windows.is_open
    await world.sleep(3600)
    assert (world.groups()[3], partition(world.lws)) == ("v2!", HOLD)
    world.request("Retry")
    await step(world, 1)
    world.approve()
    await over(world, "v2")
    assert_clean(world, "v2")


@pytest.mark.parametrize("style", STYLES, ids=str)
async def test_an_abort_takes_groups_back_that_do_not_come_back_by_themselves(world: World, style: Style) -> None:
    await in_care(world, style, *TWO)
    limit(world, 0)
    world.set_image("v2")
    await end(world, 4 if style.extra else 3)
    await world.until_state("Stalled")
    world.request("Abort")
    await over(world, "v1", "Aborted")
    assert set(pods(world, NAME)) == {f"{NAME}-{group}{pod}" for group in range(4) for pod in ("", "-1")}


async def test_the_stable_template_takes_them_back_as_well(world: World) -> None:
    await in_care(world, IN_PLACE, *TWO)
    limit(world, 0)
    world.set_image("v2")
    await end(world, 3)
    await world.until_state("Stalled")
    world.set_image("v1")
    await over(world, "v1")


async def test_a_third_version_goes_on_where_one_had_stopped(world: World) -> None:
    await in_care(world, IN_PLACE, *TWO)
    limit(world, 0)
    world.set_image("v2")
    await end(world, 3)
    await world.until_state("Stalled")
    world.set_image("v3")
    await step(world, 1)
    assert [world.groups()[ordinal] for ordinal in range(4)] == ["v1", "v1", "v3", "v3"]


async def test_a_controller_that_missed_it_closes_the_window(world: World) -> None:
    """The group comes, loses a worker and is ended before anybody has seen that its leader was there."""
    await in_care(world, IN_PLACE, *TWO)
    limit(world, 0)
    world.set_image("v2")
    await world.until(lambda: partition(world.lws) < HOLD, "a window")
    world.stop_controller()
    await world.until(lambda: world.groups()[3].startswith("v2"), "the first new group")
    await end(world, 3)
    await world.sleep(60)
    assert partition(world.lws) < HOLD
    world.start_controller()
    await world.until_state("Stalled")
    assert (partition(world.lws), world.condition("Stalled")["reason"]) == (HOLD, Reason.RESTARTS_EXHAUSTED)


PROMOTES = f"promotion: {ended(NAME, 3)}; it goes on as far as it can: renewing group 3"


@tells({Reason.RESTARTS_EXHAUSTED: PROMOTES})
@pytest.mark.parametrize("way", ["retry", "by hand", "abort"])
async def test_a_promotion_tells_what_it_waits_for(world: World, way: str) -> None:
    await at_rest(world, *ONE)
    limit(world, 0)
    await waiting_for_approval(world)
    world.approve()
    await world.until(lambda: world.groups()[3].startswith("v2"), "the first renewed group")
    await end(world, 3)
    await world.until_state("Stalled")
    if way == "by hand":
        recover(world, f"{NAME}-3")
    else:
        world.request("Abort" if way == "abort" else "Retry")
    await over(world, "v1" if way == "abort" else "v2", "Aborted" if way == "abort" else "Healthy")


async def test_a_promotion_renews_a_stable_group_that_was_ended(world: World) -> None:
    await at_rest(world, *ONE)
    limit(world, 0)
    await end(world, 1, tag="v1")
    await waiting_for_approval(world)
    world.approve()
    await over(world, "v2")
    assert_clean(world, "v2")


@tells(
    {
        Reason.LOADING: "group 1 is not ready: no further group may go down; group 1 has used up its restarts: kubectl"
        " annotate pod llama-1 leaderworkerset.sigs.k8s.io/recover=true -n default"
    }
)
async def test_in_place_a_stable_group_that_was_ended_is_named_with_what_to_do(world: World) -> None:
    await in_care(world, IN_PLACE, *TWO)
    limit(world, 0)
    await end(world, 1, tag="v1")
    world.checks.clear()  # a group is down that the release has not touched
    world.set_image("v2")
    await world.until(lambda: "has used up its restarts" in world.status.get("message", ""))
    recover(world, f"{NAME}-1")
    await step(world, 1)
    world.approve()
    await over(world, "v2")


async def test_a_way_back_ends_although_a_stable_group_was_ended(world: World) -> None:
    await in_care(world, IN_PLACE, *ONE)
    limit(world, 0)
    world.set_image("v2")
    await step(world, 1)
    world.checks.clear()
    await end(world, 0, tag="v1")
    world.request("Abort")
    await world.until_state("Aborted", 300)
    await world.rest()
    assert world.groups() == {0: "v1!", 1: "v1", 2: "v1", 3: "v1"}
    told = [event.note for event in world.events if event.reason == EventReason.ROLLING_BACK]
    assert any("not ready, and is not waited for any longer" in note for note in told), told


async def test_a_limit_alone_is_no_version_and_comes_with_the_canary(world: World) -> None:
    await at_rest(world)
    before = len(world.writes)
    limit(world, 3)
    await world.rest()
    assert world.state == "Healthy"
    assert {write.resource for write in world.writes[before:]} <= {world.ROLLOUT}
    world.server.patch(
        LEADER_WORKER_SETS,
        "default",
        NAME,
        {
            "metadata": {"annotations": {"leaderworkerset.sigs.k8s.io/group-restart-counts": '{"x/0":3}'}},
            "spec": {"podTerminationPolicy": "Parallel", "scheduling": {"gang": {}}},
        },
    )
    await world.rest()
    await waiting_for_approval(world)
    canary = world.get(LEADER_WORKER_SETS, CANARY)
    assert canary is not None
    assert canary["spec"]["leaderWorkerTemplate"]["maxGroupRestarts"] == 3
    assert (canary["spec"]["podTerminationPolicy"], canary["spec"]["scheduling"]) == ("Parallel", {"gang": {}})
    assert "leaderworkerset.sigs.k8s.io/group-restart-counts" not in (canary["metadata"].get("annotations") or {})


async def test_another_placement_is_another_version(world: World) -> None:
    await at_rest(world)
    policy = {"type": "ExclusiveTopology", "topology": "kubernetes.io/hostname"}
    world.patch_lws({"leaderWorkerTemplate": {"placementPolicy": policy}})
    await world.until_state("AwaitingApproval")
    world.request("Abort")
    await world.until_state("Aborted")
