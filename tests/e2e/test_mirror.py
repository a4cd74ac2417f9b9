"""What stories see of a cluster, on one that does not serve every kind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, HTTP_ROUTES, LEADER_WORKER_SETS
from rollout_lws.sandbox.faults import Effect
from tests.conformance.objects import lws
from tests.definitions import definitions
from tests.e2e.mirror import Mirror
from tests.e2e.sandboxed import ControlPlane, control_plane
from tests.e2e.world import KINDS

pytestmark = pytest.mark.rare(2)


@asynccontextmanager
async def mirrored(folder: Path) -> AsyncIterator[tuple[ControlPlane, Mirror, asyncio.Event]]:
    """A cluster without the Gateway API, what a story sees of it, and what is set at each change."""
    async with control_plane(folder, gateways=False) as (plane, connection):
        for definition in definitions()[1:]:
            plane.server.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
        changed = asyncio.Event()
        mirror = Mirror(Client(connection), "default", KINDS, changed.set, lambda: None)
        tasks = mirror.start()
        try:
            yield plane, mirror, changed
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


async def test_a_cluster_without_the_gateway_api_is_followed_all_the_same(tmp_path: Path) -> None:
    async with mirrored(tmp_path) as (plane, mirror, changed):
        await mirror.synced(20)
        assert mirror.is_current
        assert mirror.newest.list(HTTP_ROUTES) == []
        plane.server.create(LEADER_WORKER_SETS, lws(), namespace="default")
        async with asyncio.timeout(20):
            await changed.wait()
        assert [each["metadata"]["name"] for each in mirror.newest.list(LEADER_WORKER_SETS)] == ["llama"]


async def test_what_cannot_be_listed_is_told(tmp_path: Path) -> None:
    async with mirrored(tmp_path) as (plane, mirror, _):
        forbidden = Effect(refusal=ApiError(403, "Forbidden", "pods is forbidden"))
        plane.faults.add(forbidden, "list", "pods", count=None)
        with pytest.raises(TimeoutError, match="not everything is listed after 2 s: pods is forbidden"):
            await mirror.synced(2)
