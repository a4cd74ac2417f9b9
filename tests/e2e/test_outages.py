"""The API server is killed and started again in the middle of releases: they complete, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from tests.e2e import tools
from tests.e2e.cluster import Cluster, cluster
from tests.e2e.staged import release
from tests.e2e.world import remote_world
from tests.kubectl.programs import Programs
from tests.scenarios.matrix import Moment
from tests.scenarios.matrix_acts import finish
from tests.scenarios.styles import STYLES

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

MOMENTS = (Moment.LOADING, Moment.FIRST, Moment.SECOND, Moment.PROMOTION)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    async with cluster(tools.directory(), tmp_path_factory.mktemp("cluster")) as running:
        yield running


async def test_releases_of_every_style_outlive_the_api_server_at_each_of_their_moments(whole: Cluster) -> None:
    programs = Programs()
    try:
        async with AsyncExitStack() as stack:
            releases = []
            for style in STYLES:
                namespace = f"outage-{style}".replace(" ", "-")
                world = remote_world(whole.plane.admin, whole.controller, namespace, programs)
                releases.append(release(await stack.enter_async_context(world), style, "HTTPRoute"))
            await asyncio.gather(*(each.begin() for each in releases))
            for moment in MOMENTS:
                await asyncio.gather(*(each.come_to(moment) for each in releases))
                await whole.plane.restart()
            await asyncio.gather(*(finish(each) for each in releases))
    finally:
        await programs.close()
        print(*programs.logs(), sep="\n")
