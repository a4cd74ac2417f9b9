"""A server that is away is told of, and what is shown comes back by itself."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from rollout_lws.cli.demo.manifests import NAME
from tests.browser.stage import ROLLOUTS, Dashboard, Stage
from tests.browser.tabs import NOT_ANSWERED, Tab, Visitors
from tests.browser.tunnel import Tunnel, tunnel
from tests.kubectl.programs import held_port

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
#: Seconds until a page has to tell; it does within one where the machine has nothing else to do.
_SOON = 3.0
_WHEN_OLD = """() => {
    window.told = [];
    const note = () => {
        const notes = [...document.querySelectorAll("[role=alert], [role=status]")].map((each) => each.innerText);
        const old = notes.some((each) => /\\bold\\b|does not answer|cannot be reached|not let in/.test(each));
        if (old !== (window.told.at(-1)?.old ?? false)) window.told.push({old, at: Date.now() / 1000});
    };
    new MutationObserver(note).observe(document.body, {subtree: true, childList: true, characterData: true});
}"""


async def _opened(visitors: Visitors, url: str) -> Tab:
    tab = await visitors.tab(url)
    await tab.reads_state("AwaitingApproval")
    await tab.page.evaluate(_WHEN_OLD)
    return tab


async def _tells(tab: Tab, *, old: bool, since: float, seconds: float = _SOON) -> None:
    await tab.until("old => window.told.length && window.told.at(-1).old === old", old, seconds=20)
    took = (await tab.page.evaluate("window.told.at(-1).at")) - since
    assert took < seconds, f"told after {took:.1f} s"


async def _follows(tab: Tab, stage: Stage, message: str) -> None:
    """A change of now is on the page."""
    stage.patch_status(ROLLOUTS, NAME, {"message": message})
    await tab.sees(message, within=tab.main)


async def test_an_api_server_that_is_away_is_told_of(standing: Stage, visitors: Visitors) -> None:
    tab = await _opened(visitors, (await standing.dashboard(NAME)).url)
    lists = await visitors.tab(urlsplit(tab.page.url)._replace(path="/").geturl(), beside=tab)
    await lists.row(NAME).wait_for()
    await lists.page.evaluate(_WHEN_OLD)
    standing.faults.stopped = True
    standing.faults.cut_watches()
    cut = time.time()

    await _tells(tab, old=True, since=cut)
    await _tells(lists, old=True, since=cut)
    await tab.picture("release-lost")
    # What was known is still there to be read.
    await tab.reads_state("AwaitingApproval")

    standing.faults.restore()
    await _tells(tab, old=False, since=time.time(), seconds=20)
    await _tells(lists, old=False, since=time.time(), seconds=20)
    await _follows(tab, standing, "told after the API server was back")
    await lists.sees("told after the API server was back")
    tab.calm()
    lists.calm()


async def test_a_tunnel_that_breaks_is_told_of_and_the_page_comes_back(standing: Stage, visitors: Visitors) -> None:
    async with _behind(standing) as (dashboard, way):
        tab = await _opened(visitors, dashboard.url)
        cut = time.time()
        await way.cut()
        await _tells(tab, old=True, since=cut)
        standing.patch_status(ROLLOUTS, NAME, {"message": "told while the tunnel was broken"})
        await way.open()
        await _tells(tab, old=False, since=time.time(), seconds=20)
        await tab.sees("told while the tunnel was broken", within=tab.main)
        await _follows(tab, standing, "told after the tunnel was back")
        tab.calm(but=NOT_ANSWERED)


@asynccontextmanager
async def _behind(stage: Stage) -> AsyncIterator[tuple[Dashboard, Tunnel]]:
    """A dashboard at the end of a tunnel, as of ssh."""
    own, other = held_port(), held_port()
    dashboard = await stage.dashboard(NAME, "--host", f"127.0.0.1:{other}", port=own)
    async with tunnel(other, own) as way:
        yield Dashboard(dashboard.program, dashboard.url.replace(f":{own}/", f":{other}/")), way


async def test_a_dashboard_that_was_started_again_wants_its_address_opened(standing: Stage, visitors: Visitors) -> None:
    port = held_port()
    before = await standing.dashboard(NAME, port=port)
    tab = await _opened(visitors, before.url)
    killed = time.time()
    await before.program.kill()
    await _tells(tab, old=True, since=killed)

    after = await standing.dashboard(NAME, port=port)
    await tab.sees("open the address that rollout-lws dashboard printed")
    await visitors.tab(after.url, beside=tab)
    await _tells(tab, old=False, since=time.time(), seconds=20)
    await _follows(tab, standing, "told by the second dashboard")
    tab.calm(but=NOT_ANSWERED)


async def test_a_rollout_that_is_deleted_is_told_of_and_found_when_it_is_back(
    standing: Stage, visitors: Visitors
) -> None:
    tab = await visitors.tab((await standing.dashboard(NAME)).url)
    await tab.reads_state("AwaitingApproval")
    stored = standing.rollout()
    meta = {"name": NAME, "namespace": stored["metadata"]["namespace"]}
    standing.patch(ROLLOUTS, NAME, {"metadata": {"finalizers": None}})
    standing.server.delete(ROLLOUTS, meta["namespace"], NAME)
    await tab.sees("was deleted", within=tab.main)
    standing.create(ROLLOUTS, {**stored, "metadata": meta})
    await tab.reads_state("AwaitingApproval")
    tab.calm(but=NOT_ANSWERED)
