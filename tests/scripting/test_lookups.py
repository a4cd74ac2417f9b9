"""Which kinds a cluster serves, as Rollouts name them, and what is asked of it for that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, INGRESSES
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.faults import Faults
from rollout_lws.sandbox.transport import DirectTransport
from rollout_lws.scripting.lookups import Key, Lookups
from tests.scenarios.custom import MESH_ROUTES, definition

pytestmark = pytest.mark.looptime
KEY = ("prod", "llama")


@asynccontextmanager
async def looking(server: ApiServer, faults: Faults | None = None) -> AsyncIterator[tuple[Lookups, list[Key]]]:
    """Lookups at the server, and the Rollouts that were woken."""
    woken: list[Key] = []
    client = Client(DirectTransport(server, faults or Faults()))

    def start(work: Any, name: str) -> asyncio.Task[None]:
        return asyncio.create_task(work, name=name)

    lookups = Lookups(client, start, woken.append)
    yield lookups, woken
    await lookups.close()


def a_server(*definitions: dict[str, Any]) -> ApiServer:
    server = ApiServer(clock=asyncio.get_running_loop().time)
    for each in definitions:
        server.create(CUSTOM_RESOURCE_DEFINITIONS, each)
    return server


async def test_a_kind_is_known_once_it_is_wanted_and_forgotten_when_nothing_wants_it() -> None:
    async with looking(a_server(definition(MESH_ROUTES))) as (lookups, woken):
        kinds = ("mesh.example.com/v1", "MeshRoute"), ("networking.k8s.io/v1", "Ingress")
        assert [lookups.unknown(*kind) for kind in kinds] == ["", ""]
        await lookups.want(KEY, kinds)
        await asyncio.sleep(1)
        assert [lookups.resource(*kind) for kind in kinds] == [MESH_ROUTES, INGRESSES]
        assert [lookups.unknown(*kind) for kind in kinds] == [None, None]
        assert woken == [KEY, KEY]
        await lookups.want(("prod", "other"), kinds[:1])
        await lookups.want(KEY, ())
        assert lookups.resource(*kinds[0]) == MESH_ROUTES
        assert lookups.unknown(*kinds[1]) == ""


async def test_a_kind_that_is_installed_later_is_found() -> None:
    server = a_server()
    async with looking(server) as (lookups, woken):
        await lookups.want(KEY, (("mesh.example.com/v1", "MeshRoute"),))
        await asyncio.sleep(60)
        assert lookups.unknown("mesh.example.com/v1", "MeshRoute") is None
        assert lookups.resource("mesh.example.com/v1", "MeshRoute") is None
        assert woken == [KEY], "what is no news wakes nothing"
        server.create(CUSTOM_RESOURCE_DEFINITIONS, definition(MESH_ROUTES))
        await asyncio.sleep(60)
        assert lookups.resource("mesh.example.com/v1", "MeshRoute") == MESH_ROUTES
        assert woken == [KEY, KEY]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (("networking.k8s.io/../../v1", "Ingress"), "is no apiVersion: write group/version"),
        (("../v1", "Pod"), "is no apiVersion: write group/version"),
        (
            ("rbac.authorization.k8s.io/v1", "ClusterRole"),
            "are in no namespace: name one of the Rollout's own namespace",
        ),
    ],
)
async def test_what_is_no_kind_in_a_namespace_is_told(kind: tuple[str, str], said: str) -> None:
    async with looking(a_server()) as (lookups, _):
        await lookups.want(KEY, (kind,))
        await asyncio.sleep(1)
        assert said in (lookups.unknown(*kind) or "")
        assert lookups.resource(*kind) is None


async def test_a_server_that_fails_is_asked_again() -> None:
    faults = Faults()
    faults.refuse(503, count=20)
    async with looking(a_server(definition(MESH_ROUTES)), faults) as (lookups, _):
        await lookups.want(KEY, (("mesh.example.com/v1", "MeshRoute"),))
        await asyncio.sleep(0.01)
        assert lookups.resource("mesh.example.com/v1", "MeshRoute") is None
        await asyncio.sleep(600)
        assert lookups.resource("mesh.example.com/v1", "MeshRoute") == MESH_ROUTES
