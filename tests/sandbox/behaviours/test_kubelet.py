"""What a pod goes through on a node, and how annotations on its template steer it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS, NODES, PODS
from rollout_lws.objects.writes import Delete, Patch
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.base import NOTHING
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import CUT_OFF, Script, Timing
from rollout_lws.sandbox.behaviours.nodes import kubelet
from rollout_lws.sandbox.behaviours.nodes.pod_life import Stage, stage
from rollout_lws.sandbox.behaviours.nodes.scheduler import thousandths
from tests.sandbox.behaviours import world
from tests.sandbox.behaviours.world import NAMESPACE, cluster, leaders, lws, template

PREFIX = "sandbox.rollouts.kruise.io/"


def create(server: ApiServer, name: str = "solo", image: str = "model:A", **annotations: str) -> None:
    body = template(image)
    body["metadata"] |= {
        "name": name,
        "namespace": NAMESPACE,
        "annotations": {PREFIX + key.replace("_", "-"): value for key, value in annotations.items()},
    }
    server.create(PODS, body)


def container(server: ApiServer, name: str = "solo") -> dict[str, Any]:
    found: dict[str, Any] = world.pod(server, name)["status"]["containerStatuses"][0]
    return found


def phase(server: ApiServer, name: str = "solo") -> tuple[str, bool]:
    pod = world.pod(server, name)
    return pod["status"]["phase"], world.ready(pod)


@pytest.mark.looptime
async def test_a_pod_runs_at_once_and_is_ready_after_exactly_its_load() -> None:
    async with cluster() as server:
        create(server, ready_after="40s")
        await asyncio.sleep(39.99)
        assert phase(server) == ("Running", False)
        await asyncio.sleep(0.02)
        assert phase(server) == ("Running", True)
        assert world.pod(server, "solo")["status"]["podIP"].startswith("10.")


@pytest.mark.looptime
async def test_a_pod_that_is_cut_off_with_its_node_is_not_ready_until_that_is_back() -> None:
    async with cluster() as server:
        create(server, ready_after="1s")
        await asyncio.sleep(1.01)
        before = container(server)
        for cut_off, ready in (("true", False), (None, True)):
            body = {"metadata": {"annotations": {PREFIX + CUT_OFF: cut_off}}}
            server.patch(PODS, NAMESPACE, "solo", body)
            await asyncio.sleep(0.01)
            assert phase(server) == ("Running", ready)
            assert container(server) == before


@pytest.mark.looptime
async def test_speed_shortens_every_time() -> None:
    async with cluster(Options(timing=Timing(speed=10))) as server:
        create(server, ready_after="40s")
        await asyncio.sleep(4.01)
        assert phase(server) == ("Running", True)


@pytest.mark.looptime
async def test_a_leader_loads_longer_where_it_waits_for_its_workers() -> None:
    async with cluster(Options(timing=Timing(ready_after=10, leader_longer=5))) as server:
        server.create(LEADER_WORKER_SETS, lws(replicas=1, size=2))
        await asyncio.sleep(10.01)
        assert {each["metadata"]["name"]: world.ready(each) for each in server.list(PODS, NAMESPACE)} == {
            "llm-0": False,
            "llm-0-1": True,
        }
        await asyncio.sleep(5)
        assert all(world.ready(each) for each in server.list(PODS, NAMESPACE))


@pytest.mark.looptime
async def test_a_bad_image_never_becomes_ready() -> None:
    async with cluster() as server:
        create(server, image="registry:5000/team/model:bad-2")
        await asyncio.sleep(3600)
        assert phase(server) == ("Running", False)


@pytest.mark.looptime
async def test_an_image_that_cannot_be_pulled_leaves_the_pod_pending_with_a_reason() -> None:
    async with cluster() as server:
        create(server, fail="ImagePullBackOff")
        await asyncio.sleep(5)
        assert phase(server) == ("Pending", False)
        assert container(server)["state"]["waiting"]["reason"] == "ImagePullBackOff"
        assert container(server)["state"]["waiting"]["message"] == 'Back-off pulling image "model:A"'


@pytest.mark.looptime
async def test_a_crash_loop_counts_restarts_with_growing_back_off() -> None:
    async with cluster() as server:
        create(server, fail="CrashLoopBackOff")
        await asyncio.sleep(5)
        assert container(server)["restartCount"] == 1
        assert container(server)["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert container(server)["state"]["waiting"]["message"].startswith("back-off 10s restarting")
        assert container(server)["lastState"]["terminated"]["exitCode"] == 1
        await asyncio.sleep(10)
        assert container(server)["restartCount"] == 2
        assert phase(server) == ("Running", False)


@pytest.mark.looptime
async def test_a_container_that_runs_out_of_memory_ends_as_one() -> None:
    async with cluster() as server:
        create(server, fail="OOMKilled")
        await asyncio.sleep(5)
        ended = container(server)["lastState"]["terminated"]
        assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)


@pytest.mark.looptime
async def test_crash_after_serves_until_then() -> None:
    async with cluster() as server:
        create(server, crash_after="10m")
        await asyncio.sleep(599)
        assert (phase(server), container(server)["restartCount"]) == (("Running", True), 0)
        await asyncio.sleep(1.5)
        assert (phase(server), container(server)["restartCount"]) == (("Running", False), 1)
        await asyncio.sleep(1)
        assert phase(server) == ("Running", True)


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("where", "failing"),
    [("leader", {"llm-0", "llm-1"}), ("worker", {"llm-0-1", "llm-1-1"}), ("llm-1*", {"llm-1", "llm-1-1"})],
)
async def test_fail_on_picks_the_pods_that_fail(where: str, failing: set[str]) -> None:
    async with cluster() as server:
        body = template(annotations={PREFIX + "fail": "NeverReady", PREFIX + "fail-on": where})
        server.create(LEADER_WORKER_SETS, lws(leaderWorkerTemplate={"workerTemplate": body}))
        await asyncio.sleep(10)
        pods = server.list(PODS, NAMESPACE)
        assert len(pods) == 4
        assert {pod["metadata"]["name"] for pod in pods if not world.ready(pod)} == failing


@pytest.mark.looptime
async def test_a_crashing_group_is_recreated_again_and_again_by_default() -> None:
    async with cluster() as server:
        body = template(annotations={PREFIX + "fail": "CrashLoopBackOff", PREFIX + "fail-on": "worker"})
        server.create(LEADER_WORKER_SETS, lws(replicas=1, leaderWorkerTemplate={"workerTemplate": body}))
        uids: set[str] = set()
        for _ in range(20):
            await asyncio.sleep(1)
            uids |= {pod["metadata"]["uid"] for pod in leaders(server).values()}
        assert len(uids) >= 5


@pytest.mark.looptime
async def test_a_deleted_pod_is_gone_after_its_termination_time() -> None:
    async with cluster() as server:
        create(server)
        create(server, "slow", terminate_after="5s")
        await asyncio.sleep(2)
        for name in ("solo", "slow"):
            server.delete(PODS, NAMESPACE, name)
        await asyncio.sleep(0.19)
        assert set(world.images(server)) == {"solo", "slow"}
        await asyncio.sleep(0.02)
        assert set(world.images(server)) == {"slow"}
        await asyncio.sleep(4.8)
        assert world.images(server) == {}


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("annotation", "value", "says"),
    [("ready-after", "soon", "is no duration"), ("fail", "Maybe", "is not one of"), ("crash-after", "0s", "more")],
)
async def test_an_annotation_that_cannot_be_read_is_told_in_the_pods_status(
    annotation: str, value: str, says: str
) -> None:
    async with cluster() as server:
        create(server, **{annotation: value})
        await asyncio.sleep(60)
        assert not world.ready(world.pod(server, "solo"))
        message = world.pod(server, "solo")["status"]["message"]
        assert PREFIX + annotation in message and says in message


@pytest.mark.looptime
async def test_a_pod_that_fits_nowhere_waits_with_the_schedulers_message_until_there_is_room() -> None:
    async with cluster(Options(nodes=2, gpus_per_node=8)) as server:
        for number in range(3):
            body = template(resources={"limits": {"nvidia.com/gpu": "8"}})
            body["metadata"] |= {"name": f"gpu-{number}", "namespace": NAMESPACE}
            server.create(PODS, body)
        await asyncio.sleep(2)
        waiting = world.pod(server, "gpu-2")
        condition = waiting["status"]["conditions"][0]
        assert (waiting["status"]["phase"], condition["reason"]) == ("Pending", "Unschedulable")
        assert condition["message"] == "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
        server.delete(PODS, NAMESPACE, "gpu-0")
        await asyncio.sleep(2)
        assert phase(server, "gpu-2") == ("Running", True)


@pytest.mark.looptime
async def test_an_amount_that_cannot_be_read_is_told_by_the_scheduler() -> None:
    async with cluster() as server:
        body = template(resources={"requests": {"cpu": "lots"}})
        body["metadata"] |= {"name": "solo", "namespace": NAMESPACE}
        server.create(PODS, body)
        await asyncio.sleep(1)
        assert '"lots" is not a quantity' in world.pod(server, "solo")["status"]["conditions"][0]["message"]


@pytest.mark.looptime
async def test_told_to_be_unschedulable_a_pod_names_the_accelerators() -> None:
    async with cluster() as server:
        create(server, fail="Unschedulable")
        await asyncio.sleep(1)
        conditions = world.pod(server, "solo")["status"]["conditions"]
        assert conditions[0]["message"] == "0/8 nodes are available: 8 Insufficient nvidia.com/gpu."


@pytest.mark.looptime
async def test_cordoned_nodes_and_node_selectors_are_respected() -> None:
    async with cluster(Options(nodes=2)) as server:
        server.patch(NODES, "", "node-0", {"spec": {"unschedulable": True}})
        create(server, "anywhere")
        picky = template()
        picky["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "node-7"}
        picky["metadata"] |= {"name": "picky", "namespace": NAMESPACE}
        server.create(PODS, picky)
        await asyncio.sleep(1)
        assert world.pod(server, "anywhere")["spec"]["nodeName"] == "node-1"
        assert world.pod(server, "picky")["status"]["conditions"][0]["message"] == (
            "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
            "1 node(s) were unschedulable."
        )


def bound(**metadata: Any) -> dict[str, Any]:
    """A pod on a node, as a kubelet sees it."""
    spec = {"nodeName": "node-0", "containers": [{"name": "main", "image": "model:A"}]}
    return {"metadata": {"name": "solo", "namespace": NAMESPACE, "uid": "00c0ffee", **metadata}, "spec": spec}


@pytest.mark.parametrize(
    ("finalizers", "propagation"), [([], "Background"), (["foregroundDeletion"], "Foreground"), (["own"], "Background")]
)
def test_the_end_of_a_pod_leaves_to_others_what_it_waits_for(finalizers: list[str], propagation: str) -> None:
    pod = bound(deletionTimestamp="2026-01-01T00:00:30Z", deletionGracePeriodSeconds=30, finalizers=finalizers)
    (gone,) = kubelet.decide(pod, Timing(), 1.0, started=0.0, doomed=0.0).writes
    assert gone == Delete(
        PODS, NAMESPACE, "solo", "00c0ffee", "its containers have ended", propagation=propagation, grace_seconds=0
    )


def test_a_pod_whose_removal_was_cut_in_two_is_removed_again() -> None:
    """The server marks it and dies; what only finalizers keep is left to those that have set them."""
    ended = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}
    waiting = kubelet.decide(bound(**ended), Timing(), 0.3, started=0.0, doomed=0.0)
    assert (waiting.writes, waiting.wake_at) == ((), pytest.approx(1.2))
    (gone,) = kubelet.decide(bound(**ended), Timing(), 1.2, started=0.0, doomed=0.0).writes
    assert isinstance(gone, Delete)
    kept = bound(**ended, finalizers=["own"])
    assert kubelet.decide(kept, Timing(), 9.0, started=0.0, doomed=0.0) == NOTHING


def test_a_status_that_the_server_filled_in_is_not_reported_again() -> None:
    """A real API server gives every condition of a pod a lastProbeTime."""
    pod = bound()
    (report,) = kubelet.decide(pod, Timing(), 1.0, started=0.0).writes
    assert isinstance(report, Patch)
    status = report.body["status"]
    conditions = [{**each, "lastProbeTime": None} for each in status["conditions"]]
    pod["status"] = {**status, "conditions": conditions, "qosClass": "BestEffort"}
    assert kubelet.decide(pod, Timing(), 2.0, started=0.0).writes == ()
    pod["status"]["conditions"][-1]["status"] = "False"
    assert kubelet.decide(pod, Timing(), 2.0, started=0.0).writes != ()


@pytest.mark.parametrize(
    ("age", "wanted"),
    [
        (0.0, Stage(until=1.0)),
        (1.0, Stage(ready=True, until=5.0)),
        (5.0, Stage(restarts=1, until=6.0)),
        (10.0, Stage(restarts=1, waiting="CrashLoopBackOff", back_off=10.0, until=20.0)),
        (25.0, Stage(restarts=2, waiting="CrashLoopBackOff", back_off=20.0, until=45.0)),
    ],
)
def test_the_life_of_a_container_is_a_function_of_its_age(age: float, wanted: Stage) -> None:
    assert stage(Script(ready_after=1.0, terminate_after=0.2, crash_after=5.0), age) == wanted


@pytest.mark.parametrize(("text", "wanted"), [("8", 8000), ("500m", 500), ("2Gi", 2 * 2**30 * 1000), ("1k", 10**6)])
def test_quantities_are_read_exactly(text: str, wanted: int) -> None:
    assert thousandths(text) == wanted
