"""An address is what is shown: sent to others it shows the same."""

from __future__ import annotations

import pytest

from rollout_lws.cli.demo.manifests import NAME
from tests.browser.stage import Dashboard
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
