"""The pictures of the documentation: `make pictures` takes them, of a release that was played in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
import yaml

from rollout_lws.cli.sandbox.local_cluster import Playground
from rollout_lws.objects.resources import NAMESPACES
from rollout_lws.sandbox.http import Server
from tests import virtual_time
from tests.browser import recorded
from tests.browser.recorded import NAME, NAMESPACE
from tests.browser.stage import ROLLOUTS, Stage
from tests.browser.tabs import Visitors
from tests.kubectl.programs import Programs

if TYPE_CHECKING:
    from rollout_lws.sandbox.apiserver import ApiServer

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(240)]
_CLUSTER = "gpu-east"
#: Of the API server, which the page names; another one where it is taken.
_PORT = 6443


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def played(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    server: ApiServer = await asyncio.to_thread(virtual_time.run, recorded.played())
    http, programs = Server(server), Programs()
    try:
        await http.start(port=_PORT)
    except OSError:
        await http.start()
    stage = Stage(Playground(server, http), tmp_path_factory.mktemp("played"), programs)
    named = stage.kubeconfig.read_text().replace("sandbox", _CLUSTER)
    assert yaml.safe_load(named)["current-context"] == _CLUSTER
    stage.kubeconfig.write_text(named)
    for each in recorded.others(datetime.fromtimestamp(server.clock(), UTC)):
        namespace = each["metadata"]["namespace"]
        if server.store.get(NAMESPACES, "", namespace) is None:
            server.create(NAMESPACES, {"metadata": {"name": namespace}})
        stage.create(ROLLOUTS, each)
    yield stage
    await programs.close()
    await http.stop()


async def test_the_list_and_a_release_are_as_the_documentation_shows_them(played: Stage, visitors: Visitors) -> None:
    dashboard = await played.dashboard()
    tab = await visitors.tab(dashboard.url, width=1200, height=700)
    await tab.row(NAME).wait_for()
    await tab.picture("dashboard-list", whole=False, documents=True)
    await tab.row(f"{NAMESPACE}/{NAME}").get_by_role("link").first.click()
    await tab.reads_state("AwaitingApproval")
    gates = tab.main.get_by_role("listitem").filter(has=tab.page.get_by_text("Passed", exact=True))
    await tab.sees("30%", within=tab.main)
    await tab.sees("of 14,400 requests", "of requests beyond it, between", within=gates.filter(has_text="first-token"))
    # A figure that is a share of requests itself has one scale, and one interval.
    await tab.sees("of 14,400 requests", "0% and 0.0189%", within=gates.filter(has_text="errors"))
    await tab.sees_no("of requests beyond it", within=gates.filter(has_text="errors"))
    await tab.cell(3).last.wait_for()
    await tab.page.set_viewport_size({"width": 1200, "height": 1560})
    await tab.picture("dashboard-release", whole=False, documents=True)
    tab.calm()
