"""Jobs make pods until they have come to an end, and their pods end as annotations say."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rollout_lws.objects.jobs import JOB_NAME
from rollout_lws.objects.resources import CRON_JOBS, EVENTS, JOBS, PODS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.faults import PREFIX
from tests.sandbox.behaviours.world import NAMESPACE, cluster

pytestmark = pytest.mark.looptime


def create(server: ApiServer, ends: dict[str, str] | None = None, **spec: Any) -> None:
    annotations = {PREFIX + name: text for name, text in (ends or {}).items()}
    container = {"name": "main", "image": "x", "terminationMessagePolicy": "FallbackToLogsOnError"}
    template = {
        "metadata": {"annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    server.create(JOBS, JOBS.manifest("work", NAMESPACE, spec={"backoffLimit": 0, "template": template, **spec}))


def pods(server: ApiServer) -> list[dict[str, Any]]:
    return server.list(PODS, NAMESPACE, label_selector=f"{JOB_NAME}=work")


def ended(server: ApiServer) -> dict[str, str]:
    """Its true conditions, each with its reason."""
    status = server.get(JOBS, NAMESPACE, "work").get("status") or {}
    return {each["type"]: each["reason"] for each in status.get("conditions") or () if each["status"] == "True"}


async def test_a_job_is_complete_when_its_pods_have_succeeded() -> None:
    async with cluster() as server:
        create(server, {"ends-after": "5s"}, completions=3, parallelism=2)
        await asyncio.sleep(4)
        assert len(pods(server)) == 2
        await asyncio.sleep(20)
        assert ended(server) == {"Complete": "CompletionsReached"}
        assert [each["status"]["phase"] for each in pods(server)] == ["Succeeded"] * 3


async def test_a_job_has_failed_when_more_pods_have_than_may() -> None:
    async with cluster() as server:
        create(server, {"exit-code": "3", "last-words": "too bad"}, backoffLimit=1)
        await asyncio.sleep(5)
        assert ended(server) == {}
        await asyncio.sleep(30)
        assert ended(server) == {"Failed": "BackoffLimitExceeded"}
        states = [each["status"]["containerStatuses"][0]["state"]["terminated"] for each in pods(server)]
        assert [(each["exitCode"], each["message"]) for each in states] == [(3, "too bad")] * 2


async def test_a_pod_is_evicted() -> None:
    async with cluster() as server:
        create(server, {"fail": "Evicted", "ends-after": "5s"})
        await asyncio.sleep(10)
        (pod,) = pods(server)
        assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "Evicted")
        assert ended(server) == {"Failed": "BackoffLimitExceeded"}


@pytest.mark.parametrize("failure", ["ImagePullBackOff", "Unschedulable"])
async def test_a_pod_that_never_starts_never_ends(failure: str) -> None:
    async with cluster() as server:
        create(server, {"fail": failure, "ends-after": "5s"})
        await asyncio.sleep(600)
        assert [each["status"]["phase"] for each in pods(server)] == ["Pending"]
        assert ended(server) == {}


async def test_a_quota_leaves_a_job_without_pods_and_an_event_says_so() -> None:
    async with cluster() as server:
        create(server, {"fail": "FailedCreate"})
        await asyncio.sleep(10)
        assert pods(server) == []
        told = {each["note"] for each in server.list(EVENTS, NAMESPACE) if each["reason"] == "FailedCreate"}
        assert any("exceeded quota" in each for each in told)


async def test_a_job_is_cut_short_by_its_deadline() -> None:
    async with cluster() as server:
        create(server, {"ends-after": "1h"}, activeDeadlineSeconds=60)
        await asyncio.sleep(59)
        assert ended(server) == {}
        await asyncio.sleep(3)
        assert ended(server) == {"Failed": "DeadlineExceeded"}
        assert pods(server) == []


async def test_a_suspended_job_has_no_pods_and_goes_on_when_it_is_resumed() -> None:
    async with cluster() as server:
        create(server, {"ends-after": "30s"})
        await asyncio.sleep(5)
        server.patch(JOBS, NAMESPACE, "work", {"spec": {"suspend": True}})
        await asyncio.sleep(5)
        assert (pods(server), ended(server)) == ([], {"Suspended": "JobSuspended"})
        server.patch(JOBS, NAMESPACE, "work", {"spec": {"suspend": False}})
        await asyncio.sleep(60)
        assert ended(server) == {"Complete": "CompletionsReached"}


async def test_the_pods_of_a_job_go_with_it() -> None:
    async with cluster() as server:
        create(server, {"ends-after": "1h"})
        await asyncio.sleep(5)
        server.delete(JOBS, NAMESPACE, "work", propagation="Background")
        await asyncio.sleep(5)
        assert pods(server) == []


async def test_an_exit_code_that_is_none_is_told() -> None:
    async with cluster() as server:
        create(server, {"exit-code": "many"})
        await asyncio.sleep(5)
        (pod,) = pods(server)
        assert 'exit-code: "many" is no number from 0 to 255' in pod["status"]["message"]


async def test_a_cron_job_only_lies_there() -> None:
    async with cluster() as server:
        template = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "x"}]}}}}
        server.create(
            CRON_JOBS, CRON_JOBS.manifest("work", NAMESPACE, spec={"schedule": "* * * * *", "jobTemplate": template})
        )
        await asyncio.sleep(600)
        assert server.list(JOBS, NAMESPACE) == []
