"""What the running controller tells of an API server that refuses: in a Rollout's status, and in its readiness."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rollout_lws.api import crd
from rollout_lws.api.resources import rollouts
from rollout_lws.cli.demo import manifests
from rollout_lws.controller.controller import Controller
from rollout_lws.errors import ApiError
from rollout_lws.kube.client import Client
from rollout_lws.metrics import Metrics
from rollout_lws.objects.permissions import SOURCE
from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, EVENTS, LEADER_WORKER_SETS
from rollout_lws.sandbox.apiserver import ApiServer, Operation
from rollout_lws.sandbox.behaviours.cluster import Cluster, Options
from rollout_lws.sandbox.definitions import lws_crd
from rollout_lws.sandbox.faults import Effect, Faults
from rollout_lws.sandbox.transport import DirectTransport
from rollout_lws.settings import Settings
from tests.controller.test_controller import ORIGIN, cluster, controlled, create
from tests.virtual_time import LoopClock

pytestmark = pytest.mark.looptime

QUOTA = (
    'leaderworkersets.leaderworkerset.x-k8s.io "llama-canary" is forbidden: exceeded quota: models, requested:'
    " count/leaderworkersets.leaderworkerset.x-k8s.io=1, used: 1, limited: 1"
)


def no_canaries(operation: Operation) -> dict[str, Any]:
    if operation.resource == LEADER_WORKER_SETS and operation.old is None:
        raise ApiError(403, "Forbidden", QUOTA)
    return operation.object


def stalled(server: ApiServer) -> dict[str, Any]:
    conditions = (server.get(rollouts(), "default", "llama").get("status") or {}).get("conditions", ())
    return next((each for each in conditions if each["type"] == "Stalled" and each["status"] == "True"), {})


async def test_a_quota_that_refuses_the_canary_is_told_and_the_release_goes_on_when_it_is_raised() -> None:
    async with cluster() as server, controlled(server):
        create(server, "default")
        await asyncio.sleep(30)
        server.admission.append(no_canaries)
        image = [{"name": "server", "image": "vllm:v2"}]
        template = {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": image}}}}
        body = {"spec": template}
        server.patch(LEADER_WORKER_SETS, "default", "llama", body, "application/merge-patch+json")
        await asyncio.sleep(300)
        message = (
            f"the API server refuses to create LeaderWorkerSet llama-canary: {QUOTA}. To go on, raise the quota or free"
            " some of it; it is tried again until then"
        )
        assert (stalled(server).get("reason"), stalled(server).get("message")) == ("WriteRefused", message)
        told = [each["note"] for each in server.list(EVENTS, "default") if each["reason"] == "Stalled"]
        assert told == [message]
        at_rest = server.store.version
        await asyncio.sleep(600)
        assert server.store.version == at_rest, "trying again writes nothing"
        server.admission.remove(no_canaries)
        await asyncio.sleep(60)
        assert server.get(LEADER_WORKER_SETS, "default", "llama-canary")
        assert stalled(server) == {}


@asynccontextmanager
async def starting(server: ApiServer, faults: Faults | None = None) -> AsyncIterator[Controller]:
    """A controller that has been trying to fill its caches for ten seconds."""
    controller = Controller(Client(DirectTransport(server, faults)), Settings(), LoopClock(ORIGIN), Metrics())

    async def run() -> None:
        async with controller.running():
            await asyncio.Event().wait()

    task = asyncio.create_task(run())
    await asyncio.sleep(10)
    yield controller
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_readiness_names_the_permission_that_is_missing_to_read() -> None:
    forbidden = ApiError(403, "Forbidden", 'statefulsets.apps is forbidden: User "rollout-lws" cannot list resource')
    faults = Faults()
    faults.add(Effect(refusal=forbidden), resource="statefulsets", count=None)
    async with cluster() as server, starting(server, faults) as controller:
        assert controller.missing == (
            f"statefulsets.apps: {forbidden.message}: allow the controller's account to list and watch"
            f" statefulsets.apps in all namespaces ({SOURCE})\n"
        )
        faults.restore()
        await asyncio.sleep(60)
        assert controller.missing == ""


async def test_nobody_judges_by_what_he_may_read_no_more() -> None:
    forbidden = ApiError(403, "Forbidden", 'pods is forbidden: User "rollout-lws" cannot list resource "pods"')
    faults = Faults()
    async with cluster() as server, starting(server, faults) as controller:
        assert controller.look("default") is not None
        faults.add(Effect(refusal=forbidden), resource="pods", count=None)
        faults.cut_watches()
        await asyncio.sleep(300)
        assert controller.look("default") is None
        assert (controller.missing, controller.untold.splitlines()) == (
            "",
            [
                f"pods: {forbidden.message}: allow the controller's account to list and watch pods in all namespaces"
                f" ({SOURCE})"
            ],
        )
        faults.restore()
        await asyncio.sleep(300)
        assert controller.look("default") is not None
        assert controller.untold == ""


async def test_readiness_says_that_leader_worker_set_is_not_installed_and_goes_on_when_it_is() -> None:
    server = ApiServer(lambda: LoopClock(ORIGIN).now().timestamp(), seed=1)
    for definition in crd.render():
        server.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
    async with starting(server) as controller:
        assert controller.missing == (
            "leaderworkersets.leaderworkerset.x-k8s.io: 404 page not found:"
            " leaderworkersets.leaderworkerset.x-k8s.io is not served by this cluster, install its"
            " CustomResourceDefinition\n"
        )
        server.create(CUSTOM_RESOURCE_DEFINITIONS, lws_crd.manifest())
        running = Cluster(server, Options())
        running.start()
        await asyncio.sleep(60)
        assert controller.missing == ""
        server.create(rollouts(), manifests.rollout(rollouts().api_version, {"name": "llama", "namespace": "default"}))
        await asyncio.sleep(5)
        assert stalled(server)["reason"] == "WorkloadNotFound"
        running.stop()
