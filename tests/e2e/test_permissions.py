"""Each right of the controller's role taken away in turn, on a real API server: its own words are told, where they are
read, and the release goes on when the right is there again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from rollout_lws.api.resources import rollouts
from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS, LEADER_WORKER_SETS, NAMESPACES, Resource
from rollout_lws.objects.writes import Create, Patch
from tests.controller import duties
from tests.controller.guarded import Right, granted
from tests.controller.surfaces import names, needless, told_by_readiness, told_by_status
from tests.e2e import tools
from tests.e2e.cluster import Cluster, cluster
from tests.e2e.lacking import Lacking, lacking
from tests.e2e.plane import connected
from tests.e2e.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(600)]

Object = dict[str, Any]
#: So many releases at a time; each has a controller of its own.
AT_ONCE = 12
#: Far longer than a release takes, and than the longest back-off.
PATIENCE_SECONDS = 150
#: Told in virtual time only (tests/controller/test_permissions.py): kinds and troubles that no control plane has by
#: itself, edits in one moment of a release, what ten versions later has to be forgotten, and a StatefulSet, whose
#: releases need the same rights on another kind.
ELSEWHERE = {
    duties.pooled,
    duties.followed,
    duties.of_a_stateful_set,
    duties.taken_back,
    duties.hindered,
    duties.forgotten,
}
ONCE = "get leaderworkersets.leaderworkerset.x-k8s.io"
TOLD = sorted(each for each in granted() if duties.story(each) not in ELSEWHERE and str(each) != ONCE)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    async with cluster(tools.directory(), tmp_path_factory.mktemp("cluster"), ready_after="0.5s") as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(whole: Cluster) -> AsyncIterator[Client]:
    async with connected(whole.plane.admin) as connection:
        yield Client(connection)


async def test_each_right_that_is_missing_is_named_and_waited_for(whole: Cluster, admin: Client) -> None:
    at_once = asyncio.Semaphore(AT_ONCE)

    async def tried(number: int, right: Right) -> None:
        async with at_once, asyncio.timeout(PATIENCE_SECONDS):
            namespace = f"lacks-{number}"
            await admin.send(Create(NAMESPACES, {"metadata": {"name": namespace}}, "a release of its own"))
            async with lacking(whole.plane, admin, namespace, right) as found:
                await _lives_without(admin, found)

    ends = await asyncio.gather(*(tried(*each) for each in enumerate(TOLD)), return_exceptions=True)
    failed = {str(right): repr(end) for right, end in zip(TOLD, ends, strict=True) if end is not None}
    assert not failed


async def _lives_without(admin: Client, found: Lacking) -> None:
    right, heard, controller = found.right, found.heard, found.controller
    telling = asyncio.create_task(_release(admin, found.namespace, routed=duties.story(right) is duties.routed))
    try:
        if needless(right):
            await telling
            assert right in heard.now_denied
        else:
            await heard.denied.wait()
        if told_by_status(right):
            await _until(admin, found.namespace, lambda status: names(str(status.get("message")), right))
        unready = controller.missing + controller.untold
        assert names(unready, right) == told_by_readiness(right), unready
        await found.give_back()
        await telling
        if not needless(right):
            await heard.allowed.wait()
            assert not heard.now_denied
            assert controller.missing + controller.untold == ""
    finally:
        telling.cancel()
        await asyncio.wait([telling])


async def _release(admin: Client, namespace: str, *, routed: bool) -> None:
    """Of an LWS of one pod a group, from adoption over an approval to its end; with two groups, an autoscaler has one
    that it could take away.
    """
    template = {"spec": {"containers": [{"name": "server", "image": "llama:v1"}]}}
    lws = {"replicas": 2 if routed else 1, "leaderWorkerTemplate": {"size": 1, "workerTemplate": template}}
    await admin.send(Create(LEADER_WORKER_SETS, _made(LEADER_WORKER_SETS, namespace, lws), "it is released"))
    traffic = {"service": "api", "gracePeriodSeconds": 1, "drainSeconds": 1, **duties.BY_ROUTES}
    share = {"traffic": "20%"} if routed else {}
    steps = [{"replicas": 1, "pause": {}, **share}, {"replicas": "100%"}]
    canary = {"steps": steps} | ({"trafficRoutings": [traffic]} if routed else {})
    if routed:
        for resource, body in duties.routing(namespace):
            await admin.send(Create(resource, body, "its requests"))
        await admin.send(Create(HORIZONTAL_POD_AUTOSCALERS, duties.autoscaler(namespace), "its size"))
    reference = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind, "name": "llama"}
    plan = {"workloadRef": reference, "strategy": {"canary": canary}}
    await admin.send(Create(rollouts(), _made(rollouts(), namespace, plan), "its steps"))
    before = await _until(admin, namespace, lambda status: _state(status) == "Healthy")
    template = {"spec": {"containers": [{"name": "server", "image": "llama:v2"}]}}
    body = {"spec": {"leaderWorkerTemplate": {"workerTemplate": template}}}
    await admin.send(Patch(LEADER_WORKER_SETS, namespace, "llama", body, "a new version"))
    await _until(admin, namespace, lambda status: _state(status) == "AwaitingApproval")
    approval = {"status": {"canaryStatus": {"currentStepState": "StepReady"}}}
    await admin.send(Patch(rollouts(), namespace, "llama", approval, "approved", subresource="status"))
    after = await _until(admin, namespace, lambda status: _state(status) == "Healthy")
    assert after["stable"]["revision"] != before["stable"]["revision"]


def _made(resource: Resource, namespace: str, spec: Object) -> Object:
    metadata = {"namespace": namespace, "name": "llama"}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


def _state(status: Object) -> str:
    return str((status.get("summary") or {}).get("state"))


async def _until(admin: Client, namespace: str, holds: Any) -> Object:
    """The Rollout's status as soon as it is so."""
    found = await until(
        admin, rollouts(), namespace, "llama", lambda obj: holds((obj or {}).get("status") or {}), PATIENCE_SECONDS
    )
    status: Object = (found or {})["status"]
    return status
