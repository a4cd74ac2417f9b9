"""What came after LWS 0.10: limited restarts, whole groups from their own revision, placement as a part of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.released import RECOVER, RESTART_COUNTS, RESTARTS_EXHAUSTED
from rollout_lws.objects.resources import LEADER_WORKER_SETS, LWS_PREFIX, LWS_REVISION, NODES, PODS, STATEFUL_SETS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import PREFIX
from tests.sandbox.behaviours.world import NAMESPACE, cluster, leaders, lws, patch_lws, pod, ready, sizes, template

pytestmark = pytest.mark.looptime

HOLD = 10**6
#: The leader of group 1 ends a second after it has started.
CRASHES = {f"{PREFIX}crash-after": "1s", f"{PREFIX}fail-on": "llm-1"}


def rolling(**members: Any) -> dict[str, Any]:
    return {"rolloutStrategy": {"rollingUpdateConfiguration": members}}


def failing(limit: int | None, **more: Any) -> dict[str, Any]:
    groups = {"workerTemplate": template(annotations=CRASHES), **more}
    return lws(replicas=2, leaderWorkerTemplate=groups | ({} if limit is None else {"maxGroupRestarts": limit}))


def conditions(server: ApiServer) -> dict[str, tuple[str, str]]:
    found = server.get(LEADER_WORKER_SETS, NAMESPACE, "llm")["status"]["conditions"]
    return {each["type"]: (each["status"], each["reason"]) for each in found}


def counts(server: ApiServer) -> str:
    """Of the restarts, without the revision."""
    annotations = server.get(LEADER_WORKER_SETS, NAMESPACE, "llm")["metadata"].get("annotations") or {}
    return str(annotations.get(RESTART_COUNTS, "")).replace(
        leaders(server)["0"]["metadata"]["labels"][LWS_REVISION], "rev"
    )


def recover(server: ApiServer, name: str = "llm-1") -> None:
    server.patch(PODS, NAMESPACE, name, {"metadata": {"annotations": {RECOVER: "true"}}})


@pytest.mark.parametrize(("limit", "counted"), [(2, '{"rev/1":2}'), (0, "")])
async def test_a_group_that_has_used_up_its_restarts_stays_as_it_ended(limit: int, counted: str) -> None:
    async with cluster(version="1.0") as server:
        server.create(LEADER_WORKER_SETS, failing(limit))
        await asyncio.sleep(60)
        assert counts(server) == counted
        kept, first = pod(server, "llm-1"), leaders(server)["1"]["metadata"]["uid"]
        assert kept["metadata"]["annotations"][RESTARTS_EXHAUSTED] == "true"
        assert kept["metadata"]["finalizers"].count(f"{LWS_PREFIX}group-restart-budget-cleanup") == 1
        assert [pod(server, name)["status"]["phase"] for name in ("llm-1", "llm-1-1")] == ["Failed", "Failed"]
        assert not ready(kept)
        assert ready(pod(server, "llm-0"))
        assert conditions(server) == {
            "Available": ("False", "ReplicaRestartBudgetExceeded"),
            "Progressing": ("False", "ReplicaRestartBudgetExceeded"),
            "UpdateInProgress": ("False", "ReplicaRestartBudgetExceeded"),
            "Degraded": ("True", "ReplicaRestartBudgetExceeded"),
        }
        server.delete(PODS, NAMESPACE, "llm-1")
        patch_lws(server, {"leaderWorkerTemplate": {"maxGroupRestarts": None}})
        await asyncio.sleep(600)
        assert leaders(server)["1"]["metadata"]["uid"] == first


async def test_without_a_limit_a_group_is_made_again_for_ever() -> None:
    async with cluster(version="1.0") as server:
        server.create(LEADER_WORKER_SETS, failing(None))
        await asyncio.sleep(5)
        first = leaders(server)["1"]["metadata"]["uid"]
        await asyncio.sleep(60)
        assert leaders(server)["1"]["metadata"]["uid"] != first
        assert RESTARTS_EXHAUSTED not in leaders(server)["1"]["metadata"]["annotations"]


async def test_the_room_of_an_ended_group_is_free() -> None:
    async with cluster(Options(nodes=1, gpus_per_node=4), version="1.0") as server:
        limits = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
        server.create(LEADER_WORKER_SETS, failing(0, workerTemplate=template(annotations=CRASHES, **limits)))
        await asyncio.sleep(60)
        assert not ready(pod(server, "llm-1"))
        server.create(LEADER_WORKER_SETS, lws("more", 1, leaderWorkerTemplate={"workerTemplate": template(**limits)}))
        await asyncio.sleep(10)
        assert ready(pod(server, "more-0-1")), [each["metadata"]["name"] for each in server.list(NODES)]


async def test_it_is_made_again_with_all_its_restarts_when_somebody_asks() -> None:
    async with cluster(version="1.0") as server:
        server.create(LEADER_WORKER_SETS, failing(1))
        await asyncio.sleep(60)
        first = leaders(server)["1"]["metadata"]["uid"]
        recover(server)
        await asyncio.sleep(60)
        assert leaders(server)["1"]["metadata"]["uid"] != first
        assert counts(server) == '{"rev/1":1}'
        assert conditions(server)["Degraded"][0] == "True"


async def test_a_request_from_before_the_end_does_not_count() -> None:
    async with cluster(version="1.0") as server:
        server.create(LEADER_WORKER_SETS, failing(0))
        await asyncio.sleep(0.5)
        recover(server)
        await asyncio.sleep(60)
        assert RECOVER not in pod(server, "llm-1")["metadata"]["annotations"]
        assert conditions(server)["Degraded"][0] == "True"


@pytest.mark.parametrize("way", ["scaled", "deleted", "another version"])
async def test_its_pods_go_with_what_they_belong_to(way: str) -> None:
    async with cluster(version="1.0") as server:
        server.create(LEADER_WORKER_SETS, failing(0))
        await asyncio.sleep(60)
        if way == "scaled":
            patch_lws(server, {"replicas": 1})
        elif way == "deleted":
            server.delete(LEADER_WORKER_SETS, NAMESPACE, "llm")
        else:
            patch_lws(server, {"leaderWorkerTemplate": {"workerTemplate": template("model:B", dict.fromkeys(CRASHES))}})
        await asyncio.sleep(30)
        found = {index: ready(each) for index, each in leaders(server).items()}
        assert found == {"scaled": {"0": True}, "deleted": {}, "another version": {"0": True, "1": True}}[way]
        if way != "deleted":
            assert conditions(server)["Degraded"] == ("False", "AsExpected")


@pytest.mark.parametrize(("partition", "comes"), [(HOLD, False), (1, True)])
async def test_under_a_hold_another_version_lets_nothing_go(partition: int, comes: bool) -> None:
    async with cluster(version="1.0") as server:
        server.create(LEADER_WORKER_SETS, failing(0))
        await asyncio.sleep(30)
        patch_lws(server, rolling(partition=HOLD))
        patch_lws(server, {"leaderWorkerTemplate": {"workerTemplate": template("model:B", dict.fromkeys(CRASHES))}})
        await asyncio.sleep(30)
        assert not ready(pod(server, "llm-1"))
        patch_lws(server, rolling(partition=partition))
        await asyncio.sleep(30)
        assert ready(pod(server, "llm-1")) == comes


async def test_an_ended_group_of_the_pending_version_stays_when_it_is_held_again() -> None:
    """An abort in place has to ask for it: raising the partition lets it go as little as deleting its leader."""
    async with cluster(version="1.0") as server:
        server.create(LEADER_WORKER_SETS, lws(replicas=2, leaderWorkerTemplate={"maxGroupRestarts": 0}))
        await asyncio.sleep(5)
        patch_lws(server, rolling(partition=1))
        patch_lws(server, {"leaderWorkerTemplate": {"workerTemplate": template("model:B", CRASHES)}})
        await asyncio.sleep(30)
        patch_lws(server, rolling(partition=HOLD))
        server.delete(PODS, NAMESPACE, "llm-1")
        await asyncio.sleep(60)
        assert pod(server, "llm-1")["spec"]["containers"][0]["image"] == "model:B"
        recover(server)
        await asyncio.sleep(10)
        assert pod(server, "llm-1")["spec"]["containers"][0]["image"] == "model:A"
        assert ready(pod(server, "llm-1"))


@pytest.mark.parametrize(("version", "workers"), [("0.10", 3), ("1.0", 1)])
async def test_a_held_size_reaches_a_restarted_group_only_up_to_0_10(version: str, workers: int) -> None:
    async with cluster(version=version) as server:
        server.create(LEADER_WORKER_SETS, lws(**rolling(partition=HOLD)))
        await asyncio.sleep(5)
        patch_lws(server, {"leaderWorkerTemplate": {"size": 4}})
        server.delete(PODS, NAMESPACE, "llm-0")
        await asyncio.sleep(5)
        assert sizes(server) == {"llm": 2, "llm-0": workers, "llm-1": 1}


async def test_a_limit_is_no_version_and_a_placement_is_one() -> None:
    async with cluster(version="1.0") as server:
        server.create(LEADER_WORKER_SETS, lws())
        await asyncio.sleep(5)

        def revision() -> str:
            found: str = server.get(STATEFUL_SETS, NAMESPACE, "llm")["metadata"]["labels"][LWS_REVISION]
            return found

        before, uid = revision(), leaders(server)["0"]["metadata"]["uid"]
        patch_lws(server, {"leaderWorkerTemplate": {"maxGroupRestarts": 3}})
        await asyncio.sleep(10)
        assert (revision(), leaders(server)["0"]["metadata"]["uid"]) == (before, uid)
        policy = {"type": "ExclusiveTopology", "topology": "kubernetes.io/hostname"}
        patch_lws(server, {"leaderWorkerTemplate": {"placementPolicy": policy}})
        await asyncio.sleep(20)
        assert revision() != before
        annotations = pod(server, "llm-0-1")["metadata"]["annotations"]
        assert annotations[f"{LWS_PREFIX}exclusive-topology"] == "kubernetes.io/hostname"


TOPOLOGY = {"type": "ExclusiveTopology", "topology": "zone"}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"leaderWorkerTemplate": {"maxGroupRestarts": 1, "restartPolicy": "None"}}, "maxGroupRestarts"),
        ({"groupReplacementPolicy": "Immediate"}, "spec.groupReplacementPolicy"),
        ({"groupIdentity": "Hash", **rolling(partition=1)}, "partition is not supported with groupIdentity Hash"),
        (
            {"groupIdentity": "Hash", "leaderWorkerTemplate": {"volumeClaimTemplates": [{"metadata": {"name": "a"}}]}},
            "volumeClaimTemplates are not supported",
        ),
        ({"groupIdentity": "Hash", "leaderWorkerTemplate": {"maxGroupRestarts": 1}}, "maxGroupRestarts"),
        ({"leaderWorkerTemplate": {"placementPolicy": {"type": "ExclusiveTopology"}}}, "placementPolicy.topology"),
        ({"leaderWorkerTemplate": {"placementPolicy": {"topology": "zone"}}}, "must be empty unless"),
        (
            {
                "leaderWorkerTemplate": {
                    "placementPolicy": TOPOLOGY,
                    "subGroupPolicy": {"subGroupSize": 2, "placementPolicy": TOPOLOGY},
                }
            },
            "must differ from that of the groups",
        ),
    ],
)
async def test_what_the_webhook_refuses(spec: dict[str, Any], told: str) -> None:
    async with cluster(version="1.0") as server:
        with pytest.raises(ApiError, match=told):
            server.create(LEADER_WORKER_SETS, lws(**spec))


async def test_a_placement_that_an_annotation_contradicts_is_refused() -> None:
    async with cluster(version="1.0") as server:
        body = lws(leaderWorkerTemplate={"placementPolicy": TOPOLOGY})
        body["metadata"]["annotations"] = {f"{LWS_PREFIX}exclusive-topology": "rack"}
        with pytest.raises(ApiError, match="differs from the annotation"):
            server.create(LEADER_WORKER_SETS, body)
        body["metadata"]["annotations"] = {f"{LWS_PREFIX}exclusive-topology": "zone"}
        server.create(LEADER_WORKER_SETS, body)
