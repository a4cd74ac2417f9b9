"""The three ways to delete an owner."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rollout_lws.objects.resources import CONFIG_MAPS, LEADER_WORKER_SETS, PODS, SECRETS, STATEFUL_SETS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.base import owner_reference
from tests.sandbox.behaviours import world
from tests.sandbox.behaviours.world import NAMESPACE, cluster, lws, stateful_set

pytestmark = pytest.mark.looptime


def config_map(server: ApiServer, name: str, *owners: dict[str, Any], blocks: bool = True) -> dict[str, Any]:
    references = [
        {**owner_reference(CONFIG_MAPS, owner), "controller": False, "blockOwnerDeletion": blocks} for owner in owners
    ]
    metadata = {"name": name, "namespace": NAMESPACE, "ownerReferences": references}
    return server.create(CONFIG_MAPS, {"metadata": metadata})


def names(server: ApiServer) -> set[str]:
    return {item["metadata"]["name"] for item in server.list(CONFIG_MAPS, NAMESPACE)}


async def test_in_the_background_the_owner_goes_first_and_a_whole_tree_follows() -> None:
    async with cluster() as server:
        root = config_map(server, "root")
        config_map(server, "leaf", config_map(server, "branch", root))
        server.delete(CONFIG_MAPS, NAMESPACE, "root")
        assert names(server) == {"branch", "leaf"}
        await asyncio.sleep(0.1)
        assert names(server) == set()


async def test_in_the_foreground_blocking_dependants_go_before_their_owner() -> None:
    async with cluster() as server:
        root = config_map(server, "root")
        config_map(server, "leaf", config_map(server, "branch", root))
        config_map(server, "free", root, blocks=False)
        gone: list[str] = []

        def watch(event: Any) -> None:
            if event.type == "DELETED":
                gone.append(event.object["metadata"]["name"])

        stop = server.store.subscribe(watch)
        server.delete(CONFIG_MAPS, NAMESPACE, "root", propagation="Foreground")
        await asyncio.sleep(0.1)
        stop()
        assert gone == ["leaf", "branch", "root", "free"]


async def test_orphans_stay_without_their_owner() -> None:
    async with cluster() as server:
        config_map(server, "child", config_map(server, "root"))
        server.delete(CONFIG_MAPS, NAMESPACE, "root", propagation="Orphan")
        await asyncio.sleep(0.1)
        assert names(server) == {"child"}
        assert "ownerReferences" not in server.get(CONFIG_MAPS, NAMESPACE, "child")["metadata"]


async def test_a_second_owner_keeps_an_object() -> None:
    async with cluster() as server:
        first, second = config_map(server, "first"), config_map(server, "second")
        config_map(server, "child", first, second)
        server.delete(CONFIG_MAPS, NAMESPACE, "first")
        await asyncio.sleep(0.1)
        assert names(server) == {"second", "child"}
        kept = server.get(CONFIG_MAPS, NAMESPACE, "child")["metadata"]["ownerReferences"]
        assert [reference["uid"] for reference in kept] == [second["metadata"]["uid"]]


async def test_an_object_created_for_an_owner_that_is_gone_does_not_stay() -> None:
    async with cluster() as server:
        root = config_map(server, "root")
        server.delete(CONFIG_MAPS, NAMESPACE, "root")
        config_map(server, "late", root)
        await asyncio.sleep(0.1)
        assert names(server) == set()


async def test_a_foreign_finalizer_holds_the_owner_in_foreground_deletion() -> None:
    async with cluster() as server:
        root = config_map(server, "root")
        reference = {**owner_reference(CONFIG_MAPS, root), "controller": False}
        metadata = {"name": "busy", "namespace": NAMESPACE, "ownerReferences": [reference], "finalizers": ["x.io/busy"]}
        server.create(SECRETS, {"metadata": metadata})
        server.delete(CONFIG_MAPS, NAMESPACE, "root", propagation="Foreground")
        await asyncio.sleep(0.1)
        assert names(server) == {"root"}
        server.patch(SECRETS, NAMESPACE, "busy", {"metadata": {"finalizers": []}})
        await asyncio.sleep(0.1)
        assert names(server) == set()


async def test_foreground_deletion_of_a_leader_ends_with_the_leader() -> None:
    async with cluster() as server:
        server.create(LEADER_WORKER_SETS, lws(replicas=1, size=3))
        await asyncio.sleep(3)
        gone: list[str] = []

        def watch(event: Any) -> None:
            if event.type == "DELETED" and event.resource in (PODS, STATEFUL_SETS):
                gone.append(event.object["metadata"]["name"])

        stop = server.store.subscribe(watch)
        server.delete(PODS, NAMESPACE, "llm-0", propagation="Foreground")
        await asyncio.sleep(5)
        stop()
        assert gone == ["llm-0-1", "llm-0-2", "llm-0", "llm-0"]
        assert len(world.images(server)) == 3


async def test_a_whole_leader_worker_set_goes_in_the_foreground() -> None:
    async with cluster() as server:
        server.create(LEADER_WORKER_SETS, lws(replicas=2, size=2))
        await asyncio.sleep(3)
        gone: list[str] = []

        def watch(event: Any) -> None:
            if event.type == "DELETED" and event.resource in (LEADER_WORKER_SETS, PODS):
                gone.append(event.object["metadata"]["name"])

        stop = server.store.subscribe(watch)
        server.delete(LEADER_WORKER_SETS, NAMESPACE, "llm", propagation="Foreground")
        await asyncio.sleep(5)
        stop()
        assert set(gone[:2]) == {"llm-0-1", "llm-1-1"}
        assert gone[-1] == "llm"
        assert server.list(PODS, NAMESPACE) == server.list(STATEFUL_SETS, NAMESPACE) == []


async def test_orphaned_pods_of_a_stateful_set_go_on_running() -> None:
    async with cluster() as server:
        server.create(STATEFUL_SETS, stateful_set(podManagementPolicy="Parallel"))
        await asyncio.sleep(2)
        server.delete(STATEFUL_SETS, NAMESPACE, "web", propagation="Orphan")
        await asyncio.sleep(2)
        assert set(world.images(server)) == {"web-0", "web-1", "web-2"}
