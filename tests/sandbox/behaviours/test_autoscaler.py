"""The sandbox's autoscaler: it wants what its annotation says, within its bounds, a while after it began to."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, LEADER_WORKER_SETS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.autoscaler import DESIRED
from tests.sandbox.behaviours.world import NAMESPACE, cluster, lws, patch_lws

pytestmark = pytest.mark.looptime
TARGET = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind, "name": "llm"}


def create(server: ApiServer, low: int, high: int, wanted: str | None = None, **target: str) -> None:
    annotations = {} if wanted is None else {DESIRED: wanted}
    spec = {"scaleTargetRef": TARGET | target, "minReplicas": low, "maxReplicas": high}
    body = {"metadata": {"name": "llm", "namespace": NAMESPACE, "annotations": annotations}, "spec": spec}
    server.create(HORIZONTAL_POD_AUTOSCALERS, body)


def replicas(server: ApiServer) -> int:
    return int(server.get(LEADER_WORKER_SETS, NAMESPACE, "llm")["spec"]["replicas"])


def status(server: ApiServer) -> dict[str, Any]:
    return dict(server.get(HORIZONTAL_POD_AUTOSCALERS, NAMESPACE, "llm").get("status") or {})


@pytest.mark.parametrize(
    ("low", "high", "wanted", "expected"),
    [
        (1, 5, "3", 3),
        (1, 5, "9", 5),
        (2, 5, "0", 2),
        (1, 5, None, 2),
        (4, 5, None, 4),
        (1, 1, None, 1),
        (1, 5, "many", 2),
    ],
)
async def test_what_its_metric_wants_is_done_within_its_bounds(
    low: int, high: int, wanted: str | None, expected: int
) -> None:
    async with cluster() as server:
        server.create(LEADER_WORKER_SETS, lws(replicas=2))
        await asyncio.sleep(10)
        create(server, low, high, wanted)
        await asyncio.sleep(14)
        assert (replicas(server), status(server)["desiredReplicas"]) == (2, expected)
        await asyncio.sleep(20)
        assert replicas(server) == expected
        assert (status(server)["currentReplicas"], status(server)["desiredReplicas"]) == (expected, expected)


async def test_an_annotation_that_is_no_number_is_told_until_it_is_one() -> None:
    async with cluster() as server:
        server.create(LEADER_WORKER_SETS, lws())
        create(server, 1, 5, "many")
        await asyncio.sleep(1)
        (condition,) = status(server)["conditions"]
        assert condition["message"] == f'annotation {DESIRED}: "many" is not a whole number of groups'
        body = {"metadata": {"annotations": {DESIRED: "2"}}}
        server.patch(HORIZONTAL_POD_AUTOSCALERS, NAMESPACE, "llm", body)
        await asyncio.sleep(1)
        assert "conditions" not in status(server)


async def test_a_workload_without_groups_is_left_alone_and_a_missing_one_told() -> None:
    async with cluster() as server:
        create(server, 1, 5, "3")
        await asyncio.sleep(30)
        assert status(server)["conditions"][0]["message"] == 'LeaderWorkerSet "llm" not found'
        server.create(LEADER_WORKER_SETS, lws(replicas=0))
        await asyncio.sleep(30)
        assert (replicas(server), "conditions" in status(server)) == (0, False)
        patch_lws(server, {"replicas": 1})
        await asyncio.sleep(30)
        assert replicas(server) == 3
        server.delete(HORIZONTAL_POD_AUTOSCALERS, NAMESPACE, "llm")
        create(server, 5, 5, kind="Deployment", apiVersion="apps/v1")
        await asyncio.sleep(30)
        assert (replicas(server), status(server)["conditions"][0]["message"]) == (3, 'Deployment "llm" not found')


async def test_any_kind_with_a_number_is_scaled() -> None:
    async with cluster() as server:
        labels = {"app": "web"}
        spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}
        server.create(DEPLOYMENTS, {"metadata": {"name": "llm", "namespace": NAMESPACE}, "spec": spec})
        create(server, 1, 5, "3", kind="Deployment", apiVersion="apps/v1")
        await asyncio.sleep(30)
        assert server.get(DEPLOYMENTS, NAMESPACE, "llm")["spec"]["replicas"] == 3


async def test_one_that_has_come_to_rest_writes_nothing() -> None:
    async with cluster() as server:
        server.create(LEADER_WORKER_SETS, lws())
        create(server, 1, 5, "3")
        await asyncio.sleep(60)
        before = server.store.version
        await asyncio.sleep(3600)
        assert server.store.version == before


@pytest.mark.parametrize("bounds", [(4, 3), (1, 0)])
async def test_bounds_that_contradict_each_other_are_refused(bounds: tuple[int, int]) -> None:
    async with cluster() as server:
        with pytest.raises(ApiError, match=r"spec\.maxReplicas: Invalid value"):
            create(server, *bounds)
