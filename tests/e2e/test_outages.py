"""The API server is killed and started again in the middle of releases: they complete, and nothing is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.e2e import tools
from tests.e2e.cluster import Cluster, cluster
from tests.e2e.staged import release
from tests.e2e.world import remote_world
from tests.kubectl.programs import Programs
from tests.scenarios.matrix import Moment
from tests.scenarios.matrix_acts import finish
from tests.scenarios.styles import STYLES, Style

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

MOMENTS = (Moment.LOADING, Moment.FIRST, Moment.SECOND, Moment.PROMOTION)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    async with cluster(tools.directory(), tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.mark.parametrize("style", STYLES, ids=str)
async def test_a_release_outlives_the_api_server_at_each_of_its_moments(whole: Cluster, style: Style) -> None:
    programs = Programs()
    namespace = f"outage-{style}".replace(" ", "-")
    try:
        async with remote_world(whole.plane.admin, whole.controller, namespace, programs) as world:
            it = release(world, style, "HTTPRoute")
            await it.begin()
            for moment in MOMENTS:
                await it.come_to(moment)
                await whole.plane.restart_api_server()
            await finish(it)
    finally:
        await programs.close()
        print(*programs.logs(), sep="\n")
