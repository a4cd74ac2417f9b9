"""What a client of LeaderWorkerSet relies on, seen from outside: holds, leaks, restarts, revisions, conditions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    EVENTS,
    LEADER_WORKER_SETS,
    LWS_REVISION,
    PODS,
    SERVICES,
    STATEFUL_SETS,
)
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.cluster import Options
from tests.sandbox.behaviours import world
from tests.sandbox.behaviours.world import NAMESPACE, cluster, leaders, lws, patch_lws, template

pytestmark = pytest.mark.looptime

HOLD = 10**6


def rolling(**members: Any) -> dict[str, Any]:
    return {"rolloutStrategy": {"rollingUpdateConfiguration": members}}


def new_template(image: str = "model:B") -> dict[str, Any]:
    return {"leaderWorkerTemplate": {"workerTemplate": template(image)}}


def versions(server: ApiServer) -> str:
    """Versions of the leaders by ordinal; a lower-case letter is not ready."""
    found = sorted(leaders(server).items(), key=lambda item: int(item[0]))
    tags = ((pod["spec"]["containers"][0]["image"].rsplit(":", 1)[1], world.ready(pod)) for _, pod in found)
    return "".join(tag if is_ready else tag.lower() for tag, is_ready in tags)


def status(server: ApiServer) -> dict[str, Any]:
    return server.get(LEADER_WORKER_SETS, NAMESPACE, "llm")["status"]


def true_conditions(server: ApiServer) -> set[str]:
    return {item["type"] for item in status(server)["conditions"] if item["status"] == "True"}


async def held(server: ApiServer, replicas: int = 4, **spec: Any) -> None:
    """An LWS at version A under a hold with B pending."""
    server.create(LEADER_WORKER_SETS, lws(replicas=replicas, **spec))
    await asyncio.sleep(5)
    patch_lws(server, rolling(partition=HOLD, maxSurge=0, maxUnavailable=1))
    await asyncio.sleep(1)
    patch_lws(server, new_template())
    await asyncio.sleep(2)


async def test_at_partition_r_exactly_groups_added_by_scaling_leak_the_new_version() -> None:
    async with cluster() as server:
        await held(server)
        patch_lws(server, rolling(partition=4))
        patch_lws(server, {"replicas": 6})
        await asyncio.sleep(5)
        assert versions(server) == "AAAABB"


async def test_under_a_hold_with_surge_extra_groups_are_of_the_old_version() -> None:
    async with cluster() as server:
        server.create(LEADER_WORKER_SETS, lws(replicas=4, **rolling(partition=0, maxSurge=2, maxUnavailable=0)))
        await asyncio.sleep(5)
        patch_lws(server, {**rolling(partition=HOLD), **new_template()})
        await asyncio.sleep(5)
        assert versions(server) == "AAAAAA"


async def test_full_surge_makes_a_second_fleet_and_promotes_without_losing_a_group() -> None:
    async with cluster() as server:
        await held(server)
        patch_lws(server, rolling(partition=4, maxSurge="100%", maxUnavailable=0))
        await asyncio.sleep(5)
        assert versions(server) == "AAAABBBB"
        fewest = 8

        def watch(_: object) -> None:
            nonlocal fewest
            fewest = min(fewest, sum(world.ready(pod) for pod in leaders(server).values()))

        stop = server.store.subscribe(watch)
        patch_lws(server, rolling(partition=0))
        await asyncio.sleep(20)
        stop()
        assert (versions(server), fewest) == ("BBBB", 4)


async def test_deleting_the_leader_set_under_a_hold_rebuilds_everything_new() -> None:
    async with cluster() as server:
        await held(server)
        server.delete(STATEFUL_SETS, NAMESPACE, "llm")
        await asyncio.sleep(5)
        assert versions(server) == "BBBB"


async def test_a_single_group_has_downtime_with_the_default_strategy_and_none_with_surge_alone() -> None:
    fewest: list[int] = []
    for down, surge in ((1, 1), (0, 1)):
        async with cluster() as server:
            server.create(
                LEADER_WORKER_SETS, lws(replicas=1, **rolling(partition=0, maxSurge=surge, maxUnavailable=down))
            )
            await asyncio.sleep(5)
            least = [1]

            def watch(_: object, server: ApiServer = server, least: list[int] = least) -> None:
                least.append(sum(world.ready(pod) for pod in leaders(server).values()))

            stop = server.store.subscribe(watch)
            patch_lws(server, new_template())
            await asyncio.sleep(10)
            stop()
            assert versions(server) == "B"
            fewest.append(min(least))
    assert fewest == [0, 1]


@pytest.mark.parametrize(("variant", "end"), [("legacy", "AAAA"), ("max_unavailable", "AAAA")])
async def test_a_broken_group_comes_back_when_the_template_is_restored(variant: Any, end: str) -> None:
    async with cluster(Options(stateful_sets=variant)) as server:
        await held(server)
        patch_lws(server, new_template("model:bad"))
        patch_lws(server, rolling(partition=3))
        await asyncio.sleep(5)
        assert versions(server) == "AAAbad"
        patch_lws(server, new_template("model:A"))
        await asyncio.sleep(5)
        assert versions(server) == end


async def test_deleting_all_old_leaders_renews_them_together() -> None:
    async with cluster() as server:
        await held(server)
        patch_lws(server, rolling(partition=0, maxUnavailable="100%"))
        for pod in leaders(server).values():
            server.delete(PODS, NAMESPACE, pod["metadata"]["name"], uid=pod["metadata"]["uid"])
        await asyncio.sleep(2)
        assert versions(server) == "BBBB"


async def test_progressing_follows_one_write_after_update_in_progress() -> None:
    async with cluster() as server:
        server.create(LEADER_WORKER_SETS, lws(replicas=2))
        await asyncio.sleep(5)
        seen: list[set[str]] = []

        def watch(event: Any) -> None:
            if event.resource == LEADER_WORKER_SETS and true_conditions(server) not in seen[-1:]:
                seen.append(true_conditions(server))

        stop = server.store.subscribe(watch)
        patch_lws(server, new_template())
        await asyncio.sleep(10)
        stop()
        assert seen == [{"Available"}, {"UpdateInProgress"}, {"UpdateInProgress", "Progressing"}, {"Available"}]


async def test_a_condition_that_turns_false_keeps_its_reason() -> None:
    async with cluster() as server:
        server.create(LEADER_WORKER_SETS, lws())
        await asyncio.sleep(5)
        by_type = {item["type"]: item for item in status(server)["conditions"]}
        assert by_type["Progressing"]["status"] == "False"
        assert by_type["Progressing"]["reason"] == "GroupsProgressing"


async def test_when_a_promotion_is_available_a_restarted_leader_can_only_be_new() -> None:
    async with cluster() as server:
        await held(server)
        settled: list[bool] = []

        def watch(event: Any) -> None:
            if event.resource == LEADER_WORKER_SETS and true_conditions(server) == {"Available"}:
                leader_set = server.get(STATEFUL_SETS, NAMESPACE, "llm")["status"]
                settled.append(leader_set["currentRevision"] == leader_set["updateRevision"])

        await asyncio.sleep(1)
        patch_lws(server, rolling(partition=0))
        await asyncio.sleep(0.5)
        stop = server.store.subscribe(watch)
        await asyncio.sleep(10)
        stop()
        assert settled and all(settled)
        patch_lws(server, rolling(partition=HOLD))
        server.delete(PODS, NAMESPACE, "llm-0")
        await asyncio.sleep(3)
        assert versions(server) == "BBBB"


async def test_a_new_generation_gives_the_true_condition_a_new_time() -> None:
    def available(server: ApiServer) -> dict[str, Any]:
        (found,) = (item for item in status(server)["conditions"] if item["type"] == "Available")
        return found

    async with cluster() as server:
        server.create(LEADER_WORKER_SETS, lws())
        await asyncio.sleep(10)
        before = available(server)
        patch_lws(server, rolling(partition=HOLD))
        await asyncio.sleep(1)
        after = available(server)
        assert (before["status"], after["status"]) == ("True", "True")
        assert before["lastTransitionTime"] < after["lastTransitionTime"]
        assert after["observedGeneration"] == before["observedGeneration"] + 1


async def test_equal_templates_have_equal_hashes_whatever_the_name() -> None:
    async with cluster() as server:
        server.create(LEADER_WORKER_SETS, lws("llm"))
        server.create(LEADER_WORKER_SETS, lws("llm-canary"))
        server.create(LEADER_WORKER_SETS, lws("other", leaderWorkerTemplate={"workerTemplate": template("model:B")}))
        await asyncio.sleep(5)
        hashes = {
            name: leaders(server, name)["0"]["metadata"]["labels"][LWS_REVISION]
            for name in ("llm", "llm-canary", "other")
        }
        assert hashes["llm"] == hashes["llm-canary"] != hashes["other"]
        assert len(hashes["llm"]) <= 10


async def test_old_revisions_go_when_the_roll_is_done_and_stay_while_it_is_held() -> None:
    def own(server: ApiServer) -> int:
        revisions = server.list(CONTROLLER_REVISIONS, NAMESPACE)
        return sum(item["metadata"]["ownerReferences"][0]["kind"] == "LeaderWorkerSet" for item in revisions)

    async with cluster() as server:
        await held(server, replicas=2)
        assert own(server) == 2
        patch_lws(server, rolling(partition=0))
        await asyncio.sleep(10)
        assert own(server) == 1


async def test_lws_labels_and_annotations_reach_the_leader_set_and_leave_it_again() -> None:
    async with cluster() as server:
        body = lws()
        body["metadata"]["annotations"] = {"team": "search"}
        server.create(LEADER_WORKER_SETS, body)
        await asyncio.sleep(3)
        assert server.get(STATEFUL_SETS, NAMESPACE, "llm")["metadata"]["annotations"]["team"] == "search"
        before = {pod["metadata"]["uid"] for pod in server.list(PODS, NAMESPACE)}
        server.patch(LEADER_WORKER_SETS, NAMESPACE, "llm", {"metadata": {"annotations": {"team": None}}})
        await asyncio.sleep(3)
        assert "team" not in server.get(STATEFUL_SETS, NAMESPACE, "llm")["metadata"]["annotations"]
        assert {pod["metadata"]["uid"] for pod in server.list(PODS, NAMESPACE)} == before


async def test_taking_exclusive_topology_off_reaches_the_leaders_without_a_new_revision() -> None:
    topology = "leaderworkerset.sigs.k8s.io/exclusive-topology"
    async with cluster() as server:
        body = lws(replicas=1)
        body["metadata"]["annotations"] = {topology: "kubernetes.io/hostname"}
        server.create(LEADER_WORKER_SETS, body)
        await asyncio.sleep(5)
        before = leaders(server)["0"]["metadata"]
        server.patch(LEADER_WORKER_SETS, NAMESPACE, "llm", {"metadata": {"annotations": {topology: None}}})
        await asyncio.sleep(5)
        after = leaders(server)["0"]["metadata"]
        assert before["uid"] != after["uid"] and topology not in after["annotations"]
        assert before["labels"][LWS_REVISION] == after["labels"][LWS_REVISION]


async def test_a_pending_size_change_reaches_a_restarted_old_group() -> None:
    async with cluster() as server:
        await held(server, replicas=2, size=2)
        patch_lws(server, {"leaderWorkerTemplate": {"size": 3}})
        await asyncio.sleep(1)
        server.delete(PODS, NAMESPACE, "llm-1")
        await asyncio.sleep(5)
        assert world.sizes(server) == {"llm": 2, "llm-0": 1, "llm-1": 2}
        env = {item["name"]: item["value"] for item in world.pod(server, "llm-1")["spec"]["containers"][0]["env"]}
        assert env["LWS_GROUP_SIZE"] == "2"


async def test_a_changed_volume_claim_leaks_revisions_and_stops_the_observed_generation() -> None:
    claim = {"metadata": {"name": "cache"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    bigger = {**claim, "spec": {**claim["spec"], "storageClassName": "fast"}}
    async with cluster() as server:
        server.create(LEADER_WORKER_SETS, lws(leaderWorkerTemplate={"volumeClaimTemplates": [claim]}))
        await asyncio.sleep(5)
        patch_lws(server, {"leaderWorkerTemplate": {"volumeClaimTemplates": [bigger]}})
        await asyncio.sleep(30)
        observed = server.get(LEADER_WORKER_SETS, NAMESPACE, "llm")
        assert observed["status"]["observedGeneration"] < observed["metadata"]["generation"]
        assert len(server.list(CONTROLLER_REVISIONS, NAMESPACE)) > 5
        assert any(event["reason"] == "FailedUpdate" for event in server.list(EVENTS, NAMESPACE))


async def test_a_crash_in_a_worker_recreates_the_group_and_says_so() -> None:
    async with cluster() as server:
        server.create(LEADER_WORKER_SETS, lws(replicas=2, size=3))
        await asyncio.sleep(5)
        before = leaders(server)
        server.delete(PODS, NAMESPACE, "llm-1-2")
        await asyncio.sleep(5)
        after = leaders(server)
        assert after["0"]["metadata"]["uid"] == before["0"]["metadata"]["uid"]
        assert after["1"]["metadata"]["uid"] != before["1"]["metadata"]["uid"]
        events = [event for event in server.list(EVENTS, NAMESPACE) if event["reason"] == "RecreateGroup"]
        assert all(event["action"] == "Delete" and event["note"].startswith("Worker pod ") for event in events)
        assert [event["regarding"]["name"] for event in events] == ["llm"]


async def test_recreate_after_start_waits_until_the_group_has_all_its_pods() -> None:
    async with cluster() as server:
        slow = template(annotations={"sandbox.rollouts.kruise.io/fail": "Unschedulable"})
        fast = template(annotations={"sandbox.rollouts.kruise.io/crash-after": "2s"})
        groups = {"restartPolicy": "RecreateGroupAfterStart", "leaderTemplate": fast, "workerTemplate": slow}
        server.create(LEADER_WORKER_SETS, lws(replicas=1, leaderWorkerTemplate=groups))
        await asyncio.sleep(1)
        before = leaders(server)["0"]["metadata"]["uid"]
        await asyncio.sleep(5)
        leader = leaders(server)["0"]
        assert leader["metadata"]["uid"] == before
        assert leader["status"]["containerStatuses"][0]["restartCount"] >= 1


async def test_each_subdomain_policy_has_its_headless_services() -> None:
    async with cluster() as server:
        server.create(LEADER_WORKER_SETS, lws("shared"))
        server.create(LEADER_WORKER_SETS, lws("apart", networkConfig={"subdomainPolicy": "UniquePerReplica"}))
        await asyncio.sleep(3)
        services = {item["metadata"]["name"]: item["spec"] for item in server.list(SERVICES, NAMESPACE)}
        assert set(services) == {"shared", "apart-0", "apart-1"}
        assert all(spec["clusterIP"] == "None" and spec["publishNotReadyAddresses"] for spec in services.values())
        assert world.pod(server, "apart-1-1")["spec"]["subdomain"] == "apart-1"


async def test_a_native_roll_of_four_groups_costs_no_more_writes_than_in_a_real_cluster() -> None:
    async with cluster() as server:
        server.create(LEADER_WORKER_SETS, lws(replicas=4))
        await asyncio.sleep(5)
        before = server.store.version
        patch_lws(server, new_template())
        await asyncio.sleep(20)
        assert versions(server) == "BBBB"
        assert server.store.version - before <= 276


@pytest.mark.parametrize(("where", "made"), [("leader", set()), ("worker", {"llama-0"})])
async def test_pods_that_a_quota_refuses_are_told_by_their_stateful_set(where: str, made: set[str]) -> None:
    async with cluster() as server:
        faults = {"sandbox.rollouts.kruise.io/fail": "FailedCreate", "sandbox.rollouts.kruise.io/fail-on": where}
        group = {"size": 2, "workerTemplate": template(annotations=faults)}
        server.create(LEADER_WORKER_SETS, lws("llama", replicas=1, leaderWorkerTemplate=group))
        await asyncio.sleep(5)
        assert set(world.images(server)) == made
        told = {event["note"] for event in server.list(EVENTS, NAMESPACE) if event["reason"] == "FailedCreate"}
        pod, made_by = ("llama-0", "llama") if where == "leader" else ("llama-0-1", "llama-0")
        (note,) = told
        assert note.startswith(
            f'create Pod {pod} in StatefulSet {made_by} failed error: pods "{pod}" is forbidden: exceeded quota:'
        )


async def test_a_name_too_long_for_its_workers_leaves_groups_without_them() -> None:
    async with cluster() as server:
        name = "l" * 52
        server.create(LEADER_WORKER_SETS, lws(name, replicas=1))
        await asyncio.sleep(5)
        assert set(world.images(server)) == {f"{name}-0"}
        failed = [event for event in server.list(EVENTS, NAMESPACE) if event["reason"] == "FailedCreate"]
        assert {(event["regarding"]["kind"], event["regarding"]["name"]) for event in failed} == {
            ("StatefulSet", f"{name}-0")
        }
