"""StatefulSets as kube-controller-manager runs them: order, partition, versions, claims."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rollout_lws.objects.resources import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.cluster import Options
from tests.sandbox.behaviours import world
from tests.sandbox.behaviours.world import NAMESPACE, cluster, stateful_set

pytestmark = pytest.mark.looptime


def status(server: ApiServer) -> dict[str, Any]:
    return server.get(STATEFUL_SETS, NAMESPACE, "web")["status"]


def set_image(server: ApiServer, image: str, **spec: Any) -> None:
    containers = {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}
    server.patch(STATEFUL_SETS, NAMESPACE, "web", {"spec": {**containers, **spec}})


def partition(number: int) -> dict[str, Any]:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": number}}}


async def test_ordered_ready_makes_one_pod_after_the_other() -> None:
    async with cluster() as server:
        server.create(STATEFUL_SETS, stateful_set())
        await asyncio.sleep(0.5)
        assert set(world.images(server)) == {"web-0"}
        await asyncio.sleep(1)
        assert set(world.images(server)) == {"web-0", "web-1"}
        await asyncio.sleep(2)
        assert status(server)["readyReplicas"] == 3


async def test_parallel_makes_all_pods_at_once_from_its_first_ordinal() -> None:
    async with cluster() as server:
        server.create(STATEFUL_SETS, stateful_set(podManagementPolicy="Parallel", ordinals={"start": 1}))
        await asyncio.sleep(0.5)
        assert set(world.images(server)) == {"web-1", "web-2", "web-3"}
        labels = world.pod(server, "web-2")["metadata"]["labels"]
        assert labels["statefulset.kubernetes.io/pod-name"] == "web-2"
        assert labels["apps.kubernetes.io/pod-index"] == "2"
        assert labels["controller-revision-hash"] == status(server)["updateRevision"]


async def test_scaling_down_removes_the_highest_ordinals() -> None:
    async with cluster() as server:
        server.create(STATEFUL_SETS, stateful_set(podManagementPolicy="Parallel"))
        await asyncio.sleep(2)
        server.patch(STATEFUL_SETS, NAMESPACE, "web", {"spec": {"replicas": 1}})
        await asyncio.sleep(1)
        assert set(world.images(server)) == {"web-0"}


async def test_below_the_partition_a_restarted_pod_keeps_the_old_version() -> None:
    async with cluster() as server:
        server.create(STATEFUL_SETS, stateful_set(podManagementPolicy="Parallel", **partition(2)))
        await asyncio.sleep(2)
        set_image(server, "model:B")
        await asyncio.sleep(3)
        server.delete(PODS, NAMESPACE, "web-0")
        await asyncio.sleep(3)
        assert world.images(server) == {"web-0": "model:A", "web-1": "model:A", "web-2": "model:B"}
        assert status(server)["currentRevision"] != status(server)["updateRevision"]
        assert (status(server)["currentReplicas"], status(server)["updatedReplicas"]) == (2, 1)


async def test_current_revision_follows_when_every_pod_is_new_and_ready() -> None:
    async with cluster() as server:
        server.create(STATEFUL_SETS, stateful_set(podManagementPolicy="Parallel"))
        await asyncio.sleep(2)
        set_image(server, "model:B")
        await asyncio.sleep(10)
        assert set(world.images(server).values()) == {"model:B"}
        assert status(server)["currentRevision"] == status(server)["updateRevision"]


async def test_a_template_that_goes_back_finds_its_old_revision_and_restarts_nothing() -> None:
    async with cluster() as server:
        server.create(STATEFUL_SETS, stateful_set(podManagementPolicy="Parallel", **partition(99)))
        await asyncio.sleep(2)
        uids = {pod["metadata"]["uid"] for pod in server.list(PODS, NAMESPACE)}
        first = status(server)["updateRevision"]
        set_image(server, "model:B")
        await asyncio.sleep(1)
        assert status(server)["updateRevision"] != first
        set_image(server, "model:A", **partition(0))
        await asyncio.sleep(5)
        assert status(server)["updateRevision"] == first
        assert {pod["metadata"]["uid"] for pod in server.list(PODS, NAMESPACE)} == uids
        assert len(server.list(CONTROLLER_REVISIONS, NAMESPACE)) == 2


@pytest.mark.parametrize(("variant", "at_once"), [("legacy", 1), ("max_unavailable", 2)])
async def test_only_the_gated_variant_honours_max_unavailable(variant: Any, at_once: int) -> None:
    strategy = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 2}}}
    async with cluster(Options(stateful_sets=variant)) as server:
        server.create(STATEFUL_SETS, stateful_set(replicas=4, podManagementPolicy="Parallel", **strategy))
        await asyncio.sleep(2)
        set_image(server, "model:B")
        await asyncio.sleep(0.1)
        going = [pod for pod in server.list(PODS, NAMESPACE) if "deletionTimestamp" in pod["metadata"]]
        assert len(going) == at_once
        await asyncio.sleep(10)
        assert set(world.images(server).values()) == {"model:B"}


async def test_claims_are_made_once_and_outlive_their_pods() -> None:
    claims = [{"metadata": {"name": "cache"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
    async with cluster() as server:
        server.create(
            STATEFUL_SETS, stateful_set(replicas=2, podManagementPolicy="Parallel", volumeClaimTemplates=claims)
        )
        await asyncio.sleep(2)
        before = {item["metadata"]["name"]: item["metadata"]["uid"] for item in _claims(server)}
        assert set(before) == {"cache-web-0", "cache-web-1"}
        volumes = world.pod(server, "web-1")["spec"]["volumes"]
        assert volumes == [{"name": "cache", "persistentVolumeClaim": {"claimName": "cache-web-1"}}]
        server.delete(STATEFUL_SETS, NAMESPACE, "web")
        await asyncio.sleep(2)
        assert {item["metadata"]["name"]: item["metadata"]["uid"] for item in _claims(server)} == before


async def test_claims_go_with_the_set_when_it_says_so() -> None:
    claims = [{"metadata": {"name": "cache"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
    async with cluster() as server:
        policy = {"whenDeleted": "Delete", "whenScaled": "Retain"}
        body = stateful_set(volumeClaimTemplates=claims, persistentVolumeClaimRetentionPolicy=policy)
        server.create(STATEFUL_SETS, body)
        await asyncio.sleep(2)
        server.delete(STATEFUL_SETS, NAMESPACE, "web")
        await asyncio.sleep(2)
        assert _claims(server) == []


async def test_claims_of_surplus_pods_go_when_it_says_so() -> None:
    claims = [{"metadata": {"name": "cache"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
    async with cluster() as server:
        policy = {"whenDeleted": "Retain", "whenScaled": "Delete"}
        body = stateful_set(
            podManagementPolicy="Parallel", volumeClaimTemplates=claims, persistentVolumeClaimRetentionPolicy=policy
        )
        server.create(STATEFUL_SETS, body)
        await asyncio.sleep(2)
        server.patch(STATEFUL_SETS, NAMESPACE, "web", {"spec": {"replicas": 1}})
        await asyncio.sleep(2)
        assert [item["metadata"]["name"] for item in _claims(server)] == ["cache-web-0"]


def _claims(server: ApiServer) -> list[dict[str, Any]]:
    return server.list(PERSISTENT_VOLUME_CLAIMS, NAMESPACE)
