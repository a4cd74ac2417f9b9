"""What the page cannot show it tells, instead of going on as if all were shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from rollout_lws.cli.demo.manifests import NAME, NAMESPACE
from tests.browser import rollouts
from tests.browser.stage import ROLLOUTS, Stage
from tests.browser.tabs import NOT_ANSWERED, Tab, Visitors

if TYPE_CHECKING:
    from playwright.async_api import Route

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
#: Names that every object of JavaScript has.
_INHERITED = ("constructor", "toString", "__proto__", "hasOwnProperty")
#: From now on what is told lacks this member, as of a dashboard of another version.
_FORGET = """(member) => {
    const parse = JSON.parse;
    JSON.parse = (text) => {
        const found = parse(text);
        delete found[member];
        return found;
    };
}"""
#: What the console says of a failure.
_FAILED = re.compile("TypeError")
_VERSION = re.compile('(<meta name="version" content=")[^"]*')


async def _alerts(tab: Tab, text: str) -> None:
    await tab.sees(text, within=tab.page.get_by_role("alert"))
    assert await tab.page.locator("#live-word").inner_text() != "live"


async def test_a_state_of_any_name_hides_no_other_rollout(standing: Stage, visitors: Visitors) -> None:
    rollouts.team(standing, len(_INHERITED))
    for number, state in enumerate(_INHERITED):
        meta = rollouts.made(number)["metadata"]
        standing.patch_status(ROLLOUTS, meta["name"], {"summary": {"state": state}}, meta["namespace"])
    tab = await visitors.tab((await standing.dashboard()).url)
    await tab.row(NAME).wait_for()
    for state in _INHERITED:
        await tab.sees(state, within=tab.row("model-"))
    await tab.button("constructor").click()
    await tab.counts(tab.row("model-"), 1)
    await tab.row("model-").get_by_role("link").first.click()
    await tab.sees("constructor", within=tab.main)
    await tab.button("Abort").wait_for()
    tab.calm()


async def test_a_release_that_one_may_not_see_is_not_waited_for_in_silence(standing: Stage, visitors: Visitors) -> None:
    dashboard = await standing.dashboard()
    standing.forbid("list", ROLLOUTS)
    tab = await visitors.tab(f"{dashboard.url.replace('/?', f'/{NAMESPACE}/{NAME}?')}")
    await tab.sees("cannot be shown yet", within=tab.main)
    await tab.sees("is forbidden", within=tab.page.get_by_role("alert"))
    tab.calm(but=NOT_ANSWERED)


@pytest.mark.parametrize("answer", [{}, {"body": "import {", "content_type": "text/javascript"}], ids=["lost", "odd"])
async def test_a_page_that_is_not_loaded_whole_says_so(
    standing: Stage, visitors: Visitors, answer: dict[str, str]
) -> None:
    dashboard = await standing.dashboard()
    tab = await visitors.tab(dashboard.url)
    await tab.row(NAME).wait_for()
    await tab.page.route("**/-/files/words.js", lambda route: route.fulfill(**answer) if answer else route.abort())

    await tab.page.reload()

    await _alerts(tab, "This page was not loaded whole")
    await tab.page.unroute_all()
    await tab.page.reload()
    await tab.row(NAME).wait_for()
    await tab.gone(tab.page.get_by_role("alert"))
    tab.calm(but=re.compile("Unexpected end of input|net::ERR_FAILED"))


async def test_an_event_that_the_page_does_not_understand_is_told_of(standing: Stage, visitors: Visitors) -> None:
    tab = await visitors.tab((await standing.dashboard()).url)
    await tab.row(NAME).wait_for()
    await tab.page.evaluate(_FORGET, "rows")
    standing.patch_status(ROLLOUTS, NAME, {"message": "told in vain"})

    await _alerts(tab, "This page cannot show the list")

    assert (await tab.page.title()).startswith("(old)")
    await tab.page.get_by_role("link", name="reload it").click()
    await tab.sees("told in vain", within=tab.row(NAME))
    await tab.gone(tab.page.get_by_role("alert"))
    tab.calm(but=_FAILED)


async def test_a_part_that_cannot_be_shown_hides_no_other(standing: Stage, visitors: Visitors) -> None:
    tab = await visitors.tab((await standing.dashboard(NAME)).url)
    await tab.reads_state("AwaitingApproval")
    await tab.page.evaluate(_FORGET, "gates")
    standing.patch_status(ROLLOUTS, NAME, {"message": "told all the same", "summary": {"state": "Paused"}})

    await _alerts(tab, "This page cannot show the gates")

    await tab.sees("told all the same", within=tab.main)
    await tab.reads_state("Paused")
    # It stays so with what follows, until another view is opened.
    standing.patch_status(ROLLOUTS, NAME, {"message": "told after that"})
    await tab.sees("told after that", within=tab.main)
    await _alerts(tab, "This page cannot show the gates")
    await tab.page.get_by_role("link", name="Releases", exact=True).click()
    await tab.row(NAME).wait_for()
    await tab.gone(tab.page.get_by_role("alert"))
    tab.calm(but=_FAILED)


async def test_a_failure_of_a_listener_is_told_of(standing: Stage, visitors: Visitors) -> None:
    tab = await visitors.tab((await standing.dashboard(NAME)).url)
    await tab.reads_state("AwaitingApproval")
    # A dialog that is no child of the document cannot be opened.
    await tab.page.evaluate("document.querySelector('dialog').remove()")
    await tab.button("Approve").click()
    await _alerts(tab, "This page cannot show all")
    tab.calm(but=re.compile("InvalidStateError|showModal"))


async def _opened_by_an_older_page(stage: Stage, visitors: Visitors, times: int) -> tuple[Tab, list[str]]:
    """The list, of which the page is so many times that of an older version; the pages that were loaded."""
    dashboard = await stage.dashboard()
    tab = await visitors.tab(dashboard.url)
    await tab.row(NAME).wait_for()
    loaded: list[str] = []

    async def older(route: Route) -> None:
        answer = await route.fetch()
        page = await answer.text()
        if len(loaded) < times:
            page = _VERSION.sub(r"\g<1>0.0.1", page)
        loaded.append(page)
        await route.fulfill(response=answer, body=page)

    await tab.page.route(dashboard.at(""), older)
    await tab.page.goto(dashboard.at(""))
    return tab, loaded


async def test_a_page_of_an_older_version_is_loaded_again(standing: Stage, visitors: Visitors) -> None:
    tab, loaded = await _opened_by_an_older_page(standing, visitors, 1)
    await tab.counts(tab.page.locator("meta[name=version][content='0.0.1']"), 0)
    await tab.row(NAME).wait_for()
    await tab.sees(re.compile("^live$"), within=tab.page.locator("#live"))
    assert len(loaded) == 2
    assert await tab.page.get_by_role("alert").is_hidden()
    tab.calm()


async def test_a_page_that_stays_of_an_older_version_says_so(standing: Stage, visitors: Visitors) -> None:
    tab, loaded = await _opened_by_an_older_page(standing, visitors, 9)
    await _alerts(tab, "This page is of version 0.0.1")
    await tab.row(NAME).wait_for()
    assert len(loaded) == 2
    tab.calm()
