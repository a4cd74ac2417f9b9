"""Gates that ask Jobs, with Kubernetes' own Job controller: how a Job ends there is not the sandbox's idea of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from rollout_lws.cli.install import rbac
from rollout_lws.kube.client import Client
from rollout_lws.objects.jobs import JOB_NAME
from rollout_lws.objects.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, CRON_JOBS, JOBS, PODS
from rollout_lws.objects.writes import Create
from tests.e2e import tools
from tests.e2e.cluster import CONTROLLER, Cluster, binding, cluster, install
from tests.e2e.world import RemoteWorld, remote_world
from tests.kubectl.programs import Programs
from tests.scenarios.evals import EVALS, cron_job
from tests.scenarios.names import NAMESPACE, ROLLOUTS

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

_RIGHTS = "gate-jobs"


async def _with_jobs(admin: Client) -> None:
    """What is installed for others, and the rights that are given if they are asked for."""
    await install(admin)
    await admin.send(Create(CLUSTER_ROLES, rbac.role(_RIGHTS, rbac.gate_job_rules()), "gates ask Jobs"))
    user = {"apiGroup": CLUSTER_ROLES.group, "kind": "User", "name": CONTROLLER}
    bound = binding(_RIGHTS, {"name": _RIGHTS}, user)
    await admin.send(Create(CLUSTER_ROLE_BINDINGS, bound, "gates ask Jobs"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    async with cluster(tools.directory(), tmp_path_factory.mktemp("cluster"), install=_with_jobs) as running:
        yield running


@asynccontextmanager
async def released(
    whole: Cluster, namespace: str, ends: Mapping[str, str] | None, deadline: int = 120
) -> AsyncIterator[RemoteWorld]:
    """A release whose first step asks a Job that ends so; None without a CronJob."""
    programs = Programs()
    try:
        async with remote_world(whole.plane.admin, whole.controller, namespace, programs) as world:
            if ends is not None:
                world.server.create(CRON_JOBS, cron_job(**{"ends_after": "3s", **ends}))
            world.create_workload(replicas=2)
            first = {"replicas": 1, "gates": [{**EVALS, "deadlineSeconds": deadline}], "pause": {"duration": 0}}
            world.create_rollout(first, {"replicas": "100%", "pause": {"duration": 0}}, onFailure="Abort")
            await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {"v1"}, "at rest")
            world.set_image("v2")
            await world.until(lambda: bool(gate(world)), "the gate has begun")
            yield world
    finally:
        await programs.close()
        print(*programs.logs(), sep="\n")


def gate(world: RemoteWorld) -> dict[str, Any]:
    return next(iter(world.status.get("gates", ())), {})


def jobs(world: RemoteWorld) -> list[dict[str, Any]]:
    return world.server.list(JOBS, NAMESPACE)


def pods(world: RemoteWorld) -> list[dict[str, Any]]:
    return [each for each in world.server.list(PODS, NAMESPACE) if JOB_NAME in (each["metadata"].get("labels") or {})]


async def test_a_job_that_is_complete_passes_and_goes_with_the_rollout(whole: Cluster) -> None:
    async with released(whole, "complete", {}) as world:
        await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {"v2"}, "released")
        (job,) = jobs(world)
        assert job["spec"]["template"]["spec"]["containers"][0]["terminationMessagePolicy"] == "FallbackToLogsOnError"
        world.delete(ROLLOUTS, world.name)
        await world.until(lambda: not jobs(world) and not pods(world), "gone")


async def test_a_job_that_fails_aborts_with_its_last_words(whole: Cluster) -> None:
    async with released(whole, "fails", {"exit_code": "3", "last_words": "accuracy 0.61 is below 0.80"}) as world:
        await world.until_state("Aborted")
        told = world.status["aborted"]["message"]
        assert "container evals ended with exit code 3: accuracy 0.61 is below 0.80" in told
        assert len(jobs(world)) == 1


async def test_a_job_that_is_evicted_is_no_verdict(whole: Cluster) -> None:
    async with released(whole, "evicted", {"fail": "Evicted"}) as world:
        await world.until_state("Stalled")
        assert (gate(world)["result"], "Evicted" in gate(world)["message"]) == ("Error", True)


async def test_an_image_that_does_not_exist_is_told_and_the_job_is_stopped_in_the_end(whole: Cluster) -> None:
    async with released(whole, "no-image", {"fail": "ImagePullBackOff"}, deadline=45) as world:
        await world.until(lambda: "ImagePullBackOff" in world.status.get("message", ""), "told")
        assert world.state == "Analyzing"
        await world.until_state("Stalled")
        assert gate(world)["result"] == "Error"
        assert "ImagePullBackOff" in gate(world)["message"]
        await world.until(lambda: not pods(world), "stopped")
        (job,) = jobs(world)
        assert job["spec"]["suspend"]


async def test_a_job_that_is_deleted_by_hand_is_made_again_on_request_only(whole: Cluster) -> None:
    async with released(whole, "deleted", {"ends_after": "20s"}) as world:
        await world.until(lambda: "job" in gate(world), "made")
        name = gate(world)["job"]
        world.delete(JOBS, name)
        await world.until_state("Stalled")
        assert gate(world)["message"] == f"Job {name} was deleted before it had ended"
        world.request("Retry")
        await world.until(lambda: gate(world).get("job") not in (None, name), "made again")
        await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {"v2"}, "released")


async def test_a_job_that_takes_too_long_is_stopped(whole: Cluster) -> None:
    async with released(whole, "too-long", {"ends_after": "1h"}, deadline=30) as world:
        await world.until(lambda: bool(pods(world)), "runs")
        await world.until_state("Stalled")
        assert gate(world)["message"].endswith("has not ended within 30 s")
        await world.until(lambda: not pods(world), "stopped")
        (job,) = jobs(world)
        assert job["spec"]["suspend"]
        assert {each["type"]: each["status"] for each in job["status"]["conditions"]}["Suspended"] == "True"


async def test_a_cron_job_that_is_missing_is_waited_for(whole: Cluster) -> None:
    async with released(whole, "missing", None) as world:
        await world.until(lambda: "CronJob evals does not exist" in world.status.get("message", ""), "told")
        assert world.state == "Analyzing"
        world.server.create(CRON_JOBS, cron_job(ends_after="3s"))
        await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {"v2"}, "released")
