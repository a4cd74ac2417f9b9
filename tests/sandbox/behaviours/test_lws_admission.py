"""LeaderWorkerSet's webhooks: what they fill in, what they refuse, what pods learn from them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.lws.admission import defaulted, validate
from tests.sandbox.behaviours import world
from tests.sandbox.behaviours.world import NAMESPACE, cluster, lws, patch_lws, template

PREFIX = "leaderworkerset.sigs.k8s.io/"


def test_everything_a_controller_needs_is_filled_in() -> None:
    spec = defaulted({"metadata": {"name": "llm"}, "spec": {"leaderWorkerTemplate": {"workerTemplate": template()}}})[
        "spec"
    ]
    assert (spec["replicas"], spec["startupPolicy"]) == (1, "LeaderCreated")
    assert (spec["leaderWorkerTemplate"]["size"], spec["leaderWorkerTemplate"]["restartPolicy"]) == (
        1,
        "RecreateGroupOnPodRestart",
    )
    assert spec["rolloutStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdateConfiguration": {"maxUnavailable": 1, "maxSurge": 0, "partition": 0},
    }
    assert spec["networkConfig"] == {"subdomainPolicy": "Shared"}


def test_the_old_default_restart_policy_means_none() -> None:
    body = defaulted(lws(leaderWorkerTemplate={"restartPolicy": "Default"}))
    assert body["spec"]["leaderWorkerTemplate"]["restartPolicy"] == "None"


def test_a_complete_object_passes_through_as_it_is() -> None:
    body = defaulted(lws())
    assert defaulted(body) is body


def rolling(**members: Any) -> dict[str, Any]:
    return {"rolloutStrategy": {"rollingUpdateConfiguration": members}}


def subgroups(size: int, group: int, kind: str = "LeaderWorker") -> dict[str, Any]:
    policy = {"subGroupSize": group, "subGroupPolicyType": kind}
    return {"size": size, "leaderWorkerTemplate": {"subGroupPolicy": policy}}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"replicas": -1}, "spec.replicas"),
        ({"size": 0}, "spec.leaderWorkerTemplate.size"),
        ({"replicas": 10**6, "size": 10**4}, "spec.replicas"),
        (rolling(partition=-1), "partition"),
        (rolling(maxUnavailable=0, maxSurge=0), "maxUnavailable"),
        ({"replicas": 3, **rolling(maxUnavailable="30%", maxSurge=0)}, "maxUnavailable"),
        (rolling(maxSurge="101%"), "maxSurge"),
        (rolling(maxSurge="many"), "maxSurge"),
        (rolling(maxUnavailable=-1), "maxUnavailable"),
        (subgroups(4, 5), "subGroupSize"),
        (subgroups(6, 4), "subGroupSize"),
        (subgroups(4, 2, "LeaderExcluded"), "subGroupSize"),
    ],
)
def test_a_bad_field_is_refused_by_name(spec: dict[str, Any], field: str) -> None:
    (violation,) = validate(defaulted(lws(**spec)), None)
    assert field in violation.split(": ")[0]


@pytest.mark.parametrize(
    "spec",
    [
        rolling(partition=10**6),
        {"replicas": 0, **rolling(maxUnavailable=0, maxSurge=0)},
        {"replicas": 3, **rolling(maxUnavailable="30%", maxSurge="30%")},
        subgroups(5, 2),
        subgroups(4, 2),
        subgroups(5, 4, "LeaderExcluded"),
    ],
)
def test_what_the_real_webhook_takes_is_taken(spec: dict[str, Any]) -> None:
    assert validate(defaulted(lws(**spec)), None) == []


def test_a_subgroup_policy_cannot_come_later() -> None:
    old, new = defaulted(lws(size=4)), defaulted(lws(**subgroups(4, 2)))
    assert "cannot be added or removed" in validate(new, old)[0]


@pytest.mark.looptime
async def test_the_api_server_refuses_what_the_webhook_denies() -> None:
    async with cluster() as server:
        server.create(LEADER_WORKER_SETS, lws())
        with pytest.raises(ApiError, match=r"admission webhook .* denied the request") as refused:
            patch_lws(server, rolling(maxUnavailable=0, maxSurge=0))
        assert refused.value.code == 403


@pytest.mark.looptime
@pytest.mark.parametrize(
    "spec",
    [
        {"replicas": "three"},
        {"leaderWorkerTemplate": None},
        {"leaderWorkerTemplate": []},
        {"leaderWorkerTemplate": {"size": "two", "workerTemplate": {}}},
        {"rolloutStrategy": "fast"},
        {"networkConfig": 1},
        rolling(partition="50%"),
        rolling(maxSurge=[1]),
    ],
)
async def test_a_wrong_type_is_refused_by_the_schema(spec: dict[str, Any]) -> None:
    async with cluster() as server:
        body = lws()
        with pytest.raises(ApiError) as refused:
            server.create(LEADER_WORKER_SETS, {**body, "spec": {**body["spec"], **spec}})
        assert refused.value.code == 422


@pytest.mark.looptime
async def test_giving_the_partition_up_opens_the_hold() -> None:
    async with cluster() as server:
        server.create(LEADER_WORKER_SETS, lws(**rolling(partition=10**6)))
        patch_lws(server, {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": None}}})
        spec = server.get(LEADER_WORKER_SETS, NAMESPACE, "llm")["spec"]
        assert spec["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] == 0


def variables(server: ApiServer, name: str) -> dict[str, str]:
    return {item["name"]: item["value"] for item in world.pod(server, name)["spec"]["containers"][0]["env"]}


@pytest.mark.looptime
async def test_every_pod_knows_its_leader_its_group_and_its_index() -> None:
    async with cluster() as server:
        body = template()
        body["spec"]["containers"][0]["env"] = [
            {"name": "LWS_GROUP_SIZE", "value": "wrong"},
            {"name": "MODEL", "value": "x"},
        ]
        server.create(LEADER_WORKER_SETS, lws(size=3, leaderWorkerTemplate={"workerTemplate": body}))
        await asyncio.sleep(3)
        assert variables(server, "llm-1-2") == {
            "LWS_LEADER_ADDRESS": "llm-1.llm.models",
            "LWS_GROUP_SIZE": "3",
            "LWS_WORKER_INDEX": "2",
            "MODEL": "x",
        }
        assert next(iter(variables(server, "llm-1"))) == "LWS_LEADER_ADDRESS"
        worker, leader = (world.pod(server, name)["metadata"] for name in ("llm-1-2", "llm-1"))
        assert worker["labels"][PREFIX + "group-index"] == "1"
        assert worker["labels"][PREFIX + "worker-index"] == "2"
        assert worker["labels"][PREFIX + "group-key"] == leader["labels"][PREFIX + "group-key"]
        assert len(leader["labels"][PREFIX + "group-key"]) == 40
        assert worker["annotations"][PREFIX + "leader-name"] == "llm-1"


@pytest.mark.looptime
async def test_with_a_subdomain_for_each_group_the_address_names_the_leader_twice() -> None:
    async with cluster() as server:
        server.create(LEADER_WORKER_SETS, lws(networkConfig={"subdomainPolicy": "UniquePerReplica"}))
        await asyncio.sleep(3)
        assert variables(server, "llm-0")["LWS_LEADER_ADDRESS"] == "llm-0.llm-0.models"
        assert variables(server, "llm-0-1")["LWS_LEADER_ADDRESS"] == "llm-0.llm-0.models"


@pytest.mark.looptime
async def test_pods_of_nobody_are_left_alone() -> None:
    async with cluster() as server:
        body = template()
        body["metadata"] |= {"name": "solo", "namespace": NAMESPACE}
        assert "env" not in server.create(PODS, body)["spec"]["containers"][0]
