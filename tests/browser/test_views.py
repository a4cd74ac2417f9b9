"""What a view of the page has begun ends with it: one tab shows many releases, one after the other."""

from __future__ import annotations

import re

import pytest

from rollout_lws.cli.demo.manifests import NAME
from tests.browser import rollouts
from tests.browser.stage import Dashboard, Stage
from tests.browser.tabs import NOT_ANSWERED, Tab, Visitors

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
#: Visits after which a page has what it keeps, and further ones that must not add to that.
_FIRST, _FURTHER = 3, 6


async def _visit(tab: Tab, name: str, state: str) -> None:
    """Open a release from the list."""
    await tab.row(name).get_by_role("link").first.click()
    await tab.reads_state(state)
    await tab.button("Abort").wait_for()


async def _leave(tab: Tab) -> None:
    await tab.page.get_by_role("link", name="Releases", exact=True).click()
    await tab.row(NAME).wait_for()


async def test_a_button_acts_on_the_release_that_is_shown_alone(standing: Stage, visitors: Visitors) -> None:
    rollouts.team(standing)
    tab = await visitors.tab((await standing.dashboard()).url)
    await _visit(tab, NAME, "AwaitingApproval")
    await _leave(tab)
    # Another release, on which nothing is on.
    await _visit(tab, "model-000", "Healthy")
    version = standing.rollout()["metadata"]["resourceVersion"]
    refused = tab.page.get_by_role("button", disabled=True)
    labels = [each for each in await refused.all_inner_texts() if each in ("Approve", "Promote all", "Abort", "Retry")]
    assert labels
    for label in labels:
        button = tab.button(label).first
        await tab.greys(button, "Not now")
        await button.click(force=True)
        await tab.sees(re.compile(f"^{label} is not possible now"), within=tab.main)
        assert not await tab.dialog.is_visible(), label
    assert [each.method for each in tab.requests if each.method != "GET"] == []

    # What a button of it does is about it, and is done once.
    await tab.act("Pause")
    await tab.until("() => performance.getEntriesByType('resource').some((each) => each.name.includes('/-/actions/'))")
    asked = [each.url.partition("/-/")[2] for each in tab.requests if each.method == "POST"]
    assert asked == ["actions/team-00/model-000"]
    assert standing.rollout()["metadata"]["resourceVersion"] == version
    tab.calm(but=NOT_ANSWERED)


async def test_a_view_that_is_closed_leaves_nothing_behind(shown: Dashboard, visitors: Visitors) -> None:
    tab = await visitors.tab(shown.url)
    await tab.row(NAME).wait_for()
    session = await tab.page.context.new_cdp_session(tab.page)

    async def counted(visits: int) -> dict[str, int]:
        for _ in range(visits):
            await _visit(tab, NAME, "AwaitingApproval")
            await tab.cell(0).first.click()
            await tab.reads_group(0)
            await _leave(tab)
        for _ in range(3):
            await session.send("HeapProfiler.collectGarbage")
        found = await session.send("Memory.getDOMCounters")
        return {name: found[name] for name in ("nodes", "jsEventListeners")}

    before = await counted(_FIRST)
    one = await tab.page.evaluate("document.querySelectorAll('*').length")
    after = await counted(_FURTHER)
    assert after["jsEventListeners"] <= before["jsEventListeners"], (before, after)
    # Texts that tell the time are exchanged, a whole view is not kept.
    assert after["nodes"] - before["nodes"] < one / 2, (before, after)
    tab.calm()
