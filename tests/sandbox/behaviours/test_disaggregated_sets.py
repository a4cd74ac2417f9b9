"""DisaggregatedSets make LeaderWorkerSets of another name for each version, and roll their roles together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DISAGGREGATED_SETS,
    LEADER_WORKER_SETS,
    PODS,
    SERVICES,
)
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.disaggregated_sets import NAME, REVISION, ROLE, SLICE
from rollout_lws.sandbox.definitions import disaggregated_set_crd
from tests.sandbox.behaviours.world import NAMESPACE, cluster, template

pytestmark = pytest.mark.looptime


@asynccontextmanager
async def serving() -> AsyncIterator[ApiServer]:
    async with cluster() as server:
        server.create(CUSTOM_RESOURCE_DEFINITIONS, disaggregated_set_crd.manifest())
        yield server


def roles(image: str = "model:A", decode: int = 3, prefill: int = 2) -> list[dict[str, Any]]:
    made = {"size": 1, "workerTemplate": template(image)}
    return [
        {"name": "decode", "spec": {"replicas": decode, "leaderWorkerTemplate": made}},
        {"name": "prefill", "spec": {"replicas": prefill, "leaderWorkerTemplate": {"size": 1, **made}}},
    ]


def create(server: ApiServer, **spec: Any) -> None:
    server.create(DISAGGREGATED_SETS, DISAGGREGATED_SETS.manifest("pd", NAMESPACE, spec={"roles": roles(), **spec}))


def patch(server: ApiServer, **spec: Any) -> None:
    server.patch(DISAGGREGATED_SETS, NAMESPACE, "pd", {"spec": spec})


def sets(server: ApiServer) -> dict[str, int]:
    return {each["metadata"]["name"]: each["spec"]["replicas"] for each in server.list(LEADER_WORKER_SETS, NAMESPACE)}


async def test_each_role_has_a_leader_worker_set_of_the_revision_and_a_service() -> None:
    async with serving() as server:
        create(server)
        await asyncio.sleep(20)
        made = server.list(LEADER_WORKER_SETS, NAMESPACE)
        revision = made[0]["metadata"]["labels"][REVISION]
        assert len(revision) == 8
        assert sets(server) == {f"pd-0-{revision}-decode": 3, f"pd-0-{revision}-prefill": 2}
        (owner,) = made[0]["metadata"]["ownerReferences"]
        assert (owner["apiVersion"], owner["kind"], owner["name"], owner["controller"]) == (
            "disaggregatedset.x-k8s.io/v1",
            "DisaggregatedSet",
            "pd",
            True,
        )
        expected = {NAME: "pd", ROLE: "decode", SLICE: "0", REVISION: revision}
        pods = server.list(
            PODS, NAMESPACE, label_selector=",".join(f"{key}={value}" for key, value in expected.items())
        )
        assert len(pods) == 3 and {pod["metadata"]["labels"]["app"] for pod in pods} == {"pd-0-decode"}
        headless = {each["metadata"]["name"] for each in server.list(SERVICES, NAMESPACE, label_selector=f"{NAME}=pd")}
        assert headless == {f"{name}-prv" for name in sets(server)}
        status = server.get(DISAGGREGATED_SETS, NAMESPACE, "pd")["status"]["roleStatuses"]
        assert [(each["name"], each["readyReplicas"]) for each in status] == [("decode", 3), ("prefill", 2)]


async def test_a_template_of_one_role_makes_all_of_them_anew_in_step() -> None:
    async with serving() as server:
        create(server)
        await asyncio.sleep(20)
        before = sets(server)
        changed = roles()
        changed[1]["spec"]["leaderWorkerTemplate"]["workerTemplate"] = template("model:B")
        patch(server, roles=changed)
        most = 0
        for _ in range(300):
            await asyncio.sleep(0.1)
            decode = [count for name, count in sets(server).items() if name.endswith("decode")]
            most = max(most, sum(decode))
            assert sum(decode) >= 3
        after = sets(server)
        assert not after.keys() & before.keys(), "the names have the revision of all roles"
        assert sorted(after.values()) == [2, 3] and most == 4
        assert len(server.list(SERVICES, NAMESPACE, label_selector=f"{NAME}=pd")) == 2


async def test_a_version_that_never_becomes_ready_keeps_the_one_before() -> None:
    async with serving() as server:
        create(server)
        await asyncio.sleep(20)
        before = sets(server)
        patch(server, roles=roles("model:bad"))
        await asyncio.sleep(600)
        left = {name: count for name, count in sets(server).items() if name in before}
        assert left == before


async def test_numbers_of_groups_and_zero_change_no_name() -> None:
    async with serving() as server:
        create(server)
        await asyncio.sleep(20)
        names = sets(server).keys()
        for decode, prefill in ((5, 1), (0, 0), (3, 2)):
            patch(server, roles=roles(decode=decode, prefill=prefill))
            await asyncio.sleep(20)
            assert sets(server).keys() == names and sorted(sets(server).values()) == sorted((decode, prefill))


async def test_a_version_beside_nothing_that_runs_begins_with_all_groups() -> None:
    async with serving() as server:
        create(server)
        await asyncio.sleep(20)
        patch(server, roles=roles(decode=0, prefill=0))
        await asyncio.sleep(20)
        patch(server, roles=roles("model:B"))
        await asyncio.sleep(1)
        assert sorted(sets(server).values()) == [2, 3]


async def test_slices_are_copies_and_their_lws_go_with_them() -> None:
    async with serving() as server:
        create(server, slices=2)
        await asyncio.sleep(20)
        assert sorted(name.split("-")[1] for name in sets(server)) == ["0", "0", "1", "1"]
        patch(server, slices=1)
        await asyncio.sleep(20)
        assert {name.split("-")[1] for name in sets(server)} == {"0"}
        server.delete(DISAGGREGATED_SETS, NAMESPACE, "pd")
        await asyncio.sleep(60)
        assert sets(server) == {}


async def test_a_partition_and_a_scaler_of_a_role_are_refused() -> None:
    async with serving() as server:
        create(server)
        for change in (
            {"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 1}}}},
            {"scaling": {"mode": "External"}},
        ):
            wrong = roles()
            wrong[0] = {**wrong[0], **change, "spec": {**wrong[0]["spec"], **(change.get("spec") or {})}}
            with pytest.raises(ApiError):
                patch(server, roles=wrong)
