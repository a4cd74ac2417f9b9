"""Groups with a topology domain of their own go where the real scheduler puts them, or wait for its reasons."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS, NODES, PODS, STATEFUL_SETS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.nodes.affinity import placement
from tests.sandbox.behaviours.world import NAMESPACE, cluster, lws, patch_lws, pod, ready

RACK = "example.org/rack"
looptime = pytest.mark.looptime


def exclusive(replicas: int) -> dict[str, Any]:
    body = lws(replicas=replicas, size=3)
    body["metadata"]["annotations"] = {"leaderworkerset.sigs.k8s.io/exclusive-topology": RACK}
    return body


def put_in_racks(server: ApiServer, racks: dict[str, str]) -> None:
    for node, rack in racks.items():
        server.patch(NODES, "", node, {"metadata": {"labels": {RACK: rack}}})


def racks_of_groups(server: ApiServer) -> dict[str, set[str]]:
    """The racks in which each group's pods run."""
    labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in server.list(NODES)}
    found: dict[str, set[str]] = defaultdict(set)
    for each in server.list(PODS, NAMESPACE):
        if each["spec"].get("nodeName"):
            group = each["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/group-index"]
            found[group].add(labels[each["spec"]["nodeName"]].get(RACK, "none"))
    return dict(found)


@looptime
async def test_each_group_has_a_rack_of_its_own() -> None:
    async with cluster(Options(nodes=4)) as server:
        put_in_racks(server, {"node-0": "a", "node-1": "a", "node-2": "b", "node-3": "b"})
        server.create(LEADER_WORKER_SETS, exclusive(replicas=2))
        await asyncio.sleep(5)
        assert sorted(map(sorted, racks_of_groups(server).values())) == [["a"], ["b"]]
        assert all(map(ready, server.list(PODS, NAMESPACE)))


@looptime
async def test_a_group_without_a_free_rack_waits_until_one_is_free() -> None:
    async with cluster(Options(nodes=2)) as server:
        put_in_racks(server, {"node-0": "a", "node-1": "b"})
        server.create(LEADER_WORKER_SETS, exclusive(replicas=3))
        await asyncio.sleep(5)
        waiting = pod(server, "llm-2")["status"]["conditions"]
        assert [each["message"] for each in waiting] == [
            "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."
        ]
        server.create(
            NODES,
            {
                "metadata": {"name": "node-9", "labels": {RACK: "c"}},
                "status": server.get(NODES, "", "node-0")["status"],
            },
        )
        server.patch(NODES, "", "node-9", {"status": server.get(NODES, "", "node-0")["status"]}, subresource="status")
        await asyncio.sleep(5)
        assert racks_of_groups(server)["2"] == {"c"}


@looptime
async def test_on_nodes_without_the_label_not_even_a_leader_runs() -> None:
    async with cluster() as server:
        server.create(LEADER_WORKER_SETS, exclusive(replicas=1))
        await asyncio.sleep(5)
        assert [each["metadata"]["name"] for each in server.list(STATEFUL_SETS, NAMESPACE)] == ["llm"]
        conditions = pod(server, "llm-0")["status"]["conditions"]
        assert "8 node(s) didn't match pod affinity rules" in conditions[0]["message"]
        put_in_racks(server, {"node-3": "a"})
        await asyncio.sleep(5)
        assert racks_of_groups(server) == {"0": {"a"}}


@looptime
async def test_an_ordinary_group_keeps_out_of_an_exclusive_ones_rack() -> None:
    async with cluster(Options(nodes=2)) as server:
        put_in_racks(server, {"node-0": "a", "node-1": "b"})
        server.create(LEADER_WORKER_SETS, exclusive(replicas=1))
        await asyncio.sleep(2)
        (taken,) = racks_of_groups(server)["0"]
        server.create(LEADER_WORKER_SETS, lws("other", replicas=3, size=1))
        await asyncio.sleep(2)
        nodes = {pod(server, f"other-{index}")["spec"]["nodeName"] for index in range(3)}
        assert nodes == {"node-1" if taken == "a" else "node-0"}


@looptime
async def test_a_rack_that_a_group_leaves_is_free_for_another() -> None:
    async with cluster(Options(nodes=1)) as server:
        put_in_racks(server, {"node-0": "a"})
        server.create(LEADER_WORKER_SETS, exclusive(replicas=1))
        await asyncio.sleep(2)
        server.create(LEADER_WORKER_SETS, lws("other", replicas=1, size=1))
        await asyncio.sleep(2)
        assert "existing pods anti-affinity" in pod(server, "other-0")["status"]["conditions"][0]["message"]
        patch_lws(server, {"replicas": 0})
        await asyncio.sleep(2)
        assert ready(pod(server, "other-0"))


def labelled(affinity: dict[str, Any] | None = None, node: str = "", **labels: str) -> dict[str, Any]:
    spec = {"nodeName": node, **({"affinity": affinity} if affinity else {})}
    return {"metadata": {"namespace": NAMESPACE, "labels": labels}, "spec": spec}


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        ({"operator": "In", "values": ["x", "y"]}, True),
        ({"operator": "In", "values": ["y"]}, False),
        ({"operator": "NotIn", "values": ["x"]}, False),
        ({"operator": "NotIn", "values": ["y"]}, True),
        ({"operator": "Exists"}, True),
        ({"operator": "DoesNotExist"}, False),
    ],
)
def test_every_operator_of_a_selector_is_understood(expression: dict[str, Any], matches: bool) -> None:
    term = {"topologyKey": RACK, "labelSelector": {"matchExpressions": [{"key": "app", **expression}]}}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    placed = placement(labelled(anti), [labelled(node="n", app="x")], (), {"n": {RACK: "a"}})
    assert bool(placed.problem({RACK: "a"})) == matches
    assert placed.problem({RACK: "b"}) == ""
