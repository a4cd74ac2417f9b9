"""etcd forgets its history while a watch of ours is cut, or between the pages of a list: what is asked for then is gone
(410), and everything is listed again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from rollout_lws.errors import ApiError
from rollout_lws.kube.client import Client
from rollout_lws.kube.informer import Informer
from rollout_lws.kube.transport import Answer, Transport
from rollout_lws.objects.resources import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    LEADER_WORKER_SETS,
    NAMESPACES,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from rollout_lws.objects.writes import Create
from tests.e2e import audit, tools
from tests.e2e.cluster import Cluster, cluster
from tests.e2e.following import Whole
from tests.e2e.following import whole as decoded
from tests.e2e.plane import ControlPlane, connected
from tests.e2e.staged import release
from tests.e2e.tcp_proxy import proxied, through
from tests.e2e.world import remote_world
from tests.kubectl.programs import Programs
from tests.scenarios.matrix import Moment
from tests.scenarios.matrix_acts import finish
from tests.scenarios.names import NAME, ROLLOUTS
from tests.scenarios.styles import CANARY_STYLE, IN_PLACE, Style

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

#: What a controller follows in any namespace, whatever it releases.
FOLLOWED = (ROLLOUTS, LEADER_WORKER_SETS, PODS, STATEFUL_SETS, CONTROLLER_REVISIONS, SERVICES)
#: What it says of each watch that is answered 410.
TOO_OLD = "watch is too old, listing again"
#: More than one page of an informer's list.
PAGES = 501


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    async with cluster(tools.directory(), tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.mark.parametrize("style", (CANARY_STYLE, IN_PLACE), ids=str)
async def test_a_release_goes_on_from_new_lists_when_its_watches_are_too_old(
    whole: Cluster, tmp_path: Path, style: Style
) -> None:
    plane, programs = whole.plane, Programs()
    namespace = f"compacted-{style}".replace(" ", "-")
    async with proxied(plane.url) as network:
        controller = through(network, whole.controller, tmp_path / "controller.kubeconfig")
        try:
            async with remote_world(plane.admin, controller, namespace, programs) as world:
                it = release(world, style, "HTTPRoute")
                await it.begin()
                await it.come_to(Moment.FIRST)
                network.cut()
                seen = world.rollout["metadata"]["resourceVersion"]
                # A change, a pod that goes and one that comes, of none of which the controller is told.
                it._approve()
                leader = world.leader_uids()[f"{NAME}-0"]
                it.lose(NAME, 0)
                await it.until(lambda: world.leader_uids().get(f"{NAME}-0", leader) != leader, "a new leader")
                await plane.compact()
                await plane.restart()
                await assert_gone(plane, ROLLOUTS, namespace, seen)
                fixed = datetime.now(UTC)
                await network.mend()
                await finish(it)
            (ours,) = programs.started
            too_old = {kind for kind in FOLLOWED for line in ours.lines if line.endswith(f"{TOO_OLD} resource={kind}")}
            assert too_old == set(FOLLOWED), ours.output
            assert again_listed(plane, namespace, fixed) >= {str(each) for each in FOLLOWED}
        finally:
            await programs.close()
            print(*programs.logs(), sep="\n")


async def assert_gone(plane: ControlPlane, resource: Resource, namespace: str, version: str) -> None:
    """The server knows nothing of ``version`` any more, neither for a watch nor for a list of that moment."""
    async with connected(plane.admin) as connection:
        client = Client(connection)
        # A server that has just started is busy with filling its caches, and says so.
        await client.list(resource, namespace, {"resourceVersion": "0"})
        then = {"resourceVersion": version}
        async with client.watch(resource, namespace, then, silence=30.0) as lines:
            (told,) = [json.loads(line) async for line in lines if line]
        assert (told["type"], told["object"]["code"], told["object"]["reason"]) == ("ERROR", 410, "Expired")
        with pytest.raises(ApiError) as refused:
            await client.list(resource, namespace, {**then, "resourceVersionMatch": "Exact"})
        assert (refused.value.code, refused.value.reason) == (410, "Expired")


def again_listed(plane: ControlPlane, namespace: str, since: datetime) -> set[str]:
    """What the controller of a namespace has listed since then, by the server's account."""
    return {
        each.resource
        for each in audit.read(plane.audit_log)
        if each.namespace == namespace and each.verb == "list" and each.at >= since and not each.was_refused
    }


@dataclass
class Interrupted:
    """A transport on which something happens before the second page of a list is asked for, once."""

    transport: Transport
    happen: Callable[[], Awaitable[None]]
    #: Codes of the answers to further pages.
    answers: list[int] = field(default_factory=list)

    async def request(self, method: str, path: str, *, params: Mapping[str, str], **more: Any) -> Answer:
        if "continue" not in params:
            return await self.transport.request(method, path, params=params, **more)
        if not self.answers:
            await self.happen()
        answer = await self.transport.request(method, path, params=params, **more)
        self.answers.append(answer.status)
        return answer

    def stream(self, path: str, **more: Any) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self.transport.stream(path, **more)


async def test_a_list_whose_next_page_is_too_old_is_begun_again(whole: Cluster) -> None:
    plane, namespace = whole.plane, "paged"
    async with connected(plane.admin) as connection:
        admin = Client(connection)
        await admin.send(Create(NAMESPACES, {"metadata": {"name": namespace}}, "a list of pages"))
        names = [f"page-{number:03}" for number in range(PAGES)]
        await asyncio.gather(*(admin.send(config_map(namespace, name)) for name in names))

        async def compacted() -> None:
            await admin.send(config_map(namespace, "late"))
            await plane.compact()
            await plane.restart_api_server()

        pages = Interrupted(connection, compacted)
        following: Informer[Whole] = Informer(
            Client(pages), CONFIG_MAPS, partial(decoded, CONFIG_MAPS), namespace=namespace
        )
        running = asyncio.create_task(following.run())
        try:
            async with asyncio.timeout(60):
                await following.synced()
        finally:
            running.cancel()
            await asyncio.wait([running])
    assert pages.answers == [410, 200]
    found = {each.metadata.name for each in following.all()}
    # Every namespace has one of its own besides.
    assert found - {"kube-root-ca.crt"} == {"late", *names}


def config_map(namespace: str, name: str) -> Create:
    return Create(CONFIG_MAPS, {"metadata": {"name": name, "namespace": namespace}}, "to be listed")
