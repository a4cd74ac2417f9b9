"""LeaderWorkerSets with groupIdentity Hash: leaders of a Deployment, whole groups that count, gated replacements."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rollout_lws.objects.released import REPLACEMENT_GATE
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    LWS_PREFIX,
    PODS,
    SERVICES,
    STATEFUL_SETS,
)
from rollout_lws.objects.writes import Delete
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.deployments import fill
from rollout_lws.sandbox.behaviours.faults import PREFIX
from tests.sandbox.behaviours.world import NAMESPACE, cluster, leaders, lws, patch_lws, ready, template

pytestmark = pytest.mark.looptime

HASH = {"groupIdentity": "Hash"}


def rolling(**members: Any) -> dict[str, Any]:
    return {"rolloutStrategy": {"rollingUpdateConfiguration": members}}


def tags(server: ApiServer) -> str:
    """Versions of the groups in order: a lower-case letter is not ready, "-" is gated; those that end are left out."""
    found = []
    for pod in leaders(server).values():
        if pod["metadata"].get("deletionTimestamp"):
            continue
        tag = pod["spec"]["containers"][0]["image"].rsplit(":", 1)[1]
        gated = any(gate["name"] == REPLACEMENT_GATE for gate in pod["spec"].get("schedulingGates") or ())
        found.append("-" if gated else tag if ready(pod) else tag.lower())
    return "".join(sorted(found))


def change(server: ApiServer, **annotations: str) -> None:
    marks = {f"{PREFIX}{name.replace('_', '-')}": text for name, text in annotations.items()}
    patch_lws(server, {"leaderWorkerTemplate": {"workerTemplate": template("model:B", marks)}})


async def test_leaders_are_of_a_deployment_and_ready_with_their_groups() -> None:
    async with cluster(version="1.0") as server:
        server.create(LEADER_WORKER_SETS, lws(replicas=2, **HASH))
        await asyncio.sleep(0.5)
        assert tags(server) == "aa"
        await asyncio.sleep(5)
        assert tags(server) == "AA"
        deployment = server.get(DEPLOYMENTS, NAMESPACE, "llm")
        assert deployment["status"]["readyReplicas"] == 2
        status = server.get(LEADER_WORKER_SETS, NAMESPACE, "llm")["status"]
        assert (status["replicas"], status["readyReplicas"], status["updatedReplicas"]) == (2, 2, 2)
        assert [each["type"] for each in status["conditions"] if each["status"] == "True"] == ["Available"]
        found = leaders(server)
        assert {each["metadata"]["name"] for each in found.values()} == {
            each["metadata"]["name"] for each in server.list(STATEFUL_SETS, NAMESPACE)
        }
        assert all(len(index) == 40 for index in found)
        worker = next(each for each in server.list(PODS, NAMESPACE) if each["metadata"]["name"].endswith("-1"))
        address = {each["name"]: each["value"] for each in worker["spec"]["containers"][0]["env"]}["LWS_LEADER_ADDRESS"]
        assert address in {f"{each['spec']['hostname']}.llm.{NAMESPACE}" for each in found.values()}


async def test_a_worker_that_is_not_ready_keeps_its_leader_from_being_ready() -> None:
    async with cluster(version="1.0") as server:
        broken = template(annotations={f"{PREFIX}fail": "NeverReady", f"{PREFIX}fail-on": "worker"})
        server.create(LEADER_WORKER_SETS, lws(replicas=1, leaderWorkerTemplate={"workerTemplate": broken}, **HASH))
        await asyncio.sleep(30)
        (pod,) = leaders(server).values()
        conditions = {each["type"]: each["status"] for each in pod["status"]["conditions"]}
        assert (conditions["ContainersReady"], conditions[f"{LWS_PREFIX}group-ready"]) == ("True", "False")
        assert conditions["Ready"] == "False"


async def test_groups_of_one_pod_have_neither_gate_nor_workers() -> None:
    async with cluster(version="1.0") as server:
        server.create(LEADER_WORKER_SETS, lws(replicas=2, size=1, **HASH))
        await asyncio.sleep(5)
        assert tags(server) == "AA"
        assert server.list(STATEFUL_SETS, NAMESPACE) == []


@pytest.mark.parametrize(("unavailable", "surge"), [(1, 0), (0, 1), (2, 1), ("34%", "34%")])
async def test_another_version_comes_at_once_within_the_budget(unavailable: int | str, surge: int | str) -> None:
    async with cluster(version="1.0") as server:
        body = lws(replicas=3, **HASH, **rolling(maxUnavailable=unavailable, maxSurge=surge))
        server.create(LEADER_WORKER_SETS, body)
        await asyncio.sleep(5)
        states: list[str] = []
        server.store.subscribe(lambda _: states.append(tags(server)))
        change(server)
        await asyncio.sleep(60)
        assert tags(server) == "BBB"
        down, more = (unavailable if isinstance(unavailable, int) else 1, surge if isinstance(surge, int) else 2)
        assert min(state.count("A") + state.count("B") for state in states) >= 3 - down
        assert max(map(len, states)) <= 3 + more
        records = [each for each in server.list(CONTROLLER_REVISIONS, NAMESPACE) if _of_lws(each)]
        assert len(records) == 1


def _of_lws(record: dict[str, Any]) -> bool:
    return bool(record["metadata"]["ownerReferences"][0]["kind"] == "LeaderWorkerSet")


@pytest.mark.parametrize(("policy", "waits"), [("PostTermination", True), ("Immediate", False)])
async def test_a_replacement_waits_until_the_pods_of_the_old_group_are_gone(policy: str, waits: bool) -> None:
    async with cluster(version="1.0") as server:
        slow = template(annotations={f"{PREFIX}terminate-after": "20s"})
        body = lws(replicas=2, leaderWorkerTemplate={"workerTemplate": slow}, groupReplacementPolicy=policy, **HASH)
        server.create(LEADER_WORKER_SETS, body)
        await asyncio.sleep(5)
        first = next(iter(leaders(server).values()))
        server.delete(PODS, NAMESPACE, first["metadata"]["name"])
        await asyncio.sleep(5)
        assert tags(server) == ("-A" if waits else "AA")
        await asyncio.sleep(60)
        assert tags(server) == "AA"
        assert first["metadata"]["uid"] not in {each["metadata"]["uid"] for each in leaders(server).values()}


def made(name: str, *, node: bool = True, running: bool = True, since: int | None = None) -> dict[str, Any]:
    told = {"type": "Ready", "status": "False" if since is None else "True"}
    moment = {} if since is None else {"lastTransitionTime": f"2026-01-01T00:00:{since:02}Z"}
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": name},
        "spec": {"nodeName": "n"} if node else {},
        "status": {"phase": "Running" if running else "Pending", "conditions": [told | moment]},
    }


def test_the_worst_pods_go_first() -> None:
    pods = [
        made("long", since=1),
        made("unready"),
        made("waits", node=False, running=False),
        made("lately", since=50),
        made("starts", running=False),
    ]
    meta = {"name": "rs", "namespace": NAMESPACE, "uid": "rs", "generation": 1, "resourceVersion": "1"}

    def gone(replicas: int) -> list[str]:
        writes = fill({"metadata": meta, "spec": {"replicas": replicas, "template": {}}}, pods)
        return [write.name for write in writes if isinstance(write, Delete)]

    assert gone(0) == ["waits", "starts", "unready", "lately", "long"]
    assert [gone(replicas) for replicas in (5, 4, 3)] == [[], ["waits"], ["waits", "starts"]]


async def test_scaled_to_nothing_and_up_it_starts_its_template_and_goes_with_it() -> None:
    async with cluster(version="1.0") as server:
        server.create(LEADER_WORKER_SETS, lws(replicas=2, **HASH))
        await asyncio.sleep(5)
        patch_lws(server, {"replicas": 0})
        await asyncio.sleep(5)
        change(server)
        await asyncio.sleep(5)
        patch_lws(server, {"replicas": 2})
        await asyncio.sleep(5)
        assert tags(server) == "BB"
        server.delete(LEADER_WORKER_SETS, NAMESPACE, "llm")
        await asyncio.sleep(10)
        kinds = (PODS, STATEFUL_SETS, DEPLOYMENTS, SERVICES, CONTROLLER_REVISIONS)
        assert {kind.kind: server.list(kind, NAMESPACE) for kind in kinds} == {kind.kind: [] for kind in kinds}
