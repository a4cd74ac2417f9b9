"""Claims of users and of groups are bound, and stay when they are bound already."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS, PERSISTENT_VOLUME_CLAIMS
from tests.sandbox.behaviours.world import NAMESPACE, cluster, lws

pytestmark = pytest.mark.looptime
CLAIM: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}


async def test_a_claim_is_bound_to_a_volume_of_the_size_it_asks_for() -> None:
    async with cluster() as server:
        server.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "models", "namespace": NAMESPACE}, "spec": CLAIM})
        await asyncio.sleep(1)
        claim = server.get(PERSISTENT_VOLUME_CLAIMS, NAMESPACE, "models")
        assert claim["spec"]["volumeName"] == f"pvc-{claim['metadata']['uid']}"
        assert claim["status"] == {
            "phase": "Bound",
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "10Gi"},
        }


async def test_a_claim_for_a_certain_volume_gets_that_one() -> None:
    async with cluster() as server:
        body = {"metadata": {"name": "models", "namespace": NAMESPACE}, "spec": {**CLAIM, "volumeName": "shelf-7"}}
        server.create(PERSISTENT_VOLUME_CLAIMS, body)
        await asyncio.sleep(1)
        claim = server.get(PERSISTENT_VOLUME_CLAIMS, NAMESPACE, "models")
        assert (claim["spec"]["volumeName"], claim["status"]["phase"]) == ("shelf-7", "Bound")


async def test_the_claims_of_a_groups_pods_are_bound() -> None:
    async with cluster() as server:
        templates = [{"metadata": {"name": "cache"}, "spec": CLAIM}]
        server.create(LEADER_WORKER_SETS, lws(replicas=1, leaderWorkerTemplate={"volumeClaimTemplates": templates}))
        await asyncio.sleep(5)
        claims = server.list(PERSISTENT_VOLUME_CLAIMS, NAMESPACE)
        assert {claim["metadata"]["name"]: claim["status"]["phase"] for claim in claims} == {
            "cache-llm-0": "Bound",
            "cache-llm-0-1": "Bound",
        }
