"""An address is what is shown: sent to others it shows the same."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from rollout_lws.cli.demo.manifests import NAME
from rollout_lws.objects.resources import NAMESPACES
from tests.browser import rollouts
from tests.browser.stage import ROLLOUTS, Dashboard, Stage
from tests.browser.tabs import Tab, Visitors

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def _names(tab: Tab) -> list[str]:
    return await tab.row("model-").get_by_role("link").all_inner_texts()


async def test_an_address_with_filters_shows_the_same_rows(shown: Dashboard, visitors: Visitors) -> None:
    sent = await visitors.tab(shown.url)
    await sent.row("model-000").wait_for()
    every = await _names(sent)
    await sent.page.get_by_role("searchbox").fill("team-0 model")
    await sent.button("Stalled").click()
    await sent.button("Loading").click()
    await sent.until("() => document.querySelectorAll('tbody tr a').length === 4")
    rows = await _names(sent)
    assert set(rows) < set(every)

    got = await visitors.tab(sent.page.url, beside=sent)
    await got.row("model-").first.wait_for()
    assert await _names(got) == rows
    assert await got.page.get_by_role("searchbox").input_value() == "team-0 model"
    assert await got.page.get_by_role("button", pressed=True).count() == 2
    # By the keyboard's ways back, too.
    await got.row("model-").get_by_role("link").first.click()
    await got.page.go_back()
    await got.row("model-").first.wait_for()
    assert await _names(got) == rows
    sent.calm()
    got.calm()


async def test_an_address_with_an_open_group_shows_that_group(shown: Dashboard, visitors: Visitors) -> None:
    sent = await visitors.tab(shown.url)
    await sent.row(NAME).get_by_role("link").first.click()
    await sent.cell(2).click()
    await sent.reads_group(2)

    got = await visitors.tab(sent.page.url, beside=sent)
    await got.reads_group(2)

    await sent.page.go_back()
    await sent.gone(sent.panel)
    await sent.page.go_back()
    await sent.row(NAME).wait_for()
    await sent.page.go_forward()
    await sent.reads_state("AwaitingApproval")
    sent.calm()
    got.calm()


async def test_a_release_that_is_not_there_says_so(shown: Dashboard, visitors: Visitors) -> None:
    tab = await visitors.tab(shown.url)
    await tab.row(NAME).wait_for()
    await tab.page.goto(shown.at("default/no-such-release"))
    await tab.sees("there is no Rollout 'no-such-release'", within=tab.main)


async def test_links_lead_to_what_the_address_says_now(shown: Dashboard, visitors: Visitors) -> None:
    tab = await visitors.tab(shown.url)
    await tab.row("model-000").wait_for()
    await tab.page.get_by_role("searchbox").fill("model-000")
    await tab.counts(tab.row("model-"), 1)
    await tab.page.get_by_role("link", name="Wall view").click()
    await tab.page.get_by_role("link", name="Full view").wait_for()
    assert urlsplit(tab.page.url).query == "q=model-000&wall=1"

    # The wall stays from view to view, what is filtered by does not.
    await tab.row("model-000").get_by_role("link").first.click()
    await tab.reads_state("Healthy")
    assert urlsplit(tab.page.url).query == "wall=1"
    await tab.page.get_by_role("link", name="Releases", exact=True).click()
    await tab.row("model-001").wait_for()
    await tab.page.get_by_role("link", name="Full view").click()
    await tab.row("model-001").get_by_role("link").first.click()
    await tab.page.wait_for_url("**/model-001")
    tab.calm()


async def test_a_namespace_may_have_any_name(standing: Stage, visitors: Visitors) -> None:
    body = rollouts.made(0)
    places = [("stream", "list"), ("files", "app.js"), ("rights", "model")]
    for namespace, name in places:
        standing.server.create(NAMESPACES, {"metadata": {"name": namespace}})
        standing.create(ROLLOUTS, {**body, "metadata": {"name": name, "namespace": namespace}})
    dashboard = await standing.dashboard()
    tab = await visitors.tab(dashboard.url)
    await tab.row(NAME).wait_for()
    for namespace, name in places:
        await tab.page.goto(dashboard.at(f"{namespace}/{name}"))
        await tab.reads_state("Healthy")
        assert f"{namespace}/{name}" in (await tab.heading.inner_text()).replace("\u200b", "")
    tab.calm()
