"""LeaderWorkerSets that MultiKueue dispatches, and its copies of them: told as that on either side, and left alone."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.kueue import JOB_UID, MANAGED, MULTIKUEUE, ORIGIN, QUEUE_NAME
from rollout_lws.objects.resources import KUEUE_WORKLOADS, LEADER_WORKER_SETS, PODS
from rollout_lws.rollout.reasons import EventReason, Reason
from tests.scenarios.failures import apply
from tests.scenarios.kueue import ADMITTED, GATED, condition, dispatching_check, in_cluster, install, queue
from tests.scenarios.obstacles import refused, served, unserved
from tests.scenarios.stories import CANARY, STEPS, at_rest
from tests.scenarios.told import assert_stalled, assert_untouched, tells
from tests.scenarios.world import NAME, NAMESPACE, World

pytestmark = pytest.mark.looptime

# In the cluster that it is copied to


COPY = (
    "LeaderWorkerSet llama is a copy that MultiKueue (multikueue) has made: what is changed here is lost, with all"
    " groups, when it is recreated. Have it released in a queue without MultiKueue (docs/multikueue.md), and delete"
    " this Rollout"
)


@tells({Reason.MULTIKUEUE: COPY})
async def test_a_copy_is_left_alone_and_so_is_the_one_that_takes_its_place(world: World) -> None:
    def copy() -> None:
        world.create_workload()
        world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"labels": {ORIGIN: "multikueue"}}})

    copy()
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.until_state("Stalled")
    world.set_image("v2")
    await world.rest()
    assert_stalled(world, Reason.MULTIKUEUE, COPY, phase="Initial")
    # MultiKueue takes back what was changed here: all groups end with the copy, and the next is as the first was.
    first = world.lws["metadata"]["uid"]
    world.delete(LEADER_WORKER_SETS, NAME)
    await world.until(lambda: world.get(LEADER_WORKER_SETS, NAME) is None, "gone")
    copy()
    await world.rest()
    assert world.lws["metadata"]["uid"] != first
    assert_stalled(world, Reason.MULTIKUEUE, COPY, phase="Initial")
    assert_untouched(world)


# In the cluster that manages it


def dispatched(where: str, *, by: str = "admission check dispatch", here: str = "") -> str:
    to = f"about to be dispatched to {where}" if where == "another cluster" else f"dispatched to {where}"
    return (
        f"LeaderWorkerSet llama is {to} by MultiKueue ({by}): its groups run there, from a copy that follows neither"
        " template nor partition. A version applied here comes to all groups at once when the copy is recreated, which"
        " a single lost group can cause. To release in steps, have the LeaderWorkerSet in each cluster, in a queue"
        f" without that check: docs/multikueue.md{here}"
    )


LET_GO = (
    "Kueue lets leaders of the old version go while a version waits; give this cluster no node that fits, or restore"
    " the template"
)
BEGUN = "they began before MultiKueue dispatched it, or while another version waited"


_CHECKED: dict[str, Any] = {"admissionChecks": [{"name": "dispatch", "state": "Pending"}]}
_SEEN: dict[str, tuple[dict[str, Any], str]] = {
    "dispatched": (in_cluster("west"), dispatched("cluster west")),
    "its check not known": ({"clusterName": "west"}, dispatched("cluster west", by=MULTIKUEUE)),
    "being dispatched": (
        {"nominatedClusterNames": ["west", "east"], **_CHECKED},
        dispatched("another cluster"),
    ),
    "to be dispatched": (_CHECKED, dispatched("another cluster")),
}


def create_gated(world: World, *, replicas: int) -> None:
    """An LWS of which Kueue holds every pod."""
    spec = {"containers": [{"name": "vllm", "image": "vllm:v1"}], **GATED}
    template = {"metadata": {"labels": {"app": "llama"}}, "spec": spec}
    world.create_workload(replicas=replicas, leaderWorkerTemplate={"size": 2, "workerTemplate": template})
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"labels": {QUEUE_NAME: "team-a"}}})


async def dispatched_to_west(world: World, status: dict[str, Any] | None = None) -> None:
    """Three gated groups, admitted by cluster west unless their Workloads have another status."""
    install(world)
    dispatching_check(world)
    create_gated(world, replicas=3)
    await world.rest()
    for group in range(3):
        queue(world, group, lws=NAME, **(status or in_cluster("west")))
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.until_state("Stalled")


@pytest.mark.parametrize("case", _SEEN)
async def test_an_lws_that_multikueue_dispatches_is_left_alone(world: World, case: str) -> None:
    status, words = _SEEN[case]
    await dispatched_to_west(world, status)
    await world.rest()
    assert_stalled(world, Reason.MULTIKUEUE, words, phase="Initial")
    assert_untouched(world)


async def test_an_lws_that_multikueue_begins_to_dispatch_is_given_its_own_strategy_back(world: World) -> None:
    install(world)
    create_gated(world, replicas=0)
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.until_state("Healthy")
    await world.rest()
    world.patch_lws({"replicas": 2})
    await world.rest()
    assert world.state == "Healthy"
    dispatching_check(world)
    queue(world, lws=NAME, **in_cluster("west"))
    await world.until_state("Stalled")
    await world.rest()
    assert world.true_conditions["Stalled"]["message"] == dispatched("cluster west")
    assert world.lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] == 0


async def test_an_lws_that_runs_here_and_is_dispatched_is_not_adopted(world: World) -> None:
    install(world)
    dispatching_check(world)
    world.create_workload(replicas=2)
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"labels": {QUEUE_NAME: "team-a"}}})
    await world.rest()
    queue(world, lws=NAME, **_CHECKED)
    world.create_rollout(*STEPS)
    world.start_controller()
    await world.until_state("Stalled")
    told = dispatched("another cluster", here=f". 4 of its pods run here: {BEGUN}")
    assert_stalled(world, Reason.MULTIKUEUE, told, phase="Initial")
    assert_untouched(world)


async def test_a_new_lws_is_not_adopted_before_its_workloads_name_their_checks(world: World) -> None:
    install(world)
    dispatching_check(world)
    world.create_rollout(*STEPS)
    world.start_controller()
    create_gated(world, replicas=2)
    await world.sleep(1)
    queue(world, lws=NAME)
    await world.sleep(1)
    assert_untouched(world)
    queue(world, 1, lws=NAME, **_CHECKED)
    await world.until_state("Stalled")
    assert_untouched(world)


async def test_no_group_is_made_for_an_lws_whose_queue_dispatches_since_it_was_adopted(world: World) -> None:
    install(world)
    dispatching_check(world)
    await at_rest(world)
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"labels": {QUEUE_NAME: "team-a"}}})
    queue(world, lws=NAME, **in_cluster("west"))
    await world.rest()
    assert world.state == "Healthy"
    world.set_image("v2")
    await world.until_state("Stalled")
    await world.rest()
    told = dispatched("cluster west", here=f". 8 of its pods run here: {BEGUN}")
    assert world.true_conditions["Stalled"]["message"] == told
    assert not [each for each in world.writes if each.name == CANARY]
    assert world.groups() == dict.fromkeys(range(4), "v1")


@tells(
    {Reason.MULTIKUEUE: dispatched("cluster west", here=f". 3 of its pods run here: {LET_GO}")},
    {
        EventReason.PODS_ON_MANAGER_CLUSTER: "pods of LeaderWorkerSet llama run here, too, which MultiKueue dispatches"
        f" to another cluster: {LET_GO}"
    },
)
async def test_leaders_that_kueue_lets_go_here_are_told_once(world: World) -> None:
    await dispatched_to_west(world)
    world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 10}}})
    world.set_image("v2")
    await world.rest()
    assert "localPods" not in world.status
    for group in range(3):
        leader = {"metadata": {"labels": {MANAGED: "true"}}, "spec": {"schedulingGates": None}}
        world.patch(PODS, f"{NAME}-{group}", leader)
    await world.until(lambda: world.status.get("localPods") == 3, "told")
    # The Rollout is asked about again, by whatever changes.
    world.patch(KUEUE_WORKLOADS, f"leaderworkerset-{NAME}-0", {"status": {"conditions": list(ADMITTED)}}, "status")
    await world.rest()
    # Nor is it told again by a controller that has to list the Workloads first.
    world.stop_controller()
    world.view.want(())
    world.start_controller()
    await world.sleep(10)
    told = [each.reason for each in world.events]
    assert [told.count(each) for each in (EventReason.PODS_ON_MANAGER_CLUSTER, EventReason.STALLED)] == [1, 1]
    for group in range(3):
        world.delete(PODS, f"{NAME}-{group}")
    await world.until(lambda: "localPods" not in world.status, "gone")
    assert world.true_conditions["Stalled"]["message"] == dispatched("cluster west")


NOT_LISTED = (
    "LeaderWorkerSet llama was dispatched to another cluster by MultiKueue when Kueue's Workloads could be listed. They"
    " cannot be listed now, so it is left alone: have the controller list workloads.kueue.x-k8s.io"
    " (docs/missing-permissions.md)"
)


@tells({Reason.MULTIKUEUE: NOT_LISTED})
async def test_a_controller_that_may_not_list_workloads_any_more_leaves_the_lws_alone(world: World) -> None:
    await dispatched_to_west(world)
    world.stop_controller()
    refused(KUEUE_WORKLOADS)(world)
    world.start_controller()
    await world.sleep(20)
    world.set_image("v2")
    await world.sleep(20)
    assert_stalled(world, Reason.MULTIKUEUE, NOT_LISTED, phase="Initial")
    assert_untouched(world)
    served(world)
    await world.until(lambda: world.status.get("message") == dispatched("cluster west"), "known again")


async def test_an_lws_is_adopted_when_kueue_is_gone(world: World) -> None:
    await dispatched_to_west(world)
    unserved(KUEUE_WORKLOADS)(world)
    world.patch_rollout({"strategy": {"minReadySeconds": 1}})
    await world.until_state("Healthy")


async def test_an_lws_whose_cluster_is_lost_stays_refused(world: World) -> None:
    await dispatched_to_west(world)
    message = 'Admitting remote lost, Previously: "Ready"'
    lost = {
        "conditions": [
            condition("QuotaReserved", "False", "Pending", f"Evicted due to AdmissionCheck in Retry state: {message}"),
            condition("Evicted", "True", "AdmissionCheck", message),
        ],
        "clusterName": None,
        "admissionChecks": [{"name": "dispatch", "state": "Pending", "message": "Reset to Pending after eviction"}],
    }
    for group in range(3):
        world.patch(KUEUE_WORKLOADS, f"leaderworkerset-{NAME}-{group}", {"status": lost}, "status")
        await world.rest()
        where = "cluster west" if group < 2 else "another cluster"
        assert_stalled(world, Reason.MULTIKUEUE, dispatched(where), phase="Initial")
    assert_untouched(world)


async def test_admission_checks_of_other_workloads_of_the_namespace_hold_nothing_up(world: World) -> None:
    install(world)
    world.create_workload(replicas=2, size=1)
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"labels": {QUEUE_NAME: "team-a"}}})
    for group in range(2):
        queue(world, group, lws=NAME, conditions=list(ADMITTED))
    # A Job's, of another queue.
    head = {"apiVersion": KUEUE_WORKLOADS.api_version, "kind": KUEUE_WORKLOADS.kind}
    meta = {"name": "job-train", "namespace": NAMESPACE, "labels": {JOB_UID: "uid-train"}}
    world.server.create(KUEUE_WORKLOADS, {**head, "metadata": meta, "spec": {}})
    world.patch(KUEUE_WORKLOADS, "job-train", {"status": _CHECKED}, "status")
    world.create_rollout({"replicas": 1, "pause": {}})
    world.start_controller()
    await world.until_state("Healthy")
    world.set_image("v2")
    await world.until_state("AwaitingApproval")


async def test_an_lws_that_kueue_queues_in_this_cluster_is_released_as_any(world: World) -> None:
    install(world)
    dispatching_check(world)
    await at_rest(world)
    world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"labels": {QUEUE_NAME: "team-a"}}})
    apply(world, **GATED)
    await world.until_state("WaitingForQuota")
    canary = world.get(LEADER_WORKER_SETS, CANARY)
    assert canary is not None
    assert canary["metadata"]["labels"][QUEUE_NAME] == "team-a"
