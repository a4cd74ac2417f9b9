"""Every behaviour is asked of two servers: the sandbox's always, a real Kubernetes' where the programs are built.

Each server is started once, and each test has a namespace of its own on it.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES
from rollout_lws.objects.writes import Create
from tests.conformance.asking import Asking, Wire, wired
from tests.conformance.differences import KUBERNETES, SANDBOX
from tests.definitions import definitions
from tests.e2e import sandboxed, tools
from tests.e2e.plane import control_plane
from tests.e2e.waiting import condition, until

_HERE = Path(__file__).parent
_numbers = itertools.count(1)
#: The sandbox comes with the definition of LeaderWorkerSet.
_OURS = definitions()[1:]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A server that outlives a test lives in the loop of all of them."""
    for item in items:
        if _HERE in item.path.parents and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


async def _install(bodies: Iterable[Mapping[str, Any]], admin: Client) -> None:
    for body in bodies:
        name = body["metadata"]["name"]
        await admin.send(Create(CUSTOM_RESOURCE_DEFINITIONS, body, "what it promises is to hold on both"))
        await until(admin, CUSTOM_RESOURCE_DEFINITIONS, "", name, lambda obj: condition(obj, "Established") == "True")


@asynccontextmanager
async def _sandbox(folder: Path) -> AsyncIterator[Wire]:
    async with sandboxed.control_plane(folder) as (_, connection), wired(folder / "kubeconfig") as wire:
        await _install(_OURS, Client(connection))
        yield wire


@asynccontextmanager
async def _kubernetes(folder: Path) -> AsyncIterator[Wire]:
    if why := tools.missing():
        pytest.skip(f"tests with a real control plane: {why}")
    async with (
        control_plane(tools.directory(), folder, install=partial(_install, definitions())) as plane,
        wired(plane.admin) as wire,
    ):
        yield wire


_SERVERS = {SANDBOX: _sandbox, KUBERNETES: _kubernetes}


@pytest_asyncio.fixture(
    scope="session",
    loop_scope="session",
    params=[SANDBOX, pytest.param(KUBERNETES, marks=[pytest.mark.e2e, pytest.mark.timeout(300)])],
)
async def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[str, Wire]]:
    name: str = request.param
    async with _SERVERS[name](tmp_path_factory.mktemp(name)) as wire:
        yield name, wire


@pytest_asyncio.fixture(loop_scope="session")
async def server(running: tuple[str, Wire]) -> Asking:
    """One of the two servers, with an empty namespace."""
    name, wire = running
    room = Asking(name, wire, f"room-{next(_numbers)}")
    (await room.create(NAMESPACES, {"metadata": {"name": room.namespace}})).ok()
    return room
