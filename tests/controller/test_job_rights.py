"""Rights to Jobs are asked for: without them one gate says so, and nothing else suffers."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import Any

import pytest

from rollout_lws.api.resources import rollouts
from rollout_lws.cli.demo import manifests
from rollout_lws.cli.install.rbac import gate_job_rules
from rollout_lws.objects.resources import CRON_JOBS, JOBS, LEADER_WORKER_SETS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.cluster import Options
from tests.controller.guarded import Right, granted, guarded
from tests.controller.test_controller import cluster
from tests.scenarios.evals import EVALS, cron_job

pytestmark = pytest.mark.looptime

ASKED_FOR = {
    Right(rule.group, resource, verb) for rule in gate_job_rules() for resource in rule.resources for verb in rule.verbs
}


def create(server: ApiServer, name: str, *gates: dict[str, Any]) -> None:
    lws = manifests.workload()
    lws["metadata"] |= {"name": name, "namespace": "default"}
    rollout = manifests.rollout(rollouts().api_version, lws["metadata"])
    first = {"replicas": 1, "gates": list(gates), "pause": {"duration": 0}}
    rollout["spec"]["strategy"] = {"canary": {"steps": [first, {"replicas": "100%", "pause": {"duration": 0}}]}}
    server.create(LEADER_WORKER_SETS, lws)
    server.create(rollouts(), rollout)


def release(server: ApiServer, name: str, image: str) -> None:
    lws = deepcopy(server.get(LEADER_WORKER_SETS, "default", name))
    template = lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    template["spec"]["containers"][0]["image"] = image
    server.patch(LEADER_WORKER_SETS, "default", name, {"spec": {"leaderWorkerTemplate": {"workerTemplate": template}}})


def status(server: ApiServer, name: str) -> dict[str, Any]:
    return server.get(rollouts(), "default", name).get("status") or {}


def is_stable(server: ApiServer, name: str) -> bool:
    return "Completed" in {each["reason"] for each in status(server, name).get("conditions", ())} and (
        status(server, name)["summary"]["state"] == "Healthy"
    )


async def test_without_rights_to_jobs_one_gate_waits_and_others_release() -> None:
    rights = granted()
    async with cluster(Options(nodes=32)) as server, guarded(server, rights) as running:
        server.create(CRON_JOBS, cron_job())
        create(server, "llama", {**EVALS, "deadlineSeconds": 7200})
        create(server, "qwen")
        await asyncio.sleep(60)
        for name in ("llama", "qwen"):
            release(server, name, "model:v2")
        await asyncio.sleep(180)
        assert status(server, "llama")["summary"]["state"] == "Analyzing"
        told = status(server, "llama")["message"]
        assert "allow the controller's account to list and watch jobs.batch" in told
        assert "install --with gate-jobs gives it" in told
        assert is_stable(server, "qwen")
        assert (running.controller.missing, running.controller.untold) == ("", "")
        rights |= ASKED_FOR
        await asyncio.sleep(400)
        assert is_stable(server, "llama")
        assert len(server.list(JOBS, "default")) == 1


async def test_each_right_to_jobs_is_needed_and_no_other() -> None:
    rights = granted() | ASKED_FOR
    async with cluster() as server, guarded(server, rights) as running:
        server.create(CRON_JOBS, cron_job(ends_after="1h"))
        create(server, "llama", {**EVALS, "deadlineSeconds": 60})
        await asyncio.sleep(60)
        release(server, "llama", "model:v2")
        await asyncio.sleep(180)
        assert status(server, "llama")["summary"]["state"] == "Stalled"
        release(server, "llama", "model:v3")
        await asyncio.sleep(180)
        assert not running.transport.missed
        assert running.transport.used >= ASKED_FOR
